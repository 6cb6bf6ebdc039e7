use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

fn draft() -> Draft {
    Draft {
        id: "persona-bridge".into(),
        url: "http://127.0.0.1:29600".into(),
        bot: "persona-bridge".into(),
        user_prefix: "persona_".into(),
        server_name: "example.org".into(),
        as_token: "REPLACE-by-generate-registration-as".into(),
        hs_token: "REPLACE-by-generate-registration-hs".into(),
        receive_ephemeral: false,
    }
}

fn parsed() -> Registration {
    parse(&render(&draft())).unwrap()
}

#[test]
fn the_rendered_registration() {
    insta::assert_snapshot!(render(&draft()), @r"
    id: 'persona-bridge'
    url: 'http://127.0.0.1:29600'
    as_token: 'REPLACE-by-generate-registration-as'
    hs_token: 'REPLACE-by-generate-registration-hs'
    sender_localpart: 'persona-bridge'
    rate_limited: false
    receive_ephemeral: false
    namespaces:
      users:
        - exclusive: true
          regex: '^@persona_[a-z0-9._=-]+:example\.org$'
        - exclusive: true
          regex: '^@persona-bridge:example\.org$'
      aliases:
        - exclusive: true
          regex: '^#persona_.*:example\.org$'
      rooms: []
    ");
}

#[test]
fn the_samples_are_what_is_rendered() {
    for sample in ["synapse.yaml", "conduit.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("registration").join(sample);
        assert_eq!(fs::read_to_string(path).unwrap(), render(&draft()), "{sample}");
    }
}

#[test]
fn what_is_rendered_is_read_back() {
    let odd = Draft { id: "it's: #odd".into(), as_token: "'\"\\".into(), ..draft() };
    let read = parse(&render(&odd)).unwrap();
    assert_eq!((read.id.as_str(), &*read.as_token, &*read.hs_token), ("it's: #odd", "'\"\\", &*odd.hs_token));
    assert_eq!((read.sender_localpart, read.url), (odd.bot, Some(odd.url)));
    assert!(!read.receive_ephemeral);
    assert!(parse(&render(&Draft { receive_ephemeral: true, ..draft() })).unwrap().receive_ephemeral);
    assert_eq!((read.user_namespaces.len(), read.alias_namespaces.len()), (2, 1));
}

#[test]
fn the_namespaces_cover_ours_and_nobody_else() {
    let check = |user: &str, expect: bool| {
        assert_eq!(parsed().covers_user(&UserId::parse(user).unwrap()), expect, "{user}");
    };
    check("@persona_eir:example.org", true);
    check("@persona_a.b=c-d_9:example.org", true);
    check("@persona-bridge:example.org", true);
    for other in [
        "@persona_:example.org",
        "@persona_Eir:example.org",
        "@persona_eir:exampleXorg",
        "@persona_eir:example.org.evil.net",
        "@xpersona_eir:example.org",
        "@persona-bridge2:example.org",
        "@alice:example.org",
    ] {
        check(other, false);
    }
    let check = |alias: &str, expect: bool| {
        assert_eq!(parsed().covers_alias(&RoomAliasId::parse(alias).unwrap()), expect, "{alias}");
    };
    check("#persona_swarm:example.org", true);
    check("#swarm:example.org", false);
    check("#persona_swarm:example.net", false);
}

#[test]
fn a_namespace_is_anchored_at_its_beginning_alone() {
    let check = |regex: &str, expect: bool| {
        let registration = Registration { user_namespaces: vec![regex.into()], ..parsed() };
        assert_eq!(registration.covers_user(ruma::user_id!("@persona_eir:hs.test")), expect, "{regex}");
    };
    check("@persona_", true);
    check("persona_", false);
    check("x|@persona_", true);
    check("@persona_$", false);
    check("(", false);
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let whole = render(&draft());
    for key in ["id", "as_token", "hs_token", "sender_localpart"] {
        let without: String = whole
            .lines()
            .filter(|line| !line.starts_with(&format!("{key}:")))
            .map(|l| format!("{l}\n"))
            .collect();
        let reason = parse(&without).unwrap_err();
        assert_eq!(reason, format!("`{key}` is missing; {REMEDY}"));
    }
    let check = |yaml: &str, expect: &str| {
        let reason = parse(yaml).unwrap_err();
        assert!(reason.starts_with(expect), "{reason}");
    };
    check("id: 5", "`id` is not a text");
    check("id: ''", "`id` is not a text");
    check("- a", "it is no YAML mapping");
    check("id: 'sec\nret: [", "it is no YAML (line");
    check(
        &whole.replace("      regex: '^@persona_", "      other: '"),
        "`namespaces.users[0].regex` is missing",
    );
    check(&whole.replace("^@persona_[", "("), "`namespaces.users[0].regex` is not a regular expression");
}

#[test]
fn what_hinders_is_read() {
    let whole = render(&draft());
    let read = |from: &str, to: &str| {
        let read = parse(&whole.replacen(from, to, 1)).unwrap();
        (read.rate_limited, read.exclusive)
    };
    assert_eq!(read("", ""), (false, true));
    assert_eq!(read("rate_limited: false", "rate_limited: true"), (true, true));
    assert_eq!(read("rate_limited: false\n", ""), (true, true), "homeservers limit unless told");
    assert_eq!(read("exclusive: true", "exclusive: false"), (false, false));
}

#[test]
fn what_is_optional_may_be_missing() {
    let read =
        parse("{id: a, as_token: b, hs_token: c, sender_localpart: d, url: null, namespaces: {}, x: 1}");
    let read = read.unwrap();
    assert_eq!((read.url, read.user_namespaces.len(), read.alias_namespaces.len()), (None, 0, 0));
}

#[test]
fn a_file_is_private_and_never_overwritten_without_force() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("registration.yaml");
    assert!(matches!(read(&path), Err(RegistrationError::Missing { .. })));
    write(&path, &draft(), Overwrite::Refuse).unwrap();
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(), read(&path).unwrap().id), (0o600, "persona-bridge".into()));
    let other = Draft { id: "other".into(), ..draft() };
    assert!(matches!(write(&path, &other, Overwrite::Refuse), Err(RegistrationError::Exists { .. })));
    assert_eq!(read(&path).unwrap().id, "persona-bridge");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(dir.path().join("registration.yaml.new"), "left over").unwrap();
    write(&path, &other, Overwrite::Force).unwrap();
    assert_eq!((mode(), read(&path).unwrap().id), (0o600, "other".into()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none/registration.yaml");
    for force in [Overwrite::Refuse, Overwrite::Force] {
        assert!(matches!(write(&path, &draft(), force), Err(RegistrationError::Io { .. })));
    }
    assert!(matches!(read(dir.path()), Err(RegistrationError::Io { .. })));
}

#[test]
fn tokens_are_not_shown() {
    let secret = Draft { as_token: "tok1".into(), hs_token: "tok2".into(), ..draft() };
    let shown = format!("{secret:?} {:?}", parse(&render(&secret)).unwrap());
    assert!(!shown.contains("tok1") && !shown.contains("tok2"), "{shown}");
    let broken = parse(&render(&secret).replace("as_token: 'tok1'", "as_token: 'tok1")).unwrap_err();
    assert!(!broken.contains("tok"), "{broken}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_draft_is_read_back_and_covers_its_own(
        id in "\\PC{1,12}", token in "[ -~]{1,20}", bot in "[a-z0-9._=-]{1,8}", prefix in "[a-z0-9._=-]{1,8}",
        persona in "[a-z0-9._=-]{1,8}",
    ) {
        let server_name = "[2001:db8::1]:8448";
        let user = UserId::parse(format!("@{prefix}{persona}:{server_name}")).unwrap();
        let bot_user = UserId::parse(format!("@{bot}:{server_name}")).unwrap();
        let draft = Draft {
            id, bot, user_prefix: prefix, server_name: server_name.into(), as_token: token, ..draft()
        };
        let read = parse(&render(&draft)).unwrap();
        prop_assert_eq!((read.id.as_str(), &*read.as_token), (draft.id.as_str(), draft.as_token.as_str()));
        prop_assert!(read.covers_user(&user) && read.covers_user(&bot_user));
    }
}
