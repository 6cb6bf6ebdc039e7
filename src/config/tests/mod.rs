//! What a config gives, and what is said of one that is wrong.

mod messages;
mod refusals;
mod variables;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::conversation::{Bots, Heed, Level, Register, RegisterName, Wakes};
use crate::mind::claude::Ttl;
use crate::persona::memory::DmMemories;
use crate::persona::session::care::{self, Flushing};
use crate::persona::{Among, Budget, Limit, Places};

const GOOD: &str = r##"[homeserver]
url = "http://127.0.0.1:8008"
server_name = "hs.test"

[mind]
kind = "claude"

[mind.claude]
program = "./claude"
credential = { env = "KEY" }

[talk]
default_register = "lounge"

[registers.lounge]
voice = "Short."

[[rooms]]
alias = "#persona_lounge:hs.test"
register = "lounge"

[[personas]]
id = "eir"
name = "Eir"
doctrine = ["eir.md"]
state = "eir.json"
rooms = ["#persona_lounge:hs.test"]

[permissions]
"hs.test" = "chat"
"@ada:hs.test" = "admin"
"##;

/// A folder with a good config and the files it names.
fn folder() -> TempDir {
    let dir = TempDir::new().expect("folder");
    fs::write(dir.path().join("eir.md"), "You are Eir.").expect("doctrine");
    fs::write(dir.path().join("eir.json"), "{}").expect("state");
    write_mode(&dir.path().join("claude"), "#!/bin/sh\n", 0o700);
    dir
}

fn write_mode(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode");
}

fn registration() -> Registration {
    Registration {
        id: "our-id".into(),
        as_token: Arc::from("as"),
        hs_token: Arc::from("hs"),
        sender_localpart: "our-bot".into(),
        url: Some("http://127.0.0.1:29600".into()),
        user_namespaces: vec![r"^@persona_[a-z0-9._=-]+:hs\.test$".into(), r"^@our-bot:hs\.test$".into()],
        alias_namespaces: vec![],
        rate_limited: false,
        exclusive: true,
        receive_ephemeral: false,
    }
}

fn gather(dir: &Path, text: &str, vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
    gather_with(dir, text, vars, registration())
}

fn gather_with(
    dir: &Path,
    text: &str,
    vars: &[(&str, &str)],
    registration: Registration,
) -> Result<Config, ConfigError> {
    let path = dir.join("bridge.toml");
    fs::write(&path, text).expect("config");
    let vars = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let vars: BTreeMap<_, _> = vars.chain([("KEY".to_owned(), "sk-1".to_owned())]).collect();
    load(&path, Environment { vars, program: "/bin/persona-bridge".into() })?
        .settings()?
        .with_registration(registration)
}

/// The complaint about the good config with one thing changed.
#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    let dir = folder();
    check_in(&dir, from, to, &[], expected);
}

#[track_caller]
fn check_in(dir: &TempDir, from: &str, to: &str, vars: &[(&str, &str)], expected: &str) {
    assert!(GOOD.contains(from), "the good config has no {from}");
    let said = match gather(dir.path(), &GOOD.replacen(from, to, 1), vars) {
        Ok(config) => {
            format!("fine {:?}", config.warnings.iter().map(Problem::to_string).collect::<Vec<_>>())
        }
        Err(error) => error.to_string(),
    };
    let said = said.replace(&dir.path().display().to_string(), "DIR");
    assert_eq!(said, expected);
}

#[test]
fn every_problem_is_named_not_just_the_first() {
    let dir = folder();
    let text = GOOD.replace("\"http://127.0.0.1:8008\"", "\"x\"").replace("\"lounge\"", "\"hall\"");
    let Err(ConfigError::Invalid(problems)) = gather(dir.path(), &text, &[]) else { panic!("it is wrong") };
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["homeserver.url", "talk.default_register", "rooms[0].register"]);
}

#[test]
fn shipped_registers_need_not_be_written_down_and_a_section_changes_only_what_it_says() {
    let dir = folder();
    let text = GOOD.replacen("default_register = \"lounge\"", "default_register = \"minds\"", 1).replacen(
        "[[rooms]]",
        "[registers.swarm]\nwakes = \"anyone\"\n\n[[rooms]]",
        1,
    );
    let registers = gather(dir.path(), &text, &[]).expect("good").bridge.registers;
    assert_eq!(
        registers.keys().map(RegisterName::as_str).collect::<Vec<_>>(),
        ["dm", "lounge", "minds", "swarm"]
    );
    let of = |name: &str| registers[&RegisterName(name.into())].clone();
    assert_eq!(Some(of("minds")), Register::shipped("minds"));
    let shipped = Register::shipped("swarm").expect("shipped");
    let heed = Heed { wakes: Wakes::Anyone, ..shipped.heed };
    assert_eq!(of("swarm"), Register { heed, ..shipped });
    let lounge = Register { voice: "Short.".into(), ..Register::default() };
    assert_eq!(of("lounge"), lounge);
}

