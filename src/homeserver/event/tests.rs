use proptest::prelude::*;
use ruma::{owned_event_id, owned_room_id, owned_user_id};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::conversation::{Message, MessageKind};
use crate::homeserver::content::freeze;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn event(kind: &str, content: Value) -> Value {
    json!({
        "type": kind, "event_id": "$e", "room_id": "!r:hs.test", "sender": "@alice:hs.test",
        "origin_server_ts": 1_700_000_000_000_u64, "content": content,
    })
}

fn with(mut event: Value, key: &str, value: Value) -> Value {
    event[key] = value;
    event
}

fn read_ok(event: &Value) -> Event {
    read(&raw(&event.to_string())).unwrap()
}

fn content_of(kind: &str, content: Value) -> Content {
    read_ok(&event(kind, content)).content
}

fn message_of(content: Value) -> Message {
    let content = content_of("m.room.message", content);
    let Content::Message(message) = content else { panic!("{content:?}") };
    message
}

fn text(body: &str) -> Value {
    json!({"msgtype": "m.text", "body": body})
}

fn plain(text: &str) -> Message {
    Message {
        kind: MessageKind::Text,
        text: text.to_owned(),
        thread: None,
        reply_to: None,
        edits: None,
        mentions: Vec::new(),
        mentions_room: false,
    }
}

fn other(kind: &str) -> Content {
    Content::Other { kind: kind.to_owned() }
}

#[test]
fn a_plain_message() {
    assert_eq!(
        read_ok(&event("m.room.message", text("hello"))),
        Event {
            id: owned_event_id!("$e"),
            room: owned_room_id!("!r:hs.test"),
            sender: owned_user_id!("@alice:hs.test"),
            at: Millis(1_700_000_000_000),
            request: None,
            cause: None,
            content: Content::Message(plain("hello")),
        }
    );
}

#[test]
fn only_id_room_sender_and_type_are_needed() {
    let check = |key: &str, value: Value, reason: &str| {
        let event = with(event("m.room.message", text("x")), key, value).to_string();
        let unreadable = read(&raw(&event)).unwrap_err();
        assert_eq!((unreadable.raw.as_str(), unreadable.reason.as_str()), (event.as_str(), reason));
    };
    for value in [json!(5), json!(null), json!(["m.room.message"])] {
        check("type", value, "the event has no readable type");
    }
    for value in [json!(5), json!(null), json!("e"), json!(format!("${}", "e".repeat(255)))] {
        check("event_id", value, "the event has no readable event_id");
    }
    for value in [json!({}), json!("r:hs.test"), json!("#r:hs.test")] {
        check("room_id", value, "the event has no readable room_id");
    }
    for value in [json!(7), json!("alice"), json!("@alice"), json!("alice:hs.test")] {
        check("sender", value, "the event has no readable sender");
    }
    for json in ["\"foo\"", "null", "[]", "7"] {
        assert_eq!(read(&raw(json)).unwrap_err().reason, "the event is not an object");
    }
}

#[test]
fn the_quarantined_text_is_cut_on_a_character_border() {
    let huge = format!("\"x{}\"", "ü".repeat(RAW_MAX));
    let kept = read(&raw(&huge)).unwrap_err().raw;
    assert!(huge.starts_with(&kept) && kept.len() <= RAW_MAX && kept.len() > RAW_MAX - 4, "{}", kept.len());
}

#[test]
fn odd_ids_are_taken() {
    let odd = with(
        event("m.room.message", text("x")),
        "room_id",
        json!("!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM"),
    );
    assert_eq!(read_ok(&odd).room.as_str(), "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM");
    for sender in ["@UPPER case/ü:hs.test", "@:hs.test", "@a!b?c:[::1]:8448"] {
        let odd = with(event("m.room.message", text("x")), "sender", json!(sender));
        assert_eq!(read_ok(&odd).sender.as_str(), sender);
    }
}

