//! What every probe answer means, word for word, with its exit code.

use std::time::Duration;

use ruma::{owned_event_id, owned_server_name, owned_user_id};

use super::super::ExitCode;
use super::*;
use crate::homeserver::client::{CallError, CallErrorKind, Mode};
use crate::mind::claude::Breach;
use crate::store::StoreError;

fn error(call: &'static str, kind: CallErrorKind, status: u16, errcode: &str, message: &str) -> CallError {
    CallError { call, kind, status, errcode: errcode.into(), message: message.into() }
}

fn refused(kind: CallErrorKind, status: u16, errcode: &str, message: &str) -> CallError {
    error("whoami", kind, status, errcode, message)
}

fn not_sent() -> CallError {
    refused(CallErrorKind::NotSent, 0, "", "connection refused")
}

fn bot(answer: Result<&str, CallError>) -> ProbeAnswer {
    let answer = answer.map(|user| user.try_into().expect("user"));
    ProbeAnswer::Bot(owned_user_id!("@bot:hs.test"), owned_server_name!("hs.test"), answer)
}

fn persona(answer: Result<&str, CallError>) -> ProbeAnswer {
    let answer = answer.map(|user| user.try_into().expect("user"));
    ProbeAnswer::Persona(owned_user_id!("@persona_eir:hs.test"), answer)
}

fn ping(ear: Ear, answer: Result<u64, CallError>) -> ProbeAnswer {
    ProbeAnswer::Ping(Ping {
        url: "http://bridge:29600".into(),
        listen: "127.0.0.1:29600".parse().expect("address"),
        ear,
        answer: answer.map(Duration::from_millis),
    })
}

fn ping_error(status: u16, errcode: &str, message: &str) -> CallError {
    let kind = match status {
        401 => CallErrorKind::Unauthorized,
        403 => CallErrorKind::Forbidden,
        404 => CallErrorKind::NotFound,
        500.. => CallErrorKind::Server,
        _ => CallErrorKind::Refused,
    };
    error("ping", kind, status, errcode, message)
}

fn store(answer: StoreAnswer) -> ProbeAnswer {
    ProbeAnswer::Store("/srv/store".into(), answer)
}

fn refused_store(error: StoreError) -> ProbeAnswer {
    store(StoreAnswer::Refused(error, false))
}

fn disk(free: Result<u64, String>) -> ProbeAnswer {
    ProbeAnswer::Disk("/srv/store".into(), free, 256 << 20)
}

#[track_caller]
fn check(answer: ProbeAnswer, code: ExitCode, expected: &str) {
    let finding = diagnose(answer);
    assert_eq!(finding.to_string(), expected);
    assert_eq!(finding.code(), code);
}

#[test]
fn the_homeserver_answers_or_not() {
    check(
        ProbeAnswer::Versions("http://hs".into(), Ok(vec!["v1.1".into(), "v1.7".into()])),
        ExitCode::Ok,
        "ok   homeserver: answers at http://hs",
    );
    check(
        ProbeAnswer::Versions("http://hs".into(), Ok(vec!["r0.6.1".into(), "v1.2".into()])),
        ExitCode::Unsupported,
        "FAIL homeserver: speaks Matrix only up to v1.2; update it to one that speaks v1.7",
    );
    check(
        ProbeAnswer::Versions("http://hs".into(), Ok(vec![])),
        ExitCode::Unsupported,
        "FAIL homeserver: speaks Matrix only up to (nothing); update it to one that speaks v1.7",
    );
    check(
        ProbeAnswer::Versions("http://hs".into(), Err(not_sent())),
        ExitCode::HomeserverUnreachable,
        "FAIL homeserver: http://hs cannot be reached (connection refused); start the homeserver, or mend [homeserver] url",
    );
    check(
        ProbeAnswer::Versions("http://hs".into(), Err(refused(CallErrorKind::NotFound, 404, "", ""))),
        ExitCode::HomeserverUnreachable,
        "FAIL homeserver: http://hs is answered, but by no Matrix homeserver (404); mend [homeserver] url: it is the address of the client API, without /_matrix",
    );
    check(
        ProbeAnswer::Versions(
            "http://hs".into(),
            Err(refused(CallErrorKind::Uncertain, 200, "", "words that cannot be read")),
        ),
        ExitCode::HomeserverUnreachable,
        "FAIL homeserver: http://hs is answered, but by no Matrix homeserver (200 words that cannot be read); mend [homeserver] url: it is the address of the client API, without /_matrix",
    );
}

