use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ruma::{OwnedUserId, owned_event_id, owned_room_id, user_id};

use super::*;
use crate::conversation::event::{Cause, Member, Membership};
use crate::conversation::ids::{RegisterName, RequestId, TurnId};
use crate::conversation::register::{Heed, Listen, Wakes};

mod among;

fn persona(id: &str, name: &str) -> Persona {
    Persona { id: PersonaId(id.into()), user: user(&format!("p_{id}")), name: name.into() }
}

fn user(name: &str) -> OwnedUserId {
    OwnedUserId::try_from(format!("@{name}:hs.test")).unwrap()
}

fn register() -> Lane {
    Lane::Register(RegisterName("swarm".into()))
}

fn direct() -> Lane {
    Lane::Direct(owned_room_id!("!r:hs.test"))
}

fn ids(names: &[&str]) -> BTreeSet<PersonaId> {
    names.iter().map(|name| PersonaId((*name).into())).collect()
}

fn heed(names_address: bool) -> Heed {
    Heed { names_address, ..Heed::default() }
}

/// A room with eir and rune in it.
fn room(lane: &Lane, names_address: bool) -> Room {
    let seat = Seat { lane: lane.clone(), heed: heed(names_address) };
    Room {
        id: owned_room_id!("!r:hs.test"),
        alias: Some("#swarm:hs.test".into()),
        name: None,
        topic: None,
        encrypted: false,
        listen: Listen::All,
        seats: BTreeMap::from([(PersonaId("eir".into()), seat.clone()), (PersonaId("rune".into()), seat)]),
        members: BTreeMap::from([(user("alice"), Some("Alice".into())), (user("bob"), None)]),
    }
}

fn message(text: &str) -> Message {
    Message {
        kind: MessageKind::Text,
        text: text.into(),
        thread: None,
        reply_to: None,
        edits: None,
        mentions: Vec::new(),
        mentions_room: false,
    }
}

fn event(sender: &str, content: Content) -> Event {
    Event {
        id: owned_event_id!("$e:hs.test"),
        room: owned_room_id!("!r:hs.test"),
        sender: user(sender),
        at: Millis(1_000),
        request: None,
        cause: None,
        content,
    }
}

fn say(sender: &str, text: &str) -> Event {
    event(sender, Content::Message(message(text)))
}

struct World {
    personas: Vec<Persona>,
    permissions: Permissions,
    bots: Bots,
    max_hops: u32,
    answers: Option<OwnedUserId>,
    asked: BTreeSet<PersonaId>,
    late: bool,
}

impl Default for World {
    fn default() -> Self {
        Self {
            personas: vec![persona("eir", "Eir"), persona("rune", "Rune")],
            permissions: Permissions(BTreeMap::from([
                ("hs.test".into(), Level::Chat),
                ("@mallory:hs.test".into(), Level::Block),
                ("@root:hs.test".into(), Level::Admin),
            ])),
            bots: Bots(vec!["@hook-*:hs.test".into()]),
            max_hops: 3,
            answers: None,
            asked: BTreeSet::new(),
            late: false,
        }
    }
}

impl World {
    fn known(&self) -> Known<'_> {
        Known {
            personas: &self.personas,
            permissions: &self.permissions,
            bots: &self.bots,
            max_hops: self.max_hops,
            bot: user_id!("@bot:hs.test"),
            answers: self.answers.as_deref(),
            asked: &self.asked,
            now: Millis(5_000),
            late: self.late,
        }
    }

    fn hear(&self, event: &Event, room: &Room) -> Hearing {
        hear(event, room, self.known())
    }
}

