//! The commented example: what `example-config` writes, and how a value that is wrong should have been written.

use std::path::Path;

use super::source::Source;

/// The example config, every key in it commented.
pub const EXAMPLE: &str = include_str!("../../config/example.toml");

/// The example with every optional key switched on: `#key = …` without a space after the `#` is a key.
pub fn uncommented() -> String {
    let switch_on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[' || c == '"') => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    EXAMPLE.lines().map(switch_on).map(|line| line + "\n").collect()
}

/// How the value of a key is written, by the example.
pub(super) fn hint(key: &str) -> String {
    let Ok(example) = Source::parse(Path::new("example.toml"), uncommented()) else { return String::new() };
    let wanted = general(key);
    let written =
        example.snippets().find(|(path, snippet)| general(path) == wanted && snippet.contains(" = "));
    match written {
        Some((_, snippet)) if !snippet.contains('\n') => format!("write it like `{snippet}`"),
        _ => "see `persona-bridge example-config -`".into(),
    }
}

/// A key with the operator's own names and numbers taken out.
pub(super) fn general(key: &str) -> String {
    let mut parts = Vec::new();
    for part in key.split('[').flat_map(|part| part.split_once(']').map_or(part, |(_, rest)| rest).split('.'))
    {
        if !part.is_empty() {
            parts.push(part);
        }
    }
    match parts.as_slice() {
        ["permissions", ..] => "permissions.*".into(),
        ["registers", _, rest @ ..] => [&["registers", "*"], rest].concat().join("."),
        parts => parts.join("."),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::file::File;
    use super::super::{Environment, load};
    use super::*;

    #[test]
    fn the_example_is_refused_only_for_its_placeholders() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/example.toml");
        let vars = [("ANTHROPIC_API_KEY", "sk-1"), ("PERSONA_BRIDGE__MIND__CLAUDE__PROGRAM", "/bin/sh")];
        let vars = vars.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter();
        let vars =
            vars.chain([("PERSONA_BRIDGE__MIND__CLAUDE__STATE".into(), "/nowhere/minds".into())]).collect();
        let loaded = load(&path, Environment { vars, program: "p".into() }).expect("well-formed");
        let said = loaded.settings().expect_err("placeholders").to_string();
        assert!(said.lines().count() >= 4);
        for line in said.lines() {
            assert!(line.contains("is the example's placeholder"), "{line}");
        }
    }

    #[test]
    fn the_example_with_every_key_on_is_well_formed() {
        let text = uncommented();
        let source = Source::parse(Path::new("example.toml"), text).expect("TOML");
        source.read::<File>().expect("known keys and good values");
    }

    #[test]
    fn switched_off_keys_show_their_defaults() {
        let (file, defaults) = (toml::from_str::<File>(&uncommented()).expect("good"), File::default());
        assert_eq!(file.mind.kind.unwrap_or_default(), defaults.mind.kind.unwrap_or_default());
        let dm_memories = |file: &File| file.memory.dm_memories.unwrap_or_default();
        assert_eq!(dm_memories(&file), dm_memories(&defaults));
        assert_eq!(file.mind.claude.ttl.unwrap_or_default(), defaults.mind.claude.ttl.unwrap_or_default());
    }

    #[test]
    fn every_key_is_in_the_example() {
        let source = Source::parse(Path::new("example.toml"), uncommented()).expect("TOML");
        let shown: BTreeSet<String> = source.snippets().map(|(path, _)| general(path)).collect();
        let mut known = Vec::new();
        keys("", &mut known);
        assert!(known.len() > 36, "{known:?}");
        for key in known {
            let inline = format!("{{ {} = ", key.rsplit('.').next().unwrap_or_default());
            let is_shown = shown.contains(&general(&key)) || EXAMPLE.contains(&inline);
            assert!(is_shown, "{key} is not in config/example.toml");
        }
    }

    /// Lists the keys under a key, by what is said of one that does not exist.
    fn keys(parent: &str, known: &mut Vec<String>) {
        let forms = match parent {
            "" => vec!["zzzzzzzzzzzz = 1".to_owned()],
            parent => vec![
                format!("[{parent}]\nzzzzzzzzzzzz = 1"),
                format!("[[{parent}]]\nzzzzzzzzzzzz = 1"),
                format!("[{parent}.name]\nzzzzzzzzzzzz = 1"),
            ],
        };
        let said = forms.into_iter().find_map(|text| {
            let source = Source::parse(Path::new("x"), text.clone()).expect("TOML");
            let remedy = source.read::<File>().expect_err("no such key").remedy;
            Some((text, remedy.strip_prefix("known here: ")?.to_owned()))
        });
        let Some((form, said)) = said else { return known.push(parent.into()) };
        let parent = if form.contains(".name]") { format!("{parent}.name") } else { parent.to_owned() };
        for key in said.split(", ") {
            keys(format!("{parent}.{key}").trim_start_matches('.'), known);
        }
    }

    #[test]
    fn every_key_has_a_comment() {
        let lines: Vec<&str> = EXAMPLE.lines().collect();
        let mut explained = BTreeSet::new();
        for (index, line) in lines.iter().enumerate() {
            let key = line.trim_start_matches('#');
            let Some((key, _)) = key.split_once(" = ").filter(|(key, _)| !key.contains(' ')) else {
                continue;
            };
            let above = lines[index - 1];
            assert!(above.starts_with("# ") || explained.contains(key) || key.starts_with('"'), "{line}");
            explained.insert(key);
        }
        assert!(explained.len() > 30);
    }
}
