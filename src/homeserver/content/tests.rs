use std::fmt::Write;

use proptest::prelude::*;
use ruma::{event_id, user_id};
use uuid::Uuid;

use super::*;
use crate::conversation::TurnId;

type Members = BTreeMap<OwnedUserId, Option<String>>;

fn members() -> Members {
    let member = |user: &UserId, name: Option<&str>| (user.to_owned(), name.map(str::to_owned));
    [
        member(user_id!("@eir:hs.test"), Some("Eir")),
        member(user_id!("@persona_ann_b:hs.test"), None),
        member(user_id!("@bob:hs.test"), Some("Bob <b>\"the & builder\"")),
        member(user_id!("@UPPER/x:hs.test"), Some("  ")),
    ]
    .into()
}

fn speech<'a>(text: &'a str, members: &'a Members) -> Speech<'a> {
    Speech { text, members, thread: None, newest: None, reply_to: None }
}

fn one(text: &str) -> Value {
    let members = members();
    let mut parts = render(&speech(text, &members));
    assert_eq!(parts.len(), 1, "{text}");
    parts.remove(0)
}

fn html(text: &str) -> Option<String> {
    one(text).get("formatted_body").map(|html| html.as_str().unwrap().to_owned())
}

fn check_html(markdown: &str, expect: &str) {
    assert_eq!(html(markdown).as_deref(), Some(expect), "{markdown}");
}

fn mentions_of(content: &Value) -> Vec<&str> {
    let users = content["m.mentions"].get("user_ids").and_then(Value::as_array);
    users.into_iter().flatten().map(|user| user.as_str().unwrap()).collect()
}

fn body(content: &Value) -> &str {
    content["body"].as_str().unwrap()
}

#[test]
fn plain_text_has_no_formatted_body() {
    assert_eq!(one("hello"), json!({"msgtype": "m.text", "body": "hello", "m.mentions": {}}));
    for plain in [
        "a\nb",
        "first\n\nsecond",
        "  indented a bit",
        "a <b> c",
        "Vec<String>",
        "2 * 3 * 4",
        "a_b_c",
        "<!-- x -->",
        "[a] (b)",
    ] {
        assert_eq!((html(plain), body(&one(plain))), (None, plain), "{plain}");
    }
    assert_eq!(one("\n \n  a \n\n")["body"], "  a");
}

#[test]
fn blank_text_is_nothing_and_nul_is_removed() {
    let members = members();
    for blank in ["", " \n\t", "\0", "\0 \0\n"] {
        assert!(render(&speech(blank, &members)).is_empty(), "{blank:?}");
    }
    assert_eq!(one("a\0b")["body"], "ab");
}

#[test]
fn markdown_becomes_html() {
    check_html("**bold** and `code`", "<strong>bold</strong> and <code>code</code>");
    check_html("~~gone~~", "<del>gone</del>");
    check_html("a *b*\nc", "a <em>b</em><br>\nc");
    check_html("# One\n\ntext", "<h1>One</h1>\n<p>text</p>");
    check_html("*a*\n\nb", "<p><em>a</em></p>\n<p>b</p>");
    check_html("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>");
    check_html("3. a", "<ol start=\"3\">\n<li>a</li>\n</ol>");
    check_html("a\\*b", "a*b");
    check_html("x &amp; y", "x &amp; y");
    check_html("---", "<hr>");
    check_html(
        "```rust\nlet a = 1 < 2;\n```",
        "<pre><code class=\"language-rust\">let a = 1 &lt; 2;\n</code></pre>",
    );
    check_html(
        "|a|b|\n|:-|-|\n|1|**2**|",
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td><strong>2</strong></td></tr>\n</tbody></table>",
    );
    check_html("see[^1]\n\n[^1]: the note", "<p>see[^1]</p>\n<p>[^1]:</p>\n<p>the note</p>");
}

#[test]
fn raw_html_is_shown_as_written() {
    check_html("*x* <script>alert(1)</script>", "<em>x</em> &lt;script&gt;alert(1)&lt;/script&gt;");
    check_html("*x* <b onclick=\"a\">y</b>", "<em>x</em> &lt;b onclick=\"a\"&gt;y&lt;/b&gt;");
    check_html(
        "*x*\n\n<div>\n<i>a\n</div>",
        "<p><em>x</em></p>\n<p>&lt;div&gt;<br>\n&lt;i&gt;a<br>\n&lt;/div&gt;</p>",
    );
    check_html("a<br>b", "a<br>\nb");
}