/// Who hears it, `!` where addressed: `eir! rune`, `edit: eir`, or the label of nothing in brackets.
fn summary(hearing: &Hearing) -> String {
    let mail = |mail: &[(PersonaId, Delivery)]| {
        mail.iter()
            .map(|(id, delivery)| format!("{id}{}", if delivery.addressed { "!" } else { "" }))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match hearing {
        Hearing::Mail(list) => mail(list),
        Hearing::Edit(of, list, _) => format!("edit of {of}: {}", mail(list)),
        Hearing::Redaction(of, _) => format!("redaction of {of}"),
        Hearing::Reaction(seats) => {
            let who: Vec<&str> = seats.iter().map(|(persona, _)| persona.as_str()).collect();
            format!("reaction before {}", who.join(" "))
        }
        Hearing::Nothing(label) => format!("[{label}]"),
    }
}

#[track_caller]
fn check(event: &Event, room: &Room, expect: &str) {
    assert_eq!(summary(&World::default().hear(event, room)), expect);
}

#[test]
fn everybody_seated_hears_and_a_direct_lane_addresses() {
    check(&say("alice", "hi"), &room(&register(), false), "eir rune");
    check(&say("alice", "hi"), &room(&direct(), false), "eir! rune!");
    check(&say("root", "hi"), &room(&direct(), false), "eir! rune!");
}

#[test]
fn a_name_addresses_only_where_names_do() {
    check(&say("alice", "Eir, hi"), &room(&register(), true), "eir! rune");
    check(&say("alice", "Eir, hi"), &room(&register(), false), "eir rune");
    check(&say("alice", "rune and eir"), &room(&register(), true), "eir! rune!");
    check(&say("alice", "the prune in their garden"), &room(&register(), true), "eir rune");
}

#[test]
fn a_mention_of_the_room_addresses_everybody_where_it_does() {
    let everybody = event("alice", Content::Message(Message { mentions_room: true, ..message("all hands") }));
    check(&everybody, &room(&register(), true), "eir rune");
    let mut heeding = room(&register(), true);
    heeding.seats.values_mut().for_each(|seat| seat.heed.room_mention = true);
    check(&everybody, &heeding, "eir! rune!");
}

/// A message in a thread, with what it says, mentions and answers.
fn in_thread(text: &str, mentions: &[&str], is_reply: bool) -> Event {
    let thread = Some(owned_event_id!("$root:hs.test"));
    let reply_to = is_reply.then(|| owned_event_id!("$a:hs.test"));
    let mentions = mentions.iter().map(|name| user(name)).collect();
    event("alice", Content::Message(Message { thread, reply_to, mentions, ..message(text) }))
}

#[test]
fn a_thread_goes_on_addressing_whom_it_asked_last_until_somebody_else_is_addressed() {
    let (eir, nobody) = (ids(&["eir"]), ids(&[]));
    for (event, heard, asks_then) in [
        (in_thread("and then?", &[], false), "eir! rune", None),
        (in_thread("Eir, and then?", &[], false), "eir! rune", None),
        (in_thread("rune, and you?", &[], false), "eir rune!", Some(ids(&["rune"]))),
        (in_thread("both", &["p_eir", "p_rune"], false), "eir! rune!", Some(ids(&["eir", "rune"]))),
        (in_thread("look", &["bob"], false), "eir rune", Some(nobody.clone())),
        (in_thread("yes", &[], true), "eir rune", Some(nobody)),
    ] {
        let world = World { asked: eir.clone(), ..World::default() };
        let room = room(&register(), true);
        assert_eq!(summary(&world.hear(&event, &room)), heard, "{event:?}");
        let asked = asks(&event, &room, world.known());
        assert_eq!(asked, asks_then.map(|asks| (owned_event_id!("$root:hs.test"), asks)), "{event:?}");
    }
    let own = World { asked: eir.clone(), answers: Some(user("alice")), ..World::default() };
    let more = in_thread("I mean", &[], true);
    assert_eq!(summary(&own.hear(&more, &room(&register(), true))), "eir! rune", "she answers herself");
    let outside = say("alice", "and here?");
    let world = World { asked: eir, ..World::default() };
    assert_eq!(summary(&world.hear(&outside, &room(&register(), true))), "eir rune", "in no thread");
}

#[test]
fn what_addresses_somebody_may_begin_a_thread_that_asks_her() {
    let asks = |event: &Event, lane: &Lane| asks(event, &room(lane, true), World::default().known());
    let begun = Some((owned_event_id!("$e:hs.test"), ids(&["eir"])));
    assert_eq!(asks(&say("alice", "Eir, hi"), &register()), begun);
    assert_eq!(asks(&say("alice", "hi all"), &register()), None);
    assert_eq!(asks(&say("mallory", "Eir, hi"), &register()), None);
    assert_eq!(asks(&say("p_rune", "Eir, hi"), &register()), None);
    assert_eq!(
        asks(&say("alice", "Eir, hi"), &direct()),
        None,
        "all that is said there addresses her anyway"
    );
    let notice = Message { kind: MessageKind::Notice, ..message("Eir: done") };
    assert_eq!(asks(&event("alice", Content::Message(notice)), &register()), None);
}

proptest! {
    #[test]
    fn a_thread_asks_those_alone_whom_people_address_in_it(
        lines in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()), 0..12),
    ) {
        let room = room(&register(), false);
        let (mut asked, mut expect) = (BTreeSet::new(), ids(&[]));
        for (eir, rune, bob, is_persona) in lines {
            let whom = [("p_eir", eir), ("p_rune", rune), ("bob", bob)];
            let mentions: Vec<&str> = whom.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
            let mut line = in_thread("x", &mentions, false);
            if is_persona {
                line.sender = user("p_eir");
            } else if !mentions.is_empty() {
                expect = ids(&[("eir", eir), ("rune", rune)].map(|(name, is)| if is { name } else { "" }));
                expect.remove(&PersonaId("".into()));
            }
            let world = World { asked: asked.clone(), ..World::default() };
            let heard = world.hear(&line, &room);
            if let Some((_, asks)) = asks(&line, &room, world.known()) {
                asked = asks;
            }
            prop_assert_eq!(&asked, &expect);
            let Hearing::Mail(mail) = heard else { panic!("not mail") };
            for (id, delivery) in mail {
                let is_asked = if is_persona { rune } else { expect.contains(&id) };
                prop_assert_eq!(delivery.addressed, is_asked);
            }
        }
    }
}

