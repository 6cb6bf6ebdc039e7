//! The commands that need nobody else, as operators and their scripts meet them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

pub(crate) const GOOD: &str = "[homeserver]\nurl = \"http://127.0.0.1:8008\"\nserver_name = \"hs.test\"\n[mind]\nkind = \"scripted\"\n\
                    [registers.lounge]\nvoice = \"Short.\"\n[[personas]]\nid = \"eir\"\nname = \"Eir\"\n\
                    [permissions]\n\"hs.test\" = \"chat\"\n";

/// An operator in a folder of her own.
pub(crate) struct Operator {
    pub(crate) dir: TempDir,
}

/// What she was told.
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Operator {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn with_config(text: &str) -> Self {
        let operator = Self::new();
        fs::write(operator.dir.path().join("bridge.toml"), text).unwrap();
        operator
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Told {
        self.run_with(arguments, &[])
    }

    fn run_with(&self, arguments: &[&str], vars: &[(&str, &str)]) -> Told {
        let mut command = Command::new(env!("CARGO_BIN_EXE_persona-bridge"));
        command.args(arguments).current_dir(self.dir.path()).env_clear().envs(vars.iter().copied());
        self.told(command)
    }

    fn told(&self, mut command: Command) -> Told {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let folder = self.dir.path().canonicalize().unwrap().display().to_string();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&folder, "DIR");
        Told { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
    }

    /// Runs it as a user who is nobody in particular, where we may be anybody.
    pub(crate) fn run_as_nobody(&self, arguments: &[&str]) -> Told {
        let folder = self.dir.path();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            for entry in ["", "bridge.toml", "registration.yaml", "store", "store/sled"] {
                std::os::unix::fs::chown(folder.join(entry), Some(65534), None).unwrap();
            }
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_persona-bridge"));
        command.args(arguments).current_dir(folder).env_clear();
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        self.told(command)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }
}

#[test]
fn the_version_is_told_in_two_ways() {
    let operator = Operator::new();
    let told = operator.run(&["--version"]);
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, concat!("persona-bridge ", env!("CARGO_PKG_VERSION"), "\n"))
    );
    let told = operator.run(&["--version-json"]);
    let json: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, json["name"].as_str()), (0, Some("persona-bridge")));
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_wrong_command_line_is_2() {
    let operator = Operator::with_config(GOOD);
    for arguments in [&[][..], &["runn"], &["run"], &["check", "--confg", "x"]] {
        let told = operator.run(arguments);
        assert_eq!(told.code, 2, "{arguments:?}");
        assert!(!told.err.is_empty() && told.out.is_empty(), "{arguments:?}");
    }
    let told = operator.run(&["run", "--config", "bridge.toml", "--log", "loud"]);
    assert_eq!(told.code, 2);
    assert_eq!(
        told.err,
        "persona-bridge: --log loud: not a level; write error, warn, info, debug, trace, or module=level\n"
    );
}

#[test]
fn help_names_the_commands_and_hides_the_guard() {
    let told = Operator::new().run(&["--help"]);
    assert_eq!(told.code, 0);
    for command in [
        "run",
        "check",
        "doctor",
        "generate-registration",
        "example-config",
        "simulate",
        "demo",
        "--log-format",
    ] {
        assert!(told.out.contains(command), "{command}: {}", told.out);
    }
    assert!(!told.out.contains("guard"), "{}", told.out);
}