#[test]
fn links_keep_only_allowed_schemes() {
    check_html("[x](https://a.test/?q=1&r=2)", "<a href=\"https://a.test/?q=1&amp;r=2\">x</a>");
    check_html("[x](https://a.test \"title\")", "<a href=\"https://a.test\">x</a>");
    check_html("<https://a.test>", "<a href=\"https://a.test\">https://a.test</a>");
    check_html("<a@b.test>", "<a href=\"mailto:a@b.test\">a@b.test</a>");
    for target in [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "/local",
        "file:///etc/passwd",
    ] {
        check_html(&format!("[x]({target})"), "x");
        check_html(&format!("[x]({target} \"title\") *y*"), "x <em>y</em>");
    }
    check_html("[](https://a.test)", "<a href=\"https://a.test\">https://a.test</a>");
}

#[test]
fn images_become_links() {
    check_html("![a cat](https://a.test/c.png)", "<a href=\"https://a.test/c.png\">a cat</a>");
    check_html("![](https://a.test/c.png)", "<a href=\"https://a.test/c.png\">https://a.test/c.png</a>");
    check_html("![a cat](javascript:x)", "a cat");
    check_html("[![a cat](https://a.test/c.png)](https://b.test)", "<a href=\"https://b.test\">a cat</a>");
}

const EIR: &str = "<a href=\"https://matrix.to/#/@eir:hs.test\">Eir</a>";

#[test]
fn members_become_pills_and_mentions() {
    let check = |text: &str, expect: &str, mentions: &[&str]| {
        check_html(text, expect);
        assert_eq!(mentions_of(&one(text)), mentions);
        assert_eq!(body(&one(text)), text);
    };
    check("hi @eir:hs.test!", &format!("hi {EIR}!"), &["@eir:hs.test"]);
    check(
        "(@eir:hs.test), **@eir:hs.test**: x",
        &format!("({EIR}), <strong>{EIR}</strong>: x"),
        &["@eir:hs.test"],
    );
    check(
        "@persona_ann_b:hs.test @eir:hs.test.",
        &format!("<a href=\"https://matrix.to/#/@persona_ann_b:hs.test\">@persona_ann_b:hs.test</a> {EIR}."),
        &["@persona_ann_b:hs.test", "@eir:hs.test"],
    );
    check(
        "@bob:hs.test's",
        "<a href=\"https://matrix.to/#/@bob:hs.test\">Bob &lt;b&gt;\"the &amp; builder\"</a>'s",
        &["@bob:hs.test"],
    );
    check(
        "@UPPER/x:hs.test",
        "<a href=\"https://matrix.to/#/@UPPER%2Fx:hs.test\">@UPPER/x:hs.test</a>",
        &["@UPPER/x:hs.test"],
    );
    check("[her](https://matrix.to/#/@eir:hs.test)", &EIR.replace("Eir", "her"), &["@eir:hs.test"]);
}

#[test]
fn what_is_no_member_s_id_as_a_word_is_no_pill() {
    for text in [
        "@nobody:hs.test",
        "mail@eir:hs.test",
        "@eir:hs.testing",
        "@eir:hs.test:8448",
        "@@eir:hs.test",
        "@room",
        "@eir",
        "@",
    ] {
        assert_eq!(one(text), json!({"msgtype": "m.text", "body": text, "m.mentions": {}}), "{text}");
    }
    for text in [
        "`@eir:hs.test`",
        "```\n@eir:hs.test\n```",
        "    @eir:hs.test",
        "[@eir:hs.test](https://a.test)",
        "**@room**",
    ] {
        assert_eq!(one(text)["m.mentions"], json!({}), "{text}");
        assert!(!html(text).unwrap().contains("matrix.to"), "{text}");
    }
}

#[test]
fn a_pill_s_name_is_short_and_on_one_line() {
    let zalgo = format!("a{}", "\u{301}".repeat(10_000));
    let members: Members = [
        (user_id!("@a:hs.test").to_owned(), Some(format!("a\n\tb{}", "x".repeat(100)))),
        (user_id!("@z:hs.test").to_owned(), Some(zalgo)),
    ]
    .into();
    let parts = render(&speech("@a:hs.test @z:hs.test", &members));
    let html = parts[0]["formatted_body"].as_str().unwrap();
    assert!(html.contains(&format!(">ab{}</a>", "x".repeat(62))) && html.len() < 600, "{html}");
}

#[test]
fn deep_nesting_is_flattened() {
    for deep in
        ["> ".repeat(5_000) + "x", "- ".repeat(2_000) + "x", "[".repeat(5_000) + "x", "*a **b ".repeat(2_000)]
    {
        let members = members();
        let parts = render(&speech(&deep, &members));
        assert!(parts.iter().all(|part| part.to_string().len() < CONTENT_MAX));
    }
}