#[test]
fn an_unreadable_time_is_zero() {
    for ts in ["1.5", "1e300", "-1", "\"1\"", "null", "{}", "9007199254740993", "99999999999999999999999"] {
        let json = event("m.room.message", text("x")).to_string().replace("1700000000000", ts);
        let event = read(&raw(&json)).unwrap();
        assert_eq!((event.at, event.content), (Millis(0), Content::Message(plain("x"))), "{ts}");
    }
}

#[test]
fn a_broken_field_costs_that_field_alone() {
    for broken in [json!("x"), json!(5), json!([1]), json!(null), json!({"user_ids": "x", "event_id": 5})] {
        for key in ["m.mentions", "m.relates_to", "m.new_content", "format", "info", REQUEST_KEY] {
            let content = with(text("x"), key, broken.clone());
            let request =
                if key == REQUEST_KEY && broken == "x" { Some(RequestId("x".into())) } else { None };
            let event = read_ok(&event("m.room.message", content));
            assert_eq!(
                (event.content, event.request),
                (Content::Message(plain("x")), request),
                "{key} {broken}"
            );
        }
        let event = with(event("m.room.message", text("x")), "unsigned", broken);
        assert_eq!(read_ok(&event).content, Content::Message(plain("x")));
    }
    let numeric_key = with(event("m.room.message", text("x")), "state_key", json!(5));
    assert_eq!(read_ok(&numeric_key).content, Content::Message(plain("x")));
}

#[test]
fn a_message_without_words_is_counted_as_another_kind() {
    for content in
        [json!({}), json!({"msgtype": "m.text"}), json!({"msgtype": "m.text", "body": 5}), json!("x")]
    {
        assert_eq!(content_of("m.room.message", content), other("m.room.message"));
    }
}

#[test]
fn the_kinds_of_message() {
    let check = |msgtype: Value, kind: MessageKind| {
        let message = message_of(json!({"msgtype": msgtype, "body": "x"}));
        assert_eq!((message.kind, message.text.as_str()), (kind, "x"));
    };
    check(json!("m.text"), MessageKind::Text);
    check(json!("m.emote"), MessageKind::Emote);
    check(json!("m.notice"), MessageKind::Notice);
    check(json!("m.location"), MessageKind::Text);
    check(json!("org.example.poll"), MessageKind::Text);
    check(json!(5), MessageKind::Text);
    assert_eq!(message_of(json!({"body": "x"})), plain("x"));
}

#[test]
fn media_are_told_by_a_placeholder_and_their_caption() {
    let check = |content: Value, expect: &str| {
        let message = message_of(content);
        assert_eq!((message.kind, message.text.as_str()), (MessageKind::Media, expect));
    };
    check(
        json!({"msgtype": "m.image", "body": "photo.jpg", "info": {"size": 240_300}}),
        "[image photo.jpg 240 kB]",
    );
    check(
        json!({"msgtype": "m.file", "body": "a.pdf", "filename": "a.pdf", "info": {"size": 999}}),
        "[file a.pdf 999 B]",
    );
    check(
        json!({"msgtype": "m.video", "body": "my cat\nat play", "filename": "c.mp4", "info": {"size": 2_499_999}}),
        "[video c.mp4 2.4 MB] my cat\nat play",
    );
    check(json!({"msgtype": "m.audio", "body": "voice\n.ogg", "info": {"size": -1}}), "[audio voice .ogg]");
    check(json!({"msgtype": "m.image", "body": 5, "info": {"size": 1_500_000_000}}), "[image 1.5 GB]");
    check(json!({"msgtype": "m.image", "body": " ", "filename": "x.png"}), "[image x.png]");
}

#[test]
fn a_sticker_is_an_image() {
    let Content::Message(message) = content_of("m.sticker", json!({"body": "Waving", "info": {"size": 5}}))
    else {
        panic!("no message");
    };
    assert_eq!((message.kind, message.text.as_str()), (MessageKind::Media, "[sticker Waving 5 B]"));
    assert_eq!(content_of("m.sticker", json!({})), other("m.sticker"));
}

fn reply(body: &str) -> Value {
    with(text(body), "m.relates_to", json!({"m.in_reply_to": {"event_id": "$q"}}))
}

