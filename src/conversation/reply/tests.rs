use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::conversation::register::ReplyIn;

pub(super) fn room(name: &str) -> OwnedRoomId {
    OwnedRoomId::try_from(format!("!{name}:hs.test")).unwrap()
}

pub(super) fn event(name: &str) -> OwnedEventId {
    OwnedEventId::try_from(format!("${name}")).unwrap()
}

pub(super) fn target(of: &str, name: &str, thread: Option<&str>) -> Target {
    Target { room: room(of), event: event(name), thread: thread.map(event) }
}

/// Two rooms of a register; m1 (in a thread) and m2 in swarm, m3 in burn; asked in m1.
pub(super) fn two_rooms() -> Allowance {
    Allowance {
        rooms: Rooms::from([
            (room("swarm"), vec!["#swarm:hs.test".into()], ReplyIn::AsAsked),
            (room("burn"), vec!["Burn Pit".into(), "#burn:hs.test".into()], ReplyIn::AsAsked),
        ]),
        labels: BTreeMap::from([
            ("m1".into(), target("swarm", "e1", Some("root"))),
            ("m2".into(), target("swarm", "e2", None)),
            ("m3".into(), target("burn", "e3", None)),
            ("m9".into(), target("secret", "e9", None)),
        ]),
        default: Some(target("swarm", "e1", Some("root"))),
        home: None,
        asked: BTreeMap::from([(room("swarm"), target("swarm", "e1", Some("root")))]),
        newest: BTreeMap::from([(event("root"), event("e7"))]),
        memories: BTreeSet::from([MemoryNumber(3)]),
        parts: BTreeSet::from(["m2".to_owned()]),
        agenda: Agenda::default(),
    }
}

/// Acts in short: `swarm/root re e1: text`, `burn e3 👍`.
pub(super) fn summary(acts: &[Act]) -> String {
    let of = |room: &OwnedRoomId| room.as_str()[1..].split(':').next().unwrap().to_owned();
    let show = |act: &Act| match act {
        Act::Say { room, text, thread, newest, reply_to } => {
            assert_eq!(newest.is_some(), thread.is_some());
            let thread = thread.as_ref().map(|root| format!("/{}", &root.as_str()[1..])).unwrap_or_default();
            let reply =
                reply_to.as_ref().map(|event| format!(" re {}", &event.as_str()[1..])).unwrap_or_default();
            format!("{}{thread}{reply}: {text}", of(room))
        }
        Act::React { room, event, key } => format!("{} {} {key}", of(room), &event.as_str()[1..]),
    };
    acts.iter().map(show).collect::<Vec<_>>().join(" · ")
}

#[track_caller]
fn check(reply: Value, expect: &str) {
    let shown = match acts(&reply.to_string(), &two_rooms()) {
        Ok(acts) => summary(&acts),
        Err(fault) => format!("fault: {fault}"),
    };
    assert_eq!(shown, expect, "{reply}");
}

pub(super) fn say(say: Value) -> Value {
    json!({"say": [say], "react": []})
}

fn react(message: &str, key: &str) -> Value {
    json!({"say": [], "react": [{"message": message, "key": key}]})
}

#[test]
fn empty_lists_are_silence() {
    check(json!({"say": [], "react": []}), "");
}

#[test]
fn a_say_goes_where_she_was_asked() {
    check(say(json!({"text": "hi"})), "swarm/root: hi");
    check(say(json!({"text": "hi", "room": ""})), "swarm/root: hi");
    check(say(json!({"text": "hi", "room": null, "reply_to": null})), "swarm/root: hi");
    check(say(json!({"text": "hi", "reply_to": " "})), "swarm/root: hi");
    check(say(json!({"text": "hi", "room": "#swarm:hs.test"})), "swarm/root: hi");
    check(say(json!({"text": "hi", "room": "#burn:hs.test"})), "burn: hi");
}

#[test]
fn a_room_goes_by_any_of_its_names() {
    for name in [
        "!burn:hs.test",
        "Burn Pit",
        "burn pit",
        "BURN  PIT",
        " Burn Pit ",
        "#burn:hs.test",
        "burn:hs.test",
        "#BURN:hs.test",
        "Burn:HS.test",
        "#burn",
        "burn",
        "Burn",
    ] {
        check(say(json!({"text": "x", "room": name})), "burn: x");
    }
}

