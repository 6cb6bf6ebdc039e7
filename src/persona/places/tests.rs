use proptest::prelude::*;

use super::*;

fn id(number: u8) -> PersonaId {
    PersonaId(format!("p{number}"))
}

fn ids(numbers: &[u8]) -> BTreeSet<PersonaId> {
    numbers.iter().map(|number| id(*number)).collect()
}

/// A mind by its number: since when it is idle, what it weighs.
fn minds(all: &[(u8, Option<u64>, u64)]) -> BTreeMap<PersonaId, Living> {
    let mind = |idle: Option<u64>, resident| Living { idle: idle.map(Millis), resident, closing: false };
    all.iter().map(|(number, idle, resident)| (id(*number), mind(*idle, *resident))).collect()
}

/// A wish by its number: since when it waits, what it is expected to weigh.
fn wishes(all: &[(u8, u64, Option<u64>)]) -> BTreeMap<PersonaId, Wish> {
    all.iter()
        .map(|(number, since, resident)| (id(*number), Wish::woken(Millis(*since), *resident)))
        .collect()
}

#[track_caller]
fn check(
    living: &[(u8, Option<u64>, u64)],
    wanted: &[(u8, u64, Option<u64>)],
    (most, resident): (usize, Option<u64>),
    (granted, close): (&[u8], &[u8]),
) {
    let expected = Plan { granted: ids(granted), close: ids(close) };
    assert_eq!(plan(&minds(living), &wishes(wanted), &Places { most, thinking: 9, resident }), expected);
}

#[test]
fn free_places_go_to_who_has_waited_longest() {
    check(&[], &[(1, 30, None), (2, 10, None), (3, 20, None)], (2, None), (&[2, 3], &[]));
    check(&[(9, None, 0)], &[(1, 30, None), (2, 10, None)], (2, None), (&[2], &[]));
}

#[test]
fn the_idle_longest_makes_room_and_a_thinking_one_never() {
    let living = [(7, Some(5), 0), (8, Some(3), 0), (9, None, 0)];
    check(&living, &[(1, 10, None)], (3, None), (&[], &[8]));
    check(&living, &[(1, 10, None), (2, 11, None), (3, 12, None)], (3, None), (&[], &[7, 8]));
    check(&[(9, None, 0)], &[(1, 10, None)], (1, None), (&[], &[]));
}

#[test]
fn who_is_closing_is_waited_for_and_not_asked_again() {
    let mut living = minds(&[(7, Some(5), 0), (8, Some(3), 0)]);
    living.get_mut(&id(8)).unwrap().closing = true;
    let places = Places { most: 2, thinking: 2, resident: None };
    assert_eq!(plan(&living, &wishes(&[(1, 10, None)]), &places), Plan::default());
    let two = plan(&living, &wishes(&[(1, 10, None), (2, 11, None)]), &places);
    assert_eq!(two.close, ids(&[7]));
}

#[test]
fn older_mail_of_ones_own_keeps_a_mind_and_younger_does_not() {
    let living = [(7, Some(5), 0), (8, Some(3), 0)];
    check(&living, &[(1, 10, None), (8, 9, None)], (2, None), (&[8], &[7]));
    check(&living, &[(1, 10, None), (8, 9, None), (7, 9, None)], (2, None), (&[7, 8], &[]));
    check(&living, &[(1, 10, None), (8, 11, None)], (2, None), (&[], &[8]));
}

#[test]
fn memory_is_borne_in_sum() {
    let living = [(7, Some(5), 40), (8, Some(3), 30)];
    check(&living, &[(1, 10, Some(30))], (9, Some(100)), (&[1], &[]));
    check(&living, &[(1, 10, Some(31))], (9, Some(100)), (&[], &[8]));
    check(&living, &[(1, 10, Some(90))], (9, Some(100)), (&[], &[7, 8]));
    check(&living, &[], (9, Some(69)), (&[], &[8]));
    check(&living, &[], (9, Some(70)), (&[], &[]));
    check(&[(9, None, 500)], &[], (9, Some(70)), (&[], &[]));
    check(&[], &[(1, 10, Some(900))], (9, Some(100)), (&[1], &[]));
    check(&[(9, None, 60)], &[(1, 10, None)], (9, Some(100)), (&[], &[]));
}

