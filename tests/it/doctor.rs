//! The doctor, as operators run it: on a stub that answers as homeservers were measured to, and on real ones.

mod stub;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use persona_bridge::demo::homeserver::{Kind, free_port};
use tempfile::TempDir;

use crate::servers::{self, Appservice, PREFIX, SERVER_NAME};
use crate::tools;
use stub::{Stub, fault};

/// What the doctor said and how it ended.
#[derive(Debug)]
struct Said {
    lines: Vec<String>,
    code: i32,
}

impl Said {
    /// The line of one look, without its own folder.
    fn line(&self, name: &str) -> &str {
        let is = |line: &&String| line.get(5..).is_some_and(|rest| rest.starts_with(&format!("{name}: ")));
        self.lines.iter().find(is).map_or("(no such line)", String::as_str)
    }

    fn failures(&self) -> Vec<&str> {
        self.lines.iter().filter(|line| line.starts_with("FAIL")).map(String::as_str).collect()
    }
}

/// A bridge's folder.
struct Folder {
    dir: TempDir,
}

impl Folder {
    fn new(homeserver: &str, appservice: &Appservice) -> Self {
        let folder = Self { dir: TempDir::new().unwrap() };
        folder.write("registration.yaml", &appservice.yaml());
        folder.write(
            "bridge.toml",
            &format!(
                "[homeserver]\nurl = \"{homeserver}\"\nserver_name = \"{SERVER_NAME}\"\n\
                 [appservice]\nlisten = \"127.0.0.1:{port}\"\nuser_prefix = \"{PREFIX}\"\n\
                 [store]\nmin_free = \"1MiB\"\n[mind]\nkind = \"scripted\"\n\
                 [registers.lounge]\nvoice = \"Short.\"\n\
                 [[personas]]\nid = \"eir\"\nname = \"Eir\"\n[permissions]\n\"{SERVER_NAME}\" = \"chat\"\n",
                port = appservice.port
            ),
        );
        folder
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.write(name, &text.replace(from, to));
    }

    /// Lets a claude think in place of the stand-in, with a key that nobody takes.
    fn think_with(&self, claude: &str) {
        self.write("key", "sk-test");
        let section = format!(
            "kind = \"claude\"\n[mind.claude]\nprogram = \"{claude}\"\ncredential = {{ file = \"key\" }}"
        );
        self.edit("bridge.toml", "kind = \"scripted\"", &section);
    }

    async fn doctor(&self) -> Said {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_persona-bridge"));
        command.args(["doctor", "--config"]).arg(self.path("bridge.toml"));
        let output = command.kill_on_drop(true).output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text.replace(&self.dir.path().display().to_string(), "DIR");
        Said { lines: text.lines().map(str::to_owned).collect(), code: output.status.code().unwrap() }
    }
}

fn appservice() -> Appservice {
    Appservice {
        port: free_port().unwrap(),
        as_token: "as-secret".into(),
        hs_token: "hs-secret".into(),
        receive_ephemeral: false,
    }
}

/// What the doctor says of a homeserver with some faults, in the line of one look.
#[track_caller]
fn assert_line(said: &Said, name: &str, code: i32, expected: &str) {
    assert_eq!(said.line(name), expected, "{:#?}", said.lines);
    assert_eq!(said.code, code, "{:#?}", said.lines);
}

async fn check(faults: Vec<stub::Fault>, name: &str, code: i32, expected: &str) {
    let appservice = appservice();
    let stub = Stub::start(&appservice, faults).await;
    let said = Folder::new(&stub.url, &appservice).doctor().await;
    let url = format!("http://127.0.0.1:{}", appservice.port);
    let lines = said.lines.iter().map(|line| line.replace(&url, "BRIDGE").replace(&stub.url, "HS"));
    let said = Said { lines: lines.collect(), code: said.code };
    assert_line(&said, name, code, expected);
}

#[tokio::test]
async fn a_healthy_homeserver_has_a_good_word_in_every_line() {
    let appservice = appservice();
    let stub = Stub::start(&appservice, vec![]).await;
    let said = Folder::new(&stub.url, &appservice).doctor().await;
    assert_eq!(said.code, 0, "{:#?}", said.lines);
    for name in
        ["homeserver", "clock", "token", "namespace", "ping", "device", "idempotency", "store", "disk"]
    {
        assert!(said.line(name).starts_with("ok   "), "{name}: {:#?}", said.lines);
    }
    assert!(said.line("encryption").starts_with("info "), "{:#?}", said.lines);
    let all = said.lines.join("\n");
    assert!(!all.contains("as-secret") && !all.contains("hs-secret"), "{all}");
}