#[test]
fn clocks_agree_within_a_minute() {
    check(ProbeAnswer::Clock(None), ExitCode::Ok, "info clock: the homeserver does not tell the time");
    check(ProbeAnswer::Clock(Some(-60)), ExitCode::Ok, "ok   clock: agrees with the homeserver's");
    check(
        ProbeAnswer::Clock(Some(61)),
        ExitCode::Ok,
        "WARN clock: this machine is 61 s behind the homeserver; set both clocks by NTP; words would be marked late or early",
    );
    check(
        ProbeAnswer::Clock(Some(-3600)),
        ExitCode::Ok,
        "WARN clock: this machine is 3600 s ahead of the homeserver; set both clocks by NTP; words would be marked late or early",
    );
}

#[test]
fn the_token_belongs_to_the_bot() {
    check(bot(Ok("@bot:hs.test")), ExitCode::Ok, "ok   token: the homeserver knows us as @bot:hs.test");
    check(
        bot(Ok("@other:hs.test")),
        ExitCode::WrongUser,
        "FAIL token: the token belongs to @other:hs.test, not to @bot:hs.test; use the same registration file here and at the homeserver, and restart the homeserver",
    );
    check(
        bot(Ok("@bot:else.where")),
        ExitCode::WrongUser,
        "FAIL token: the homeserver is else.where, not hs.test; mend [homeserver] server_name, or [homeserver] url if it leads to another homeserver",
    );
    check(
        bot(Err(refused(
            CallErrorKind::Unauthorized,
            401,
            "M_UNKNOWN_TOKEN",
            "Invalid access token passed.",
        ))),
        ExitCode::TokenRefused,
        "FAIL token: the homeserver refuses as_token (401 M_UNKNOWN_TOKEN Invalid access token passed.); install this very registration at the homeserver and restart it; check that [homeserver] url is the right one, and that the tokens were not generated anew since",
    );
    check(
        bot(Err(refused(
            CallErrorKind::Forbidden,
            403,
            "M_FORBIDDEN",
            "Application service has not registered this user (@bot:hs.test)",
        ))),
        ExitCode::WrongUser,
        "FAIL token: the bot was registered, and the homeserver still knows no @bot:hs.test (403 M_FORBIDDEN Application service has not registered this user (@bot:hs.test)); hs.test is not its name; mend [homeserver] server_name",
    );
    check(
        bot(Err(refused(CallErrorKind::Forbidden, 403, "M_FORBIDDEN", "User does not exist."))),
        ExitCode::WrongUser,
        "FAIL token: the bot was registered, and the homeserver still knows no @bot:hs.test (403 M_FORBIDDEN User does not exist.); hs.test is not its name; mend [homeserver] server_name",
    );
    check(
        bot(Err(refused(
            CallErrorKind::Forbidden,
            403,
            "M_FORBIDDEN",
            "Application service cannot masquerade as this user (@bot:hs.test).",
        ))),
        ExitCode::WrongUser,
        "FAIL token: @bot:hs.test is not ours by the homeserver's registration (403 M_FORBIDDEN Application service cannot masquerade as this user (@bot:hs.test).); if hs.test is not its name, mend [homeserver] server_name; else install this very registration and restart the homeserver",
    );
    check(
        bot(Err(refused(CallErrorKind::Forbidden, 400, "M_EXCLUSIVE", "User is not in namespace."))),
        ExitCode::WrongUser,
        "FAIL token: @bot:hs.test is not ours by the homeserver's registration (400 M_EXCLUSIVE User is not in namespace.); if hs.test is not its name, mend [homeserver] server_name; else install this very registration and restart the homeserver",
    );
}

