//! Rust source, read as far as the rules need it: the paths it names outside of test code.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

/// What a file names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// Every path outside of test code, with its first segment resolved through the file's imports.
    pub(crate) paths: Vec<String>,
    /// Modules that are declared for tests alone.
    pub(crate) test_modules: Vec<String>,
    /// Modules that are declared in files of their own.
    pub(crate) modules: Vec<String>,
}

/// Reads a file's text.
pub(crate) fn read(text: &str) -> Source {
    let mut source = Source::default();
    let tokens = without_tests(tokens(text), &mut source.test_modules);
    let mut imports = BTreeMap::new();
    let mut named = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "use" => {
                for (path, name) in use_tree(&mut tokens, &[]) {
                    named.push(path.clone());
                    imports.insert(name, path);
                }
            }
            "mod" => {
                let name = tokens.next().unwrap_or_default();
                if tokens.peek().is_some_and(|next| next == ";") {
                    source.modules.push(name);
                }
            }
            word if is_word(word) => named.push(path(token, &mut tokens)),
            _ => {}
        }
    }
    source.paths = named.into_iter().map(|path| resolve(path, &imports)).collect();
    source
}

fn resolve(path: Vec<String>, imports: &BTreeMap<String, Vec<String>>) -> String {
    match imports.get(&path[0]) {
        Some(import) => [import.as_slice(), &path[1..]].concat().join("::"),
        None => path.join("::"),
    }
}

fn path(first: String, tokens: &mut Peekable<IntoIter<String>>) -> Vec<String> {
    let mut path = vec![first];
    while tokens.next_if(|token| token == "::").is_some() {
        match tokens.next_if(|token| is_word(token)) {
            Some(word) => path.push(word),
            None => break,
        }
    }
    path
}

/// The paths of one `use` and the names they are used by.
fn use_tree(tokens: &mut Peekable<IntoIter<String>>, before: &[String]) -> Vec<(Vec<String>, String)> {
    let mut path = before.to_vec();
    let mut paths = Vec::new();
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "::" => {}
            "{" => {
                while tokens.peek().is_some_and(|next| next != "}") {
                    paths.extend(use_tree(tokens, &path));
                    tokens.next_if(|next| next == ",");
                }
                tokens.next();
                return paths;
            }
            "self" if !path.is_empty() => {}
            _ => path.push(token),
        }
        if tokens.next_if(|next| next == "as").is_some() {
            let name = tokens.next().unwrap_or_default();
            return vec![(path, name)];
        }
        if tokens.peek().is_none_or(|next| matches!(next.as_str(), ";" | "," | "}")) {
            break;
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    vec![(path, name)]
}

/// Leaves out every item under `#[cfg(test)]`.
fn without_tests(tokens: Vec<String>, test_modules: &mut Vec<String>) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].iter().take(MARK.len()).eq(MARK) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let item = at + MARK.len();
        at = end_of_item(&tokens, item);
        let module = tokens[item..at].iter().position(|token| token == "mod");
        test_modules.extend(module.map(|module| tokens[item + module + 1].clone()));
    }
    kept
}

fn end_of_item(tokens: &[String], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let closed = token == "}" && tokens.get(at + 1).is_none_or(|next| next != ";");
        if depth == 0 && (closed || token == ";") {
            return at + 1;
        }
    }
    tokens.len()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single signs; comments, strings, characters and lifetimes are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match skipped(rest) {
            Some(length) => length,
            None if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                tokens.push(rest[..end].to_owned());
                end
            }
            None if rest.starts_with("::") => {
                tokens.push("::".to_owned());
                2
            }
            None => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a comment, string, character or lifetime at the beginning of the text.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let raw = text.trim_start_matches(['b', 'c']);
    if raw.len() + 1 >= text.len() && raw.starts_with("r") {
        let hashes = raw[1..].bytes().take_while(|byte| *byte == b'#').count();
        if raw[1 + hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = text.len() - raw.len() + hashes + 2;
            return Some(text[body..].find(&close).map_or(text.len(), |end| body + end + close.len()));
        }
    }
    match text.chars().next()? {
        '"' => Some(1 + quoted(&text[1..], '"')),
        '\'' => Some(character(text)),
        _ => None,
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match (rest.starts_with(b"/*"), rest.starts_with(b"*/")) {
            (true, _) => (depth, at) = (depth + 1, at + 2),
            (_, true) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a quoted text behind its opening sign, with its closing one.
fn quoted(text: &str, close: char) -> usize {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == close {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// The length of a character literal, or of a lifetime's sign.
fn character(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    let (first, second) = (chars.next(), chars.next());
    if first == Some('\\') || second == Some('\'') { 1 + quoted(&text[1..], '\'') } else { 1 }
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(read(text).paths, expect, "{text}");
}

#[test]
fn imports_and_paths_are_read() {
    check("use crate::store;", &["crate::store"]);
    check("pub(crate) use crate::{bridge, store as s};", &["pub", "crate", "crate::bridge", "crate::store"]);
    check("use a::{self, b::{c, d::*}};", &["a", "a::b::c", "a::b::d::*"]);
    check("use std::process::{Command, Stdio};", &["std::process::Command", "std::process::Stdio"]);
    check("use tokio::process; process::Command", &["tokio::process", "tokio::process::Command"]);
    check("use std::time::Instant as I; I::now()", &["std::time::Instant", "std::time::Instant::now"]);
    check("let x = crate::mind::go::<u8>(1);", &["let", "x", "crate::mind::go", "u8"]);
    check("#[tokio::main] fn f() {}", &["tokio::main", "fn", "f"]);
}

#[test]
fn comments_and_literals_are_not_read() {
    for text in [
        "// crate::a\n",
        "/// crate::a",
        "/* crate::a /* nested */ crate::b */",
        "\"crate::a \\\" crate::b\"",
        "r#\"crate::a \" crate::b\"#",
        "br\"crate::a\"",
        "'\"' '\\'' '\\\\'",
    ] {
        check(text, &[]);
    }
    check("'a: x", &["a", "x"]);
    check("'x' y", &["y"]);
    check("&'static str", &["static", "str"]);
    check("\"unclosed crate::a", &[]);
    check("bird::r#x", &["bird::r", "x"]);
}

#[test]
fn test_code_is_not_read() {
    check("#[cfg(test)] mod tests { use a::{b}; fn f() { g(); } } x", &["x"]);
    check("#[cfg(test)] use a::{b}; x", &["x"]);
    check("#[cfg(test)] #[derive(A)] pub(crate) fn f(a: [u8; 2]) { b(); } x", &["x"]);
    check("#[cfg(unix)] mod y { z }", &["cfg", "unix", "z"]);
    let source = read("mod a; #[cfg(test)] mod law; #[cfg(test)] pub(crate) mod b { c } pub mod d { e }");
    assert_eq!((source.modules, source.test_modules), (vec!["a".into()], vec!["law".into(), "b".into()]));
}
