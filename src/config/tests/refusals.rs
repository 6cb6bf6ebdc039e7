//! What passes for a config and could not work, and what must not be repeated of one.

use super::{check, check_in, folder};

#[test]
fn a_store_in_or_below_a_file_is_refused() {
    for (path, file) in [("eir.md", "eir.md"), ("eir.md/deep/store", "eir.md")] {
        check(
            "[talk]",
            &format!("[store]\npath = \"{path}\"\n[talk]"),
            &format!(
                "DIR/bridge.toml:13: store.path: DIR/{file} is no folder; name a folder, which may be a new one"
            ),
        );
    }
    check("[talk]", "[store]\npath = \"new/deep/store\"\n[talk]", "fine []");
}

#[test]
fn what_is_no_regular_file_is_refused_unopened() {
    check(
        r#"doctrine = ["eir.md"]"#,
        r#"doctrine = ["eir.md", "/dev/zero"]"#,
        "DIR/bridge.toml:25: personas[0].doctrine[1]: /dev/zero: it is no regular file; name a text file that can be read",
    );
    let dir = folder();
    let fifo = std::process::Command::new("mkfifo").arg(dir.path().join("fifo")).status();
    assert!(fifo.expect("mkfifo").success());
    for (from, to, expected) in [
        (
            r#"doctrine = ["eir.md"]"#,
            r#"doctrine = ["fifo"]"#,
            "DIR/bridge.toml:25: personas[0].doctrine[0]: DIR/fifo: it is no regular file; name a text file that can be read",
        ),
        (
            r#"state = "eir.json""#,
            r#"state = "fifo""#,
            "DIR/bridge.toml:26: personas[0].state: DIR/fifo: it is no regular file; name a JSON file that can be read",
        ),
        (
            r#"{ env = "KEY" }"#,
            r#"{ file = "fifo" }"#,
            "DIR/bridge.toml:10: mind.claude.credential: DIR/fifo: it is no regular file; put the key alone in that file, mode 0600",
        ),
    ] {
        check_in(&dir, from, to, &[], expected);
    }
}

#[test]
fn a_state_that_does_not_fit_the_schema_is_refused_by_its_place() {
    let dir = folder();
    std::fs::write(dir.path().join("odd.json"), r#"{"interests": ["a", {"hush": 1}]}"#).expect("a file");
    check_in(
        &dir,
        r#"state = "eir.json""#,
        r#"state = "odd.json""#,
        &[],
        "DIR/bridge.toml:26: personas[0].state: DIR/odd.json does not fit the shipped schema at /interests/1: it must be string; mend that file",
    );
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let dir = folder();
    std::fs::write(dir.path().join("long.md"), "x".repeat((1 << 20) + 1)).expect("a file");
    check_in(
        &dir,
        r#"doctrine = ["eir.md"]"#,
        r#"doctrine = ["long.md"]"#,
        &[],
        "DIR/bridge.toml:25: personas[0].doctrine[0]: DIR/long.md: it is longer than 1 MiB; name a text file that can be read",
    );
}

#[test]
fn an_id_of_a_persona_is_a_folder_name() {
    for id in [".", "..", "...", ".eir"] {
        check(
            r#"id = "eir""#,
            &format!("id = \"{id}\""),
            &format!(
                "DIR/bridge.toml:23: personas[0].id: `{id}` begins with a dot and cannot name her folder; begin it with one of a-z, 0-9, _, = and -"
            ),
        );
    }
    check(r#"id = "eir""#, r#"id = "e..ir.""#, "fine []");
    check(
        r#"id = "eir""#,
        r#"id = "a/b""#,
        "DIR/bridge.toml:23: personas[0].id: `a/b` cannot end a user id; use a-z, 0-9 and . _ = - only",
    );
    // @persona_ and :hs.test have 17 bytes.
    let id = "x".repeat(238);
    check(r#"id = "eir""#, &format!("id = \"{id}\""), "fine []");
    let user = format!("@persona_x{id}:hs.test");
    check(
        r#"id = "eir""#,
        &format!("id = \"x{id}\""),
        &format!("DIR/bridge.toml:23: personas[0].id: {user} is not a user id; shorten her id"),
    );
}

#[test]
fn a_wrong_type_is_told_without_the_names_of_the_code() {
    check(
        "[talk]",
        "[budget]\nper_day = \"ten\"\n\n[talk]",
        r#"DIR/bridge.toml:13: budget.per_day: invalid type: string "ten", expected a number; write it like `per_day = 5.0`"#,
    );
    check(
        "[homeserver]",
        "memory = \"all\"\n\n[homeserver]",
        "DIR/bridge.toml:1: memory: is one value instead of several keys; see `persona-bridge example-config -`",
    );
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    const SAID: &str = "mind.claude.credential: names neither a variable nor a file; write credential = { env = \"NAME\" } or { file = \"PATH\" }, never the key itself";
    for to in [r#""sk-ant-1""#, r#"["sk-ant-1"]"#, "7"] {
        check(r#"{ env = "KEY" }"#, to, &format!("DIR/bridge.toml:10: {SAID}"));
    }
    for (to, key) in [(r#"{ env = ["sk-ant-1"] }"#, "env"), (r#"{ file = 7 }"#, "file")] {
        let said = SAID.replacen("credential", &format!("credential.{key}"), 1);
        check(r#"{ env = "KEY" }"#, to, &format!("DIR/bridge.toml:10: {said}"));
    }
    for to in [r#"{ env = "sk-ant-1" }"#, r#"{ file = "sk-ant-1" }"#] {
        check(r#"{ env = "KEY" }"#, to, &format!("DIR/bridge.toml:10: {SAID}"));
    }
    check_in(
        &folder(),
        "[mind]",
        "[mind]",
        &[("PERSONA_BRIDGE__MIND__CLAUDE__CREDENTIAL", "sk-ant-1")],
        &format!("PERSONA_BRIDGE__MIND__CLAUDE__CREDENTIAL: {SAID}"),
    );
}