#[test]
fn a_token_that_could_not_be_tried_is_told() {
    check(
        bot(Err(not_sent())),
        ExitCode::HomeserverUnreachable,
        "FAIL token: the homeserver gave no answer (connection refused); look at the homeserver's log and at what lies between",
    );
    check(
        bot(Err(refused(CallErrorKind::Server, 500, "M_UNKNOWN", "Internal server error"))),
        ExitCode::HomeserverUnreachable,
        "FAIL token: the homeserver has a fault of its own (500 M_UNKNOWN Internal server error); look at the homeserver's log",
    );
    check(
        bot(Err(refused(
            CallErrorKind::Limited(Duration::from_secs(4)),
            429,
            "M_LIMIT_EXCEEDED",
            "Too Many Requests",
        ))),
        ExitCode::Ok,
        "WARN token: the homeserver asks for patience (4 s); wait, or set rate_limited: false in the registration",
    );
    check(
        bot(Err(refused(CallErrorKind::NotFound, 404, "M_UNRECOGNIZED", "Unrecognized request"))),
        ExitCode::Unsupported,
        "FAIL token: whoami is not answered as Matrix has it (404 M_UNRECOGNIZED Unrecognized request); check that [homeserver] url leads to the homeserver itself, and update it",
    );
}

#[test]
fn each_persona_is_in_the_namespace() {
    check(persona(Ok("@persona_eir:hs.test")), ExitCode::Ok, "ok   namespace: @persona_eir:hs.test is ours");
    check(
        persona(Ok("@bot:hs.test")),
        ExitCode::WrongUser,
        "FAIL namespace: asked as @persona_eir:hs.test, the homeserver answers @bot:hs.test: it does not masquerade; check that [homeserver] url leads to the homeserver itself",
    );
    check(
        persona(Err(refused(
            CallErrorKind::Forbidden,
            403,
            "M_FORBIDDEN",
            "Application service has not registered this user (@persona_eir:hs.test)",
        ))),
        ExitCode::Ok,
        "ok   namespace: @persona_eir:hs.test is ours, and will be registered at the first start",
    );
    check(
        persona(Err(refused(
            CallErrorKind::Forbidden,
            403,
            "M_FORBIDDEN",
            "Application service cannot masquerade as this user (@persona_eir:hs.test).",
        ))),
        ExitCode::WrongUser,
        "FAIL namespace: @persona_eir:hs.test is outside the namespace that the homeserver has (403 M_FORBIDDEN Application service cannot masquerade as this user (@persona_eir:hs.test).); install this very registration and restart the homeserver; check server_name and user_prefix",
    );
    check(
        persona(Err(refused(CallErrorKind::Forbidden, 400, "M_EXCLUSIVE", "User is not in namespace."))),
        ExitCode::WrongUser,
        "FAIL namespace: @persona_eir:hs.test is outside the namespace that the homeserver has (400 M_EXCLUSIVE User is not in namespace.); install this very registration and restart the homeserver; check server_name and user_prefix",
    );
}

#[test]
fn devices_are_had_in_one_of_two_ways() {
    check(
        ProbeAnswer::Device(Ok(Mode::Masquerade)),
        ExitCode::Ok,
        "ok   device: Personas speak with a device of their own (masquerading)",
    );
    check(
        ProbeAnswer::Device(Ok(Mode::Token)),
        ExitCode::Ok,
        "ok   device: Personas speak with a token of their own (no masquerading here)",
    );
    check(
        ProbeAnswer::Device(Err(error("put_device", CallErrorKind::Server, 500, "", "(an empty answer)"))),
        ExitCode::Unsupported,
        "FAIL device: the homeserver gives a ghost no device (500 (an empty answer)); update the homeserver; see docs/operating.md for those that are known to work",
    );
}

#[test]
fn a_ping_goes_there_and_back() {
    check(
        ping(Ear::Ours(Some(200)), Ok(12)),
        ExitCode::Ok,
        "ok   ping: the homeserver reaches http://bridge:29600 in 12 ms",
    );
    check(
        ping(Ear::Theirs, Ok(12)),
        ExitCode::Ok,
        "ok   ping: the homeserver reaches the bridge that runs at http://bridge:29600 in 12 ms",
    );
    check(
        ping(Ear::Ours(None), Ok(12)),
        ExitCode::BridgeUnreachable,
        "FAIL ping: http://bridge:29600 is answered, but not by what listens at 127.0.0.1:29600; make [appservice] url (and the registration's) lead to [appservice] listen",
    );
    check(
        ping(Ear::Unbound("Cannot assign requested address".into()), Ok(12)),
        ExitCode::ConfigInvalid,
        "FAIL ping: 127.0.0.1:29600 cannot be bound (Cannot assign requested address); mend [appservice] listen: it is an address of this machine",
    );
}

