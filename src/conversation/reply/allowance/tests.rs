use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::acts;
use super::super::tests::{event, room, say, summary, target};
use super::*;
use crate::conversation::ids::{PersonaId, RegisterName};
use crate::conversation::register::{Heed, Listen, Register, ReplyIn, SpeakFrom};
use crate::conversation::room::{Room, Seat};

fn register(name: &str) -> Lane {
    Lane::Register(RegisterName(name.into()))
}

fn delivery(seq: u64, lane: &Lane, of: &str) -> Delivery {
    let plain = crate::conversation::batch::tests::delivery(seq, lane.clone(), room(of));
    Delivery { event: event(&format!("e{seq}")), text: "x".into(), ..plain }
}

fn open<const N: usize>(rooms: [&str; N]) -> Rooms {
    Rooms::from(rooms.map(|name| (room(name), vec![format!("#{name}:hs.test")], ReplyIn::AsAsked)))
}

#[test]
fn an_allowance_knows_the_batch_and_where_it_was_asked() {
    let lane = register("swarm");
    let deliveries = vec![
        Delivery { addressed: true, thread: Some(event("root")), ..delivery(1, &lane, "swarm") },
        Delivery { addressed: true, ..delivery(2, &lane, "burn") },
        Delivery { thread: Some(event("other")), ..delivery(3, &lane, "burn") },
        Delivery { kind: DeliveryKind::Edit(event("old")), ..delivery(4, &lane, "burn") },
        Delivery { kind: DeliveryKind::Redaction(event("old")), ..delivery(5, &lane, "burn") },
        Delivery { kind: DeliveryKind::Withdrawn, addressed: true, ..delivery(6, &lane, "swarm") },
        delivery(7, &lane, "left"),
    ];
    let batch = Batch::new(lane, deliveries).unwrap();
    let built = allowance(&batch, open(["swarm", "burn"]), []);
    let expect = Allowance {
        rooms: open(["swarm", "burn"]),
        labels: BTreeMap::from([
            ("m1".into(), target("swarm", "e1", Some("root"))),
            ("m2".into(), target("burn", "e2", None)),
            ("m3".into(), target("burn", "e3", Some("other"))),
            ("m4".into(), target("burn", "old", None)),
        ]),
        default: Some(target("burn", "e2", None)),
        asked: BTreeMap::from([
            (room("swarm"), target("swarm", "e1", Some("root"))),
            (room("burn"), target("burn", "e2", None)),
        ]),
        newest: BTreeMap::from([(event("other"), event("e3")), (event("root"), event("e1"))]),
        ..Allowance::default()
    };
    assert_eq!(built, expect);
}

#[test]
fn a_persona_who_does_not_wake_her_asks_for_no_answer() {
    let lane = register("swarm");
    let asked = |of: &[Delivery]| {
        let batch = Batch::new(lane.clone(), of.to_vec()).unwrap();
        allowance(&batch, open(["swarm", "burn"]), []).default
    };
    let person = Delivery { addressed: true, ..delivery(1, &lane, "swarm") };
    let persona = Delivery { addressed: true, hops: Some(3), ..delivery(2, &lane, "burn") };
    let waking = Delivery { wakes: true, ..persona.clone() };
    assert_eq!(asked(&[person.clone(), persona]), Some(target("swarm", "e1", None)));
    assert_eq!(asked(&[person, waking]), Some(target("burn", "e2", None)));
}

#[test]
fn the_newest_addressed_message_sets_the_thread_of_its_room() {
    let lane = register("swarm");
    let asked = |seq, thread: Option<&str>| Delivery {
        addressed: true,
        thread: thread.map(event),
        ..delivery(seq, &lane, "swarm")
    };
    for (first, second) in [(Some("a"), None), (None, Some("a")), (Some("a"), Some("b"))] {
        let batch = Batch::new(lane.clone(), vec![asked(1, first), asked(2, second)]).unwrap();
        let built = allowance(&batch, open(["swarm"]), []);
        assert_eq!(built.asked[&room("swarm")], target("swarm", "e2", second));
        assert_eq!(built.default, Some(target("swarm", "e2", second)));
        let newest = |root: &str| built.newest.get(&event(root)).cloned();
        assert_eq!(second.and_then(newest), second.map(|_| event("e2")));
    }
}

