//! The architecture as a test: who may import whom, which words belong to one module, and what lies where.

mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

/// What each module at the top may import; `main` and `cli` put everything together and may import all.
///
/// A module without a row is a failure: a new one is given its place here first.
const ARROWS: &[(&str, &[&str])] = &[
    ("conversation", &[]),
    ("persona", &["conversation"]),
    ("store", &["persona", "conversation"]),
    ("homeserver", &["persona", "conversation"]),
    ("mind", &["persona", "conversation"]),
    ("telemetry", &["persona", "conversation"]),
    ("bridge", &["homeserver", "store", "mind", "telemetry", "persona", "conversation"]),
    ("config", &["bridge", "homeserver", "store", "mind", "telemetry", "persona", "conversation"]),
    ("operate", &["config", "bridge", "homeserver", "store", "mind", "telemetry", "persona", "conversation"]),
    ("demo", &["config", "homeserver::registration", "telemetry"]),
];

/// The modules that put everything together.
const TOP: &[&str] = &["main", "lib", "cli"];

/// Words that belong to the modules (or single files) named beside them; a word is a path's beginning. `std::env::consts`, which reads
/// nothing, is free.
const WORDS: &[(&str, &[&str])] = &[
    ("sled", &["store"]),
    ("axum", &["homeserver", "operate"]),
    ("matrix_sdk", &["homeserver"]),
    ("ruma::api", &["homeserver"]),
    ("reqwest", &["homeserver", "demo"]),
    ("tokio::process", &["mind", "demo"]),
    ("std::process::Command", &["mind", "demo"]),
    ("rustix::process", &["mind", "demo", "bridge/halt", "cli/run", "store/open"]),
    ("tokio::spawn", &["bridge", "demo"]),
    ("tokio::task::spawn", &["bridge", "demo"]),
    ("std::env", &["config", "main"]),
];

/// Calls that belong to the modules named beside them; a call is a path's end.
const CALLS: &[(&str, &[&str])] = &[
    ("Instant::now", &["bridge", "demo", "store/flush"]),
    ("SystemTime::now", &["bridge", "demo"]),
    ("Uuid::new_v4", &["bridge", "demo"]),
];

/// Words that pure modules never use: whatever waits, or touches the world.
const IMPURE: &[&str] = &["tokio", "rustix", "std::fs", "std::io", "std::net", "std::process", "std::thread"];

/// The modules that touch nothing outside.
const PURE: &[&str] = &["conversation", "persona"];

/// The longest file, in lines.
const LINES: usize = 600;

/// A file of the crate.
struct File {
    /// Its path below `src`, without `.rs`, `mod` left out: `mind/claude`.
    module: Vec<String>,
    source: Source,
}

impl File {
    fn new(below: &Path, text: &str) -> Self {
        let mut module: Vec<String> =
            below.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| last == "mod") {
            module.pop();
        }
        Self { module, source: source::read(text) }
    }

    fn top(&self) -> &str {
        &self.module[0]
    }

    /// The paths from the crate's root that it names, without `crate`.
    fn imports(&self) -> impl Iterator<Item = String> {
        self.source.paths.iter().filter_map(|path| {
            let up = path.split("::").take_while(|part| *part == "super").count();
            let from_root = match path.strip_prefix("crate::") {
                Some(rest) => rest,
                None if up > 0 && up >= self.module.len() => path.trim_start_matches("super::"),
                None => return None,
            };
            Some(from_root.to_owned())
        })
    }
}