#[test]
fn the_example_goes_to_a_file_or_to_standard_output() {
    let operator = Operator::new();
    let example = include_str!("../../config/example.toml");
    for arguments in [&["example-config"][..], &["example-config", "-"], &["-e"], &["-e", "-"]] {
        let told = operator.run(arguments);
        assert_eq!((told.code, told.out.as_str()), (0, example), "{arguments:?}");
    }
    let told = operator.run(&["example-config", "bridge.toml"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert_eq!(operator.read("bridge.toml"), example);
    fs::write(operator.dir.path().join("bridge.toml"), "mine").unwrap();
    let told = operator.run(&["-e", "bridge.toml"]);
    assert_eq!(told.code, 1);
    assert_eq!(
        told.err,
        "persona-bridge: bridge.toml exists and is not overwritten; name another file, or `-`\n"
    );
    assert_eq!(operator.read("bridge.toml"), "mine");
}

#[test]
fn a_registration_is_written_once_and_privately() {
    let operator = Operator::with_config(GOOD);
    let told = operator.run(&["generate-registration", "--config", "bridge.toml"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let first = operator.read("registration.yaml");
    let mode = fs::metadata(operator.dir.path().join("registration.yaml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        first.contains("@persona_[a-z0-9._=-]+:hs\\.test$") && first.contains("rate_limited: false"),
        "{first}"
    );
    assert!(!first.contains("msc4190") && first.contains("receive_ephemeral: false"), "{first}");

    let told = operator.run(&["-g", "--config", "bridge.toml"]);
    assert_eq!(told.code, 1);
    assert!(
        told.err.contains("DIR/registration.yaml exists") && told.err.contains("--force"),
        "{}",
        told.err
    );
    assert_eq!(operator.read("registration.yaml"), first);

    let told = operator.run(&["-g", "--config", "bridge.toml", "--print"]);
    assert_eq!(told.code, 0);
    assert!(told.out.contains("as_token") && told.out != first, "printed tokens are new ones");
    assert_eq!(operator.read("registration.yaml"), first);

    let told = operator.run(&["-g", "--config", "bridge.toml", "--force"]);
    assert_eq!(told.code, 0);
    assert_ne!(operator.read("registration.yaml"), first);
    assert!(!told.out.contains("as_token"), "no token is shown unasked");
}

#[test]
fn check_has_a_line_for_every_part() {
    let operator = Operator::with_config(GOOD);
    let told = operator.run(&["check", "--config", "bridge.toml"]);
    assert_eq!(told.code, 10);
    let registration = told.out.lines().last().unwrap();
    assert_eq!(
        registration,
        "FAIL registration: there is no registration at DIR/registration.yaml; write one with `persona-bridge \
         generate-registration --config FILE`"
    );
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    let told = operator.run(&["check", "--config", "bridge.toml"]);
    assert_eq!(told.code, 0);
    assert_eq!(
        told.out,
        "ok   config: bridge.toml is well-formed\n\
         ok   [homeserver]: hs.test at http://127.0.0.1:8008/\n\
         ok   [appservice]: listens at 127.0.0.1:29600, called at http://127.0.0.1:29600/\n\
         ok   [store]: DIR/store\n\
         ok   [mind]: scripted, a stand-in\n\
         ok   credential: none is needed\n\
         ok   [talk]: settles in 2000 to 10000 ms\n\
         ok   [registers]: dm, lounge\n\
         ok   [[rooms]]: none\n\
         ok   [[personas]]: @persona_eir:hs.test\n\
         ok   [permissions]: hs.test\n\
         ok   registration: DIR/registration.yaml with id persona-bridge and bot @persona-bridge:hs.test\n"
    );
}

#[test]
fn check_ends_as_its_first_failure() {
    for (from, to, code, line) in [
        (
            "server_name",
            "servername",
            11,
            "FAIL [homeserver]: bridge.toml:3: homeserver.servername: unknown key `servername`; did you mean \
             `server_name`?",
        ),
        (
            "\"scripted\"",
            "\"claude\"\n[mind.claude]\ncredential = { env = \"NOBODY\" }",
            19,
            "FAIL [mind]: bridge.toml:6: mind.claude.program: there is no program `claude`; install it with `npm install \
             -g @anthropic-ai/claude-code-linux-x64@2.1.332` and name its `claude` here",
        ),
        (
            "\"hs.test\" = \"chat\"",
            "\"hs.test\" = \"block\"",
            0,
            "WARN [permissions]: bridge.toml:11: permissions: nobody may talk to the Personas; add a line such as \
             \"your.server\" = \"chat\"",
        ),
        (
            "[mind]",
            "[appservice]\nlisten = \"0.0.0.0:29600\"\nurl = \"http://127.0.0.1:29600\"\n[mind]",
            0,
            "WARN [appservice]: bridge.toml:5: appservice.listen: 0.0.0.0 can be reached from other machines; bind \
             127.0.0.1 and put a proxy before it, unless you mean it",
        ),
    ] {
        let operator = Operator::with_config(GOOD);
        assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
        fs::write(operator.dir.path().join("bridge.toml"), GOOD.replacen(from, to, 1)).unwrap();
        let told = operator.run(&["check", "--config", "bridge.toml"]);
        assert_eq!(told.code, code, "{to}: {}", told.out);
        assert!(told.out.lines().any(|said| said == line), "{line} is not in\n{}", told.out);
    }
}

#[test]
fn a_config_that_is_not_there_is_10() {
    for command in ["run", "check", "doctor"] {
        let told = Operator::new().run(&[command, "--config", "gone.toml"]);
        assert_eq!(told.code, 10, "{command}");
        let said = format!("{}{}", told.out, told.err);
        assert!(
            said.contains("write one with `persona-bridge example-config gone.toml`"),
            "{command}: {said}"
        );
    }
}

#[test]
fn a_persona_outside_the_registration_is_17() {
    let operator = Operator::with_config(GOOD);
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    let vars = [("PERSONA_BRIDGE__APPSERVICE__USER_PREFIX", "ghost_")];
    let told = operator.run_with(&["check", "--config", "bridge.toml"], &vars);
    assert_eq!(told.code, 17, "{}", told.out);
    let line = told.out.lines().find(|line| line.starts_with("FAIL namespace: ")).unwrap();
    assert!(line.contains("@ghost_eir:hs.test is outside the namespace"), "{line}");
}

#[test]
fn a_registration_that_everyone_reads_is_a_warning() {
    let operator = Operator::with_config(GOOD);
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    let path = operator.dir.path().join("registration.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let told = operator.run(&["check", "--config", "bridge.toml"]);
    assert_eq!(told.code, 0);
    let said = "WARN registration: DIR/registration.yaml can be read by everyone (mode 0644); run `chmod o-rwx \
                DIR/registration.yaml`; it holds both tokens";
    assert!(told.out.lines().any(|line| line == said), "{}", told.out);
}

#[test]
fn run_names_a_port_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen = \"{}\"", taken.local_addr().unwrap());
    let operator = Operator::with_config(&GOOD.replace("[mind]", &format!("[appservice]\n{listen}\n[mind]")));
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    let told = operator.run(&["run", "--config", "bridge.toml"]);
    assert_eq!(told.code, 1, "{}", told.err);
    assert!(told.err.contains("Set [appservice] listen to a free address"), "{}", told.err);
}

/// An operator whose claude says that it is of this version.
fn with_claude(version: &str) -> Operator {
    let listen = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sections = format!(
        "[appservice]\nlisten = \"{listen}\"\n[mind]\nkind = \"claude\"\n[mind.claude]\nprogram = \"./claude\"\n\
         credential = {{ file = \"key\" }}\n[registers.lounge]"
    );
    let away = GOOD.replace("127.0.0.1:8008", "127.0.0.1:1");
    let text = away.replace("[mind]\nkind = \"scripted\"\n[registers.lounge]", &sections);
    let operator = Operator::with_config(&text);
    let claude = format!("#!/bin/sh\necho '{version} (Claude Code)'\n");
    for (name, text, mode) in [("claude", claude.as_str(), 0o700), ("key", "sk-test", 0o600)] {
        let path = operator.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    operator
}

#[test]
fn a_command_beside_the_bridge_needs_neither_credential_nor_claude() {
    let operator = with_claude("2.1.332");
    let path = operator.dir.path().join("bridge.toml");
    let text = fs::read_to_string(&path).unwrap();
    let elsewhere =
        text.replace("\"./claude\"", "\"nowhere\"").replace("{ file = \"key\" }", "{ env = \"NOBODY\" }");
    assert_ne!(text, elsewhere);
    fs::write(&path, elsewhere).unwrap();
    for command in
        [&["brake", "show"][..], &["campaign", "list"], &["persona", "get", "eir"], &["remind", "eir"]]
    {
        let told = operator.run(&[command, &["--config", "bridge.toml"]].concat());
        assert!(told.err.contains("run the bridge first"), "{command:?}: {}", told.err);
    }
    let told = operator.run(&["run", "--config", "bridge.toml"]);
    assert!(told.err.contains("the variable NOBODY is not set"), "{}", told.err);
}

#[test]
fn run_refuses_a_claude_that_is_too_old() {
    let told = with_claude("2.1.197").run(&["run", "--config", "bridge.toml"]);
    assert_eq!(told.code, 19, "{}", told.err);
    assert!(told.err.contains("claude 2.1.197 is older than 2.1.332"), "{}", told.err);
}

#[test]
fn run_warns_of_a_claude_that_is_newer_and_names_the_doctor() {
    let operator = with_claude("2.1.999");
    let mut command = Command::new(env!("CARGO_BIN_EXE_persona-bridge"));
    command.args(["run", "--config", "bridge.toml"]).current_dir(operator.dir.path()).env_clear();
    let mut bridge = command.stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(bridge.stderr.take().unwrap());
    let (lines, said) = mpsc::channel();
    let reader =
        thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let warning = loop {
        match said.recv_timeout(Duration::from_secs(30)) {
            Ok(line) if line.contains("claude 2.1.999 is newer than 2.1.332") => break Ok(line),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    bridge.kill().unwrap();
    bridge.wait().unwrap();
    drop(said);
    let _ = reader.join().unwrap();
    let warning = warning.expect("a warning");
    assert!(warning.contains("WARN") && warning.contains("`persona-bridge doctor`"), "{warning}");
}

/// An operator whose bridge has never run, but whose store is there.
fn with_store() -> Operator {
    let with_state = GOOD.replace("name = \"Eir\"\n", "name = \"Eir\"\nstate = \"eir.json\"\n");
    let operator = Operator::with_config(&with_state);
    fs::write(operator.dir.path().join("eir.json"), "{\"mood\": \"calm\"}").unwrap();
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    fs::create_dir(operator.dir.path().join("store")).unwrap();
    operator
}

#[test]
fn a_state_is_got_changed_and_put_while_no_bridge_runs() {
    let operator = with_store();
    let persona =
        |arguments: &[&str]| operator.run(&[&["persona"], arguments, &["--config", "bridge.toml"]].concat());
    let told = persona(&["get", "eir"]);
    assert_eq!((told.code, told.out.as_str()), (1, ""));
    assert!(told.err.contains("eir has no state yet"), "{}", told.err);
    assert_eq!(persona(&["put", "eir", "eir.json"]).code, 0);
    let got = persona(&["get", "eir"]).out;
    assert!(got.contains("\"mood\": \"calm\"") && got.contains("\"updatedAt\": \""), "{got}");

    fs::write(operator.dir.path().join("wild.json"), got.replace("calm", "wild")).unwrap();
    let told = persona(&["put", "eir", "wild.json"]);
    assert_eq!(told.code, 0, "{}", told.err);
    fs::write(operator.dir.path().join("sad.json"), got.replace("calm", "sad")).unwrap();
    let told = persona(&["put", "eir", "sad.json"]);
    assert_eq!(told.code, 1, "{}", told.out);
    assert!(told.err.contains("made from that of 20") && told.err.contains("get it anew"), "{}", told.err);
    assert!(persona(&["get", "eir"]).out.contains("wild"));
    fs::write(operator.dir.path().join("odd.json"), got.replace("\"calm\"", "[\"hush\"]")).unwrap();
    let told = persona(&["put", "eir", "odd.json"]);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("does not fit the shipped schema at /mood: it must be string"), "{}", told.err);
    assert!(!told.err.contains("hush"), "{}", told.err);
    assert!(persona(&["get", "loki"]).err.contains("there is no Persona loki"));
}

#[test]
fn campaigns_are_opened_listed_and_closed_while_no_bridge_runs() {
    let operator = with_store();
    let campaign =
        |arguments: &[&str]| operator.run(&[&["campaign"], arguments, &["--config", "bridge.toml"]].concat());
    assert_eq!(campaign(&["list"]).out, "no campaign is open\n");
    assert_eq!(campaign(&["open", "fair", "The autumn fair"]).code, 0);
    assert_eq!(campaign(&["open", "fair", "The winter fair"]).code, 0);
    assert_eq!(campaign(&["open", "cake", "Cake for all"]).code, 0);
    assert_eq!(campaign(&["list"]).out, "cake  Cake for all\nfair  The winter fair\n");
    assert_eq!(campaign(&["close", "cake"]).code, 0);
    assert_eq!(campaign(&["close", "cake"]).out, "no campaign cake is open\n");
    assert_eq!(campaign(&["list"]).out, "fair  The winter fair\n");
    let told = campaign(&["open", "Fair", "x"]);
    assert_eq!(told.code, 2);
    assert!(told.err.contains("small letters"), "{}", told.err);
    assert_eq!(campaign(&["open", "fair", "two\nlines"]).code, 1);
}

#[test]
fn check_tells_where_a_file_says_something_else_than_the_store() {
    let operator = with_store();
    let state = |told: Told| {
        assert_eq!(told.code, 0, "{}", told.out);
        told.out.lines().find(|line| line.contains(" state: ")).expect("a line").to_owned()
    };
    let check = || state(operator.run(&["check", "--config", "bridge.toml"]));
    assert_eq!(check(), "ok   state: the file of eir is to be her first");
    operator.run(&["persona", "put", "eir", "eir.json", "--config", "bridge.toml"]);
    let line = check();
    assert!(line.starts_with("ok   state: the file of eir says what the store has, of 20"), "{line}");
    fs::write(operator.dir.path().join("eir.json"), "{\"mood\": \"wild\"}").unwrap();
    let line = check();
    assert!(line.starts_with("WARN state: the file of eir says something else than the store"), "{line}");
    let got = operator.run(&["persona", "get", "eir", "--config", "bridge.toml"]).out;
    assert!(got.contains("calm"), "nothing was applied: {got}");
}

#[test]
fn a_brake_holds_before_the_first_start() {
    let operator = Operator::with_config(GOOD);
    assert_eq!(operator.run(&["-g", "--config", "bridge.toml"]).code, 0);
    let brake =
        |arguments: &[&str]| operator.run(&[&["brake"], arguments, &["--config", "bridge.toml"]].concat());
    let told = brake(&["release"]);
    assert_eq!((told.code, told.out.as_str()), (1, ""));
    assert!(told.err.contains("run the bridge first (`brake hold` makes it"), "{}", told.err);
    let told = brake(&["hold", "--persona", "eir"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.contains("the brake holds eir"), "{}", told.out);
    assert!(brake(&["show"]).out.contains("the brake holds eir"));
}