#[test]
fn the_fallback_of_a_reply_is_removed() {
    let check = |body: &str, expect: &str| {
        let message = message_of(reply(body));
        assert_eq!((message.text.as_str(), message.reply_to), (expect, Some(owned_event_id!("$q"))));
    };
    check("no fallback", "no fallback");
    check("> <@bob:hs.test> first\n> second\n\nanswer\n\n> own quote", "answer\n\n> own quote");
    check("> * <@bob:hs.test> waves\n\nanswer", "answer");
    check("> <@bob:hs.test> a\n>\n> b\n\nanswer", "answer");
    check("> my own quote\n\nanswer", "> my own quote\n\nanswer");
    check("> <@bob:hs.test> nothing else", "> <@bob:hs.test> nothing else");
    let unrelated = "> <@bob:hs.test> a\n\nb";
    assert_eq!(message_of(text(unrelated)).text, unrelated);
}

#[test]
fn threads_and_their_replies() {
    let check = |relation: Value, thread: Option<&str>, reply_to: Option<&str>| {
        let message = message_of(with(text("x"), "m.relates_to", relation));
        assert_eq!(message.thread.as_ref().map(|id| id.as_str()), thread);
        assert_eq!(message.reply_to.as_ref().map(|id| id.as_str()), reply_to);
    };
    let thread = |falling: Value| json!({"rel_type": "m.thread", "event_id": "$root", "is_falling_back": falling, "m.in_reply_to": {"event_id": "$q"}});
    check(thread(json!(true)), Some("$root"), None);
    check(thread(json!(false)), Some("$root"), Some("$q"));
    check(thread(json!("true")), Some("$root"), Some("$q"));
    check(json!({"rel_type": "m.thread", "event_id": "$root"}), Some("$root"), None);
    check(
        json!({"rel_type": "m.thread", "event_id": 5, "m.in_reply_to": {"event_id": "$q"}}),
        None,
        Some("$q"),
    );
    check(json!({"rel_type": 5, "event_id": "$root"}), None, None);
    check(json!({"is_falling_back": true, "m.in_reply_to": {"event_id": "$q"}}), None, Some("$q"));
}

#[test]
fn an_edit_carries_the_new_words_and_their_mentions() {
    let edit = json!({
        "msgtype": "m.text", "body": "* new", "m.mentions": {"user_ids": ["@old:hs.test"]},
        "m.new_content": {"msgtype": "m.emote", "body": "new", "m.mentions": {"user_ids": ["@eir:hs.test"]}},
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$old"},
    });
    let expect = Message {
        kind: MessageKind::Emote,
        edits: Some(owned_event_id!("$old")),
        mentions: vec![owned_user_id!("@eir:hs.test")],
        mentions_room: false,
        ..plain("new")
    };
    assert_eq!(message_of(edit.clone()), expect);
    let without = with(edit.clone(), "m.new_content", json!({"body": 5}));
    let expect =
        Message { kind: MessageKind::Text, mentions: vec![owned_user_id!("@old:hs.test")], ..expect };
    assert_eq!(message_of(without), expect);
    let fallback =
        json!({"body": "> <@b:hs.test> a\n\nnew", "m.relates_to": {"m.in_reply_to": {"event_id": "$q"}}});
    assert_eq!(message_of(with(edit.clone(), "m.new_content", fallback)).text, "new");
    let no_target = with(edit, "m.relates_to", json!({"rel_type": "m.replace"}));
    assert_eq!(message_of(no_target).edits, None);
}

#[test]
fn a_mention_of_the_room_is_read_on_its_own() {
    let of = |mentions: Value| {
        let message = message_of(with(text("x"), "m.mentions", mentions));
        (message.mentions_room, message.mentions.len())
    };
    assert_eq!(of(json!({"room": true})), (true, 0));
    assert_eq!(of(json!({"room": true, "user_ids": ["@eir:hs.test", 7]})), (true, 1));
    for odd in [json!({}), json!({"room": false}), json!({"room": "true"}), json!([true])] {
        assert!(!of(odd).0);
    }
}

