use futures_util::future::join_all;

use super::*;

#[test]
fn every_caller_of_a_group_is_answered() {
    let mut world = World::new();
    let store = world.store().clone();
    let accepts = (0..100).map(|n| {
        let arrivals = vec![heard_by(&eir(), &format!("e{}", n % 80), "x")];
        store.accept(arrivals, Vec::new(), None, NOW)
    });
    let answers = block(join_all(accepts));
    let new = answers.into_iter().filter(|answer| answer.as_ref().unwrap()[0]).count();
    assert_eq!(new, 80);
    drop(store);
    world.look(|store| assert_eq!(store.waiting(&eir()).unwrap().len(), 80));
}

#[test]
fn a_verb_costs_one_flush_and_shares_it() {
    let world = World::new();
    let store = world.store().clone();
    let arrivals = |name: &str| vec![heard_by(&eir(), name, "x")];
    let before = store.flushes();
    block(store.accept(arrivals("a"), Vec::new(), None, NOW)).unwrap();
    assert_eq!(store.flushes() - before, 1);
    block(join_all((0..100).map(|n| store.accept(arrivals(&format!("e{n}")), Vec::new(), None, NOW))));
    assert!(store.flushes() - before < 101, "nothing was shared");
}

#[test]
fn a_job_that_fails_takes_nothing_with_it() {
    let mut world = World::new();
    world.accept(vec![heard_by(&persona("bil"), "a", "x")]);
    world.store().break_row(Table::Numbers, "bil");
    let store = world.store().clone();
    let [good, bad, after] = block(async {
        let accept = |effects: Vec<Effect>, name: &str| {
            store.accept(vec![arrival(name, effects)], Vec::new(), None, NOW)
        };
        let deliver = |name: &str, persona| Effect::Deliver(persona, mail(name, "x"));
        let all = [
            accept(vec![deliver("b", eir())], "b"),
            accept(vec![deliver("c", eir()), deliver("c", persona("bil"))], "c"),
            accept(vec![deliver("d", eir())], "d"),
        ];
        join_all(all).await.try_into().unwrap()
    });
    assert!(good.is_ok() && after.is_ok());
    assert!(matches!(bad, Err(StoreError::Corrupt { tree: "numbers", .. })), "{bad:?}");
    drop(store);
    world.look(|store| {
        assert!(!store.knows(&event("c")).unwrap());
        assert_eq!(store.waiting(&eir()).unwrap().len(), 2);
    });
}

#[test]
fn a_dropped_caller_harms_nobody() {
    let mut world = World::new();
    let store = world.store().clone();
    block(async {
        let mut dropped = Box::pin(store.accept(vec![heard_by(&eir(), "a", "x")], Vec::new(), None, NOW));
        assert!(futures_util::poll!(&mut dropped).is_pending());
        drop(dropped);
        store.accept(vec![heard_by(&eir(), "b", "x")], Vec::new(), None, NOW).await.unwrap();
    });
    drop(store);
    world.look(|store| assert_eq!(store.waiting(&eir()).unwrap().len(), 2));
}

#[test]
fn a_store_outlives_its_runtime() {
    let mut world = World::new();
    let store = world.store().clone();
    for name in ["a", "b", "c"] {
        block(async {
            let mut dropped =
                Box::pin(store.accept(vec![heard_by(&eir(), name, "x")], Vec::new(), None, NOW));
            assert!(futures_util::poll!(&mut dropped).is_pending());
        });
    }
    block(store.accept(vec![heard_by(&eir(), "d", "x")], Vec::new(), None, NOW)).unwrap();
    drop(store);
    world.look(|store| assert!(store.knows(&event("d")).unwrap()));
}

#[test]
fn the_paused_clock_stands_still_while_the_store_writes() {
    let world = World::new();
    block(async {
        let began = tokio::time::Instant::now();
        for n in 0..20 {
            let arrivals = vec![heard_by(&eir(), &format!("e{n}"), "x")];
            let accept = world.store().accept(arrivals, Vec::new(), None, NOW);
            tokio::time::timeout(std::time::Duration::from_millis(1), accept).await.unwrap().unwrap();
        }
        assert_eq!(began.elapsed(), std::time::Duration::ZERO);
    });
}

#[test]
fn a_failed_flush_fails_its_callers_and_all_after_them() {
    let world = World::new();
    let store = world.store();
    store.lose_blobs();
    let failed = |answer: Result<Vec<bool>>| assert!(matches!(answer, Err(StoreError::Io(_))), "{answer:?}");
    failed(block(store.accept(vec![heard_by(&eir(), "a", "x")], Vec::new(), None, NOW)));
    store.find_blobs();
    failed(block(store.accept(vec![heard_by(&eir(), "b", "x")], Vec::new(), None, NOW)));
    assert!(world.waiting(&eir()).is_empty(), "what is not durable is not shown");
}

#[test]
fn closing_answers_after_what_came_before() {
    let world = World::new();
    let store = world.store();
    block(async {
        let accept = store.accept(vec![heard_by(&eir(), "a", "x")], Vec::new(), None, NOW);
        let (accepted, closed) = tokio::join!(accept, store.close());
        assert!(accepted.is_ok() && closed.is_ok());
    });
}
