//! docs/guarantees.md names the test behind each promise; this fails where such a test is missing or does not run.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// A row of the table.
#[derive(Debug, PartialEq)]
struct Promise {
    text: String,
    tests: Vec<String>,
    component: String,
}

/// Reads all rows of all tables with the head `promise | test | real component`.
fn promises(document: &str) -> Result<Vec<Promise>, String> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        let cells = cells(line);
        match cells.as_deref() {
            None => inside = false,
            Some(["promise", "test", "real component"]) => inside = true,
            Some(cells) if inside && cells.iter().all(|cell| cell.trim_matches([':', '-']).is_empty()) => {}
            Some([text, tests, component]) if inside => rows.push(promise(line, text, tests, component)?),
            Some(_) if inside => return Err(format!("not three cells: {line}")),
            Some(_) => {}
        }
    }
    Ok(rows)
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn promise(line: &str, text: &str, tests: &str, component: &str) -> Result<Promise, String> {
    let tests: Vec<String> = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    if text.is_empty() || component.is_empty() || tests.is_empty() {
        return Err(format!("an empty cell, or no test in backticks: {line}"));
    }
    Ok(Promise { text: text.to_owned(), tests, component: component.to_owned() })
}

/// Whether a homeserver is named as the component where none of the tests meets one.
fn boasts(promise: &Promise) -> bool {
    let names_server = ["Synapse", "Conduit"].iter().any(|server| promise.component.contains(server));
    let in_memory = |test: &String| test.starts_with("it::simulation::") || !test.starts_with("it::");
    names_server && promise.tests.iter().all(in_memory)
}

/// What is wrong with the test that a path names, seen from the package at `root`; nothing if it exists and runs.
fn fault(root: &Path, path: &str) -> Option<String> {
    let Some((module, name)) = path.rsplit_once("::") else { return Some(format!("{path}: no module")) };
    let files = files(root, module);
    let texts: Vec<String> = files.iter().filter_map(|file| read_to_string(file).ok()).collect();
    let attributes = texts.iter().find_map(|text| attributes(text, name));
    match attributes {
        None => Some(format!("{path}: no `fn {name}` in any of {files:?}")),
        Some(above) if !above.contains("test]") && !above.contains("test(") => {
            Some(format!("{path}: not a test"))
        }
        Some(above) if above.contains("ignore") => Some(format!("{path}: ignored")),
        Some(_) => undeclared(root, module).map(|file| format!("{path}: {file} is not declared in main.rs")),
    }
}

/// The files that a module, or a module inside one of them, may stand in.
fn files(root: &Path, module: &str) -> Vec<PathBuf> {
    let (base, inner) = match module.strip_prefix("it::") {
        Some(inner) => (root.join("tests/it"), inner),
        None => (root.join("src"), module),
    };
    let mut parts: Vec<&str> = inner.split("::").collect();
    let mut files = Vec::new();
    while !parts.is_empty() {
        let path = parts.iter().fold(base.clone(), |path, part| path.join(part));
        files.extend([path.with_extension("rs"), path.join("mod.rs")]);
        parts.pop();
    }
    files
}

/// The attributes above a function that is not commented out.
fn attributes(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    let at = lines.iter().position(|line| line.contains(&head) && !line.starts_with("//"))?;
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("///"));
    Some(above.filter(|line| line.starts_with("#[")).copied().collect())
}