#[test]
fn mentions_are_read_one_by_one() {
    let ids = json!({"user_ids": ["@a:hs.test", 5, "nobody", null, "@b:hs.test", "@a:hs.test"], "room": 1});
    let mentions = message_of(with(text("x"), "m.mentions", ids)).mentions;
    assert_eq!(mentions, [owned_user_id!("@a:hs.test"), owned_user_id!("@b:hs.test")]);
}

#[test]
fn our_own_echo_carries_its_request_id() {
    let content = with(text("x"), REQUEST_KEY, json!("abc"));
    assert_eq!(read_ok(&event("m.room.message", content)).request, Some(RequestId("abc".into())));
    let reaction = json!({"m.relates_to": {"rel_type": "m.annotation"}, REQUEST_KEY: "abc"});
    let read = read_ok(&event("m.reaction", reaction));
    assert_eq!((read.request, read.content), (Some(RequestId("abc".into())), other("m.reaction")));
}

#[test]
fn what_answers_or_reacts_says_to_what_and_a_thread_for_old_clients_does_not() {
    let check = |relates: Value, expect: Option<OwnedEventId>| {
        let frozen =
            freeze(&with(text("x"), "m.relates_to", relates.clone()), &RequestId("abc".into()), None);
        assert_eq!(answered_by(&frozen), expect, "{relates}");
    };
    let (asked, answers) = (owned_event_id!("$q"), json!({"event_id": "$q"}));
    let thread = |falling: bool| json!({"rel_type": "m.thread", "event_id": "$root", "is_falling_back": falling, "m.in_reply_to": answers});
    check(json!({ "m.in_reply_to": answers }), Some(asked.clone()));
    check(thread(false), Some(asked.clone()));
    check(thread(true), None);
    check(json!({"rel_type": "m.annotation", "event_id": "$q", "key": "x"}), Some(asked));
    check(json!({"rel_type": "m.replace", "event_id": "$q"}), None);
    check(json!({}), None);
    assert_eq!(answered_by("no json"), None);
}

#[test]
fn what_we_freeze_tells_its_turn_and_hops_and_half_of_that_tells_nothing() {
    let cause = Cause { turn: TurnId(Uuid::from_u128(7)), hops: 2 };
    let frozen = freeze(&text("x"), &RequestId("abc".into()), Some(&cause));
    assert_eq!(cause_of(&frozen), Some(cause));
    let content: Value = serde_json::from_str(&frozen).unwrap();
    let read = |content: Value| read_ok(&event("m.room.message", content)).cause;
    assert_eq!(read(content.clone()), Some(cause));
    assert_eq!(read_ok(&event("m.reaction", content.clone())).cause, Some(cause));
    for (key, value) in [
        ("turn", json!("no uuid")),
        ("turn", json!(7)),
        ("hops", json!(-1)),
        ("hops", json!(1.5)),
        ("hops", json!("2")),
        ("hops", json!(5_000_000_000_u64)),
    ] {
        let mut content = content.clone();
        content[CAUSE_KEY][key] = value.clone();
        assert_eq!(read(content.clone()), None, "{key}: {value}");
        assert!(matches!(read_ok(&event("m.room.message", content)).content, Content::Message(_)));
    }
    assert_eq!(read(with(text("x"), CAUSE_KEY, json!("x"))), None);
}

#[test]
fn redacted_messages_are_skipped() {
    let redacted =
        with(event("m.room.message", text("x")), "unsigned", json!({"redacted_because": {"type": "m.x"}}));
    assert_eq!(read_ok(&redacted).content, other("m.room.message"));
    let kept = with(event("m.room.message", text("x")), "unsigned", json!({"redacted_because": null}));
    assert_eq!(read_ok(&kept).content, Content::Message(plain("x")));
}

#[test]
fn redactions_name_what_they_take_back() {
    let check = |event: Value, expect: Option<&str>| {
        let expect = expect.map_or(other("m.room.redaction"), |id| Content::Redaction {
            redacts: EventId::parse(id).unwrap(),
        });
        assert_eq!(read_ok(&event).content, expect);
    };
    let redaction = |content: Value| event("m.room.redaction", content);
    check(with(redaction(json!({})), "redacts", json!("$top")), Some("$top"));
    check(redaction(json!({"redacts": "$inner"})), Some("$inner"));
    check(with(redaction(json!({"redacts": "$inner"})), "redacts", json!("$top")), Some("$top"));
    check(with(redaction(json!({"redacts": "$inner"})), "redacts", json!(5)), Some("$inner"));
    check(redaction(json!({"redacts": "no event"})), None);
}

