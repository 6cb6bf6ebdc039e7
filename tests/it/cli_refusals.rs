//! What the commands refuse, and what they say then.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cli::{GOOD, Operator};

#[test]
fn a_second_run_is_refused_by_the_store_not_by_the_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen = \"{}\"", taken.local_addr().unwrap());
    let operator = Operator::with_config(&GOOD.replace("[mind]", &format!("[appservice]\n{listen}\n[mind]")));
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    fs::create_dir(operator.dir.path().join("store")).unwrap();
    let lock = fs::File::create(operator.dir.path().join("store/lock")).unwrap();
    lock.lock().unwrap();
    let told = operator.run(&["run", "--config", "bridge.toml"]);
    assert_eq!(told.code, 15, "{}", told.err);
    assert!(told.err.contains("DIR/store is in use"), "{}", told.err);
}

#[test]
fn a_bot_among_the_personas_is_refused_before_a_registration_is_written() {
    let text = GOOD.replace("[mind]", "[appservice]\nbot = \"persona_eir\"\n[mind]");
    let operator = Operator::with_config(&text);
    for command in ["check", "generate-registration"] {
        let told = operator.run(&[command, "--config", "bridge.toml"]);
        assert_eq!(told.code, 11, "{command}: {}{}", told.out, told.err);
        let said = format!("{}{}", told.out, told.err);
        assert!(said.contains("`persona_eir` is among the Personas' own names"), "{command}: {said}");
    }
    assert!(!operator.dir.path().join("registration.yaml").exists());
}

#[test]
fn a_reason_is_told_once() {
    let operator =
        Operator::with_config(&GOOD.replace("[mind]", "[appservice]\nregistration = \"x/r.yaml\"\n[mind]"));
    for arguments in [
        &["persona", "put", "eir", "gone.json", "--config", "bridge.toml"][..],
        &["generate-registration", "--config", "bridge.toml"],
        &["run", "--config", "gone.toml"],
        &["run", "--config", "."],
    ] {
        let told = operator.run(arguments);
        assert_eq!(told.err.matches("(os error ").count(), 1, "{arguments:?}: {}", told.err);
    }
}

#[test]
fn a_config_that_is_there_is_not_to_be_written_anew() {
    for command in ["run", "check", "doctor"] {
        let told = Operator::new().run(&[command, "--config", "."]);
        assert_eq!(told.code, 10, "{command}");
        let said = format!("{}{}", told.out, told.err);
        assert!(said.contains("(os error 21); name a file that can be read\n"), "{command}: {said}");
    }
}

#[test]
fn check_names_a_store_that_it_may_not_open() {
    let operator = Operator::with_config(GOOD);
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    let store = operator.dir.path().join("store");
    fs::create_dir_all(store.join("sled")).unwrap();
    assert_eq!(operator.run(&["check", "--config", "bridge.toml"]).code, 0);
    fs::set_permissions(store.join("sled"), fs::Permissions::from_mode(0o500)).unwrap();
    let told = operator.run_as_nobody(&["check", "--config", "bridge.toml"]);
    assert_eq!(told.code, 14, "{}", told.out);
    let line = "FAIL [store]: DIR/store/sled: Permission denied (os error 13); give the bridge's user the right to read \
                and write it, or check as that user";
    assert!(told.out.lines().any(|said| said == line), "{}", told.out);
}
