//! Which rooms she comes into, where hearing begins, and what she leaves alone.

use std::time::Duration;

use persona_bridge::bridge::{BridgeError, RoomKind};
use persona_bridge::conversation::{Level, RegisterName};

use super::stage::{BOT, BRAGE, EIR, Stage, counts, is_joined, on_both, swarm};
use super::world::World;
use crate::fake::homeserver::{Fault, Flavour, Membership};

/// The reason with which somebody left.
fn reason(stage: &Stage, room: &str, user: &str) -> String {
    let state = stage.home.state_of(room, "m.room.member", user).unwrap_or_default();
    state["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn configured_rooms_are_made_in_our_namespace_and_joined() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| drop(stage.swarm().await));
        let room = swarm(&world.home).expect("it was made");
        world.play(async |stage| drop(stage.swarm().await));
        assert_eq!(swarm(&world.home), Some(room), "it is made once");
    });
}

#[test]
fn a_configured_room_that_is_closed_is_told_and_entered_by_invite() {
    let mut world = World::new(Flavour::Synapse);
    let alias = "#lounge:hs.test".parse().expect("an alias");
    let register = RegisterName("swarm".into());
    world.config.rooms.insert(alias, RoomKind::Register(register));
    world.config.personas[0].rooms.push("#lounge:hs.test".parse().expect("an alias"));
    world.play(async |stage| {
        stage.swarm().await;
        stage.pass(50).await;
        counts(&stage.told(), &[("cannot join #lounge:hs.test", 1)]);
        let lounge = stage.alice().create_closed_room("lounge");
        let early = stage.alice().invite(&lounge, EIR);
        assert!(!early.is_empty());
        stage.joins(&lounge, EIR).await;
        stage.pass(50).await;
        stage.alice().say(&lounge, "Eir, welcome");
        stage.said(&lounge, EIR, 1).await;
    });
    assert!(world.words("eir").contains("in register swarm"), "{}", world.words("eir"));
}

#[test]
fn a_configured_room_that_appears_later_is_joined_by_a_pass() {
    let mut world = World::new(Flavour::Synapse);
    world.config.reconcile = Duration::from_secs(1);
    let kind = RoomKind::Register(RegisterName("swarm".into()));
    world.config.rooms.insert("#plaza:hs.test".parse().expect("an alias"), kind);
    world.config.personas[0].rooms.push("#plaza:hs.test".parse().expect("an alias"));
    world.play(async |stage| {
        stage.swarm().await;
        let plaza = stage.alice().create_public_room("plaza");
        stage.joins(&plaza, EIR).await;
        stage.pass(50).await;
        stage.alice().say(&plaza, "Eir, welcome");
        stage.said(&plaza, EIR, 1).await;
    });
}

#[test]
fn a_room_that_the_config_calls_direct_is_a_lane_of_its_own_and_never_made() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(1);
        let alias: ruma::OwnedRoomAliasId = "#persona_den:hs.test".parse().expect("an alias");
        world.config.rooms.insert(alias.clone(), RoomKind::Direct);
        world.config.personas[0].rooms.push(alias);
        world.play(async |stage| {
            stage.swarm().await;
            stage.pass(3_000).await;
            assert_eq!(stage.home.alias("#persona_den:hs.test"), None, "it is somebody's to make");
            let den = stage.alice().create_public_room("persona_den");
            stage.joins(&den, EIR).await;
            stage.pass(50).await;
            stage.alice().say(&den, "no name needed");
            stage.said(&den, EIR, 1).await;
        });
        world.play(async |stage| {
            stage.swarm().await;
            let den = stage.home.alias("#persona_den:hs.test").expect("it was made");
            stage.alice().say(&den, "nor after a restart");
            stage.said(&den, EIR, 2).await;
        });
        let fed = world.fed("eir");
        assert_eq!(fed.len(), 2);
        assert!(fed.iter().all(|fed| fed.words.starts_with("# mail for you in a direct room")), "{fed:#?}");
    });
}

#[test]
fn what_is_said_between_invite_and_join_is_heard() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            stage
                .home
                .fail_when(1, Fault::Limited(Duration::from_millis(300)), |seen| seen.path.contains("/join"));
            let room = stage.alice().create_dm(EIR);
            stage.alice().say(&room, "before-the-join");
            stage.pass(20).await;
            stage.alice().say(&room, "still-before");
            assert!(!is_joined(&stage.home, &room, EIR));
            stage.joins(&room, EIR).await;
            stage.calm().await;
            counts(&stage.home.bodies(&room, EIR), &[("before-the-join", 1), ("still-before", 1)]);
        });
    });
}