#[test]
fn how_far_personas_go_on_among_themselves_is_as_shipped_or_as_written() {
    let dir = folder();
    let shipped = gather(dir.path(), GOOD, &[]).expect("good").bridge;
    assert_eq!((shipped.among, shipped.bots), (Among::default(), Bots::default()));
    let text = GOOD
        .replacen("[talk]", "[talk]\nmax_hops = 1\npair_limit = \"5 per 1h\"\nroom_limit = \"off\"", 1)
        .replacen("[permissions]", "[permissions]\nbots = [\"@*bot:hs.test\"]", 1)
        .replacen("[registers.lounge]", "[registers.lounge]\npersonas_wake = true", 1);
    let written = gather(dir.path(), &text, &[]).expect("good").bridge;
    let five = Limit { most: 5, within: Duration::from_secs(3_600) };
    assert_eq!(written.among, Among { max_hops: 1, pair: Some(five), room: None });
    assert!(written.bots.hold(ruma::user_id!("@newsbot:hs.test")));
    assert!(written.registers[&RegisterName("lounge".into())].heed.personas_wake);
    assert!(!shipped.registers[&RegisterName("lounge".into())].heed.personas_wake);
}

#[test]
fn a_direct_room_is_that_personas_alone() {
    let dir = folder();
    let direct = "[[rooms]]\nalias = \"#persona_den:hs.test\"\ndirect = \"eir\"\n\n[[personas]]\nid = \"brage\"\nname = \"Brage\"\n\n[[personas]]";
    let bridge = gather(dir.path(), &GOOD.replacen("[[personas]]", direct, 1), &[]).expect("good").bridge;
    let rooms = |index: usize| bridge.personas[index].rooms.iter().map(|a| a.as_str()).collect::<Vec<_>>();
    assert_eq!(rooms(0), [""; 0]);
    assert_eq!(rooms(1), ["#persona_lounge:hs.test", "#persona_den:hs.test"]);
    let den = bridge.rooms.iter().find(|(alias, _)| alias.as_str() == "#persona_den:hs.test");
    assert_eq!(den.map(|(_, kind)| kind), Some(&bridge::RoomKind::Direct));
}