fn begins_with(path: &str, word: &str) -> bool {
    path.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn uses(path: &str, word: &str) -> bool {
    begins_with(path, word) && !begins_with(path, "std::env::consts")
}

fn ends_with(path: &str, call: &str) -> bool {
    path.strip_suffix(call).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

/// Imports against the arrows, as sentences.
fn wrong_arrows(file: &File) -> Vec<String> {
    let top = file.top();
    if TOP.contains(&top) {
        return Vec::new();
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(module, _)| *module == top) else {
        return vec![format!("{top} has no row in ARROWS")];
    };
    let modules: Vec<&str> = ARROWS.iter().map(|(module, _)| *module).chain(TOP.iter().copied()).collect();
    file.imports()
        .filter(|path| modules.iter().any(|module| begins_with(path, module)))
        .filter(|path| !begins_with(path, top) && !allowed.iter().any(|allowed| begins_with(path, allowed)))
        .map(|path| format!("{} must not import {path}", file.module.join("/")))
        .collect()
}

/// Words outside of their modules, as sentences.
fn wrong_words(file: &File) -> Vec<String> {
    let top = file.top();
    let words = WORDS.iter().map(|(word, homes)| (*word, *homes, uses as fn(&str, &str) -> bool));
    let calls = CALLS.iter().map(|(call, homes)| (*call, *homes, ends_with as fn(&str, &str) -> bool));
    let path = file.module.join("/");
    let mut wrong: Vec<String> = words
        .chain(calls)
        .filter(|(_, homes, _)| !homes.contains(&top) && !homes.contains(&path.as_str()))
        .filter(|(word, _, is)| file.source.paths.iter().any(|path| is(path, word)))
        .map(|(word, homes, _)| format!("{}: {word} belongs to {}", file.module.join("/"), homes.join(", ")))
        .collect();
    if PURE.contains(&top) {
        let impure =
            IMPURE.iter().filter(|word| file.source.paths.iter().any(|path| begins_with(path, word)));
        wrong.extend(
            impure.map(|word| format!("{}: {word} does not belong to pure code", file.module.join("/"))),
        );
    }
    wrong
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, with its text.
fn rust_files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("the file is text");
            files.insert(path, text);
        }
    }
    files
}

/// The crate's files that are not for tests alone.
fn crate_files() -> Vec<File> {
    let src = root().join("src");
    let files: Vec<File> = rust_files(&src)
        .iter()
        .map(|(path, text)| File::new(path.strip_prefix(&src).expect("it lies in src"), text))
        .collect();
    let test_modules: Vec<Vec<String>> = files.iter().flat_map(test_modules).collect();
    files.into_iter().filter(|file| !test_modules.iter().any(|test| file.module.starts_with(test))).collect()
}

fn test_modules(file: &File) -> Vec<Vec<String>> {
    let parent =
        if TOP.contains(&file.top()) && file.module.len() == 1 { &[] } else { file.module.as_slice() };
    let declared = file.source.test_modules.iter();
    declared.map(|name| [parent, std::slice::from_ref(name)].concat()).collect()
}

#[track_caller]
fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn imports_follow_the_arrows() {
    let files = crate_files();
    assert!(files.iter().flat_map(File::imports).count() > 10, "the imports were not found");
    none(files.iter().flat_map(wrong_arrows).collect());
}

#[test]
fn words_stay_in_their_modules() {
    none(crate_files().iter().flat_map(wrong_words).collect());
}

#[test]
fn no_test_file_is_forgotten() {
    let folder = root().join("tests/it");
    let declared = source::read(&fs::read_to_string(folder.join("main.rs")).unwrap()).modules;
    let mut forgotten = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_module =
            path.extension().is_some_and(|extension| extension == "rs") || path.join("mod.rs").exists();
        if is_module && name != "main" && !declared.contains(&name) {
            forgotten.push(format!("{} is not declared in tests/it/main.rs", path.display()));
        }
    }
    none(forgotten);
}

#[test]
fn files_stay_short() {
    let files = ["src", "tests"].into_iter().flat_map(|folder| rust_files(&root().join(folder)));
    let long = files.map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > LINES);
    none(long.map(|(path, lines)| format!("{} has {lines} lines; split it", path.display())).collect());
}

/// What the simulation decides and prices by.
const DECIDED_BY: [&str; 5] = [
    "persona::session::care::care",
    "persona::session::care::next_look",
    "persona::session::hazard::Gaps",
    "persona::session::meter::Meter",
    "persona::session::terms::Terms",
];

/// The constants of the simulation: what it assumes of turns, and the limits of a trace file.
const ASSUMED: [&str; 4] = ["ASSUMED", "FORM", "MOST_DELIVERIES", "MOST_SECONDS"];

#[test]
fn the_simulation_decides_by_the_code_of_the_bridge_and_has_no_rule_of_its_own() {
    let files = crate_files();
    let simulation =
        || files.iter().filter(|file| file.module.starts_with(&["operate".into(), "simulate".into()]));
    let imports: Vec<String> = simulation().flat_map(File::imports).collect();
    for needed in DECIDED_BY {
        assert!(imports.iter().any(|path| path == needed), "the simulation does not use {needed}");
    }
    let mut constants = Vec::new();
    for (path, text) in rust_files(&root().join("src/operate/simulate")) {
        let named = text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("const "));
        let named = named.filter_map(|rest| rest.split(':').next()).map(str::to_owned);
        constants.extend(named.filter(|_| !path.ends_with("tests.rs")));
    }
    constants.sort();
    assert_eq!(constants, ASSUMED);
}

