//! `PERSONA_BRIDGE__SECTION__KEY` and `…_FILE`: values from the environment.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Place, Problem, ProblemKind};
use super::file::File;
use super::source::{Source, read_table};

const PREFIX: &str = "PERSONA_BRIDGE__";

/// Lays the variables over the file's table; each is checked by itself, so that an error names its variable.
pub(super) fn apply(
    table: &mut toml::Table,
    source: &mut Source,
    vars: &BTreeMap<String, String>,
    base: &Path,
) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (name, value) in vars {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        match one(name, rest, value, base) {
            Ok((key, layer)) => match seen.insert(slot(&key), name) {
                None => {
                    merge(table, layer);
                    source.overridden(key, name.clone());
                }
                Some(other) => {
                    let cause = format!("{other} sets the same key");
                    problems.push(problem(name, &key, cause, "set one of the two".into()));
                }
            },
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn one(name: &str, rest: &str, value: &str, base: &Path) -> Result<(String, toml::Table), Problem> {
    let path = rest.to_lowercase();
    if let Some(path) = path.strip_suffix("__credential_file") {
        let key = dotted(&format!("{path}__credential"));
        let table = nest(&format!("{key}.file"), toml::Value::String(value.into()));
        return Ok((key.clone(), checked(name, &key, table)?));
    }
    let (path, text) = match path.strip_suffix("_file") {
        Some(path) if !path.ends_with('_') => {
            let file = base.join(value);
            let text = std::fs::read_to_string(&file).map_err(|error| {
                let cause = format!("{}: {error}", file.display());
                problem(name, &dotted(path), cause, "name a file that can be read".into())
            })?;
            (path.to_owned(), text.trim().to_owned())
        }
        _ => (path, value.to_owned()),
    };
    let key = dotted(&path);
    let string = nest(&key, toml::Value::String(text.clone()));
    let Some(typed) = value_of(&text) else { return Ok((key.clone(), checked(name, &key, string)?)) };
    let table = checked(name, &key, nest(&key, typed));
    let table = table.or_else(|first| checked(name, &key, string).map_err(|_| first))?;
    Ok((key, table))
}

/// The value as TOML, unless it is no TOML or would be a string anyway.
fn value_of(text: &str) -> Option<toml::Value> {
    if text.contains('\n') {
        return None;
    }
    toml::from_str::<toml::Table>(&format!("value = {text}")).ok()?.remove("value")
}

fn checked(name: &str, key: &str, table: toml::Table) -> Result<toml::Table, Problem> {
    read_table::<File>(table.clone(), &Place::Variable(name.into()), key).map(|_| table)
}

/// What a key fills: the two forms of a credential fill the same slot.
fn slot(key: &str) -> String {
    key.strip_suffix(".env").or_else(|| key.strip_suffix(".file")).unwrap_or(key).to_owned()
}

fn dotted(path: &str) -> String {
    path.replace("__", ".")
}

fn nest(key: &str, value: toml::Value) -> toml::Table {
    let (head, rest) = key.split_once('.').unwrap_or((key, ""));
    let value = if rest.is_empty() { value } else { toml::Value::Table(nest(rest, value)) };
    toml::Table::from_iter([(head.to_owned(), value)])
}

/// Lays `over` on `table`; a credential is replaced as a whole, since it is one of two forms.
fn merge(table: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) if key != "credential" => {
                merge(below, above);
            }
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

fn problem(name: &str, key: &str, cause: String, remedy: String) -> Problem {
    Problem { place: Place::Variable(name.into()), key: key.into(), cause, remedy, kind: ProblemKind::Config }
}