#[test]
fn a_file_that_is_not_there_says_how_to_get_one() {
    let path = Path::new("/nowhere/bridge.toml");
    let environment = Environment { vars: BTreeMap::new(), program: "/bin/persona-bridge".into() };
    let error = load(path, environment).expect_err("nothing there");
    assert_eq!(
        error.to_string(),
        "/nowhere/bridge.toml: No such file or directory (os error 2); write one with `persona-bridge \
         example-config /nowhere/bridge.toml`"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_not_written_anew() {
    let dir = folder();
    let environment = Environment { vars: BTreeMap::new(), program: "/bin/persona-bridge".into() };
    let error = load(dir.path(), environment).expect_err("a folder");
    let said = error.to_string().replace(&dir.path().display().to_string(), "DIR");
    assert_eq!(said, "DIR: Is a directory (os error 21); name a file that can be read");
}

#[test]
fn a_secret_file_must_be_private() {
    let dir = folder();
    let (from, to) = ("{ env = \"KEY\" }", "{ file = \"key\" }");
    write_mode(&dir.path().join("key"), "sk-file\n", 0o640);
    check_in(
        &dir,
        from,
        to,
        &[],
        "DIR/bridge.toml:10: mind.claude.credential: DIR/key can be read by others (mode 0640); run `chmod 600 \
         DIR/key`",
    );
    write_mode(&dir.path().join("key"), "sk-file\n", 0o600);
    let config = gather(dir.path(), &GOOD.replace(from, to), &[]).expect("good");
    assert_eq!(claude(&config).credential.secret, "sk-file");
    write_mode(&dir.path().join("key"), "two words", 0o600);
    let said = "DIR/bridge.toml:10: mind.claude.credential: is empty or holds blanks; put the key alone there, on one line";
    check_in(&dir, from, to, &[], said);
}

#[test]
fn doctrine_has_a_bound_for_all_files_together() {
    let dir = folder();
    fs::write(dir.path().join("long.md"), "x".repeat(96 << 10)).expect("doctrine");
    let (from, to) = ("[\"eir.md\"]", "[\"long.md\"]");
    check_in(&dir, from, to, &[], "fine []");
    let to = "[\"long.md\", \"eir.md\"]";
    let said = "DIR/bridge.toml:25: personas[0].doctrine: is 98316 bytes together, more than 98304; shorten it; she reads all of it with every session";
    check_in(&dir, from, to, &[], said);
}

#[test]
fn the_minds_folder_lies_outside_git() {
    let dir = folder();
    fs::create_dir(dir.path().join(".git")).expect("folder");
    check_in(
        &dir,
        "[mind]",
        "[mind]",
        &[],
        "DIR/bridge.toml:8: mind.claude.state: DIR/minds lies in the git tree DIR; set [mind.claude] state to a \
         folder outside of any git tree",
    );
    check_in(&dir, "kind = \"claude\"", "kind = \"scripted\"", &[], "fine []");
}

#[test]
fn the_scripted_mind_needs_neither_program_nor_credential() {
    let dir = folder();
    let text =
        GOOD.replace("\"claude\"", "\"scripted\"").replace("./claude", "./gone").replace("KEY", "GONE");
    let config = gather(dir.path(), &text, &[]).expect("good");
    let bridge::Mind::Scripted(scripted) = config.bridge.mind else { panic!("scripted") };
    assert_eq!(scripted.state, dir.path().join("scripted"));
}

#[test]
fn the_bot_is_nobody_else() {
    let dir = folder();
    let registration = Registration { sender_localpart: "persona_eir".into(), ..registration() };
    let Err(error) = gather_with(dir.path(), GOOD, &[], registration) else { panic!("it is wrong") };
    assert!(
        error
            .to_string()
            .ends_with("personas[0].id: @persona_eir:hs.test is the bot itself; give her another id")
    );
}

#[test]
fn a_registration_without_url_is_unwise() {
    let dir = folder();
    let registration = Registration { url: None, ..registration() };
    let config = gather_with(dir.path(), GOOD, &[], registration).expect("good");
    assert_eq!(config.warnings.len(), 1);
    assert_eq!(config.warnings[0].cause, "it has no url, so the homeserver brings nothing");
}

#[test]
fn a_registration_that_hinders_the_bridge_is_unwise() {
    let dir = folder();
    let warned = |registration| {
        let config = gather_with(dir.path(), GOOD, &[], registration).expect("good");
        config.warnings.iter().map(|warning| warning.cause.clone()).collect::<Vec<_>>()
    };
    let same = Registration { hs_token: Arc::from("as"), ..registration() };
    assert_eq!(warned(same), ["as_token and hs_token are the same"]);
    let limited = Registration { rate_limited: true, ..registration() };
    assert_eq!(warned(limited), ["the homeserver limits how fast Personas speak"]);
    let shared = Registration { exclusive: false, ..registration() };
    assert_eq!(warned(shared), ["anyone may register a user in the Personas' namespace"]);
}

#[test]
fn what_is_not_written_has_its_default() {
    let dir = folder();
    let config = gather(dir.path(), GOOD, &[]).expect("good");
    assert_eq!(config.appservice.listen.to_string(), "127.0.0.1:29600");
    assert_eq!(config.appservice.url.as_str(), "http://127.0.0.1:29600/");
    assert_eq!(config.appservice.registration, dir.path().join("registration.yaml"));
    assert_eq!((config.store.path, config.store.min_free), (dir.path().join("store"), 256 << 20));
    let bridge = &config.bridge;
    assert_eq!(bridge.reconcile, Duration::from_secs(300));
    assert_eq!((bridge.settle.quiet, bridge.settle.cap), (Duration::from_secs(2), Duration::from_secs(10)));
    assert_eq!(bridge.heart, crate::persona::Heart::default());
    assert_eq!(bridge.places, Places { most: 8, thinking: 8, resident: None });
    let care = &bridge.care;
    assert_eq!((care.keep_warm, care.apply), (care::KeepWarm::Off, care::Apply::AtCheapPoint));
    assert_eq!((care.on_redaction, care.watermark), (care::OnRedaction::Refresh, 75));
    assert_eq!(care.recycle_rss, Some(1 << 30));
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    assert_eq!((bridge.archive_keep, bridge.transcript_keep), (days(30), days(7)));
    assert_eq!((bridge.dm_memories, bridge.trim_over), (DmMemories::DmOnly, 8 << 10));
    assert_eq!(bridge.budget, Budget::default());
    assert_eq!(bridge.default_register, Some(RegisterName("lounge".into())));
    let bridge::Mind::Claude(claude) = &bridge.mind else { panic!("claude") };
    assert_eq!(claude.state, dir.path().join("minds"));
    assert_eq!((claude.ttl, claude.silence), (Ttl::Auto, Duration::from_secs(120)));
    assert_eq!(claude.credential.variable, "ANTHROPIC_API_KEY");
    assert_eq!(claude.guard, Path::new("/bin/persona-bridge"));
}

#[test]
fn she_is_asked_to_note_what_may_be_lost_unless_the_operator_says_off() {
    let dir = folder();
    let flush = |text: &str| gather(dir.path(), text, &[]).expect("good").bridge.care.flush;
    assert_eq!(flush(GOOD), Flushing::Auto);
    assert_eq!(flush(&format!("{GOOD}[session]\nflush = \"off\"\n")), Flushing::Off);
}

#[test]
fn what_is_written_is_gathered() {
    let dir = folder();
    let config = gather(dir.path(), GOOD, &[]).expect("good");
    let bridge = &config.bridge;
    assert_eq!((bridge.bot.as_str(), bridge.appservice.as_str()), ("@our-bot:hs.test", "our-id"));
    let eir = &bridge.personas[0];
    assert_eq!((eir.persona.user.as_str(), eir.persona.name.as_str()), ("@persona_eir:hs.test", "Eir"));
    let state = eir.state.as_ref().map(crate::persona::State::text);
    assert_eq!((eir.doctrine.as_slice(), state.as_deref()), (&["You are Eir.".to_owned()][..], Some("{}")));
    assert_eq!(eir.rooms, bridge.rooms.keys().cloned().collect::<Vec<_>>());
    let ada = ruma::user_id!("@ada:hs.test");
    assert_eq!(bridge.permissions.level(ada), Level::Admin);
    assert_eq!(bridge.permissions.level(ruma::user_id!("@bob:hs.test")), Level::Chat);
    assert_eq!(bridge.permissions.level(ruma::user_id!("@bob:else.where")), Level::Block);
    assert_eq!(bridge.personas.len(), 1);
    assert_eq!(claude(&config).credential.secret, "sk-1");
    assert!(!format!("{:?}", bridge.mind).contains("sk-1"), "a secret is never shown");
}

fn claude(config: &Config) -> &crate::mind::claude::Config {
    let bridge::Mind::Claude(claude) = &config.bridge.mind else { panic!("claude") };
    claude
}

#[test]
fn a_registration_needs_only_its_own_sections_to_be_right() {
    let dir = folder();
    let path = dir.path().join("bridge.toml");
    fs::write(&path, GOOD.replace("./claude", "./gone").replace("\"lounge\"", "\"hall\"")).expect("config");
    let environment = Environment { vars: BTreeMap::new(), program: "/bin/persona-bridge".into() };
    let loaded = load(&path, environment).expect("well-formed");
    assert!(loaded.settings().is_err());
    let (homeserver, appservice) = loaded.for_registration().expect("good");
    assert_eq!((homeserver.server_name.as_str(), appservice.id.as_str()), ("hs.test", "persona-bridge"));
}

#[test]
fn an_own_price_file_lies_beside_the_config_and_what_is_wrong_in_it_is_told_with_its_line() {
    let price = "source = \"us\"\ndate = \"today\"\n[[models]]\nname = \"house\"\ninput = 1.0\noutput = 2.0\nwindow = 9\nminimum = 1\n";
    let dir = folder();
    fs::write(dir.path().join("prices.toml"), price).unwrap();
    let text = format!("{GOOD}[session]\nprices = \"prices.toml\"\n");
    let prices = gather(dir.path(), &text, &[]).unwrap().bridge.prices;
    assert_eq!(prices.find("house").map(|price| price.tariff.output), Some(2_000));
    assert!(prices.find("opus").is_some());
    fs::write(dir.path().join("prices.toml"), price.replace("window = 9\n", "")).unwrap();
    let said = gather(dir.path(), &text, &[]).map(drop).unwrap_err().to_string();
    assert!(said.contains("prices.toml:3: models[0]: missing field `window`"), "{said}");
}