#[test]
fn what_was_said_before_her_invite_is_context_and_never_mail() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.default_register = Some(RegisterName("swarm".into()));
        world.play(async |stage| {
            stage.swarm().await;
            let room = stage.alice().create_room("old");
            for n in 0..30 {
                stage.alice().say(&room, &format!("Eir, old-{n}."));
            }
            stage.alice().invite(&room, EIR);
            stage.joins(&room, EIR).await;
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), 0, "nothing of it wakes her");
            stage.alice().say(&room, "Eir, new");
            stage.said(&room, EIR, 1).await;
        });
        let words = world.words("eir");
        assert!(words.contains("1 new"), "{words}");
        let earlier = words.matches("\nearlier ").count();
        assert!((15..=20).contains(&earlier), "{flavour:?}: {earlier} in {words}");
    });
}

#[test]
fn a_limit_costs_no_context() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.default_register = Some(RegisterName("swarm".into()));
        world.play(async |stage| {
            stage.swarm().await;
            let room = stage.alice().create_room("old");
            stage.alice().say(&room, "Eir, said long ago");
            stage.alice().invite(&room, EIR);
            stage.joins(&room, EIR).await;
            stage.calm().await;
            let messages = format!("/rooms/{room}/messages");
            let limit = Fault::Limited(Duration::from_secs(2));
            stage.home.fail_when(1, limit, move |seen| seen.path.ends_with(&messages));
            stage.alice().say(&room, "Eir, new");
            stage.said(&room, EIR, 1).await;
        });
        let words = world.words("eir");
        assert!(words.contains("said long ago"), "{flavour:?}: {words}");
    });
}

#[test]
fn members_that_could_not_be_read_are_read_by_the_next_pass() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            let broken = Fault::Answer(500, String::new());
            stage.home.fail_when(1, broken, |seen| seen.path.ends_with("/joined_members"));
            let direct = stage.dm(&stage.alice(), EIR).await;
            stage.pass(310_000).await;
            stage.alice().say(&direct, "hello");
            stage.said(&direct, EIR, 1).await;
        });
        let words = world.words("eir");
        assert!(words.contains("dm with @alice:hs.test"), "{flavour:?}: {words}");
    });
}

#[test]
fn a_dm_is_known_by_its_invite_alone() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        stage.swarm().await;
        let direct = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&direct, "no name needed");
        stage.said(&direct, EIR, 1).await;
        let pair = stage.alice().create_room("Eir");
        stage.alice().invite(&pair, EIR);
        stage.calm().await;
        assert_eq!(stage.home.membership(&pair, EIR), Some(Membership::Leave), "two people make no DM");
        assert!(reason(stage, &pair, EIR).contains("not one of mine"), "{}", reason(stage, &pair, EIR));
    });
    assert!(world.words("eir").starts_with("# mail for you in a direct room"));
}

#[test]
fn another_room_takes_the_default_register() {
    let mut world = World::new(Flavour::Synapse);
    world.config.default_register = Some(RegisterName("swarm".into()));
    world.play(async |stage| {
        stage.swarm().await;
        let pair = stage.alice().create_room("Eir");
        stage.alice().invite(&pair, EIR);
        stage.joins(&pair, EIR).await;
        stage.pass(50).await;
        stage.alice().say(&pair, "no name, no turn");
        stage.calm().await;
        assert_eq!(stage.thoughts("eir"), 0);
        stage.alice().say(&pair, "Eir, now");
        stage.said(&pair, EIR, 1).await;
    });
    assert!(world.words("eir").starts_with("# mail for you in register swarm"));
}

#[test]
fn who_may_not_chat_may_not_invite() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.permissions.0.insert("@mallory:hs.test".to_owned(), Level::Block);
        world.play(async |stage| {
            stage.swarm().await;
            let mallory = stage.home.user("mallory");
            let room = mallory.create_dm(EIR);
            mallory.say(&room, "let me in");
            stage.calm().await;
            assert_eq!(stage.home.membership(&room, EIR), Some(Membership::Leave));
            assert!(reason(stage, &room, EIR).contains("not allowed"));
        });
        assert_eq!(world.fed("eir"), []);
    });
}

