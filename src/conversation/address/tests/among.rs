//! Personas, bots and admins among those who speak.

use super::*;

/// What a Persona says, with so many hops; none without a cause.
fn of_persona(who: &str, hops: Option<u32>, message: Message) -> Event {
    let cause = hops.map(|hops| Cause { turn: TurnId(uuid::Uuid::from_u128(1)), hops });
    Event { cause, ..event(who, Content::Message(message)) }
}

/// How Eir hears it in a room that heeds so: `!` where it is addressed to her, `*` where it wakes her.
fn to_eir(event: &Event, lane: &Lane, heed: Heed) -> String {
    let mut room = room(lane, true);
    room.seats.values_mut().for_each(|seat| seat.heed = heed);
    let Hearing::Mail(mail) = World::default().hear(event, &room) else { panic!("not mail") };
    let (_, delivery) = mail.into_iter().find(|(id, _)| id.as_str() == "eir").expect("she hears it");
    let mark = |is: bool, mark: &'static str| if is { mark } else { "" };
    format!("{}{}", mark(delivery.addressed, "!"), mark(delivery.wakes, "*"))
}

#[test]
fn a_persona_wakes_another_by_what_is_addressed_to_her_within_the_hops_and_where_that_is_wanted() {
    let heed = Heed { names_address: true, personas_wake: true, ..Heed::default() };
    let rune = |hops: u32, text: &str| of_persona("p_rune", Some(hops), message(text));
    let heard = |event: &Event, heed: Heed| to_eir(event, &register(), heed);
    assert_eq!(heard(&rune(0, "Eir, hi"), heed), "!*");
    assert_eq!(heard(&rune(2, "Eir, hi"), heed), "!*");
    assert_eq!(heard(&rune(3, "Eir, hi"), heed), "!", "from max_hops on it is for her and does not wake her");
    assert_eq!(heard(&rune(0, "hi all"), heed), "");
    let mention = Message { mentions: vec![user("p_eir")], ..message("  ") };
    assert_eq!(heard(&of_persona("p_rune", Some(0), mention), heed), "!", "it says nothing");
    assert_eq!(heard(&of_persona("p_rune", None, message("Eir, hi")), heed), "!", "of no known turn");
    let notice = Message { kind: MessageKind::Notice, ..message("Eir, hi") };
    assert_eq!(heard(&of_persona("p_rune", Some(0), notice), heed), "");
    assert_eq!(heard(&rune(0, "Eir, hi"), Heed { personas_wake: false, ..heed }), "!");
    assert_eq!(heard(&rune(0, "Eir, hi"), Heed { wakes: Wakes::Nobody, ..heed }), "!");
    let anyone = Heed { wakes: Wakes::Anyone, ..heed };
    assert_eq!(heard(&rune(0, "hi all"), anyone), "", "only people's passing lines wake there");
    assert_eq!(heard(&say("alice", "hi all"), anyone), "*");
    assert_eq!(to_eir(&rune(0, "hi"), &direct(), heed), "!*");
    assert_eq!(to_eir(&rune(0, "hi"), &direct(), Heed { personas_wake: false, ..heed }), "!");
}

#[test]
fn a_thread_in_which_she_was_asked_goes_on_with_people_alone() {
    let heed = Heed { personas_wake: true, ..Heed::default() };
    let world = World { asked: ids(&["eir"]), ..World::default() };
    let mut room = room(&register(), false);
    room.seats.values_mut().for_each(|seat| seat.heed = heed);
    let heard = |event: &Event| summary(&world.hear(event, &room));
    assert_eq!(heard(&in_thread("go on", &[], false)), "eir! rune");
    let rune = Event { sender: user("p_rune"), ..in_thread("go on", &[], false) };
    assert_eq!(heard(&rune), "eir");
}

#[test]
fn only_a_persona_is_believed_how_far_it_has_come() {
    let hops = |event: &Event| {
        let Hearing::Mail(mail) = World::default().hear(event, &room(&register(), true)) else {
            panic!("no mail")
        };
        mail[0].1.hops
    };
    assert_eq!(hops(&of_persona("p_rune", Some(2), message("hi"))), Some(2));
    assert_eq!(hops(&of_persona("p_rune", None, message("hi"))), Some(hops::UNKNOWN));
    assert_eq!(hops(&of_persona("alice", Some(2), message("hi"))), None, "forged");
}

#[test]
fn a_bot_is_heard_and_calls_upon_nobody() {
    let heed = Heed { names_address: true, wakes: Wakes::Anyone, ..Heed::default() };
    assert_eq!(to_eir(&say("hook-ci", "Eir, it is green"), &register(), heed), "");
    assert_eq!(to_eir(&say("hook-ci", "it is green"), &direct(), heed), "");
    let world = World::default();
    assert_eq!(asks(&say("hook-ci", "Eir, hi"), &room(&register(), true), world.known()), None);
    assert_eq!(to_eir(&say("alice", "Eir, it is green"), &register(), heed), "!*");
}

#[test]
fn an_admin_who_names_her_addresses_and_wakes_her_whatever_the_register_says() {
    let heed = Heed { names_address: false, wakes: Wakes::Nobody, ..Heed::default() };
    let heard = |event: &Event, lane: &Lane| to_eir(event, lane, heed);
    for text in ["Eir, hi", "so, EIR?", "ask @p_eir:hs.test"] {
        assert_eq!(heard(&say("root", text), &register()), "!*", "{text}");
        assert_eq!(heard(&say("root", text), &direct()), "!*", "{text}");
        assert_eq!(heard(&say("alice", text), &register()), "", "{text}");
    }
    let mention = Message { mentions: vec![user("p_eir")], ..message("hi") };
    assert_eq!(heard(&event("root", Content::Message(mention.clone())), &register()), "!*");
    assert_eq!(heard(&event("alice", Content::Message(mention)), &register()), "!");
    assert_eq!(heard(&say("root", "their weather"), &register()), "");
    let notice = event("root", Content::Message(Message { kind: MessageKind::Notice, ..message("Eir, hi") }));
    assert_eq!(heard(&notice, &register()), "");
    let mut world = World::default();
    world.permissions.0.extend(["@hook-1:hs.test", "@p_rune:hs.test"].map(|who| (who.into(), Level::Admin)));
    for who in ["hook-1", "p_rune"] {
        let hearing = world.hear(&say(who, "Eir, hi"), &room(&register(), false));
        assert_eq!(summary(&hearing), if who == "hook-1" { "eir rune" } else { "eir" }, "no machine does");
    }
    check(&say("root", "rune?"), &room(&register(), false), "eir rune!");
}