#[test]
fn a_room_may_listen_to_what_is_addressed_to_her_alone() {
    let mut quiet = room(&register(), true);
    quiet.listen = Listen::Addressed;
    check(&say("alice", "hello all"), &quiet, "[unaddressed]");
    check(&say("alice", "Eir, hi"), &quiet, "eir!");
    check(&say("p_rune", "Eir, hi"), &quiet, "eir!");
    let edit = Message { edits: Some(owned_event_id!("$old:hs.test")), ..message("oh") };
    check(&event("alice", Content::Message(edit)), &quiet, "edit of $old:hs.test: eir rune");
    let world = World { asked: ids(&["eir"]), ..World::default() };
    assert_eq!(summary(&world.hear(&in_thread("and then?", &[], false), &quiet)), "eir!");
}

#[test]
fn what_is_pushed_long_after_it_was_said_is_late_as_what_is_read_back_is() {
    let is_late = |said: u64, read_back: bool| {
        let world = World { late: read_back, ..World::default() };
        let event = Event { at: Millis(said), ..say("alice", "hi") };
        let known = Known { now: Millis(10_000_000), ..world.known() };
        let Hearing::Mail(mail) = hear(&event, &room(&register(), true), known) else { panic!("not mail") };
        mail[0].1.late
    };
    assert!(is_late(10_000_000 - 300_000, false) && is_late(10_000_000, true));
    assert!(!is_late(10_000_000 - 299_999, false) && !is_late(10_000_001, false));
    assert!(!is_late(0, false), "a time that could not be read tells nothing");
}

/// Who is woken: `eir+ rune`, in a register that wakes so.
#[track_caller]
fn check_woken(event: &Event, wakes: Wakes, expect: &str) {
    let mut room = room(&register(), true);
    room.seats.values_mut().for_each(|seat| seat.heed.wakes = wakes);
    let (Hearing::Mail(mail) | Hearing::Edit(_, mail, _)) = World::default().hear(event, &room) else {
        panic!("not heard")
    };
    let woken =
        |(id, delivery): &(PersonaId, Delivery)| format!("{id}{}", if delivery.wakes { "+" } else { "" });
    assert_eq!(mail.iter().map(woken).collect::<Vec<_>>().join(" "), expect, "{wakes:?} {event:?}");
}

#[test]
fn a_register_says_which_messages_wake() {
    let mentioning = |who: &str| Message { mentions: vec![user(who)], ..message("look") };
    let event = |message: Message| event("alice", Content::Message(message));
    let (to_eir, to_bob) = (event(mentioning("p_eir")), event(mentioning("bob")));
    let answer = event(Message { reply_to: Some(owned_event_id!("$a:hs.test")), ..message("yes") });
    let edit = event(Message { edits: Some(owned_event_id!("$a:hs.test")), ..message("oh") });
    let notice = event(Message { kind: MessageKind::Notice, ..message("done") });
    for (event, addressed, anyone) in [
        (&say("alice", "hello all"), "eir rune", "eir+ rune+"),
        (&say("alice", "Eir, hi"), "eir+ rune", "eir+ rune"),
        (&to_eir, "eir+ rune", "eir+ rune"),
        (&to_bob, "eir rune", "eir rune"),
        (&answer, "eir rune", "eir rune"),
        (&edit, "eir rune", "eir rune"),
        (&notice, "eir rune", "eir rune"),
        (&say("p_eir", "hello all"), "rune", "rune"),
    ] {
        check_woken(event, Wakes::Addressed, addressed);
        check_woken(event, Wakes::Anyone, anyone);
        check_woken(event, Wakes::Nobody, &addressed.replace('+', ""));
    }
}