#[test]
fn the_bot_takes_an_admins_invite_and_refuses_others_with_the_reason() {
    // Synapse tells the bot of no invite but by a transaction.
    for (pushed, flavours) in
        [(true, &[Flavour::Synapse, Flavour::Conduit][..]), (false, &[Flavour::Conduit])]
    {
        flavours.iter().for_each(|flavour| {
            let mut world = World::new(*flavour);
            world.config.reconcile = Duration::from_secs(5);
            world.config.permissions.0.insert("@carol:hs.test".to_owned(), Level::Admin);
            world.config.permissions.0.insert("@mallory:hs.test".to_owned(), Level::Block);
            world.play(async |stage| {
                stage.swarm().await;
                stage.home.set_silent(!pushed);
                let [carols, mallorys] =
                    ["carol", "mallory"].map(|user| stage.home.user(user).create_dm(BOT));
                let alices = stage.alice().create_room("alices");
                stage.alice().invite(&alices, BOT);
                stage.joins(&carols, BOT).await;
                for (room, why) in [(&alices, "one of its Personas"), (&mallorys, "not allowed")] {
                    let left = || stage.home.membership(room, BOT) == Some(Membership::Leave);
                    stage.until("it is refused", left).await;
                    assert!(reason(stage, room, BOT).contains(why), "{}", reason(stage, room, BOT));
                }
                stage.home.set_silent(false);
                stage.home.user("carol").say(&carols, "status");
                let answers = stage.said(&carols, BOT, 1).await;
                assert!(answers[0].contains("eir: idle"), "{answers:?}");
            });
            world.play(async |stage| drop(stage.swarm().await));
        });
    }
}

#[test]
fn a_direct_room_that_could_not_be_marked_so_is_marked_by_a_pass() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            let broken = Fault::Answer(500, String::new());
            stage.home.fail_when(u32::MAX, broken, |seen| seen.path.ends_with("/account_data/m.direct"));
            let room = stage.dm(&stage.alice(), EIR).await;
            stage.pass(310_000).await;
            assert_eq!(stage.home.account_data(EIR, "m.direct"), None);
            stage.home.clear_faults();
            stage.pass(61_000).await;
            let direct = stage.home.account_data(EIR, "m.direct");
            assert_eq!(direct, Some(serde_json::json!({ "@alice:hs.test": [room] })));
        });
    });
}

#[test]
fn an_invite_that_no_transaction_brought_is_decided_alike() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(1);
        world.config.permissions.0.insert("@mallory:hs.test".to_owned(), Level::Block);
        world.play(async |stage| {
            stage.swarm().await;
            stage.home.set_silent(true);
            let direct = stage.alice().create_dm(EIR);
            stage.alice().say(&direct, "unpushed");
            let pair = stage.alice().create_room("Eir");
            stage.alice().invite(&pair, EIR);
            let blocked = stage.home.user("mallory").create_dm(EIR);
            stage.said(&direct, EIR, 1).await;
            stage
                .until("both others are refused", || {
                    [&pair, &blocked]
                        .iter()
                        .all(|room| stage.home.membership(room, EIR) == Some(Membership::Leave))
                })
                .await;
            assert!(reason(stage, &pair, EIR).contains("not one of mine"));
            assert!(reason(stage, &blocked, EIR).contains("not allowed"));
        });
        let words = world.words("eir");
        assert!(words.starts_with("# mail for you in a direct room"), "{words}");
        assert!(words.contains("(to you): unpushed"), "{words}");
    });
}

#[test]
fn a_lost_invite_of_a_second_persona_begins_at_the_invite_too() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(1);
        world.config.default_register = Some(RegisterName("swarm".into()));
        world.play(async |stage| {
            stage.swarm().await;
            let room = stage.alice().create_room("both");
            stage.alice().invite(&room, BRAGE);
            stage.joins(&room, BRAGE).await;
            stage.pass(50).await;
            stage.home.set_silent(true);
            stage
                .home
                .fail_when(1, Fault::Limited(Duration::from_millis(700)), |seen| seen.path.contains("/join"));
            stage.alice().invite(&room, EIR);
            stage.alice().say(&room, "Eir, at once");
            stage.said(&room, EIR, 1).await;
            stage.calm().await;
        });
        counts(&[world.words("eir")], &[("Eir, at once", 1)]);
    });
}

