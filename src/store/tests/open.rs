use std::os::unix::fs::{PermissionsExt, chown};

use super::*;

fn other(owner: Owner) -> Opening {
    Opening { owner, epoch: Uuid::from_u128(2), now: Millis(2_000) }
}

#[test]
fn the_epoch_is_drawn_once() {
    let mut world = World::new();
    world.look(|store| assert_eq!((store.epoch(), store.made()), (Uuid::from_u128(1), NOW)));
    drop(world.store.take());
    let again = Store::open(&world.config(), other(opening().owner)).unwrap();
    assert_eq!((again.epoch(), again.made()), (Uuid::from_u128(1), NOW));
}

#[test]
fn a_second_owner_of_the_folder_is_refused() {
    let mut world = World::new();
    let refused = Store::open(&world.config(), opening()).unwrap_err();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    drop(world.store.take());
    Store::open(&world.config(), opening()).unwrap();
}

#[test]
fn another_users_folder_is_refused_and_left_alone() {
    let mut world = World::new();
    drop(world.store.take());
    let mut config = world.config();
    // Who may not give it away is not the user of the root folder either.
    let is_root = chown(&config.path, Some(65_534), None).is_ok();
    if !is_root {
        config.path = "/".into();
    }
    let refused = Store::open(&config, opening()).unwrap_err();
    assert!(matches!(refused, StoreError::Foreign { .. }), "{refused}");
    assert!(refused.to_string().ends_with("is another user's; do this as that user"), "{refused}");
    if is_root {
        chown(&config.path, Some(0), None).unwrap();
        world.reopen();
    }
}

#[test]
fn another_owner_is_refused_by_name() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    drop(world.store.take());
    let owner = Owner { server_name: "y.org".to_owned(), appservice: "bridge".to_owned() };
    let told = Store::open(&world.config(), other(owner)).unwrap_err().to_string();
    assert!(
        told.contains("belongs to appservice bridge of x.org, not to appservice bridge of y.org"),
        "{told}"
    );
    world.reopen();
    assert_eq!(world.waiting(&eir()), [1]);
}

#[test]
fn another_format_is_refused_by_name() {
    let mut world = World::new();
    world.store().set_meta("format", "7");
    world.store().set_meta("writer", "9.9.9");
    drop(world.store.take());
    let told = Store::open(&world.config(), opening()).unwrap_err().to_string();
    assert!(
        told.contains("has format 7, written by persona-bridge 9.9.9; this one reads format 2"),
        "{told}"
    );
}

#[test]
fn another_programs_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = sled::open(folder.path().join("sled")).unwrap();
    theirs.open_tree("theirs").unwrap().insert("k", "v").unwrap();
    drop(theirs);
    let config = Config { path: folder.path().to_owned(), min_free: 0 };
    let refused = Store::open(&config, opening()).unwrap_err();
    assert!(matches!(refused, StoreError::Owner { .. }), "{refused}");
    let theirs = sled::open(folder.path().join("sled")).unwrap();
    assert_eq!(theirs.tree_names().len(), 2);
}

#[test]
fn a_store_whose_making_was_cut_short_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let cut = sled::open(folder.path().join("sled")).unwrap();
    cut.open_tree("rows").unwrap();
    drop(cut);
    let config = Config { path: folder.path().to_owned(), min_free: 0 };
    assert_eq!(Store::open(&config, opening()).unwrap().epoch(), Uuid::from_u128(1));
}

#[test]
fn the_folder_is_for_its_user_alone() {
    let world = World::new();
    let mode = |name: &str| {
        let path = world.config().path.join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("."), mode("lock")), (0o700, 0o600));
}

#[test]
fn damage_is_an_error_with_the_folder_in_it() {
    let mut world = World::new();
    world.accept((0..200).map(|n| heard_by(&eir(), &format!("e{n}"), &"x".repeat(900))).collect());
    drop(world.store.take());
    world.reopen();
    drop(world.store.take());
    let sled = world.config().path.join("sled");
    let snapshots = sled.read_dir().unwrap().map(|entry| entry.unwrap().path());
    for snapshot in snapshots.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("snap."))
    {
        std::fs::write(snapshot, "this is no snapshot at all").unwrap();
    }
    let told = Store::open(&world.config(), opening()).unwrap_err().to_string();
    assert!(told.contains("sled cannot be opened"), "{told}");
}

#[test]
fn a_full_disk_stops_acceptance() {
    let world = World::new();
    assert!(world.store().accepts().unwrap());
    let config = Config { path: world.folder.path().join("other"), min_free: u64::MAX };
    assert!(!Store::open(&config, opening()).unwrap().accepts().unwrap());
}

#[test]
fn the_control_room_is_kept() {
    let mut world = World::new();
    assert_eq!(world.store().control_room().unwrap(), None);
    block(world.store().set_control_room(room("control"))).unwrap();
    world.look(|store| assert_eq!(store.control_room().unwrap(), Some(room("control"))));
}

#[test]
fn identities_are_kept_and_their_tokens_not_shown() {
    let mut world = World::new();
    let row = IdentityRow {
        user: user("eir"),
        device: "DEVICE".to_owned(),
        token: Some("hush".to_owned()),
        profile: (Some("Eir".to_owned()), None),
    };
    block(world.store().set_identity(row.clone())).unwrap();
    world.look(|store| {
        assert_eq!(store.identity(&user("eir")).unwrap(), Some(row.clone()));
        assert_eq!(store.identity(&user("bil")).unwrap(), None);
    });
    assert!(!format!("{row:?}{:?}", world.store()).contains("hush"));
}