#[test]
fn where_nothing_is_addressed_the_newest_message_is_the_default() {
    let lane = register("swarm");
    let batch =
        Batch::new(lane.clone(), vec![delivery(1, &lane, "swarm"), delivery(2, &lane, "burn")]).unwrap();
    let built = allowance(&batch, open(["swarm", "burn"]), []);
    assert_eq!(built.default, Some(target("burn", "e2", None)));
    assert_eq!(allowance(&batch, open(["swarm"]), []).default, None);
    let empty = Batch::new(lane, Vec::new()).unwrap();
    assert_eq!(allowance(&empty, open(["swarm"]), []).default, None);
}

#[test]
fn earlier_labels_count_only_in_their_lane_and_its_rooms() {
    let lane = register("swarm");
    let batch = Batch::new(lane.clone(), vec![delivery(20, &lane, "swarm")]).unwrap();
    let heard = [
        ("m1".to_owned(), lane.clone(), target("swarm", "a", None)),
        ("m2".to_owned(), register("minds"), target("swarm", "b", None)),
        ("m3".to_owned(), lane.clone(), target("elsewhere", "c", None)),
        ("m4".to_owned(), Lane::Direct(room("swarm")), target("swarm", "d", None)),
        ("m20".to_owned(), lane, target("swarm", "stale", None)),
    ];
    let built = allowance(&batch, open(["swarm"]), heard);
    assert_eq!(built.labels.keys().collect::<Vec<_>>(), ["m1", "m20"]);
    assert_eq!(built.labels["m20"].event, event("e20"));
}

/// Rooms in which eir sits: name, lane, and whether it is encrypted.
fn seats(of: &[(&str, Lane, bool)]) -> Vec<Room> {
    let made = |(name, lane, encrypted): &(&str, Lane, bool)| Room {
        id: room(name),
        alias: (*name != "dm").then(|| format!("#{name}:hs.test")),
        name: None,
        topic: None,
        encrypted: *encrypted,
        listen: Listen::All,
        seats: BTreeMap::from([(eir(), Seat { lane: lane.clone(), heed: Heed::default() })]),
        members: BTreeMap::new(),
    };
    of.iter().map(made).collect()
}

fn eir() -> PersonaId {
    PersonaId("eir".into())
}

fn speak_from(names: &[&str]) -> Register {
    let names = names.iter().map(|name| RegisterName((*name).to_owned()));
    Register { speak_from: SpeakFrom::new(names, true).unwrap(), ..Register::default() }
}

