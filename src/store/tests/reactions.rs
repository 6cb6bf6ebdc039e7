use super::*;
use crate::conversation::notices::News;
use crate::conversation::reactions::{Reactions, Share};

/// Eir says something in the swarm, which becomes this event.
fn says(world: &World, id: u128, name: &str) {
    ends_turn(world, turn(id, &[]), vec![say(name, "swarm")]);
    let seq = world.store().outbox_heads().unwrap()[0].seq;
    block(world.store().sent(seq, event(name), NOW)).unwrap();
}

fn ends_turn(world: &World, turn: OpenTurn, says: Vec<NewSay>) {
    let commit = Commit { says, ..plain(turn.id) };
    block(world.store().write_turn(&eir(), turn, Books::default())).unwrap();
    block(world.store().commit(commit)).unwrap();
}

/// A turn that tells so much ends.
fn tells(world: &World, id: u128, lane: Lane, reactions: Share) {
    let news = News { generation: 1, reactions, ..News::default() };
    ends_turn(world, OpenTurn { lane, news: Some(news), ..turn(id, &[]) }, Vec::new());
}

fn seats() -> Vec<(PersonaId, Lane)> {
    vec![(persona("bil"), Lane::Direct(room("d"))), (eir(), lane())]
}

fn reacts_in(place: &str, name: &str, to: &str) -> Arrival {
    let (room, to) = (room(place), event(to));
    arrival(name, vec![Effect::React(Reacted { room, to, key: format!("k{name}"), seats: seats() })])
}

fn reacts(name: &str, to: &str) -> Arrival {
    reacts_in("swarm", name, to)
}

fn redacts(name: &str, what: &str, place: &str) -> Arrival {
    let notice = Delivery { kind: DeliveryKind::Redaction(event(what)), room: room(place), ..mail(name, "") };
    arrival(name, vec![Effect::Redact { redacts: event(what), notice }])
}

fn untold(store: &Store) -> Reactions {
    store.reactions(&eir(), &lane()).unwrap()
}

fn keys(store: &Store) -> Vec<String> {
    untold(store).gathered.into_iter().map(|one| one.key).collect()
}

#[test]
fn what_is_to_her_words_is_gathered_once_for_her_and_wakes_nobody() {
    let mut world = World::new();
    says(&world, 1, "mine");
    world.accept(vec![reacts("a", "mine"), reacts("b", "mine"), reacts("c", "other")]);
    world.accept(vec![reacts("a", "mine"), reacts_in("burn", "d", "mine")]);
    world.look(|store| {
        assert_eq!(keys(store), ["ka", "kb"]);
        assert_eq!(store.reactions(&persona("bil"), &Lane::Direct(room("d"))).unwrap(), Reactions::default());
        assert_eq!(store.waiting(&eir()).unwrap(), []);
    });
    let own = seats().into_iter().filter(|(who, _)| *who != eir()).collect();
    let effect = Reacted { room: room("swarm"), to: event("mine"), key: "own".to_owned(), seats: own };
    world.accept(vec![arrival("own", vec![Effect::React(effect)])]);
    world.look(|store| assert_eq!(keys(store), ["ka", "kb"], "her own are not told to her"));
}

#[test]
fn what_a_turn_told_goes_with_it_and_what_came_meanwhile_stays() {
    let mut world = World::new();
    says(&world, 1, "mine");
    world.accept(vec![reacts("a", "mine")]);
    let share = untold(world.store()).share;
    world.accept(vec![reacts("b", "mine")]);
    tells(&world, 2, Lane::Direct(room("d")), share);
    assert_eq!(keys(world.store()), ["ka", "kb"], "another lane's turn tells nothing of them");
    tells(&world, 3, lane(), share);
    world.look(|store| assert_eq!(keys(store), ["kb"]));
}

#[test]
fn what_is_taken_back_before_it_is_told_is_not_told() {
    let mut world = World::new();
    says(&world, 1, "mine");
    says(&world, 2, "too");
    world.accept(vec![reacts("a", "mine"), reacts("b", "too"), redacts("x", "a", "burn")]);
    assert_eq!(keys(world.store()), ["ka", "kb"], "it counts in its own room only");
    world.accept(vec![redacts("r", "a", "swarm"), redacts("s", "late", "swarm"), reacts("late", "mine")]);
    world.look(|store| assert_eq!(keys(store), ["kb"]));
    world.accept(vec![redacts("t", "too", "swarm"), reacts("c", "too"), reacts("d", "mine")]);
    world.look(|store| assert_eq!(keys(store), ["kd"], "what they were to is gone"));
}

#[test]
fn more_than_a_lane_holds_are_counted() {
    let mut world = World::new();
    says(&world, 1, "mine");
    world.accept((0..205).map(|n| reacts(&format!("r{n}"), "mine")).collect());
    world.look(|store| assert_eq!((untold(store).gathered.len(), untold(store).share.more), (200, 5)));
    let share = untold(world.store()).share;
    world.accept(vec![reacts("a", "mine")]);
    tells(&world, 2, lane(), share);
    world.look(|store| assert_eq!((keys(store).len(), untold(store).share.more), (0, 1)));
}