#[test]
fn memberships() {
    let check = |content: Value, expect: Option<(Membership, Option<&str>, bool)>| {
        let event = with(event("m.room.member", content), "state_key", json!("@bob:hs.test"));
        let expect = expect.map_or(other("m.room.member"), |(membership, name, is_direct)| {
            let display_name = name.map(str::to_owned);
            Content::Member(Member {
                user: owned_user_id!("@bob:hs.test"),
                membership,
                display_name,
                is_direct,
            })
        });
        assert_eq!(read_ok(&event).content, expect);
    };
    check(json!({"membership": "join", "displayname": "Bob"}), Some((Membership::Join, Some("Bob"), false)));
    check(json!({"membership": "invite", "is_direct": true}), Some((Membership::Invite, None, true)));
    check(json!({"membership": "invite", "is_direct": "true"}), Some((Membership::Invite, None, false)));
    check(json!({"membership": "leave", "displayname": 5}), Some((Membership::Leave, None, false)));
    check(json!({"membership": "ban"}), Some((Membership::Ban, None, false)));
    check(json!({"membership": "knock"}), Some((Membership::Knock, None, false)));
    check(json!({"membership": "dance"}), None);
    check(json!({}), None);
    for key in [json!(5), json!("bob"), json!(null)] {
        let event = with(event("m.room.member", json!({"membership": "join"})), "state_key", key);
        assert_eq!(read_ok(&event).content, other("m.room.member"));
    }
}

#[test]
fn encryption_and_tombstone_count_only_as_the_room_s_state() {
    let state = |kind: &str, content: Value, key: Value| {
        read_ok(&with(event(kind, content), "state_key", key)).content
    };
    let megolm = json!({"algorithm": "m.megolm.v1.aes-sha2"});
    assert_eq!(state("m.room.encryption", megolm.clone(), json!("")), Content::Encryption);
    assert_eq!(state("m.room.encryption", json!({}), json!("")), Content::Encryption);
    assert_eq!(state("m.room.encryption", megolm.clone(), json!("x")), other("m.room.encryption"));
    assert_eq!(content_of("m.room.encryption", megolm), other("m.room.encryption"));
    let next = json!({"replacement_room": "!next"});
    let room: OwnedRoomId = "!next".try_into().unwrap();
    let tombstone = |content: Value| state("m.room.tombstone", content, json!(""));
    assert_eq!(tombstone(next.clone()), Content::Tombstone(Some(room)));
    assert_eq!(tombstone(json!({"replacement_room": 5})), Content::Tombstone(None));
    assert_eq!(tombstone(json!({"replacement_room": "next"})), Content::Tombstone(None));
    assert_eq!(content_of("m.room.tombstone", next), other("m.room.tombstone"));
}

