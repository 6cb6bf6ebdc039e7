//! A session of which an older version wrote the row.

use persona_bridge::conversation::PersonaId;
use persona_bridge::persona::session::{Account, Session};
use persona_bridge::store::Books;

use super::care::{COLD, counted, refreshes, seams};
use super::stage::counts;

#[test]
fn it_lives_on_and_is_followed_by_the_next_where_that_is_cheap() {
    let mut world = counted(200_000);
    world.play(async |stage| stage.ask("one").await);
    // Its reply schema was another, and nothing was counted of it.
    let (eir, store) = (PersonaId("eir".into()), world.store());
    let session = store.standing(&eir).expect("it is read").1.expect("there is one");
    let mut older = Session { account: Account::default(), ..session };
    older.fingerprint.0.insert("schema".to_owned(), "1".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let books = Books { session: Some(older), ledger: Vec::new() };
    runtime.block_on(store.book(&eir, books)).expect("it is written");
    drop(store);
    world.play(async |stage| {
        stage.ask("two").await;
        stage.ask("three").await;
        counts(&stage.told(), &[("begins session", 0)]);
        stage.pass(COLD).await;
        stage.ask("four").await;
        stage.ask("five").await;
    });
    assert_eq!(seams(&world), [4]);
    assert_eq!(refreshes(&world), [("stale".to_owned(), 1)]);
    counts(&world.told(), &[("Eir begins session 2: stale, schema changed", 1)]);
}
