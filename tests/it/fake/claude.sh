#!/bin/sh
# A stand-in for the CLI's process; --model names what it does with each line.
model='' session='' uuid=''
while [ $# -gt 0 ]; do
    case $1 in
    --version) echo '2.1.197 (Claude Code)'; exit 0 ;;
    --model) model=$2 ;;
    --session-id | --resume) session=$2 ;;
    esac
    shift
done
file="$CLAUDE_CONFIG_DIR/projects/fake/$session.jsonl"
mkdir -p "${file%/*}"

version=$(cat "$HOME/version" 2>/dev/null || echo 2.1.197)
init() { echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"${1:-$session}\",\"claude_code_version\":\"$version\",\"user_message_uuids\":[\"$uuid\"]}"; }
heard() {
    init
    echo "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"$uuid\"}"
    echo "{\"type\":\"user\",\"uuid\":\"$uuid\",\"message\":{\"role\":\"user\",\"content\":\"words\"}}" >>"$file"
}
output='{"say":[{"text":"done"}],"react":[]}'
result() { echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"terminal_reason\":\"completed\",\"user_message_uuids\":[\"${2:-$uuid}\"],$1}"; }
answer() {
    echo "{\"type\":\"assistant\",\"message\":{\"model\":\"m\",\"content\":[{\"type\":\"tool_use\",\"name\":\"StructuredOutput\",\"input\":$output}]}}" >>"$file"
    result "\"structured_output\":$output"
}
silence() { while :; do sleep 1; done; }

case $model in
dies-at-once) exit 3 ;;
does-not-know) echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}'; exit 1 ;;
in-use) echo "Error: Session ID $session is already in use." >&2; exit 1 ;;
late-file) [ -e "$file" ] || { echo '{"type":"user","uuid":"x","message":{}}' >"$file"; echo "Error: Session ID $session is already in use." >&2; exit 1; } ;;
does-not-read) silence ;;
deaf) trap '' TERM INT HUP ;;
forks)
    sleep 1000 & echo $! >>"$HOME/forked"
    setsid sleep 1001 & echo $! >>"$HOME/forked"
    ;;
esac
while IFS= read -r line; do
    uuid=$(printf %s "$line" | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
    printf %s "$line" | sed 's/.*"content":"\([^"]*\)".*/\1\n/' | head -c 100 >>"$HOME/fed"
    case $model in
    answers | late-file) heard; answer ;;
    dies-after-reading) exit 3 ;;
    dies-after-hearing) heard; exit 3 ;;
    dies-in-a-line) heard; printf '{"type":"result","subty'; exit 3 ;;
    dies-after-writing) heard; answer >/dev/null; exit 3 ;;
    closes-its-output) heard; exec >&-; silence ;;
    floods) heard; i=0; while [ $i -lt 50000 ]; do echo '{"type":"stream_event","event":{}}'; i=$((i + 1)); done; answer ;;
    strange) heard; echo 'not json'; echo '{"type":"new_thing"}'; echo '[1]'; echo; printf '\377\n'; echo '{"type":7,"message":"x"}'; answer ;;
    huge) heard; printf '{"type":"x","y":"'; head -c 5000000 /dev/zero | tr '\0' x; echo '"}'; answer ;;
    stale) heard; result '"structured_output":{"say":[{"text":"of another line"}],"react":[]}' 00000000-0000-4000-8000-000000000000; answer ;;
    unnamed) heard; echo '{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","structured_output":{"say":[],"react":[]}}'; answer ;;
    null) heard; result '"structured_output":null,"result":""' ;;
    text) heard; result '"result":"hello"' ;;
    list) heard; result '"structured_output":[1]' ;;
    limit-as-success) heard; result '"result":"You'"'"'ve hit your limit · resets 3pm (UTC)"' ;;
    too-long-as-success) heard; result '"result":"Prompt is too long"' ;;
    changes-session) init 00000000-0000-4000-8000-000000000001; silence ;;
    compacts) heard; echo '{"type":"system","subtype":"compact_boundary"}'; silence ;;
    compacts-after-writing)
        heard
        answer >/dev/null
        echo '{"type":"system","subtype":"compact_boundary"}' >> "$file"
        echo '{"type":"system","subtype":"compact_boundary"}'
        silence ;;
    compacts-later) heard; answer; echo '{"type":"system","subtype":"compact_boundary"}' ;;
    compacts-once)
        heard
        if [ -e "$HOME/compacted" ]; then
            until [ -e "$HOME/go" ]; do sleep 0.1; done
            answer
        else
            touch "$HOME/compacted"
            echo '{"type":"system","subtype":"compact_boundary"}'
            silence
        fi ;;
    dies-in-its-first-session)
        heard
        [ -e "$HOME/first" ] || echo "$session" >"$HOME/first"
        if grep -q "$session" "$HOME/first"; then echo died >>"$HOME/deaths"; exit 3; fi
        answer ;;
    no-file) heard; rm "$file"; result "\"structured_output\":$output" ;;
    no-durable-file) heard; ln -sf /proc/self/status "$file"; result "\"structured_output\":$output" ;;
    *) heard; silence ;;
    esac
done