#[test]
fn a_wrong_hs_token_is_known_by_the_ear_or_the_status() {
    check(
        ping(Ear::Ours(Some(403)), Err(ping_error(502, "M_BAD_STATUS", "HTTP 403 Forbidden"))),
        ExitCode::TokenRefused,
        "FAIL ping: the homeserver comes with another hs_token than ours (502 M_BAD_STATUS HTTP 403 Forbidden); install this very registration at the homeserver and restart it",
    );
    check(
        ping(
            Ear::Ours(Some(403)),
            Err(ping_error(400, "M_CONNECTION_FAILED", "Received invalid response from appservice")),
        ),
        ExitCode::TokenRefused,
        "FAIL ping: the homeserver comes with another hs_token than ours (400 M_CONNECTION_FAILED Received invalid response from appservice); install this very registration at the homeserver and restart it",
    );
    check(
        ping(Ear::Theirs, Err(ping_error(502, "M_BAD_STATUS", "HTTP 403 Forbidden"))),
        ExitCode::TokenRefused,
        "FAIL ping: the homeserver comes with another hs_token than ours (502 M_BAD_STATUS HTTP 403 Forbidden); install this very registration at the homeserver and restart it",
    );
}

#[test]
fn another_process_at_the_url_is_known_by_its_status() {
    check(
        ping(Ear::Theirs, Err(ping_error(502, "M_BAD_STATUS", "HTTP 404 Not Found"))),
        ExitCode::BridgeUnreachable,
        "FAIL ping: another process answers at http://bridge:29600 (status 404); find who listens there, or give the bridge another port in [appservice] listen and url",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(502, "M_BAD_STATUS", "HTTP 403 Forbidden"))),
        ExitCode::BridgeUnreachable,
        "FAIL ping: another process answers at http://bridge:29600 (status 403); find who listens there, or give the bridge another port in [appservice] listen and url",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(400, "M_BAD_STATUS", "Ping returned error status"))),
        ExitCode::BridgeUnreachable,
        "FAIL ping: http://bridge:29600 answers the homeserver's ping with status unknown; look at what lies between the homeserver and the bridge",
    );
    check(
        ping(Ear::Ours(Some(500)), Err(ping_error(502, "M_BAD_STATUS", "HTTP 500 Internal Server Error"))),
        ExitCode::BridgeUnreachable,
        "FAIL ping: http://bridge:29600 answers the homeserver's ping with status 500; look at what lies between the homeserver and the bridge",
    );
}

#[test]
fn a_ping_that_does_not_arrive_names_the_way() {
    check(
        ping(
            Ear::Ours(None),
            Err(ping_error(502, "M_CONNECTION_FAILED", "ConnectionRefusedError: Connection refused")),
        ),
        ExitCode::BridgeUnreachable,
        "FAIL ping: the homeserver cannot reach http://bridge:29600 (502 M_CONNECTION_FAILED ConnectionRefusedError: Connection refused); mend [appservice] url as seen from the homeserver's machine, then generate and install the registration",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(504, "M_CONNECTION_TIMEOUT", "Timed out"))),
        ExitCode::BridgeUnreachable,
        "FAIL ping: http://bridge:29600 does not answer the homeserver in time; look for a firewall or a proxy between the homeserver and the bridge",
    );
    check(
        ping(
            Ear::Ours(None),
            Err(ping_error(400, "M_URL_NOT_SET", "The application service does not have a URL set")),
        ),
        ExitCode::BridgeUnreachable,
        "FAIL ping: the homeserver's registration has no url; generate the registration with [appservice] url set, install it and restart the homeserver",
    );
}