#[test]
fn an_invite_found_by_asking_survives_a_crash_before_it_is_seated() {
    for cut in 0..30 {
        let mut world = World::new(Flavour::Synapse);
        let room = world.play(async |stage| {
            stage.swarm().await;
            stage.home.set_silent(true);
            let room = stage.alice().create_dm(EIR);
            stage.home.lose_queue();
            room
        });
        // The invite is found at the start; a crash comes at any millisecond after the join.
        world.play(async |stage| {
            stage.joins(&room, EIR).await;
            stage.pass(cut).await;
        });
        world.play(async |stage| {
            stage.swarm().await;
            stage.home.set_silent(false);
            stage.alice().say(&room, "still there?");
            stage
                .until(&format!("cut {cut} ms after the join"), || !stage.home.bodies(&room, EIR).is_empty())
                .await;
        });
    }
}

/// How many messages a direct room holds that were answered before its store is deleted.
const ANSWERED: usize = 1_000;

#[test]
fn a_store_that_was_deleted_feeds_nothing_old_and_operators_are_told() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let (swarm, direct) = world.play(async |stage| {
            let swarm = stage.swarm().await;
            let direct = stage.dm(&stage.alice(), EIR).await;
            for n in 0..ANSWERED {
                stage.alice().say(&direct, &format!("old-{n}."));
                if n % 200 == 0 {
                    stage.alice().say(&swarm, &format!("Eir, old-{n}."));
                }
            }
            let answered = || {
                let answers = stage.home.bodies(&direct, EIR).join("\n");
                (0..ANSWERED).all(|n| answers.contains(&format!("old-{n}.")))
            };
            stage.rest("all are answered", answered).await;
            (swarm, direct)
        });
        let before = world.fed("eir").len();
        world.delete_store();
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), before, "nothing old is fed");
            counts(&stage.told(), &[("was in", 2), ("not answered", 2)]);
            stage.alice().say(&direct, "new-word");
            stage.alice().say(&swarm, "Eir, new-word");
            stage.calm().await;
            for room in [&swarm, &direct] {
                counts(&stage.home.bodies(room, EIR), &[("new-word", 1)]);
            }
        });
        for fed in &world.fed("eir")[before..] {
            assert!(fed.words.contains("1 new"), "{}", fed.words);
        }
    });
}

#[test]
fn a_control_room_that_is_gone_stops_the_start_with_the_remedy() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| drop(stage.swarm().await));
        let control = world.home.alias("#persona_control-00000000000000000000000000000007:hs.test");
        let control = control.expect("it was made");
        world.home.user("alice").kick(&control, BOT);
        let error = world.refuses();
        assert!(matches!(error, BridgeError::ControlRoomGone { .. }), "{error}");
        assert!(error.to_string().contains("Set [store] path to a new folder"), "{error}");
    });
}

#[test]
fn a_room_is_not_looked_at_before_she_has_joined() {
    // Conduit decides for good what she may see when she asks first.
    let mut world = World::new(Flavour::Conduit);
    world.config.reconcile = Duration::from_millis(100);
    world.play(async |stage| {
        stage.swarm().await;
        stage
            .home
            .fail_when(1, Fault::Limited(Duration::from_millis(700)), |seen| seen.path.contains("/join"));
        let room = stage.alice().create_dm(EIR);
        stage.alice().say(&room, "before-the-join");
        stage.joins(&room, EIR).await;
        stage.calm().await;
        counts(&stage.home.bodies(&room, EIR), &[("before-the-join", 1)]);
    });
}

#[test]
fn a_picture_that_the_config_drops_is_taken_off_unless_somebody_else_set_it() {
    let picture = |world: &World| world.home.profile_of(EIR, "avatar_url");
    for foreign in [false, true] {
        let mut world = World::new(Flavour::Synapse);
        world.config.personas[0].avatar = Some("mxc://hs.test/eir".to_owned());
        world.play(async |stage| drop(stage.swarm().await));
        assert_eq!(picture(&world).as_deref(), Some("mxc://hs.test/eir"));
        if foreign {
            world.home.set_profile(EIR, "avatar_url", "mxc://hs.test/other");
        }
        world.config.personas[0].avatar = None;
        for _ in 0..2 {
            world.play(async |stage| drop(stage.swarm().await));
            let expected = if foreign { "mxc://hs.test/other" } else { "" };
            assert_eq!(picture(&world).as_deref(), Some(expected));
        }
    }
}
