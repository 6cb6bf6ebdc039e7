//! Values from the environment.

use super::*;

#[test]
fn variables_go_before_the_file() {
    let dir = folder();
    fs::write(dir.path().join("model"), "claude-from-file\n").expect("file");
    let vars = [
        ("PERSONA_BRIDGE__HOMESERVER__URL", "http://127.0.0.1:9"),
        ("PERSONA_BRIDGE__TALK__SETTLE", "300ms"),
        ("PERSONA_BRIDGE__MIND__MAX_LIVE", "3"),
        ("PERSONA_BRIDGE__MIND__CLAUDE__EFFORT", "\"high\""),
        ("PERSONA_BRIDGE__MIND__CLAUDE__MODEL_FILE", "model"),
        ("PERSONA_BRIDGE__REGISTERS__LOUNGE__NAMES_ADDRESS", "true"),
        ("PERSONA_BRIDGE__PERMISSIONS", r#"{ "@bob:else.where" = "chat" }"#),
        ("PERSONA_BRIDGE__APPSERVICE__BOT", "7"),
    ];
    let config = gather(dir.path(), GOOD, &vars).expect("good");
    assert_eq!(config.homeserver.url.as_str(), "http://127.0.0.1:9/");
    assert_eq!(config.bridge.settle.quiet, Duration::from_millis(300));
    assert_eq!(config.bridge.places.most, 3);
    assert_eq!(claude(&config).effort.as_deref(), Some("high"));
    assert_eq!(claude(&config).model, "claude-from-file");
    assert!(config.bridge.registers[&RegisterName("lounge".into())].heed.names_address);
    assert_eq!(config.bridge.permissions.level(ruma::user_id!("@bob:else.where")), Level::Chat);
    assert_eq!(config.bridge.permissions.level(ruma::user_id!("@ada:hs.test")), Level::Admin);
    assert_eq!(config.appservice.bot, "7", "what reads as a number may be a string");
}

#[test]
fn a_credential_is_replaced_as_a_whole() {
    let dir = folder();
    write_mode(&dir.path().join("key"), "sk-file", 0o600);
    for name in
        ["PERSONA_BRIDGE__MIND__CLAUDE__CREDENTIAL_FILE", "PERSONA_BRIDGE__MIND__CLAUDE__CREDENTIAL__FILE"]
    {
        let config = gather(dir.path(), GOOD, &[(name, "key")]).expect("good");
        assert_eq!(claude(&config).credential.secret, "sk-file", "{name}");
    }
}

#[track_caller]
fn check_var(vars: &[(&str, &str)], expected: &str) {
    check_in(&folder(), "[mind]", "[mind]", vars, expected);
}

#[test]
fn a_wrong_variable_is_named() {
    check_var(
        &[("PERSONA_BRIDGE__HOMESERVER__SERVERNAME", "hs.test")],
        "PERSONA_BRIDGE__HOMESERVER__SERVERNAME: homeserver.servername: unknown key `servername`; did you mean \
         `server_name`?",
    );
    check_var(
        &[("PERSONA_BRIDGE__MIND__MAX_LIVE", "many")],
        "PERSONA_BRIDGE__MIND__MAX_LIVE: mind.max_live: invalid type: string \"many\", expected a whole number; write \
         it like `max_live = 8`",
    );
    check_var(
        &[("PERSONA_BRIDGE__HOMESERVER__URL", "gopher://hs")],
        "PERSONA_BRIDGE__HOMESERVER__URL: homeserver.url: `gopher://hs` is not http or https; write where the \
         homeserver's client API is, like http://127.0.0.1:8008",
    );
    check_var(
        &[("PERSONA_BRIDGE__MIND__CLAUDE__MODEL_FILE", "gone")],
        "PERSONA_BRIDGE__MIND__CLAUDE__MODEL_FILE: mind.claude.model: DIR/gone: No such file or directory (os error \
         2); name a file that can be read",
    );
    check_var(
        &[("PERSONA_BRIDGE__MIND__KIND", "scripted"), ("PERSONA_BRIDGE__MIND__KIND_FILE", "eir.md")],
        "PERSONA_BRIDGE__MIND__KIND_FILE: mind.kind: `You are Eir.` is not known; write one of: claude, scripted",
    );
    check_var(
        &[
            ("PERSONA_BRIDGE__MIND__CLAUDE__MODEL", "a"),
            ("PERSONA_BRIDGE__MIND__CLAUDE__MODEL_FILE", "eir.md"),
        ],
        "PERSONA_BRIDGE__MIND__CLAUDE__MODEL_FILE: mind.claude.model: PERSONA_BRIDGE__MIND__CLAUDE__MODEL sets the \
         same key; set one of the two",
    );
    check_var(&[("PERSONA_BRIDGE_MIND", "x"), ("OTHER__THING", "y")], "fine []");
}