#[tokio::test]
async fn a_homeserver_that_is_away_ends_the_questions() {
    let appservice = appservice();
    let port = free_port().unwrap();
    let said = Folder::new(&format!("http://127.0.0.1:{port}"), &appservice).doctor().await;
    assert_eq!(said.code, 12, "{:#?}", said.lines);
    assert!(said.failures()[0].contains("cannot be reached"), "{:#?}", said.lines);
    assert_eq!(said.line("token"), "(no such line)");
    assert!(said.line("disk").starts_with("ok"), "this machine is looked at all the same");
}

#[tokio::test]
async fn an_old_homeserver_is_named() {
    let old = fault("/versions", 200, r#"{"versions":["r0.6.1","v1.2"]}"#);
    let said = "FAIL homeserver: speaks Matrix only up to v1.2; update it to one that speaks v1.7";
    check(vec![old], "homeserver", 18, said).await;
}

#[tokio::test]
async fn a_refused_token_is_named() {
    let refused =
        fault("/whoami", 401, r#"{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}"#);
    check(
        vec![refused],
        "token",
        16,
        "FAIL token: the homeserver refuses as_token (401 M_UNKNOWN_TOKEN Invalid access token passed.); install this \
         very registration at the homeserver and restart it; check that [homeserver] url is the right one, and that \
         the tokens were not generated anew since",
    )
    .await;
}

#[tokio::test]
async fn another_user_is_named() {
    let other = fault("/whoami", 200, r#"{"user_id":"@other:hs.test"}"#);
    check(
        vec![other],
        "token",
        17,
        "FAIL token: the token belongs to @other:hs.test, not to @persona-bridge:hs.test; use the same registration \
         file here and at the homeserver, and restart the homeserver",
    )
    .await;
}

#[tokio::test]
async fn a_persona_outside_the_namespace_is_named() {
    let outside = fault(
        "/whoami?user_id=@persona_eir",
        400,
        r#"{"errcode":"M_EXCLUSIVE","error":"M_EXCLUSIVE: User is not in namespace."}"#,
    );
    check(
        vec![outside],
        "namespace",
        17,
        "FAIL namespace: @persona_eir:hs.test is outside the namespace that the homeserver has (400 M_EXCLUSIVE User is \
         not in namespace.); install this very registration and restart the homeserver; check server_name and \
         user_prefix",
    )
    .await;
}

#[tokio::test]
async fn a_ping_that_cannot_arrive_is_named() {
    for (status, body, code, expected) in [
        (
            502,
            r#"{"errcode":"M_CONNECTION_FAILED","error":"ConnectionRefusedError: refused"}"#,
            13,
            "FAIL ping: the homeserver cannot reach BRIDGE (502 M_CONNECTION_FAILED ConnectionRefusedError: refused); \
             mend [appservice] url as seen from the homeserver's machine, then generate and install the registration",
        ),
        (
            504,
            r#"{"errcode":"M_CONNECTION_TIMEOUT","error":"Timed out"}"#,
            13,
            "FAIL ping: BRIDGE does not answer the homeserver in time; look for a firewall or a proxy between the \
             homeserver and the bridge",
        ),
        (
            400,
            r#"{"errcode":"M_URL_NOT_SET","error":"no URL"}"#,
            13,
            "FAIL ping: the homeserver's registration has no url; generate the registration with [appservice] url \
             set, install it and restart the homeserver",
        ),
        (
            403,
            r#"{"errcode":"M_FORBIDDEN","error":"Mismatching application service ID in path"}"#,
            17,
            "FAIL ping: the homeserver knows our token under another id (403 M_FORBIDDEN Mismatching application \
             service ID in path); install this very registration at the homeserver and restart it",
        ),
        (
            404,
            r#"{"errcode":"M_UNRECOGNIZED","error":"Unrecognized request"}"#,
            18,
            "FAIL ping: the homeserver has no ping; update it; without one nobody can tell whether its events arrive",
        ),
        (
            502,
            r#"{"errcode":"M_BAD_STATUS","error":"HTTP 404 Not Found","status":404,"body":"nope"}"#,
            13,
            "FAIL ping: another process answers at BRIDGE (status 404); find who listens there, or give the bridge \
             another port in [appservice] listen and url",
        ),
        (
            200,
            r#"{"duration_ms":3}"#,
            13,
            "FAIL ping: BRIDGE is answered, but not by what listens at 127.0.0.1:PORT; make [appservice] url (and the \
             registration's) lead to [appservice] listen",
        ),
    ] {
        let appservice = appservice();
        let stub = Stub::start(&appservice, vec![fault("/ping", status, body)]).await;
        let said = Folder::new(&stub.url, &appservice).doctor().await;
        let port = appservice.port.to_string();
        let lines = said.lines.iter().map(|line| line.replace(&format!("http://127.0.0.1:{port}"), "BRIDGE"));
        let lines = lines.map(|line| line.replace(&port, "PORT")).collect();
        assert_line(&Said { lines, code: said.code }, "ping", code, expected);
    }
}

#[tokio::test]
async fn an_hs_token_that_differs_is_known_by_the_doctors_own_ear() {
    let theirs = appservice();
    let stub = Stub::start(&theirs, vec![]).await;
    let folder = Folder::new(&stub.url, &theirs);
    folder.edit("registration.yaml", "hs-secret", "hs-other");
    let said = folder.doctor().await;
    assert_line(
        &said,
        "ping",
        16,
        "FAIL ping: the homeserver comes with another hs_token than ours (502 M_BAD_STATUS HTTP 403 Forbidden); install \
         this very registration at the homeserver and restart it",
    );
}

#[tokio::test]
async fn a_homeserver_without_devices_means_tokens() {
    let none = fault("/devices/", 404, r#"{"errcode":"M_UNRECOGNIZED","error":"Unrecognized request"}"#);
    let said = "ok   device: Personas speak with a token of their own (no masquerading here)";
    check(vec![none], "device", 0, said).await;
}

#[tokio::test]
async fn two_events_for_one_id_are_named() {
    check(
        vec![fault("/send/", 200, r#"{"event_id":"$COUNT"}"#)],
        "idempotency",
        18,
        "FAIL idempotency: the same transaction id twice gives two events, so words could appear twice; update the \
         homeserver; see docs/operating.md for those that are known to work",
    )
    .await;
}

#[tokio::test]
async fn an_unregistered_bot_is_registered_before_it_speaks() {
    let unknown = r#"{"errcode":"M_FORBIDDEN","error":"Application service has not registered this user (@persona-bridge:hs.test)"}"#;
    let appservice = appservice();
    let stub =
        Stub::start(&appservice, vec![fault("/whoami?user_id=@persona-bridge", 403, unknown).once()]).await;
    let said = Folder::new(&stub.url, &appservice).doctor().await;
    let expected = "ok   token: the homeserver knows us as @persona-bridge:hs.test";
    assert_line(&said, "token", 0, expected);
    assert_eq!(stub.calls("/register"), 1);
}

#[tokio::test]
async fn a_claude_that_is_missing_old_or_new_is_named() {
    let appservice = appservice();
    let stub = Stub::start(&appservice, vec![]).await;
    let folder = Folder::new(&stub.url, &appservice);
    folder.think_with("./claude");
    let said = folder.doctor().await;
    assert_eq!(said.code, 19, "{:#?}", said.lines);
    assert!(said.line("[mind]").contains("there is no program `./claude`"), "{:#?}", said.lines);
    for (version, code, mark) in [("2.1.197", 19, "FAIL"), ("2.1.332", 0, "ok  "), ("2.1.999", 0, "WARN")] {
        program(&folder.path("claude"), "nothing", version);
        let said = folder.doctor().await;
        assert_eq!(said.code, code, "{:#?}", said.lines);
        assert!(said.line("claude").starts_with(mark), "{:#?}", said.lines);
    }
}

/// Writes a stand-in for claude that breaks one point of the contract.
fn program(path: &Path, fault: &str, version: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake/contract.sh");
    fs::write(path, format!("#!/bin/sh\nexec {script} {fault} {version} \"$@\"\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn each_point_of_the_contract_that_claude_breaks_is_named() {
    let appservice = appservice();
    let stub = Stub::start(&appservice, vec![]).await;
    let folder = Folder::new(&stub.url, &appservice);
    folder.think_with("./claude");
    for (fault, expected) in [
        ("silent", "a line that is fed asks the API nothing (it was answered)"),
        ("session", "the session is not the one we began: the CLI has changed to another session"),
        (
            "unnamed",
            "no result names our line in `user_message_uuids` (the process ended in the middle: exit code 0)",
        ),
        (
            "untyped",
            "the call of StructuredOutput is not given back as a typed reply (there was none that fits the schema)",
        ),
        ("prompt", "the request does not carry our system prompt"),
        ("tools", "the request offers the tools StructuredOutput, Bash and not StructuredOutput alone"),
        (
            "record",
            "the session's file does not tell the reply of a line that was answered (the process ended in the middle: exit code 0)",
        ),
        ("resume", "a resumed process does not go on with the session (what was said before is missing)"),
        ("repeated", "a resumed process asks the API again for a line that was answered"),
    ] {
        program(&folder.path("claude"), fault, "2.1.333");
        let said = folder.doctor().await;
        let line = format!(
            "FAIL contract: claude does not do as 2.1.332 does: {expected}; install \
             @anthropic-ai/claude-code-linux-x64@2.1.332 and name it in [mind.claude] program"
        );
        assert_line(&said, "contract", 19, &line);
        assert_eq!(fs::read_dir(folder.path("minds")).unwrap().count(), 0, "nothing is left behind");
    }
}

#[tokio::test]
async fn the_real_claude_is_known() {
    let Some(claude) = tools::claude_program() else { return };
    let appservice = appservice();
    let stub = Stub::start(&appservice, vec![]).await;
    let folder = Folder::new(&stub.url, &appservice);
    folder.think_with(&claude.display().to_string());
    let said = folder.doctor().await;
    assert_line(&said, "claude", 0, "ok   claude: is 2.1.332");
    let hello = "ok   handshake: claude takes our arguments and answers, without an API call";
    assert_line(&said, "handshake", 0, hello);
    let holds =
        "ok   contract: claude thinks, records and resumes as the bridge relies on, on an API of our own";
    assert_line(&said, "contract", 0, holds);
    assert_eq!(fs::read_dir(folder.path("minds")).unwrap().count(), 0, "nothing is left behind");
}

#[tokio::test]
async fn a_full_disk_is_named() {
    let appservice = appservice();
    let stub = Stub::start(&appservice, vec![]).await;
    let folder = Folder::new(&stub.url, &appservice);
    folder.edit("bridge.toml", "1MiB", "999999GiB");
    let said = folder.doctor().await;
    assert_eq!(said.code, 14, "{:#?}", said.lines);
    assert!(said.line("disk").contains("less than min_free"), "{:#?}", said.lines);
}

#[tokio::test]
async fn on_synapse_each_fault_has_its_name() {
    let test = "on_synapse_each_fault_has_its_name";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    on_a_real_homeserver(&server).await;
    another_process_on_the_port(&server).await;
}

#[tokio::test]
async fn on_conduit_each_fault_has_its_name() {
    let test = "on_conduit_each_fault_has_its_name";
    let Some(server) = servers::server(Kind::Conduit, test).await else { return };
    on_a_real_homeserver(&server).await;
}

async fn on_a_real_homeserver(server: &servers::Server) {
    let fresh = || Folder::new(server.homeserver.url().as_str(), &server.appservice);
    for visit in ["first", "second"] {
        let said = fresh().doctor().await;
        assert_eq!(said.code, 0, "the {visit} visit: {:#?}", said.lines);
        assert!(said.lines.iter().all(|line| !line.starts_with("WARN")), "{visit}: {:#?}", said.lines);
    }
    let Appservice { as_token, hs_token, port, .. } = &server.appservice;
    let other = free_port().unwrap().to_string();
    for (name, from, to, line, code) in [
        ("registration.yaml", as_token.as_str(), "another-token", "token", 16),
        ("registration.yaml", hs_token.as_str(), "another-token", "ping", 16),
        ("registration.yaml", "id: persona-bridge", "id: another-id", "ping", 17),
        ("bridge.toml", &port.to_string(), &other, "ping", 13),
    ] {
        let folder = fresh();
        folder.edit(name, from, to);
        let said = folder.doctor().await;
        assert!(said.line(line).starts_with("FAIL"), "{to}: {:#?}", said.lines);
        assert_eq!(said.code, code, "{to}: {:#?}", said.lines);
    }
    let folder = fresh();
    folder.edit("bridge.toml", SERVER_NAME, "hs.else");
    folder.edit("registration.yaml", "hs\\.test", "hs\\.else");
    let said = folder.doctor().await;
    assert!(said.line("token").starts_with("FAIL"), "{:#?}", said.lines);
    assert_eq!(said.code, 17, "{:#?}", said.lines);
    let folder = fresh();
    folder.edit("bridge.toml", PREFIX, "ghost_");
    folder.edit("registration.yaml", PREFIX, "ghost_");
    let said = folder.doctor().await;
    assert!(said.line("namespace").starts_with("FAIL"), "{:#?}", said.lines);
    assert_eq!(said.code, 17, "{:#?}", said.lines);
}

async fn another_process_on_the_port(server: &servers::Server) {
    let address = format!("127.0.0.1:{}", server.appservice.port);
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let stranger = axum::Router::new();
    let folder = Folder::new(server.homeserver.url().as_str(), &server.appservice);
    let said = tokio::select! {
        said = folder.doctor() => said,
        _ = async { axum::serve(listener, stranger).await } => panic!("it serves for ever"),
    };
    assert!(said.line("ping").contains("another process answers"), "{:#?}", said.lines);
    assert_eq!(said.code, 13, "{:#?}", said.lines);
}