#[test]
fn which_room_comes_before_and_after_one_is_read_leniently() {
    let old: OwnedRoomId = "!old:hs.test".try_into().unwrap();
    let create = r#"{"room_version":12,"predecessor":{"room_id":"!old:hs.test","event_id":7}}"#;
    assert_eq!(predecessor(create), Some(old.clone()));
    assert_eq!(replacement(r#"{"replacement_room":"!old:hs.test","body":7}"#), Some(old));
    for other in ["{}", "[]", r#"{"predecessor":"!old:hs.test"}"#, r#"{"predecessor":{"room_id":"old"}}"#] {
        assert_eq!((predecessor(other), replacement(other)), (None, None), "{other}");
    }
}

#[test]
fn names_and_topics_count_only_as_the_room_s_state_and_are_bounded() {
    let state =
        |kind: &str, content: Value| read_ok(&with(event(kind, content), "state_key", json!(""))).content;
    let name = |name: Option<&str>| Content::Described(Described::Name(name.map(str::to_owned)));
    assert_eq!(state("m.room.name", json!({ "name": "Tea" })), name(Some("Tea")));
    for none in [json!({}), json!({ "name": "  " }), json!({ "name": 7 })] {
        assert_eq!(state("m.room.name", none), name(None));
    }
    assert_eq!(state("m.room.name", json!({ "name": "é".repeat(5_000) })), name(Some(&"é".repeat(2_048))));
    let topic = Described::Topic(Some("cups".to_owned()));
    assert_eq!(state("m.room.topic", json!({ "topic": "cups" })), Content::Described(topic.clone()));
    assert_eq!(content_of("m.room.name", json!({ "name": "Tea" })), other("m.room.name"));
    assert_eq!(description("m.room.topic", r#"{"topic":"cups"}"#), Some(topic));
    assert_eq!((description("m.room.topic", "[]"), description("m.room.create", "{}")), (None, None));
}

#[test]
fn a_reaction_annotates_an_event_and_is_bounded() {
    let of = |relation: Value| content_of("m.reaction", json!({ "m.relates_to": relation }));
    let whole = |key: &str| json!({ "rel_type": "m.annotation", "event_id": "$e", "key": key });
    let expect = |key: &str| Content::Reaction { to: owned_event_id!("$e"), key: key.to_owned() };
    assert_eq!(of(whole("👍")), expect("👍"));
    assert_eq!(of(whole(&"é".repeat(500))), expect(&"é".repeat(128)));
    for (field, value) in [("rel_type", json!("m.reference")), ("event_id", json!("e")), ("key", json!(7))] {
        assert_eq!(of(with(whole("👍"), field, value)), other("m.reaction"), "{field}");
    }
    let content = json!({ "m.relates_to": whole("👍") });
    let because = json!({ "redacted_because": {} });
    let redacted = with(event("m.reaction", content), "unsigned", because);
    assert_eq!(read_ok(&redacted).content, other("m.reaction"));
}

#[test]
fn what_is_not_known_is_named_by_its_type() {
    let encrypted = json!({"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"});
    assert_eq!(content_of("m.room.encrypted", encrypted), other("m.room.encrypted"));
    assert_eq!(content_of("org.example.new", json!(5)), other("org.example.new"));
}

#[test]
fn deep_nesting_huge_numbers_nul_and_lone_surrogates_are_read() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let odd = r#""body":"a\u0000b\ud83d!","msgtype":"m.text","n":123456789012345678901234567890e99999"#;
    let json = format!(
        r#"{{"type":"m.room.message","event_id":"$e","room_id":"!r","sender":"@a:b","x":{deep},"content":{{{odd},"d":{deep}}}}}"#
    );
    assert_eq!(read(&raw(&json)).unwrap().content, Content::Message(plain("a\0b\u{fffd}!")));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        proptest::sample::select(
            &[
                "$e",
                "!r:hs",
                "@a:hs",
                "m.room.message",
                "m.room.member",
                "m.image",
                "m.replace",
                "> <@a:b> x\n"
            ][..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        let keys = proptest::sample::select(
            &[
                "type",
                "event_id",
                "room_id",
                "sender",
                "content",
                "body",
                "msgtype",
                "m.relates_to",
                "m.in_reply_to",
                "m.new_content",
                "m.mentions",
                "user_ids",
                "rel_type",
                "unsigned",
                "state_key",
                "info",
                "size",
            ][..],
        );
        let pairs = proptest::collection::vec((keys, inner.clone()), 0..8);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            pairs.prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_or_quarantined_as_it_is(value in any_json()) {
        let json = value.to_string();
        if let Err(unreadable) = read(&raw(&json)) {
            prop_assert_eq!(unreadable.raw, json);
        }
    }

    #[test]
    fn any_content_of_a_whole_event_is_read(kind in "m\\.room\\.(message|member|redaction|tombstone)|m.sticker", content in any_json()) {
        prop_assert!(read(&raw(&event(&kind, content).to_string())).is_ok());
    }

    #[test]
    fn any_body_arrives_as_it_is(body in ".*") {
        prop_assert_eq!(message_of(text(&body)).text, body);
    }
}
