#!/bin/bash
# A stand-in that does as the bridge relies on, but for one point: FAULT VERSION ARGUMENTS...
fault=$1 version=$2
shift 2
[ $# = 1 ] && { echo "$version (Claude Code)"; exit 0; }
while [ $# -gt 0 ]; do
    case $1 in
    --session-id | --resume) opening=$1 session=$2 ;;
    --system-prompt-file) prompt=$(cat "$2") ;;
    esac
    shift
done
file="$CLAUDE_CONFIG_DIR/projects/play/$session.jsonl"
mkdir -p "${file%/*}"
output='{"say":[{"text":"The contract holds."}],"react":[]}'
tools='{"name":"StructuredOutput"}'
init=$session
case $fault in
prompt) prompt='' ;;
tools) tools="$tools,{\"name\":\"Bash\"}" ;;
session) init=00000000-0000-4000-8000-000000000001 ;;
esac

ask() {
    said=$(tr -d '"\n' <"$file")
    [ "$fault$opening" = resume--resume ] && said=$words
    body="{\"model\":\"m\",\"system\":[{\"text\":\"$prompt\"}],\"tools\":[$tools],\"messages\":[\"$said\"]}"
    address=${ANTHROPIC_BASE_URL#http://}
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    printf 'POST /v1/messages?beta=true HTTP/1.1\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&3
    cat <&3 >/dev/null
    exec 3>&-
}
result() { echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"terminal_reason\":\"completed\",\"user_message_uuids\":[\"$1\"],$2}"; }

while IFS= read -r line; do
    case $line in
    *'"initialize"'*) echo '{"type":"control_response","response":{"subtype":"success"}}'; continue ;;
    esac
    uuid=$(printf %s "$line" | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
    words=$(printf %s "$line" | sed 's/.*"content":"\([^"]*\)".*/\1/')
    if grep -qs "\"uuid\":\"$uuid\"" "$file"; then
        [ "$fault" = repeated ] && ask
        exit 0
    fi
    echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$init\",\"user_message_uuids\":[\"$uuid\"]}"
    echo "{\"type\":\"user\",\"uuid\":\"$uuid\",\"message\":{\"role\":\"user\",\"content\":\"$words\"}}" >>"$file"
    [ "$fault" = silent ] || ask
    [ "$fault" = record ] || echo "{\"type\":\"assistant\",\"message\":{\"model\":\"m\",\"content\":[{\"type\":\"tool_use\",\"name\":\"StructuredOutput\",\"input\":$output}]}}" >>"$file"
    case $fault in
    unnamed) result "$init" "\"structured_output\":$output"; exit 0 ;;
    untyped) result "$uuid" '"result":"The contract holds."' ;;
    *) result "$uuid" "\"structured_output\":$output" ;;
    esac
done