#[test]
fn a_light_one_does_not_overtake_a_heavy_one() {
    check(&[(9, None, 60)], &[(1, 10, Some(50)), (2, 11, Some(1))], (9, Some(100)), (&[], &[]));
}

#[test]
fn so_many_think_at_once_the_oldest_mail_first_and_a_beat_as_if_it_were_one_beat_younger() {
    let living = minds(&[(1, Some(1), 0), (2, Some(1), 0), (3, Some(1), 0), (9, None, 0)]);
    let mut wanted = wishes(&[(1, 10, None), (2, 30, None), (3, 20, None), (4, 25, None)]);
    wanted.insert(id(1), Wish::at_the_beat(Millis(10), Duration::from_millis(21), None));
    for (thinking, expect) in [(1, ids(&[])), (2, ids(&[3])), (3, ids(&[3, 4])), (5, ids(&[1, 2, 3, 4]))] {
        let plan = plan(&living, &wanted, &Places { most: 8, thinking, resident: None });
        assert_eq!(plan, Plan { granted: expect, close: ids(&[]) }, "{thinking}");
    }
}

#[test]
fn who_waits_for_a_place_is_not_overtaken_by_who_has_one() {
    let mut living = minds(&[(1, Some(1), 0), (2, Some(2), 0), (9, None, 0)]);
    living.get_mut(&id(1)).unwrap().closing = true;
    let granted = |thinking| {
        plan(&living, &wishes(&[(4, 10, None), (2, 20, None)]), &Places { most: 3, thinking, resident: None })
            .granted
    };
    assert_eq!(granted(2), ids(&[]), "the turn is of the one whose place is being made");
    assert_eq!(granted(3), ids(&[2]));
}

prop_compose! {
    fn any_living()(all in prop::collection::btree_map(0_u8..8, (prop::option::of(0_u64..6), 0_u64..50, any::<bool>()), 0..6)) -> BTreeMap<PersonaId, Living> {
        all.into_iter().map(|(number, (idle, resident, closing))| {
            (id(number), Living { idle: idle.map(Millis), resident, closing: closing && idle.is_some() })
        }).collect()
    }
}

prop_compose! {
    fn any_wishes()(all in prop::collection::btree_map(0_u8..8, (0_u64..6, prop::option::of(0_u64..50)), 0..6)) -> BTreeMap<PersonaId, Wish> {
        all.into_iter().map(|(number, (since, resident))| (id(number), Wish::woken(Millis(since), resident))).collect()
    }
}