fn opened(lane: &Lane, rooms: &[Room], registers: &BTreeMap<RegisterName, Register>) -> Vec<String> {
    let open = Rooms::new(lane, &eir(), rooms, registers, |_| None);
    open.iter().map(|(room, _)| room.as_str()[1..].split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn the_rooms_of_a_lane_are_those_she_hears_in_it_unencrypted() {
    let rooms = seats(&[
        ("swarm", register("swarm"), false),
        ("burn", register("swarm"), false),
        ("minds", register("minds"), false),
        ("sealed", register("swarm"), true),
        ("dm", Lane::Direct(room("dm")), false),
        ("odd", Lane::Direct(room("dm")), false),
    ]);
    let none = BTreeMap::new();
    assert_eq!(opened(&register("swarm"), &rooms, &none), ["burn", "swarm"]);
    assert_eq!(opened(&Lane::Direct(room("dm")), &rooms, &none), ["dm"]);
    let left = Room { seats: BTreeMap::new(), ..rooms[0].clone() };
    assert!(opened(&register("swarm"), &[left], &none).is_empty());
    let label = |room: &Room| (room.alias.is_none()).then(|| "dm with Alice".to_owned());
    let named = Rooms::new(&Lane::Direct(room("dm")), &eir(), &rooms, &none, label);
    assert_eq!(named.get(&room("dm")).unwrap().names, ["dm with Alice"]);
    let named = Rooms::new(&register("swarm"), &eir(), &rooms, &none, |_| Some("Burn Pit".into()));
    assert_eq!(named.get(&room("burn")).unwrap().names, ["Burn Pit", "#burn:hs.test"]);
}

#[test]
fn a_register_opens_its_rooms_to_the_lanes_that_it_lists() {
    let rooms = seats(&[
        ("swarm", register("swarm"), false),
        ("minds", register("minds"), false),
        ("sealed", register("minds"), true),
        ("dm", Lane::Direct(room("dm")), false),
        ("other", Lane::Direct(room("other")), false),
    ]);
    let with = |name: &str, from: &[&str]| BTreeMap::from([(RegisterName(name.into()), speak_from(from))]);
    let from_swarm = with("minds", &["swarm"]);
    assert_eq!(opened(&register("swarm"), &rooms, &from_swarm), ["minds", "swarm"]);
    assert_eq!(opened(&register("minds"), &rooms, &from_swarm), ["minds"]);
    assert_eq!(opened(&Lane::Direct(room("dm")), &rooms, &from_swarm), ["dm"]);
    assert_eq!(opened(&Lane::Direct(room("dm")), &rooms, &with("minds", &["dm"])), ["dm", "minds"]);
    assert_eq!(opened(&register("swarm"), &rooms, &with("dm", &["swarm"])), ["dm", "other", "swarm"]);
    assert_eq!(opened(&Lane::Direct(room("dm")), &rooms, &with("swarm", &["minds"])), ["dm"]);
}

#[test]
fn labels_of_an_open_room_of_another_lane_are_none() {
    let rooms = seats(&[("swarm", register("swarm"), false), ("minds", register("minds"), false)]);
    let registers = BTreeMap::from([(RegisterName("minds".into()), speak_from(&["swarm"]))]);
    let lane = register("swarm");
    let open = Rooms::new(&lane, &eir(), &rooms, &registers, |_| None);
    let batch = Batch::new(lane.clone(), vec![delivery(1, &lane, "swarm")]).unwrap();
    let heard = [("m0".to_owned(), register("minds"), target("minds", "a", None))];
    let built = allowance(&batch, open, heard);
    assert_eq!(built.labels.keys().collect::<Vec<_>>(), ["m1"]);
    let reply = say(json!({"text": "news", "room": "#minds"})).to_string();
    assert_eq!(acts(&reply, &built).map(|acts| summary(&acts)), Ok("minds: news".to_owned()));
}

#[test]
fn a_room_that_her_mail_came_from_stays_a_place_she_may_name() {
    let rooms = seats(&[("swarm", register("swarm"), false)]);
    let mut open = Rooms::new(&register("swarm"), &eir(), &rooms, &BTreeMap::new(), |_| None);
    let lane = register("swarm");
    let deliveries = vec![delivery(1, &lane, "swarm"), delivery(2, &lane, "left")];
    let batch = Batch::new(lane, deliveries).unwrap();
    let closed = open.take_closed(&batch, |_| Some("#left:hs.test".into()));
    assert_eq!(closed, BTreeSet::from([room("left")]));
    assert!(open.contains(&room("swarm")) && open.contains(&room("left")));
}

/// One of five rooms of three lanes, and whether a register lists a lane.
fn any_house() -> impl Strategy<Value = (Vec<Room>, BTreeMap<RegisterName, Register>, Lane)> {
    let lanes =
        vec![register("swarm"), register("minds"), Lane::Direct(room("r3")), Lane::Direct(room("r4"))];
    let seat = (prop::sample::select(lanes.clone()), any::<bool>());
    let from = prop::collection::vec(prop::sample::select(vec!["swarm", "minds", "dm"]), 0..3);
    let registers =
        prop::collection::btree_map(prop::sample::select(vec!["swarm", "minds", "dm"]), from, 0..4);
    (prop::collection::vec(seat, 5), registers, prop::sample::select(lanes)).prop_map(
        |(seated, registers, lane)| {
            let names = ["r0", "r1", "r2", "r3", "r4"];
            let of: Vec<_> =
                names.into_iter().zip(seated).map(|(name, (lane, sealed))| (name, lane, sealed)).collect();
            let registers =
                registers.into_iter().map(|(name, from)| (RegisterName(name.into()), speak_from(&from)));
            (seats(&of), registers.collect(), lane)
        },
    )
}

proptest! {
    #[test]
    fn no_reply_leaves_its_lane_but_for_rooms_whose_register_lists_it((rooms, registers, lane) in any_house()) {
        let open = Rooms::new(&lane, &eir(), &rooms, &registers, |_| None);
        let built = allowance(&Batch::new(lane.clone(), Vec::new()).unwrap(), open, []);
        for place in &rooms {
            let seat = &place.seats[&eir()].lane;
            let listed = registers.get(&seat.register()).is_some_and(|register| register.speak_from.lists(&lane));
            let own = *seat == lane && !matches!(&lane, Lane::Direct(own) if *own != place.id);
            let reply = say(json!({"text": "x", "room": place.id.as_str()})).to_string();
            let spoken = acts(&reply, &built).is_ok();
            prop_assert_eq!(spoken, !place.encrypted && (own || (listed && *seat != lane)));
        }
    }
}