#[test]
fn other_rooms_are_refused_by_name() {
    for name in [
        "#secret:hs.test",
        "!secret:hs.test",
        "secret",
        "bur",
        "burn:other.test",
        "Pit",
        "#",
        "!BURN:hs.test",
    ] {
        check(
            say(json!({"text": "x", "room": name})),
            &format!(
                "fault: {name:?} is not a room that this mail lets you speak in; allowed: \"Burn Pit\", \"#swarm:hs.test\""
            ),
        );
    }
}

#[test]
fn a_name_of_two_rooms_is_refused() {
    let mut twins = two_rooms();
    twins.rooms = Rooms::from([
        (room("burn"), vec!["Burn Pit".into(), "#burn:hs.test".into()], ReplyIn::AsAsked),
        (room("third"), vec!["burn pit".into(), "#burn:elsewhere.test".into()], ReplyIn::AsAsked),
    ]);
    for (name, expect) in [("Burn Pit", Err(())), ("burn", Err(())), ("#burn:elsewhere.test", Ok("third: x"))]
    {
        let reply = say(json!({"text": "x", "room": name})).to_string();
        let shown = acts(&reply, &twins).map(|acts| summary(&acts)).map_err(|fault| {
            assert!(fault.0.ends_with("use its id: !burn:hs.test, !third:hs.test"), "{fault}");
        });
        assert_eq!(shown, expect.map(str::to_owned));
    }
}

#[test]
fn an_answer_goes_to_the_room_and_thread_of_what_it_answers() {
    check(say(json!({"text": "x", "reply_to": "m1"})), "swarm/root re e1: x");
    check(say(json!({"text": "x", "reply_to": "m2"})), "swarm re e2: x");
    check(say(json!({"text": "x", "reply_to": "m3"})), "burn re e3: x");
    check(say(json!({"text": "x", "reply_to": " M3 "})), "burn re e3: x");
    check(say(json!({"text": "x", "reply_to": "m3", "room": "burn"})), "burn re e3: x");
}

#[test]
fn a_register_says_where_answers_stand() {
    let shown = |reply_in: ReplyIn, of: Value| {
        let mut allowance = two_rooms();
        allowance.rooms = Rooms::from([
            (room("swarm"), vec!["#swarm:hs.test".into()], reply_in),
            (room("burn"), vec!["#burn:hs.test".into()], reply_in),
        ]);
        allowance.newest.insert(event("e2"), event("e2"));
        allowance.newest.insert(event("e3"), event("e3"));
        summary(&acts(&say(of).to_string(), &allowance).unwrap())
    };
    for (of, as_asked, thread, timeline) in [
        (json!({"text": "x"}), "swarm/root: x", "swarm/root: x", "swarm: x"),
        (
            json!({"text": "x", "reply_to": "m1"}),
            "swarm/root re e1: x",
            "swarm/root re e1: x",
            "swarm re e1: x",
        ),
        (json!({"text": "x", "reply_to": "m2"}), "swarm re e2: x", "swarm/e2 re e2: x", "swarm re e2: x"),
        (json!({"text": "x", "reply_to": "m3"}), "burn re e3: x", "burn/e3 re e3: x", "burn re e3: x"),
        (json!({"text": "x", "room": "burn"}), "burn: x", "burn: x", "burn: x"),
    ] {
        assert_eq!(shown(ReplyIn::AsAsked, of.clone()), as_asked);
        assert_eq!(shown(ReplyIn::Thread, of.clone()), thread);
        assert_eq!(shown(ReplyIn::Timeline, of), timeline);
    }
}

#[test]
fn room_and_answer_must_agree() {
    check(
        say(json!({"text": "x", "reply_to": "m3", "room": "swarm"})),
        "fault: m3 stands in \"Burn Pit\", not in \"swarm\"; leave out room or reply_to",
    );
}

#[test]
fn labels_outside_are_refused_alike_whether_they_exist_or_not() {
    for label in ["m9", "m4", "e1", "$e1", "12"] {
        let fault = format!("fault: {label:?} is not the label of a message that you can answer here");
        check(say(json!({"text": "x", "reply_to": label})), &fault);
        check(react(label, "👍"), &fault);
    }
}