#[test]
fn a_ping_that_is_refused_names_the_registration() {
    check(
        ping(
            Ear::Ours(None),
            Err(ping_error(403, "M_FORBIDDEN", "Mismatching application service ID in path")),
        ),
        ExitCode::WrongUser,
        "FAIL ping: the homeserver knows our token under another id (403 M_FORBIDDEN Mismatching application service ID in path); install this very registration at the homeserver and restart it",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(401, "M_UNKNOWN_TOKEN", "Invalid access token passed."))),
        ExitCode::TokenRefused,
        "FAIL ping: the homeserver refuses as_token (401 M_UNKNOWN_TOKEN Invalid access token passed.); install this very registration at the homeserver and restart it",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(404, "M_UNRECOGNIZED", "Unrecognized request"))),
        ExitCode::Unsupported,
        "FAIL ping: the homeserver has no ping; update it; without one nobody can tell whether its events arrive",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(404, "", "(an answer of 9 bytes that is not Matrix's JSON)"))),
        ExitCode::Unsupported,
        "FAIL ping: the homeserver has no ping (404 (an answer of 9 bytes that is not Matrix's JSON)); update it, or let the proxy before it pass /_matrix/client/v1/appservice",
    );
    check(
        ping(Ear::Ours(None), Err(not_sent())),
        ExitCode::HomeserverUnreachable,
        "FAIL ping: the homeserver gave no answer (connection refused); look at the homeserver's log and at what lies between",
    );
    check(
        ping(Ear::Ours(None), Err(ping_error(418, "M_TEAPOT", "short and stout"))),
        ExitCode::BridgeUnreachable,
        "FAIL ping: the homeserver did not ping http://bridge:29600 (418 M_TEAPOT short and stout); look at the homeserver's log",
    );
}

#[test]
fn the_same_id_twice_is_one_event() {
    check(
        ProbeAnswer::Twice(Ok((owned_event_id!("$a"), owned_event_id!("$a")))),
        ExitCode::Ok,
        "ok   idempotency: the same transaction id twice gives one event",
    );
    check(
        ProbeAnswer::Twice(Ok((owned_event_id!("$a"), owned_event_id!("$b")))),
        ExitCode::Unsupported,
        "FAIL idempotency: the same transaction id twice gives two events, so words could appear twice; update the homeserver; see docs/operating.md for those that are known to work",
    );
    check(
        ProbeAnswer::Twice(Err(error(
            "send",
            CallErrorKind::Forbidden,
            403,
            "M_FORBIDDEN",
            "User not in room",
        ))),
        ExitCode::Ok,
        "WARN idempotency: could not be tried in the scratch room (send: 403 M_FORBIDDEN User not in room); look at the homeserver's log; invite the bot again if it was taken out of that room",
    );
}

#[test]
fn the_program_has_its_version() {
    check(ProbeAnswer::Program(Ok("2.1.332".into())), ExitCode::Ok, "ok   claude: is 2.1.332");
    check(
        ProbeAnswer::Program(Ok("2.1.400".into())),
        ExitCode::Ok,
        "WARN claude: is 2.1.400; the bridge was measured on 2.1.332; go on with care, or install 2.1.332",
    );
    check(
        ProbeAnswer::Program(Err("claude 2.1.197 is older than 2.1.332: it loses turns".into())),
        ExitCode::MindFailed,
        "FAIL claude: claude 2.1.197 is older than 2.1.332: it loses turns; install @anthropic-ai/claude-code-linux-x64@2.1.332 and name it in [mind.claude] program",
    );
}

#[test]
fn a_handshake_costs_nothing_and_tells_much() {
    check(
        ProbeAnswer::Handshake(Ok(())),
        ExitCode::Ok,
        "ok   handshake: claude takes our arguments and answers, without an API call",
    );
    check(
        ProbeAnswer::Handshake(Err("it did not answer within 30 s".into())),
        ExitCode::MindFailed,
        "FAIL handshake: claude does not answer as 2.1.332 does: it did not answer within 30 s; install \
         @anthropic-ai/claude-code-linux-x64@2.1.332 and name it in [mind.claude] program",
    );
}

#[test]
fn the_contract_is_told_point_by_point() {
    check(
        ProbeAnswer::Contract(vec![]),
        ExitCode::Ok,
        "ok   contract: claude thinks, records and resumes as the bridge relies on, on an API of our own",
    );
    check(
        ProbeAnswer::Contract(vec![Breach::Untried("no free port".into())]),
        ExitCode::Ok,
        "WARN contract: it could not be tried (no free port); mend that, and ask the doctor again",
    );
    check(
        ProbeAnswer::Contract(vec![Breach::Prompt, Breach::Repeated]),
        ExitCode::MindFailed,
        "FAIL contract: claude does not do as 2.1.332 does: the request does not carry our system prompt, a resumed \
         process asks the API again for a line that was answered; install \
         @anthropic-ai/claude-code-linux-x64@2.1.332 and name it in [mind.claude] program",
    );
}