/// The module of tests/it that main.rs does not declare, if this one is.
fn undeclared(root: &Path, module: &str) -> Option<String> {
    let file = module.strip_prefix("it::")?.split("::").next()?;
    let main = read_to_string(root.join("tests/it/main.rs")).unwrap_or_default();
    let declared = main.lines().any(|line| line.trim() == format!("mod {file};"));
    (!declared).then(|| file.to_owned())
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_promise_has_a_test_that_runs() {
    let document =
        read_to_string(package().join("docs/guarantees.md")).expect("docs/guarantees.md is readable");
    let promises = promises(&document).expect("the table is well-formed");
    assert!(promises.len() >= 10, "only {} promises were found", promises.len());
    let tests = promises.iter().flat_map(|promise| &promise.tests);
    let faults: Vec<String> = tests.filter_map(|path| fault(package(), path)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let boasts: Vec<&Promise> = promises.iter().filter(|promise| boasts(promise)).collect();
    assert!(boasts.is_empty(), "no test of these meets the server that they name: {boasts:#?}");
}

#[test]
fn every_file_of_integration_tests_is_declared() {
    let entries = std::fs::read_dir(package().join("tests/it")).expect("tests/it is readable");
    for entry in entries {
        let path = entry.expect("its entries are readable").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let is_module = path.extension().is_some_and(|end| end == "rs") || path.join("mod.rs").exists();
        if is_module && name != "main" {
            assert_eq!(undeclared(package(), &format!("it::{name}")), None);
        }
    }
}

#[track_caller]
fn check_fault(path: &str, expect: Option<&str>) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let write = |file: &str, text: &str| {
        let file = root.path().join(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("it can be made");
        std::fs::write(file, text).expect("it can be written");
    };
    write("src/a/mod.rs", "mod tests {\n#[test]\nfn inline() {}\n}\n// fn commented() {}\nfn helper() {}\n");
    write("src/a/b/tests.rs", "/// Doc.\n#[tokio::test(start_paused = true)]\nasync fn timed() {}\n");
    write("tests/it/main.rs", "mod known;\n");
    let ignored =
        "#[test]\n#[ignore = \"slow\"]\nfn slow() {}\n#[test]\n#[cfg_attr(x, ignore)]\nfn half() {}\n";
    write("tests/it/known.rs", ignored);
    write("tests/it/forgotten.rs", "#[test]\nfn lonely() {}\n");
    let found = fault(root.path(), path);
    match (found, expect) {
        (None, None) => {}
        (Some(found), Some(expect)) => assert!(found.contains(expect), "{found}"),
        (found, _) => panic!("{path}: {found:?}"),
    }
}

#[test]
fn a_promise_without_a_running_test_is_found() {
    check_fault("a::tests::inline", None);
    check_fault("a::b::tests::timed", None);
    check_fault("a::tests::inlin", Some("no `fn inlin`"));
    check_fault("a::tests::commented", Some("no `fn commented`"));
    check_fault("a::helper", Some("not a test"));
    check_fault("inline", Some("no module"));
    check_fault("b::tests::inline", Some("no `fn inline`"));
    check_fault("it::known::slow", Some("ignored"));
    check_fault("it::known::half", Some("ignored"));
    check_fault("it::forgotten::lonely", Some("not declared"));
}

#[test]
fn a_promise_that_names_a_server_has_a_test_that_meets_one() {
    let row = |tests: &[&str], component: &str| Promise {
        text: "x".to_owned(),
        tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        component: component.to_owned(),
    };
    assert!(boasts(&row(&["it::simulation::rooms::a"], "Synapse, claude")));
    assert!(boasts(&row(&["persona::tests::a"], "Conduit")));
    assert!(!boasts(&row(&["it::simulation::rooms::a", "it::endurance::kill::b"], "Synapse")));
    assert!(!boasts(&row(&["it::simulation::rooms::a"], "files")));
}

#[test]
fn the_table_is_read_strictly() {
    let table = |row: &str| promises(&format!("| promise | test | real component |\n|---|:-:|---|\n{row}\n"));
    let whole = Promise {
        text: "It holds".to_owned(),
        tests: vec!["a::b".to_owned(), "it::c::d".to_owned()],
        component: "Synapse".to_owned(),
    };
    assert_eq!(table("| It holds | `a::b`, `it::c::d` | Synapse |"), Ok(vec![whole]));
    assert!(table("| It holds | a::b | Synapse |").is_err());
    assert!(table("| It holds | `a::b` | |").is_err());
    assert!(table("| It holds | `a::b` |").is_err());
    assert_eq!(promises("| other | table |\n|---|---|\n| a | b |\n"), Ok(Vec::new()));
}