#[test]
fn answers_stay_where_they_were_asked() {
    let members = members();
    let relation = |thread, reply_to| {
        let parts = render(&Speech { thread, reply_to, ..speech("x", &members) });
        parts[0].get("m.relates_to").cloned()
    };
    let (root, asked) = (Some(event_id!("$root")), Some(event_id!("$asked")));
    assert_eq!(relation(None, None), None);
    assert_eq!(relation(None, asked), Some(json!({"m.in_reply_to": {"event_id": "$asked"}})));
    let thread = |falling: bool, answers: &str| json!({"rel_type": "m.thread", "event_id": "$root", "is_falling_back": falling, "m.in_reply_to": {"event_id": answers}});
    assert_eq!(relation(root, None), Some(thread(true, "$root")));
    let newest = Some(event_id!("$newest"));
    let behind = render(&Speech { thread: root, newest, ..speech("x", &members) });
    assert_eq!(behind[0]["m.relates_to"], thread(true, "$newest"));
    assert_eq!(relation(root, asked), Some(thread(false, "$asked")));
}

#[test]
fn all_parts_carry_the_thread_and_the_first_the_reply() {
    let members = members();
    let text = "word ".repeat(30_000);
    let answers = |thread, reply_to| -> Vec<Value> {
        let parts = render(&Speech { thread, reply_to, ..speech(&text, &members) });
        parts.iter().map(|part| part.get("m.relates_to").cloned().unwrap_or_default()).collect()
    };
    let (root, asked) = (Some(event_id!("$root")), Some(event_id!("$asked")));
    let in_thread = answers(root, asked);
    assert_eq!(in_thread[0]["m.in_reply_to"]["event_id"], "$asked");
    assert!(
        in_thread.len() == 3 && in_thread[1..].iter().all(|part| part["is_falling_back"] == true),
        "{in_thread:?}"
    );
    assert!(in_thread.iter().all(|part| part["event_id"] == "$root"));
    let in_timeline = answers(None, asked);
    assert!(!in_timeline[0].is_null() && in_timeline[1..].iter().all(Value::is_null));
}

#[test]
fn a_reaction() {
    insta::assert_snapshot!(
        reaction(event_id!("$e"), "👍"),
        @r#"{"m.relates_to":{"event_id":"$e","key":"👍","rel_type":"m.annotation"}}"#
    );
}

#[test]
fn a_frozen_content_carries_its_request_id() {
    insta::assert_snapshot!(
        freeze(&one("*hi* @eir:hs.test"), &RequestId("1-2-3".into()), None),
        @r##"{"body":"*hi* @eir:hs.test","dev.persona_bridge.request_id":"1-2-3","format":"org.matrix.custom.html","formatted_body":"<em>hi</em> <a href=\"https://matrix.to/#/@eir:hs.test\">Eir</a>","m.mentions":{"user_ids":["@eir:hs.test"]},"msgtype":"m.text"}"##
    );
}

#[test]
fn a_content_that_was_too_large_is_halved() {
    let members = members();
    let text = "**@bob:hs.test** says one thing.\n\nAnd *@eir:hs.test* another.";
    let (root, asked) = (event_id!("$root"), event_id!("$asked"));
    let mut whole =
        render(&Speech { thread: Some(root), reply_to: Some(asked), ..speech(text, &members) }).remove(0);
    whole[REQUEST_KEY] = json!("abc");
    let halves = split(&whole).unwrap();
    let first = Speech {
        thread: Some(root),
        reply_to: Some(asked),
        ..speech("**@bob:hs.test** says one thing.", &members)
    };
    assert_eq!(halves[0], render(&first).remove(0));
    let behind =
        Speech { thread: Some(root), newest: Some(asked), ..speech("And *@eir:hs.test* another.", &members) };
    assert_eq!(halves[1], render(&behind).remove(0));
    let in_timeline = render(&Speech { reply_to: Some(asked), ..speech(text, &members) }).remove(0);
    let halves = split(&in_timeline).unwrap();
    assert_eq!(
        (&halves[0]["m.relates_to"], halves[1].get("m.relates_to")),
        (&in_timeline["m.relates_to"], None)
    );
}

#[test]
fn what_cannot_be_halved_is_left() {
    for content in [
        reaction(event_id!("$e"), "👍"),
        one("x"),
        one("👨‍👩‍👧"),
        json!({"msgtype": "m.image", "body": "a b"}),
        json!({"msgtype": "m.text", "body": 5}),
        json!(null),
    ] {
        let halves = split(&content);
        assert!(halves.is_none() || body(&content) == "👨‍👩‍👧", "{content}");
    }
}

#[test]
fn halving_ends_at_single_signs() {
    let mut waiting = vec![one("ab cd")];
    let mut ends = String::new();
    while let Some(content) = waiting.pop() {
        match split(&content) {
            Some(halves) => waiting.extend(halves.into_iter().rev()),
            None => ends.push_str(body(&content)),
        }
    }
    assert_eq!(ends, "abcd");
}