#[test]
fn what_the_running_bridge_waits_for_is_told() {
    check(ProbeAnswer::Ready(Ok(())), ExitCode::Ok, "ok   ready: the running bridge is ready");
    check(
        ProbeAnswer::Ready(Err(vec!["the brake holds eir".into(), "the disk is full".into()])),
        ExitCode::Ok,
        "WARN ready: the running bridge is not ready: the brake holds eir; the disk is full; see docs/operating.md for what each means",
    );
}

#[test]
fn whom_the_brake_holds_is_told() {
    check(ProbeAnswer::Brake(Ok(None)), ExitCode::Ok, "ok   brake: it holds nobody");
    check(
        ProbeAnswer::Brake(Ok(Some("eir".into()))),
        ExitCode::Ok,
        "WARN brake: it holds eir: nothing will be asked; let go with `persona-bridge brake release` when she may be asked again",
    );
    check(
        ProbeAnswer::Brake(Err("it cannot be read".into())),
        ExitCode::Ok,
        "WARN brake: it holds everyone, since it cannot be read; let go with `persona-bridge brake release` when she may be asked again",
    );
}

#[test]
fn the_store_is_ours_and_writable() {
    check(store(StoreAnswer::Opened), ExitCode::Ok, "ok   store: /srv/store is ours and can be written");
    check(store(StoreAnswer::New), ExitCode::Ok, "ok   store: /srv/store will be made at the first start");
    check(
        store(StoreAnswer::Unwritable("Permission denied (os error 13)".into())),
        ExitCode::StoreFailed,
        "FAIL store: /srv/store cannot be written (Permission denied (os error 13)); give the bridge's user the right to, or mend [store] path",
    );
    check(
        store(StoreAnswer::Refused(StoreError::Locked { path: "/srv/store".into() }, true)),
        ExitCode::Ok,
        "ok   store: /srv/store is in use, and so is the bridge's address: the bridge runs",
    );
    check(
        refused_store(StoreError::Locked { path: "/srv/store".into() }),
        ExitCode::StoreRefused,
        "FAIL store: /srv/store is in use by a process that does not listen for the homeserver; find it (`fuser` on the folder) and stop it",
    );
    check(
        refused_store(StoreError::Owner {
            path: "/srv/store".into(),
            found: "a at x".into(),
            wanted: "b at y".into(),
        }),
        ExitCode::StoreRefused,
        "FAIL store: the store at /srv/store belongs to a at x, not to b at y; set [store] path to another folder; each bridge has a store of its own",
    );
    check(
        refused_store(StoreError::Version {
            path: "/srv/store".into(),
            found: 9,
            wanted: 1,
            writer: "2.0.0".into(),
        }),
        ExitCode::StoreRefused,
        "FAIL store: the store at /srv/store has format 9, written by persona-bridge 2.0.0; this one reads format 1; run the version that fits it",
    );
    check(
        refused_store(StoreError::Corrupt { tree: "turns", key: "eir".into(), reason: "it is cut".into() }),
        ExitCode::StoreFailed,
        "FAIL store: the record eir in turns cannot be read: it is cut; look at the disk, then restore the last backup",
    );
    check(
        refused_store(StoreError::Io("Input/output error".into())),
        ExitCode::StoreFailed,
        "FAIL store: the store failed: Input/output error; look at the disk, then restore the last backup",
    );
}

#[test]
fn the_disk_has_room() {
    check(disk(Ok(1 << 30)), ExitCode::Ok, "ok   disk: 1024 MiB are free under /srv/store");
    check(disk(Ok(512 << 20)), ExitCode::Ok, "ok   disk: 512 MiB are free under /srv/store");
    check(
        disk(Ok(300 << 20)),
        ExitCode::Ok,
        "WARN disk: 300 MiB are free under /srv/store; below 256 MiB nothing is accepted; make room soon",
    );
    check(
        disk(Ok(100 << 20)),
        ExitCode::StoreFailed,
        "FAIL disk: 100 MiB are free under /srv/store, less than min_free (256 MiB); make room; until then the bridge accepts nothing",
    );
    check(
        disk(Err("No such file or directory".into())),
        ExitCode::Ok,
        "WARN disk: /srv/store: No such file or directory; look at the disk",
    );
}

#[test]
fn encryption_is_told() {
    check(
        ProbeAnswer::Encryption,
        ExitCode::Ok,
        "info encryption: Personas cannot read encrypted rooms yet; there they say so once, and speak in plain rooms and chats",
    );
}