#[test]
fn text_with_nothing_in_it_is_left_out() {
    for text in ["", " ", "\n\t\n", "\u{0}", "\u{1b}\u{7f}", "\u{2003}"] {
        check(say(json!({"text": text, "room": "nowhere"})), "");
    }
}

#[test]
fn text_keeps_its_form_but_no_control_characters() {
    check(say(json!({"text": "a\r\n\tb\u{0}\u{1b}[1m"})), "swarm/root: a\n\tb[1m");
    check(say(json!({"text": "  * one\n\n  * two "})), "swarm/root:   * one\n\n  * two ");
}

#[test]
fn reactions() {
    check(react("m3", "👍"), "burn e3 👍");
    check(react("m1", " 👨‍👩‍👧 "), "swarm e1 👨‍👩‍👧");
    check(react("m1", "well done"), "swarm e1 well done");
    check(react("m1", &"x".repeat(64)), &format!("swarm e1 {}", "x".repeat(64)));
    for key in ["", " ", "a\nb", "a\u{2028}b", "a\u{0}", &"x".repeat(65), &"👍".repeat(17)] {
        check(
            react("m1", key),
            "fault: a reaction's key is an emoji or a word of at most 64 bytes on one line",
        );
    }
}

#[test]
fn says_come_before_reactions_each_in_her_order() {
    check(
        json!({
            "react": [{"message": "m3", "key": "b"}, {"message": "m2", "key": "a"}, {"message": "m3", "key": "b"}],
            "say": [{"text": "2", "room": "burn"}, {"text": ""}, {"text": "1"}, {"text": "1"}],
        }),
        "burn: 2 · swarm/root: 1 · swarm/root: 1 · burn e3 b · swarm e2 a",
    );
}

#[test]
fn one_fault_spoils_the_whole_reply() {
    let reply = json!({"say": [{"text": "fine"}, {"text": "x", "room": "nowhere"}], "react": []});
    assert!(acts(&reply.to_string(), &two_rooms()).is_err());
    let reply = json!({"say": [{"text": "fine"}], "react": [{"message": "m77", "key": "x"}]});
    assert!(acts(&reply.to_string(), &two_rooms()).is_err());
}

#[test]
fn without_a_default_she_must_name_a_room() {
    let mut nowhere = two_rooms();
    nowhere.default = None;
    let fault = acts(&say(json!({"text": "x"})).to_string(), &nowhere).unwrap_err();
    assert_eq!(fault.0, "say in which room; allowed: \"Burn Pit\", \"#swarm:hs.test\"");
    nowhere.default = Some(target("secret", "e9", None));
    assert!(acts(&say(json!({"text": "x"})).to_string(), &nowhere).is_err());
    let fault = acts(&say(json!({"text": "x"})).to_string(), &Allowance::default()).unwrap_err();
    assert_eq!(fault.0, "say in which room; there is none");
}

#[test]
fn anything_of_another_shape_is_a_fault() {
    for reply in [
        "",
        "null",
        "[]",
        "{}",
        "hello",
        "\"NO_REPLY\"",
        r#"{"say":[]}"#,
        r#"{"react":[]}"#,
        r#"{"say":null,"react":[]}"#,
        r#"{"say":{},"react":[]}"#,
        r#"{"say":["hi"],"react":[]}"#,
        r#"{"say":[{}],"react":[]}"#,
        r#"{"say":[{"text":null}],"react":[]}"#,
        r#"{"say":[{"text":1}],"react":[]}"#,
        r#"{"say":[{"text":"x","rooms":"a"}],"react":[]}"#,
        r#"{"say":[{"text":"x","room":["a"]}],"react":[]}"#,
        r#"{"say":[],"react":[{"message":"m1"}]}"#,
        r#"{"say":[],"react":[{"key":"x"}]}"#,
        r#"{"say":[],"react":[],"think":"…"}"#,
        r#"{"say":[],"say":[],"react":[]}"#,
        r#"{"say":[],"react":[]} and more"#,
    ] {
        let fault = acts(reply, &two_rooms()).unwrap_err();
        assert!(fault.0.starts_with("not of the schema: "), "{reply}: {fault}");
    }
}