#[test]
fn what_wakes_by_anyone_is_not_marked_as_addressed() {
    let mut room = room(&register(), true);
    room.seats.values_mut().for_each(|seat| seat.heed.wakes = Wakes::Anyone);
    check(&say("alice", "hello all"), &room, "eir rune");
}

#[test]
fn a_mention_addresses_whom_it_mentions() {
    let mut mentioning = message("you two");
    mentioning.mentions = vec![user("p_rune"), user("bob")];
    check(&event("alice", Content::Message(mentioning)), &room(&register(), false), "eir rune!");
}

#[test]
fn an_answer_addresses_whom_it_answers() {
    let world = World { answers: Some(user("p_rune")), ..World::default() };
    let heard = world.hear(&say("alice", "yes"), &room(&register(), false));
    assert_eq!(summary(&heard), "eir rune!");
}

#[test]
fn notices_are_mail_but_never_wake() {
    for lane in [register(), direct()] {
        let mut notice = message("Eir, backup done");
        notice.kind = MessageKind::Notice;
        notice.mentions = vec![user("p_eir")];
        check(&event("alice", Content::Message(notice)), &room(&lane, true), "eir rune");
    }
}

#[test]
fn personas_hear_each_other_and_never_themselves() {
    let mut mentioning = message("Rune, look");
    mentioning.mentions = vec![user("p_rune"), user("p_eir")];
    let event = event("p_eir", Content::Message(mentioning));
    for lane in [register(), direct()] {
        let world = World { answers: Some(user("p_rune")), ..World::default() };
        assert_eq!(summary(&world.hear(&event, &room(&lane, true))), "rune!");
    }
}

#[test]
fn personas_need_no_permission_to_be_heard() {
    let world = World { permissions: Permissions::default(), ..World::default() };
    assert_eq!(summary(&world.hear(&say("p_eir", "hm"), &room(&register(), true))), "rune");
    assert_eq!(summary(&world.hear(&say("alice", "hm"), &room(&register(), true))), "[blocked]");
}

#[test]
fn our_own_are_nothing() {
    check(&say("bot", "Eir, hi"), &room(&direct(), true), "[own]");
    let mut alone = room(&direct(), true);
    alone.seats.remove(&PersonaId("rune".into()));
    check(&say("p_eir", "hm"), &alone, "[own]");
    let mut echo = say("p_eir", "hm");
    echo.request = Some(RequestId("r".into()));
    check(&echo, &alone, "[own]");
    check(&echo, &room(&register(), true), "rune");
}

#[test]
fn a_request_id_of_somebody_else_hides_nothing() {
    let mut forged = say("alice", "Eir, hi");
    forged.request = Some(RequestId("r".into()));
    check(&forged, &room(&register(), true), "eir! rune");
}

#[test]
fn blocked_senders_and_encrypted_rooms_are_not_heard() {
    check(&say("mallory", "Eir, hi"), &room(&direct(), true), "[blocked]");
    let mut foreign = say("alice", "Eir, hi");
    foreign.sender = user_id!("@alice:elsewhere.test").to_owned();
    check(&foreign, &room(&direct(), true), "[blocked]");
    let mut encrypted = room(&direct(), true);
    encrypted.encrypted = true;
    check(&say("alice", "Eir, hi"), &encrypted, "[in an encrypted room]");
    check(&say("p_eir", "hm"), &encrypted, "[in an encrypted room]");
}

#[test]
fn without_a_known_seat_nobody_hears() {
    let mut empty = room(&register(), true);
    empty.seats.clear();
    check(&say("alice", "Eir, hi"), &empty, "[where nobody sits]");
    let seat = Seat { lane: register(), heed: heed(true) };
    empty.seats.insert(PersonaId("gone".into()), seat.clone());
    check(&say("alice", "Eir, hi"), &empty, "[where nobody sits]");
    check(&redaction("alice"), &empty, "[where nobody sits]");
    empty.seats.insert(PersonaId("rune".into()), seat);
    check(&say("alice", "Eir, hi"), &empty, "rune");
}