proptest! {
    #[test]
    fn nobody_is_closed_in_the_middle_of_a_thought_and_the_idle_longest_goes_first(living in any_living(), wishes in any_wishes(), most in 1_usize..6, resident in prop::option::of(0_u64..200)) {
        let Plan { close, .. } = plan(&living, &wishes, &Places { most, thinking: 9, resident });
        for closed in &close {
            prop_assert!(living[closed].idle.is_some() && !living[closed].closing);
            let stays = living.iter().filter(|(who, mind)| !mind.closing && !close.contains(*who) && !wishes.contains_key(*who));
            for idle in stays.filter_map(|(_, mind)| mind.idle) {
                prop_assert!(living[closed].idle <= Some(idle));
            }
        }
    }

    #[test]
    fn nobody_is_overtaken_by_younger_mail(living in any_living(), wishes in any_wishes(), most in 1_usize..6, resident in prop::option::of(0_u64..200)) {
        let Plan { granted, .. } = plan(&living, &wishes, &Places { most, thinking: 9, resident });
        let new = |who: &&PersonaId| !living.contains_key(*who);
        for waits in wishes.keys().filter(new).filter(|who| !granted.contains(*who)) {
            for served in granted.iter().filter(new) {
                prop_assert!((wishes[served].since, served) < (wishes[waits].since, waits));
            }
        }
    }

    #[test]
    fn no_more_live_than_is_borne(living in any_living(), wishes in any_wishes(), most in 1_usize..6, resident in prop::option::of(0_u64..200)) {
        let Plan { granted, .. } = plan(&living, &wishes, &Places { most, thinking: 9, resident });
        let new: Vec<&PersonaId> = granted.iter().filter(|who| !living.contains_key(*who)).collect();
        let sum: u64 = living.values().map(|mind| mind.resident).chain(new.iter().filter_map(|who| wishes[*who].resident)).sum();
        let alone = living.is_empty() && new.len() == 1;
        prop_assert!(new.is_empty() || alone || (living.len() + new.len() <= most && resident.is_none_or(|borne| sum <= borne)));
    }

    #[test]
    fn nobody_waits_while_an_idle_mind_could_make_room(living in any_living(), wishes in any_wishes(), most in 1_usize..6, resident in prop::option::of(0_u64..200)) {
        let Plan { granted, close } = plan(&living, &wishes, &Places { most, thinking: 9, resident });
        let waits = wishes.keys().any(|who| !living.contains_key(who) && !granted.contains(who));
        let going = !close.is_empty() || living.values().any(|mind| mind.closing);
        let could = living.iter().any(|(who, mind)| mind.idle.is_some() && !wishes.contains_key(who));
        prop_assert!(!waits || going || !could || !granted.is_empty());
        let heavy = resident.is_some_and(|most| living.values().map(|mind| mind.resident).sum::<u64>() > most);
        prop_assert!(waits || heavy || close.is_empty(), "nobody is closed for nothing");
    }

    #[test]
    fn never_more_than_so_many_think_and_who_is_first_goes_first(living in any_living(), wishes in any_wishes(), most in 1_usize..6, thinking in 1_usize..6) {
        let Plan { granted, close } = plan(&living, &wishes, &Places { most, thinking, resident: None });
        let now = living.values().filter(|mind| mind.idle.is_none()).count();
        prop_assert!(granted.is_empty() || now + granted.len() <= thinking);
        let goes = |who: &PersonaId| close.contains(who) || living.get(who).is_some_and(|mind| mind.closing);
        let before = |who: &PersonaId, other: &PersonaId| (wishes[who].since, who) < (wishes[other].since, other);
        for served in &granted {
            let sooner = wishes.keys().filter(|who| !goes(who) && before(who, served)).count();
            prop_assert!(now + sooner < thinking, "a turn is left for each before her");
        }
        for refused in wishes.keys().filter(|who| living.contains_key(*who) && !goes(who) && !granted.contains(*who)) {
            let sooner = wishes.keys().filter(|who| !goes(who) && before(who, refused)).count();
            prop_assert!(now + sooner >= thinking, "nobody waits for nothing");
        }
    }

    #[test]
    fn nobody_starves_for_a_turn(beat in 0_u64..20, heard in 0_u64..20, others in 1_u8..4, thinking in 1_usize..3) {
        let mut wishes = BTreeMap::from([(id(0), Wish::at_the_beat(Millis(heard), Duration::from_millis(beat), None))]);
        let others: Vec<u8> = (1..=others).collect();
        let living: BTreeMap<_, _> = others.iter().chain(&[0]).map(|who| (id(*who), Living { idle: Some(Millis(0)), resident: 0, closing: false })).collect();
        let last = heard + beat;
        let mut served = None;
        for now in heard..=last + 4 {
            for who in &others {
                wishes.entry(id(*who)).or_insert_with(|| Wish::woken(Millis(now), None));
            }
            let Plan { granted, .. } = plan(&living, &wishes, &Places { most: 9, thinking, resident: None });
            served = served.or(granted.contains(&id(0)).then_some(now));
            wishes.retain(|who, _| !granted.contains(who));
        }
        prop_assert!(served.is_some_and(|served| served <= last + others.len() as u64), "{served:?}");
        prop_assert!(others.len() < thinking || served >= Some(last.min(heard)), "{served:?}");
    }
}