#[test]
fn lists_are_bounded() {
    let with = |says: usize, reacts: usize| {
        let reply = json!({
            "say": vec![json!({"text": "x"}); says],
            "react": (0..reacts).map(|n| json!({"message": "m1", "key": n.to_string()})).collect::<Vec<_>>(),
        });
        acts(&reply.to_string(), &two_rooms()).map(|acts| acts.len())
    };
    assert_eq!(with(16, 16), Ok(32));
    assert_eq!(with(17, 0), Err(Fault("say has 17 items; at most 16 are taken".into())));
    assert_eq!(with(0, 17), Err(Fault("react has 17 items; at most 16 are taken".into())));
}

#[test]
fn labels_named_by_a_reply_are_listed_once_for_lookup() {
    let reply = json!({
        "say": [{"text": "x", "reply_to": "M12"}, {"text": "y"}, {"text": "", "reply_to": "m3"}],
        "react": [{"message": "m12 ", "key": "x"}, {"message": "nonsense", "key": "x"}, {"message": "m", "key": "x"}],
        "forget": ["N3", "n", "x3"],
    });
    assert_eq!(labels_in(&reply.to_string()), ["m12", "m3", "n3"]);
    assert!(labels_in("not a reply").is_empty());
}

// The schema.

/// Another schema is another version, and each session that was begun with the old one is ended for it.
#[test]
fn the_schema_is_byte_constant() {
    let digest = uuid::Uuid::new_v5(&uuid::Uuid::nil(), SCHEMA.as_bytes());
    insta::assert_snapshot!(format!("version {SCHEMA_VERSION}: {digest}"), @"version 3: 50f8719d-57c5-54f7-be3c-882323272e00");
}

#[test]
fn the_schema_asks_for_what_is_decoded() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(schema["required"], json!(["say", "react"]));
    assert_eq!(schema["properties"]["say"]["items"]["required"], json!(["text"]));
    assert_eq!(schema["properties"]["react"]["items"]["required"], json!(["message", "key"]));
    let memory = &schema["properties"]["remember"]["items"];
    assert_eq!(memory["required"], json!(["text", "about", "salience"]));
    assert_eq!(memory["properties"]["text"]["maxLength"], crate::conversation::memory::TEXT_BYTES);
    for (list, most) in [
        ("say", MAX_ITEMS),
        ("react", MAX_ITEMS),
        ("remember", MAX_MEMORIES),
        ("forget", MAX_ITEMS),
        ("show", MAX_SHOWN),
        ("remind", MAX_REMINDERS),
        ("unremind", MAX_REMINDERS),
    ] {
        assert_eq!(schema["properties"][list]["maxItems"], most);
    }
    let memory = json!({"text": "x", "about": ["@a:hs.test", "tea"], "salience": 0.5, "task": "open"});
    let all = json!({"say": [], "react": [], "remember": [memory], "forget": ["n3"], "show": ["m2"]});
    assert!(is_of(&schema, &all) && keeps(&all.to_string(), &two_rooms()).is_ok());
    let ahead = json!({
        "say": [], "react": [], "pulse": {"tempo": "20m", "urgency": 300},
        "remind": [{"in": "2h", "text": "x", "room": "#swarm:hs.test"}, {"at": "1970-01-02 00:00", "text": "y"}],
        "unremind": [],
    });
    assert!(is_of(&schema, &ahead));
    assert_eq!(keeps(&ahead.to_string(), &two_rooms()).unwrap().reminds.remind.len(), 2);
    assert_eq!(
        schema["properties"]["remind"]["items"]["properties"]["text"]["maxLength"],
        crate::conversation::reminder::TEXT_BYTES
    );
    assert!(is_of(&schema, &json!({"say": [], "react": []})));
    assert!(is_of(&schema, &say(json!({"text": "x", "room": "swarm", "reply_to": "m1"}))));
    assert!(!is_of(&schema, &json!({"say": []})));
}