#[test]
fn a_long_text_is_split_into_evenly_filled_parts() {
    let members = members();
    let mut text = String::new();
    for n in 0..3_000 {
        write!(text, "Paragraph {n} has **some** words for @eir:hs.test and a `bit of code`.\n\n").unwrap();
    }
    let parts = render(&speech(&text, &members));
    let lens: Vec<_> = parts.iter().map(|part| part.to_string().len()).collect();
    assert!(lens.iter().all(|len| (CONTENT_MAX / 3..CONTENT_MAX).contains(len)), "{lens:?}");
    assert_eq!(parts.iter().map(body).collect::<Vec<_>>().join("\n\n"), text.trim_end());
}

#[test]
fn a_code_block_is_reopened_with_its_info() {
    let members = members();
    let text = format!("Look:\n\n```rust\n{}```\n\nDone.", "    let line = 1;\n".repeat(9_000));
    let parts = render(&speech(&text, &members));
    let code: Vec<_> = parts.iter().filter(|part| body(part).contains("```")).collect();
    assert!(code.len() > 3);
    for part in &code {
        let body = body(part);
        assert!(body.contains("```rust\n") && body.matches("```").count() == 2, "{body}");
        assert!(part["formatted_body"].as_str().unwrap().contains("<pre><code class=\"language-rust\">"));
    }
    let lines: usize = code.iter().map(|part| body(part).matches("    let line = 1;").count()).sum();
    assert_eq!(lines, 9_000);
    assert!(body(&parts[0]).starts_with("Look:") && body(parts.last().unwrap()).ends_with("Done."));
}

/// The signs that must survive splitting: all that are neither blank nor part of a fence as they are made here.
fn signs<'a>(bodies: impl IntoIterator<Item = &'a str>) -> String {
    bodies.into_iter().flat_map(str::chars).filter(|c| !c.is_whitespace() && !"`~§".contains(*c)).collect()
}

fn any_markdown() -> impl Strategy<Value = String> {
    let words = "([a-zA-Z äß.!?,*_`]{1,12}|日本語。|👨‍👩‍👧|[é́]{3}|<script>|</b>|\\[a\\]\\(javascript:x\\)|@eir:hs\\.test){1,60}";
    let line = prop_oneof![
        6 => words,
        1 => Just("```§".to_owned()),
        1 => Just("```".to_owned()),
        1 => Just("  ~~~".to_owned()),
        1 => Just(String::new()),
        1 => words.prop_map(|words| format!("- {words}")),
        1 => words.prop_map(|words| format!("> {words}")),
        1 => Just("|a|b|\n|-|-|\n|1|2|".to_owned()),
    ];
    proptest::collection::vec(line, 1..30).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn parts_are_small_enough_and_lose_nothing(text in any_markdown(), in_thread: bool) {
        const MAX: usize = 1_500;
        let members = members();
        let thread = in_thread.then_some(event_id!("$root"));
        let parts = parts(&Speech { thread, ..speech(&text, &members) }, MAX);
        let cause = Cause { turn: TurnId(Uuid::nil()), hops: u32::MAX };
        for part in &parts {
            let frozen = freeze(part, &RequestId(Uuid::nil().to_string()), Some(&cause));
            prop_assert!(frozen.len() <= MAX, "{}", frozen);
            prop_assert!(!body(part).trim().is_empty());
        }
        prop_assert_eq!(signs(parts.iter().map(body)), signs([text.as_str()]));
    }

    #[test]
    fn halves_lose_nothing(text in any_markdown(), target in 0_usize..3_000) {
        if let Some((first, second)) = cut::cut(&text, target) {
            prop_assert!(!first.trim().is_empty() && !second.trim().is_empty());
            prop_assert!(first.len().max(second.len()) < text.len());
            prop_assert_eq!(signs([first.as_str(), second.as_str()]), signs([text.as_str()]));
        }
    }

    #[test]
    fn any_text_is_split_without_loss(text in "(\\PC|\n| ){0,400}") {
        let members = Members::new();
        let parts = parts(&speech(&text, &members), 500);
        prop_assert!(parts.iter().all(|part| part.to_string().len() + REQUEST_ROOM <= 500));
        prop_assert_eq!(signs(parts.iter().map(body)), signs([text.as_str()]));
    }

    #[test]
    fn no_markdown_makes_forbidden_html(text in any_markdown()) {
        let members = members();
        for part in render(&speech(&text, &members)) {
            let html = part.get("formatted_body").and_then(Value::as_str).unwrap_or_default();
            prop_assert!(!html.contains("<script") && !html.contains("</b>") && !html.contains("=\"javascript:"), "{}", html);
        }
    }

    #[test]
    fn a_mention_is_always_a_member(text in any_markdown()) {
        let members = members();
        for part in render(&speech(&text, &members)) {
            prop_assert!(part["m.mentions"].is_object());
            prop_assert!(mentions_of(&part).iter().all(|user| *user == "@eir:hs.test"));
        }
    }
}