// That the rules bite.

#[track_caller]
fn check(path: &str, text: &str, expect: &[&str]) {
    let file = File::new(Path::new(path), text);
    assert_eq!([wrong_arrows(&file), wrong_words(&file)].concat(), expect, "{path}: {text}");
}

#[test]
fn a_wrong_arrow_is_found() {
    check("persona/decide.rs", "use crate::conversation::Lane; use super::ending;", &[]);
    check("persona/decide.rs", "use crate::store::Store;", &["persona/decide must not import store::Store"]);
    check("store/mod.rs", "use crate::{mind, persona};", &["store must not import mind"]);
    check("store/mod.rs", "use super::mind::Feed;", &["store must not import mind::Feed"]);
    check("mind/claude/mod.rs", "use super::super::store;", &["mind/claude must not import store"]);
    check("mind/claude/wire.rs", "use super::process; use super::super::Feed;", &[]);
    check(
        "conversation/room.rs",
        "fn f() { crate::persona::decide() }",
        &["conversation/room must not import persona::decide"],
    );
    check("bridge/run.rs", "use crate::{homeserver, store, mind, persona, conversation, telemetry};", &[]);
    check("bridge/run.rs", "use crate::config::Config;", &["bridge/run must not import config::Config"]);
    check("config/mod.rs", "use crate::{bridge, mind::claude};", &[]);
    check("demo/mod.rs", "use crate::homeserver::registration::Draft; use crate::{config, telemetry};", &[]);
    check("demo/mod.rs", "use crate::homeserver::client;", &["demo must not import homeserver::client"]);
    check("attic/mod.rs", "", &["attic has no row in ARROWS"]);
    check("cli/run.rs", "use crate::{bridge, config, demo, operate};", &[]);
    check("main.rs", "use persona_bridge::cli; fn main() { std::env::args(); }", &[]);
}

#[test]
fn a_word_in_the_wrong_place_is_found() {
    check("store/db.rs", "use sled::Db;", &[]);
    check("bridge/live.rs", "let x = sled::open(p);", &["bridge/live: sled belongs to store"]);
    check("bridge/live.rs", "use sledge::Hammer;", &[]);
    check(
        "mind/x.rs",
        "use std::time::Instant; fn f() { Instant::now(); }",
        &["mind/x: Instant::now belongs to bridge, demo, store/flush"],
    );
    check(
        "store/x.rs",
        "tokio::time::Instant::now()",
        &["store/x: Instant::now belongs to bridge, demo, store/flush"],
    );
    check("bridge/clock.rs", "SystemTime::now(); Uuid::new_v4(); tokio::spawn(x)", &[]);
    check("homeserver/x.rs", "uuid::Uuid::new_v4()", &["homeserver/x: Uuid::new_v4 belongs to bridge, demo"]);
    check("homeserver/x.rs", "use ruma::{api::client, RoomId}; use axum::Router; use reqwest::Client;", &[]);
    check(
        "operate/doctor.rs",
        "use std::process::{Command, Stdio};",
        &["operate/doctor: std::process::Command belongs to mind, demo"],
    );
    check("operate/doctor.rs", "use std::process::ExitCode;", &[]);
    check("bridge/halt.rs", "use rustix::process::getpid;", &[]);
    check(
        "bridge/live.rs",
        "use rustix::process::getpid;",
        &["bridge/live: rustix::process belongs to mind, demo, bridge/halt, cli/run, store/open"],
    );
    check(
        "mind/guard.rs",
        "use std::env; fn f() { env::var(x) }",
        &["mind/guard: std::env belongs to config, main"],
    );
    check("cli/version.rs", "std::env::consts::ARCH", &[]);
    check("persona/x.rs", "std::fs::read(p)", &["persona/x: std::fs does not belong to pure code"]);
    check("store/x.rs", "#[cfg(test)] mod tests { fn f() { tokio::spawn(Instant::now()) } }", &[]);
}