/// Whether a value is of the schema, for the keywords that the schema uses.
fn is_of(schema: &Value, value: &Value) -> bool {
    let length = |text: &str| text.chars().count() as u64;
    match schema["type"].as_str().unwrap() {
        "number" => value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number)),
        "integer" => value.as_u64().is_some_and(|number| {
            (schema["minimum"].as_u64().unwrap()..=schema["maximum"].as_u64().unwrap()).contains(&number)
        }),
        "string" => value.as_str().is_some_and(|text| {
            schema["enum"].as_array().is_none_or(|words| words.contains(value))
                && schema["minLength"].as_u64().is_none_or(|least| length(text) >= least)
                && schema["maxLength"].as_u64().is_none_or(|most| length(text) <= most)
        }),
        "array" => value.as_array().is_some_and(|items| {
            items.len() as u64 <= schema["maxItems"].as_u64().unwrap()
                && items.iter().all(|item| is_of(&schema["items"], item))
        }),
        "object" => value.as_object().is_some_and(|fields| {
            assert_eq!(schema["additionalProperties"], false);
            let required = schema["required"].as_array().unwrap();
            required.iter().all(|name| fields.contains_key(name.as_str().unwrap()))
                && fields.iter().all(|(name, field)| {
                    schema["properties"].get(name).is_some_and(|property| is_of(property, field))
                })
        }),
        other => panic!("no {other} in the schema"),
    }
}

fn any_reply() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "swarm",
            "#swarm:hs.test",
            "!burn:hs.test",
            "Burn Pit",
            "#secret:hs.test",
            "!secret:hs.test",
            "",
            "#",
            "m1",
            "m2",
            "m3",
            "m9",
            "m77",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let field =
        prop_oneof![8 => name.clone().prop_map(Value::String), 1 => Just(Value::Null), 1 => Just(json!(7))];
    let say = prop::collection::btree_map(
        prop::sample::select(vec!["text", "text", "room", "reply_to", "other"]),
        field.clone(),
        0..4,
    );
    let react =
        prop::collection::btree_map(prop::sample::select(vec!["message", "key", "other"]), field, 0..3);
    let full_say = (name.clone(), prop::option::of(name.clone()), prop::option::of(name.clone())).prop_map(
        |(text, room, reply_to)| {
            let mut say = json!({"text": text});
            say.as_object_mut().unwrap().extend(room.map(|room| ("room".into(), room.into())));
            say.as_object_mut().unwrap().extend(reply_to.map(|label| ("reply_to".into(), label.into())));
            say
        },
    );
    let full_react = (name.clone(), name).prop_map(|(message, key)| json!({"message": message, "key": key}));
    let says = prop::collection::vec(prop_oneof![9 => full_say, 1 => say.prop_map(|map| json!(map))], 0..4);
    let reacts =
        prop::collection::vec(prop_oneof![9 => full_react, 1 => react.prop_map(|map| json!(map))], 0..4);
    (says, reacts).prop_map(|(say, react)| json!({"say": say, "react": react}))
}

proptest! {
    #[test]
    fn every_act_stays_within_the_allowance(reply in any_reply()) {
        let allowance = two_rooms();
        for act in acts(&reply.to_string(), &allowance).unwrap_or_default() {
            let (room, event) = match &act {
                Act::Say { room, reply_to, text, .. } => {
                    prop_assert!(!text.trim().is_empty());
                    (room, reply_to.as_ref())
                }
                Act::React { room, event, key } => {
                    prop_assert!((1..=64).contains(&key.len()));
                    (room, Some(event))
                }
            };
            prop_assert!(allowance.rooms.contains(room), "{:?}", act);
            if let Some(event) = event {
                prop_assert!(allowance.labels.values().any(|t| t.event == *event && t.room == *room), "{:?}", act);
            }
        }
    }

    #[test]
    fn what_is_not_of_the_schema_makes_no_act(mut reply in any_reply()) {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        for say in reply["say"].as_array_mut().unwrap() {
            say.as_object_mut().unwrap().retain(|name, field| name == "text" || !field.is_null());
        }
        prop_assume!(!is_of(&schema, &reply));
        prop_assert!(acts(&reply.to_string(), &two_rooms()).is_err(), "{}", reply);
    }

    #[test]
    fn any_text_is_read_without_panic(reply in any::<String>()) {
        prop_assert!(acts(&reply, &two_rooms()).is_err());
        prop_assert!(labels_in(&reply).is_empty());
    }

    #[test]
    fn faults_fit_their_line(reply in any_reply()) {
        if let Err(fault) = acts(&reply.to_string(), &two_rooms()) {
            let line = crate::conversation::prompt::fault_line(&fault.0);
            let controls = line.contains(char::is_control);
            prop_assert!(line.chars().count() <= 400 && !controls);
        }
    }
}