#[test]
fn an_edit_is_mail_addressed_as_its_new_words() {
    let mut edit = message("Eir, I meant this");
    edit.edits = Some(owned_event_id!("$old:hs.test"));
    let event = event("alice", Content::Message(edit));
    check(&event, &room(&register(), true), "edit of $old:hs.test: eir! rune");
    check(&event, &room(&register(), false), "edit of $old:hs.test: eir rune");
    let Hearing::Edit(_, mail, anew) = World::default().hear(&event, &room(&register(), true)) else {
        panic!("not an edit");
    };
    assert_eq!(mail[0].1.kind, DeliveryKind::Edit(owned_event_id!("$old:hs.test")));
    assert_eq!(mail[0].1.text, "Eir, I meant this");
    let said =
        Delivery { event: owned_event_id!("$old:hs.test"), kind: DeliveryKind::Text, ..mail[0].1.clone() };
    assert_eq!(anew[0].1, said, "for who has not heard the message");
}

fn redaction(sender: &str) -> Event {
    event(sender, Content::Redaction { redacts: owned_event_id!("$old:hs.test") })
}

#[test]
fn anybody_may_take_back() {
    let room = room(&register(), true);
    for sender in ["alice", "root", "mallory", "bot", "p_eir"] {
        check(&redaction(sender), &room, "redaction of $old:hs.test");
    }
    let encrypted = Room { encrypted: true, ..room };
    check(&redaction("alice"), &encrypted, "redaction of $old:hs.test");
}

#[test]
fn a_redaction_wakes_nobody_and_carries_no_words() {
    let Hearing::Redaction(_, notice) = World::default().hear(&redaction("alice"), &room(&direct(), true))
    else {
        panic!("not a redaction");
    };
    assert!(!notice.addressed);
    assert_eq!((notice.text.as_str(), notice.lane), ("", direct()));
    assert_eq!(notice.kind, DeliveryKind::Redaction(owned_event_id!("$old:hs.test")));
}

#[test]
fn reactions_are_heard_of_whom_messages_are_heard_and_ones_own_are_no_news() {
    let reaction = |sender: &str| {
        let content = Content::Reaction { to: owned_event_id!("$old:hs.test"), key: "👍".to_owned() };
        event(sender, content)
    };
    let room = room(&register(), true);
    check(&reaction("alice"), &room, "reaction before eir rune");
    check(&reaction("p_eir"), &room, "reaction before rune");
    check(&reaction("mallory"), &room, "[blocked]");
    check(&reaction("bot"), &room, "[own]");
    check(&reaction("alice"), &Room { encrypted: true, ..room }, "[in an encrypted room]");
}

#[test]
fn state_and_unknown_events_are_nothing_by_name() {
    let room = room(&register(), true);
    let member =
        Member { user: user("alice"), membership: Membership::Join, display_name: None, is_direct: false };
    check(&event("alice", Content::Member(member)), &room, "[member]");
    check(&event("alice", Content::Encryption), &room, "[encryption]");
    check(&event("alice", Content::Tombstone(None)), &room, "[tombstone]");
    check(&event("alice", Content::Other { kind: "m.sticker".into() }), &room, "[other]");
}

#[test]
fn a_delivery_carries_what_the_event_says() {
    let mut full = message("look");
    full.kind = MessageKind::Emote;
    full.thread = Some(owned_event_id!("$root:hs.test"));
    full.reply_to = Some(owned_event_id!("$before:hs.test"));
    let world = World { late: true, ..World::default() };
    let Hearing::Mail(mail) = world.hear(&event("alice", Content::Message(full)), &room(&direct(), false))
    else {
        panic!("not mail");
    };
    let expect = Delivery {
        seq: 0,
        lane: direct(),
        room: owned_room_id!("!r:hs.test"),
        sender: user("alice"),
        sender_name: Some("Alice".into()),
        event: owned_event_id!("$e:hs.test"),
        kind: DeliveryKind::Emote,
        text: "look".into(),
        thread: Some(owned_event_id!("$root:hs.test")),
        reply_to: Some(owned_event_id!("$before:hs.test")),
        addressed: true,
        wakes: true,
        hops: None,
        again: None,
        late: true,
        said: Millis(1_000),
        heard: Millis(5_000),
    };
    assert_eq!(mail[0], (PersonaId("eir".into()), expect));
}

#[test]
fn each_message_kind_keeps_its_kind() {
    for (kind, expect) in [
        (MessageKind::Text, DeliveryKind::Text),
        (MessageKind::Emote, DeliveryKind::Emote),
        (MessageKind::Notice, DeliveryKind::Notice),
        (MessageKind::Media, DeliveryKind::Media),
    ] {
        let content = Content::Message(Message { kind, ..message("x") });
        let Hearing::Mail(mail) = World::default().hear(&event("bob", content), &room(&direct(), false))
        else {
            panic!("not mail");
        };
        assert_eq!(mail[0].1.kind, expect);
        assert_eq!(mail[0].1.sender_name, None);
    }
}
