//! Every message of a config that is wrong, word for word.

use std::fs;

use super::{GOOD, check, folder, gather};

#[test]
fn a_text_that_is_not_toml_names_its_line() {
    check(
        r#"server_name = "hs.test""#,
        "server_name = hs.test",
        "DIR/bridge.toml:3: this is not TOML (string values must be quoted, expected literal string); mend that line; strings stand in double quotes, a key may appear once",
    );
    check(
        r#"kind = "claude""#,
        "kind = \"claude\"\nkind = \"scripted\"",
        "DIR/bridge.toml:7: this is not TOML (duplicate key); mend that line; strings stand in double quotes, a key may appear once",
    );
}

#[test]
fn an_unknown_key_names_the_nearest() {
    check(
        "server_name = ",
        "servername = ",
        "DIR/bridge.toml:3: homeserver.servername: unknown key `servername`; did you mean `server_name`?",
    );
    check(
        "[talk]",
        "[talk]\ncolour = \"red\"",
        "DIR/bridge.toml:13: talk.colour: unknown key `colour`; known here: settle, settle_max, default_register, typing_waits, trim_over, max_hops, pair_limit, room_limit",
    );
    check(
        "[talk]",
        "[talk]\nroom_limit = \"30\"",
        "DIR/bridge.toml:13: talk.room_limit: `30` is not a limit such as \"20 per 10m\", or \"off\"; write it like `room_limit = \"30 per 10m\"`",
    );
    check("[talk]", "[tallk]", "DIR/bridge.toml:12: tallk: unknown key `tallk`; did you mean `talk`?");
    check(
        r#"program = "./claude""#,
        r#"progam = "./claude""#,
        "DIR/bridge.toml:9: mind.claude.progam: unknown key `progam`; did you mean `program`?",
    );
    check(
        r#"{ env = "KEY" }"#,
        r#"{ envv = "KEY" }"#,
        "DIR/bridge.toml:10: mind.claude.credential.envv: unknown key `envv`; did you mean `env`?",
    );
    check(
        r#"id = "eir""#,
        r#"idd = "eir""#,
        "DIR/bridge.toml:23: personas[0].idd: unknown key `idd`; did you mean `id`?",
    );
}

#[test]
fn a_wrong_type_says_how_it_is_written() {
    check(
        r#"url = "http://127.0.0.1:8008""#,
        "url = 8008",
        r#"DIR/bridge.toml:2: homeserver.url: invalid type: integer `8008`, expected a string; write it like `url = "https://matrix.example.org"`"#,
    );
    check(
        r#"kind = "claude""#,
        r#"max_live = "eight""#,
        r#"DIR/bridge.toml:6: mind.max_live: invalid type: string "eight", expected a whole number; write it like `max_live = 8`"#,
    );
    check(
        r#"kind = "claude""#,
        "max_live = -1",
        "DIR/bridge.toml:6: mind.max_live: invalid value: integer `-1`, expected a whole number; write it like `max_live = 8`",
    );
    check(
        r#"doctrine = ["eir.md"]"#,
        r#"doctrine = "eir.md""#,
        r#"DIR/bridge.toml:25: personas[0].doctrine: invalid type: string "eir.md", expected a list; write it like `doctrine = ["doctrine/common.md", "doctrine/eir.md"]`"#,
    );
    check(
        "[registers.lounge]",
        "[registers.lounge]\nnames_address = \"yes\"",
        r#"DIR/bridge.toml:16: registers.lounge.names_address: invalid type: string "yes", expected a boolean; write it like `names_address = false`"#,
    );
    check(
        r#"kind = "claude""#,
        r#"kind = "clade""#,
        "DIR/bridge.toml:6: mind.kind: `clade` is not known; write one of: claude, scripted",
    );
    check(
        r#""hs.test" = "chat""#,
        r#""hs.test" = "speak""#,
        "DIR/bridge.toml:30: permissions.hs.test: `speak` is not known; write one of: block, chat, admin",
    );
    check(
        r#"program = "./claude""#,
        "program = \"./claude\"\nttl = \"10m\"",
        "DIR/bridge.toml:10: mind.claude.ttl: `10m` is not known; write one of: auto, 5m, 1h",
    );
    check(
        r#"program = "./claude""#,
        "program = \"./claude\"\ncredential_kind = \"apikey\"",
        "DIR/bridge.toml:10: mind.claude.credential_kind: `apikey` is not known; write one of: api_key, oauth_token",
    );
    check(
        "[talk]",
        "[talk]\nsettle = \"2 parsecs\"",
        r#"DIR/bridge.toml:13: talk.settle: `2 parsecs` is not a duration such as "300ms", "2s" or "15m"; write it like `settle = "2s"`"#,
    );
    check(
        "[talk]",
        "[talk]\nsettle = 2",
        r#"DIR/bridge.toml:13: talk.settle: invalid type: integer `2`, expected a duration such as "300ms", "2s" or "15m"; write it like `settle = "2s"`"#,
    );
    check(
        "[mind]",
        "[store]\nmin_free = \"256\"\n\n[mind]",
        r#"DIR/bridge.toml:6: store.min_free: `256` is not a size such as "64KiB", "256MiB" or "2GiB"; write it like `min_free = "256MiB"`"#,
    );
}

#[test]
fn a_missing_key_says_how_it_is_written() {
    check(
        "url = \"http://127.0.0.1:8008\"\n",
        "",
        r#"DIR/bridge.toml:1: homeserver.url: is missing; write it like `url = "https://matrix.example.org"`"#,
    );
    check(
        "server_name = \"hs.test\"\n",
        "",
        r#"DIR/bridge.toml:1: homeserver.server_name: is missing; write it like `server_name = "example.org"`"#,
    );
    check(
        "credential = { env = \"KEY\" }\n",
        "",
        r#"DIR/bridge.toml:8: mind.claude.credential: is missing; write it like `credential = { env = "ANTHROPIC_API_KEY" }`"#,
    );
    check(
        "alias = \"#persona_lounge:hs.test\"\n",
        "",
        "DIR/bridge.toml:18: rooms[0].alias: is missing; write it like `alias = \"#persona_lounge:example.org\"`\nDIR/bridge.toml:26: personas[0].rooms[0]: #persona_lounge:hs.test is not among the rooms; add a [[rooms]] section with alias = \"#persona_lounge:hs.test\" and a register",
    );
    check(
        "name = \"Eir\"\n",
        "",
        r#"DIR/bridge.toml:22: personas[0].name: is missing; write it like `name = "Eir"`"#,
    );
    check(
        "voice = \"Short.\"\n",
        "",
        r#"DIR/bridge.toml:15: registers.lounge.voice: is missing; write it like `voice = "Short, warm, plain. One thought at a time."`"#,
    );
    check(
        "[[personas]]\nid = \"eir\"\nname = \"Eir\"\ndoctrine = [\"eir.md\"]\nstate = \"eir.json\"\nrooms = [\"#persona_lounge:hs.test\"]\n",
        "",
        "DIR/bridge.toml: personas: there is no Persona; add a [[personas]] section with id and name",
    );
}

#[test]
fn the_homeserver_is_checked() {
    check(
        r#""http://127.0.0.1:8008""#,
        r#""ftp://127.0.0.1""#,
        "DIR/bridge.toml:2: homeserver.url: `ftp://127.0.0.1` is not http or https; write where the homeserver's client API is, like http://127.0.0.1:8008",
    );
    check(
        r#""http://127.0.0.1:8008""#,
        r#""127.0.0.1:8008""#,
        "DIR/bridge.toml:2: homeserver.url: `127.0.0.1:8008` is not a URL (relative URL without a base); write where the homeserver's client API is, like http://127.0.0.1:8008",
    );
    check(
        r#""http://127.0.0.1:8008""#,
        r#""http://a:b@127.0.0.1""#,
        "DIR/bridge.toml:2: homeserver.url: holds a user or password; write where the homeserver's client API is, like http://127.0.0.1:8008",
    );
    check(
        r#""http://127.0.0.1:8008""#,
        r#""http://hs.test""#,
        r#"fine ["DIR/bridge.toml:2: homeserver.url: tokens and words go over the network unencrypted; use https, or run the bridge on the homeserver's machine"]"#,
    );
    check(
        r#"server_name = "hs.test""#,
        r#"server_name = "https://hs.test""#,
        "DIR/bridge.toml:3: homeserver.server_name: `https://hs.test` is not a server name; write the part of your user id after the colon, without https://",
    );
    check(
        r#"server_name = "hs.test""#,
        "server_name = \"hs.test\"\nreconcile = \"0s\"",
        r#"DIR/bridge.toml:4: homeserver.reconcile: must lie between one second and one day; write it like `reconcile = "5m"`"#,
    );
    check(
        r#"server_name = "hs.test""#,
        "server_name = \"hs.test\"\nreconcile = \"2days\"",
        r#"DIR/bridge.toml:4: homeserver.reconcile: must lie between one second and one day; write it like `reconcile = "5m"`"#,
    );
}

#[test]
fn an_empty_path_of_the_store_is_refused() {
    check(
        "[talk]",
        "[store]\npath = \"\"\n[talk]",
        r#"DIR/bridge.toml:13: store.path: is empty; write it like `path = "store"`"#,
    );
}

#[test]
fn placeholders_are_refused() {
    check(
        r#""http://127.0.0.1:8008""#,
        r#""https://matrix.example.org""#,
        "DIR/bridge.toml:2: homeserver.url: is the example's placeholder; write where the homeserver's client API is, like http://127.0.0.1:8008",
    );
    check(
        r#"server_name = "hs.test""#,
        r#"server_name = "example.org""#,
        "DIR/bridge.toml:3: homeserver.server_name: is the example's placeholder; write your homeserver's name, as in @you:NAME",
    );
    check(
        r#""@ada:hs.test" = "admin""#,
        r#""@admin:example.org" = "admin""#,
        "DIR/bridge.toml:31: permissions.@admin:example.org: is the example's placeholder; write your own server and users, or remove it",
    );
    check(
        r##"alias = "#persona_lounge:hs.test""##,
        r##"alias = "#persona_lounge:example.org""##,
        "DIR/bridge.toml:19: rooms[0].alias: is the example's placeholder; write a room of your own homeserver\nDIR/bridge.toml:27: personas[0].rooms[0]: #persona_lounge:hs.test is not among the rooms; add a [[rooms]] section with alias = \"#persona_lounge:hs.test\" and a register",
    );
}

#[test]
fn the_appservice_is_checked() {
    check(
        "[mind]",
        "[appservice]\nlisten = \"localhost\"\n\n[mind]",
        r#"DIR/bridge.toml:6: appservice.listen: `localhost` is not an address with a port; write it like `listen = "127.0.0.1:29600"`"#,
    );
    check(
        "[mind]",
        "[appservice]\nlisten = \"127.0.0.1:0\"\n\n[mind]",
        r#"DIR/bridge.toml:6: appservice.listen: `127.0.0.1:0` is not an address with a port; write it like `listen = "127.0.0.1:29600"`"#,
    );
    check(
        "[mind]",
        "[appservice]\nlisten = \"0.0.0.0:29600\"\nurl = \"http://127.0.0.1:29600\"\n\n[mind]",
        r#"fine ["DIR/bridge.toml:6: appservice.listen: 0.0.0.0 can be reached from other machines; bind 127.0.0.1 and put a proxy before it, unless you mean it"]"#,
    );
    check(
        "[mind]",
        "[appservice]\nid = \"a|b\"\n\n[mind]",
        "DIR/bridge.toml:6: appservice.id: is empty or holds |, / or a blank; write a plain word",
    );
    check(
        "[mind]",
        "[appservice]\nbot = \"@bot:hs.test\"\n\n[mind]",
        "DIR/bridge.toml:6: appservice.bot: `@bot:hs.test` cannot stand in a user id; use a-z, 0-9 and . _ = - / + only, without @ and server",
    );
    check(
        "[mind]",
        "[appservice]\nbot = \"persona_bot\"\n\n[mind]",
        "DIR/bridge.toml:6: appservice.bot: `persona_bot` is among the Personas' own names; let it not begin with user_prefix, `persona_`",
    );
}

#[test]
fn what_a_register_says_is_checked() {
    check(
        "[registers.lounge]",
        "[registers.lounge]\nspeak_from = [\"minds\", \"hall\"]",
        "DIR/bridge.toml:16: registers.lounge.speak_from[1]: there is no register `hall`; add [registers.hall] with a voice, or name one of: burn, lounge, minds, swarm",
    );
    check(
        "[registers.lounge]",
        "[registers.lounge]\nspeak_from = [\"minds\", \"dm\"]",
        "DIR/bridge.toml:16: registers.lounge.speak_from: what is said in direct chats could come up in its rooms; remove \"dm\" from it, or write allow_from_dm = true beside it",
    );
    check("[registers.lounge]", "[registers.lounge]\nspeak_from = [\"dm\"]\nallow_from_dm = true", "fine []");
    check(
        "[registers.lounge]",
        "[registers.lounge]\nallow_from_dm = true",
        "DIR/bridge.toml:16: registers.lounge.allow_from_dm: allows what is not asked for; add \"dm\" to speak_from beside it, or remove it",
    );
    check(
        "[registers.lounge]",
        "[registers.lounge]\nwakes = \"everybody\"",
        "DIR/bridge.toml:16: registers.lounge.wakes: `everybody` is not known; write one of: addressed, anyone, nobody",
    );
}

#[test]
fn registers_and_rooms_fit() {
    check(
        r##"alias = "#persona_lounge:hs.test""##,
        r#"alias = "lounge""#,
        "DIR/bridge.toml:19: rooms[0].alias: `lounge` is not a room alias; write it like \"#lounge:your.server\", in quotes\nDIR/bridge.toml:27: personas[0].rooms[0]: #persona_lounge:hs.test is not among the rooms; add a [[rooms]] section with alias = \"#persona_lounge:hs.test\" and a register",
    );
    check(
        "register = \"lounge\"\n\n[[personas]]",
        "register = \"longe\"\n\n[[personas]]",
        "DIR/bridge.toml:20: rooms[0].register: there is no register `longe`; add [registers.longe] with a voice, or name one of: burn, lounge, minds, swarm",
    );
    check(
        r#"default_register = "lounge""#,
        r#"default_register = "hall""#,
        "DIR/bridge.toml:13: talk.default_register: there is no register `hall`; add [registers.hall] with a voice, or name one of: burn, lounge, minds, swarm",
    );
    check(
        "[registers.lounge]",
        "[registers.\"The Hall\"]\nvoice = \"x\"\n[registers.lounge]",
        "DIR/bridge.toml:15: registers.The Hall: `The Hall` cannot name a register; use a-z, 0-9, _ and - only",
    );
    check(
        "register = \"lounge\"\n\n[[personas]]",
        "register = \"dm\"\n\n[[personas]]",
        "DIR/bridge.toml:20: rooms[0].register: `dm` is the register of direct chats; name another one, or make the room a direct chat by `direct`",
    );
    check(
        "[[personas]]",
        "[[rooms]]\nalias = \"#persona_den:hs.test\"\ndirect = \"eir\"\nlisten = \"addressed\"\n\n[[personas]]",
        "DIR/bridge.toml:25: rooms[1].listen: says nothing in a direct chat; remove it: all that is said in a direct chat is addressed",
    );
    check(
        "register = \"lounge\"\n\n[[personas]]",
        "direct = \"eira\"\n\n[[personas]]",
        "DIR/bridge.toml:20: rooms[0].direct: there is no Persona `eira`; write the id of one\nDIR/bridge.toml:27: personas[0].rooms[0]: #persona_lounge:hs.test is a direct chat; remove it here; its `direct` names who is in it",
    );
    check(
        "[[personas]]",
        "[[rooms]]\nalias = \"#persona_den:hs.test\"\nregister = \"lounge\"\ndirect = \"eir\"\n\n[[personas]]",
        "DIR/bridge.toml:25: rooms[1].direct: a direct chat has no register; remove one of the two",
    );
    check(
        "[[personas]]",
        "[[rooms]]\nalias = \"#persona_lounge:hs.test\"\nregister = \"lounge\"\n\n[[personas]]",
        "DIR/bridge.toml:23: rooms[1].alias: #persona_lounge:hs.test stands twice; remove one of the two",
    );
    check(
        r##"rooms = ["#persona_lounge:hs.test"]"##,
        r##"rooms = ["#persona_hall:hs.test"]"##,
        r##"DIR/bridge.toml:27: personas[0].rooms[0]: #persona_hall:hs.test is not among the rooms; add a [[rooms]] section with alias = "#persona_hall:hs.test" and a register"##,
    );
    check(
        "[talk]",
        "[talk]\nsettle = \"20s\"",
        "DIR/bridge.toml:12: talk.settle_max: is shorter than talk.settle; make it at least as long",
    );
}

#[test]
fn what_a_session_and_a_batch_hold_is_checked() {
    for size in ["0B", "255B"] {
        check(
            "default_register",
            &format!("trim_over = \"{size}\"\ndefault_register"),
            r#"DIR/bridge.toml:13: talk.trim_over: must be 256 bytes at least: hardly any message would be shown in whole; write it like `trim_over = "8KiB"`"#,
        );
    }
    check("default_register", "trim_over = \"256B\"\ndefault_register", "fine []");
    for watermark in ["0.1", "0.24", "0.86"] {
        check(
            "[mind]",
            &format!("[session]\nwatermark = {watermark}\n\n[mind]"),
            "DIR/bridge.toml:6: session.watermark: must lie between 0.25 and 0.85; write it like `watermark = 0.75`",
        );
    }
    check("[mind]", "[session]\nwatermark = 0.25\n\n[mind]", "fine []");
}

#[test]
fn a_model_without_a_price_is_told_and_refused_with_a_budget() {
    let unknown = "the price of the model `house-7` is not known, so its money is not counted";
    let remedy = "name a model that has one, or give it a row in a file of your own: [session] prices";
    let model = "program = \"./claude\"\nmodel = \"house-7\"";
    let program = r#"program = "./claude""#;
    let place = "DIR/bridge.toml:10: mind.claude.model:";
    check(program, model, &format!("fine [\"{place} {unknown}; {remedy}\"]"));
    for limit in ["per_day", "per_persona_per_day", "per_turn"] {
        let from = "[talk]";
        let dir = folder();
        let text = GOOD.replace(program, model).replace(from, &format!("[budget]\n{limit} = 1.0\n\n[talk]"));
        let said = gather(dir.path(), &text, &[]).map(drop).unwrap_err().to_string();
        let said = said.replace(&dir.path().display().to_string(), "DIR");
        assert_eq!(said, format!("{place} {unknown} and no [budget] holds it; {remedy}"), "{limit}");
    }
    let own = "source = \"us\"\ndate = \"today\"\n[[models]]\nname = \"house-7\"\ninput = 1.0\noutput = 2.0\nwindow = 9\nminimum = 1\n";
    let dir = folder();
    fs::write(dir.path().join("prices.toml"), own).expect("prices");
    let sections = "[session]\nprices = \"prices.toml\"\n\n[budget]\nper_day = 1.0\n";
    let text = format!("{}{sections}", GOOD.replace(program, model));
    assert_eq!(gather(dir.path(), &text, &[]).expect("it has a price").warnings.len(), 0);
}

#[test]
fn the_beat_is_checked() {
    let at = |key: &str, said: &str| format!("DIR/bridge.toml:13: heart.{key}: {said}");
    let out = at(
        "beat",
        "lies outside its bounds; write one from heart.beat_min to heart.beat_max, or set those, too",
    );
    check("[talk]", "[heart]\nbeat = \"30s\"\n[talk]", &out);
    let short = at("beat_max", "is shorter than heart.beat_min; make it at least as long");
    check("[talk]", "[heart]\nbeat_max = \"30s\"\n[talk]", &short);
    let race = at("beat_min", "would let the beat race; write \"100ms\" at least");
    check("[talk]", "[heart]\nbeat_min = \"0s\"\n[talk]", &race);
}

#[test]
fn personas_are_checked() {
    check(
        r#"id = "eir""#,
        r#"id = "Eir""#,
        "DIR/bridge.toml:23: personas[0].id: `Eir` cannot end a user id; use a-z, 0-9 and . _ = - only",
    );
    check(
        "[permissions]",
        "[[personas]]\nid = \"eir\"\nname = \"Eir the second\"\n\n[permissions]",
        "DIR/bridge.toml:30: personas[1].id: `eir` stands twice; give each Persona an id of her own",
    );
    check(
        r#"name = "Eir""#,
        r#"name = "Eir\nBrage""#,
        "DIR/bridge.toml:24: personas[0].name: is empty, too long or not one line; write the name people call her by",
    );
    check(
        r#"name = "Eir""#,
        "name = \"Eir\"\navatar = \"eir.png\"",
        "DIR/bridge.toml:25: personas[0].avatar: `eir.png` is not an mxc:// address; upload the picture in any client and copy its mxc:// address",
    );
    check(
        r#"doctrine = ["eir.md"]"#,
        r#"doctrine = ["eir.md", "gone.md"]"#,
        "DIR/bridge.toml:25: personas[0].doctrine[1]: DIR/gone.md: No such file or directory (os error 2); name a text file that can be read",
    );
    check(
        r#"state = "eir.json""#,
        r#"state = "gone.json""#,
        "DIR/bridge.toml:26: personas[0].state: DIR/gone.json: No such file or directory (os error 2); name a JSON file that can be read",
    );
    check(
        r#"state = "eir.json""#,
        r#"state = "eir.md""#,
        "DIR/bridge.toml:26: personas[0].state: DIR/eir.md:1 is not a JSON object (expected value); mend that file",
    );
}

#[test]
fn permissions_are_checked() {
    check(
        r#""hs.test" = "chat""#,
        r#""hs test" = "chat""#,
        r#"DIR/bridge.toml:30: permissions.hs test: `hs test` is no user, no server and not *; write "@user:server", "server" or "*""#,
    );
    check(
        r#""@ada:hs.test" = "admin""#,
        r#""@ada" = "admin""#,
        r#"DIR/bridge.toml:31: permissions.@ada: `@ada` is no user, no server and not *; write "@user:server", "server" or "*""#,
    );
    check(
        r#""@ada:hs.test" = "admin""#,
        r#"bots = ["@*bot:hs.test", "newsbot"]"#,
        r#"DIR/bridge.toml:31: permissions.bots[1]: `newsbot` fits no user id; write it like "@*bot:your.server"; * stands for any text"#,
    );
    check(
        r#""@ada:hs.test" = "admin""#,
        r#""@ada:hs.test" = ["admin"]"#,
        "DIR/bridge.toml:31: permissions.@ada:hs.test: is a list; write one of: block, chat, admin",
    );
    check(
        r#""@ada:hs.test" = "admin""#,
        r#"bots = ["@*bot:example.org"]"#,
        "DIR/bridge.toml:31: permissions.bots[0]: is the example's placeholder; write your own server, or remove it",
    );
    check(
        "\"hs.test\" = \"chat\"\n\"@ada:hs.test\" = \"admin\"\n",
        "",
        r#"fine ["DIR/bridge.toml:29: permissions: nobody may talk to the Personas; add a line such as \"your.server\" = \"chat\""]"#,
    );
}

#[test]
fn the_mind_is_checked() {
    check(
        r#"kind = "claude""#,
        "max_live = 0",
        "DIR/bridge.toml:6: mind.max_live: no mind could ever live; write it like `max_live = 8`",
    );
    check(
        r#"kind = "claude""#,
        "max_live = 4\nmax_thinking = 0",
        "DIR/bridge.toml:7: mind.max_thinking: no mind could ever think; write it like `max_thinking = 8`",
    );
    check(
        r#"kind = "claude""#,
        "recycle_rss = \"1B\"",
        r#"DIR/bridge.toml:6: mind.recycle_rss: must be 1MiB at least: every process takes more, and each mind would be closed after its turn; write it like `recycle_rss = "1GiB"`"#,
    );
    check(
        r#"program = "./claude""#,
        "program = \"./claude\"\nsilence = \"10ms\"",
        r#"DIR/bridge.toml:10: mind.claude.silence: must be one second at least; write it like `silence = "120s"`"#,
    );
    check(
        r#"program = "./claude""#,
        r#"program = "./gone""#,
        "DIR/bridge.toml:9: mind.claude.program: there is no program `./gone`; install it with `npm install -g @anthropic-ai/claude-code-linux-x64@2.1.332` and name its `claude` here",
    );
    check(
        r#"program = "./claude""#,
        r#"program = "no-such-program""#,
        "DIR/bridge.toml:9: mind.claude.program: there is no program `no-such-program`; install it with `npm install -g @anthropic-ai/claude-code-linux-x64@2.1.332` and name its `claude` here",
    );
    check(
        r#"program = "./claude""#,
        "program = \"./claude\"\nmodel = \"--print\"",
        r#"DIR/bridge.toml:10: mind.claude.model: `--print` is not one word; write it like `model = "claude-sonnet-4-5"`"#,
    );
    check(
        r#"program = "./claude""#,
        "program = \"./claude\"\nbase_url = \"unix:/x\"",
        "DIR/bridge.toml:10: mind.claude.base_url: `unix:/x` is not http or https; write it like http://127.0.0.1:8080",
    );
}

#[test]
fn the_credential_is_checked() {
    check(
        r#"{ env = "KEY" }"#,
        r#"{ env = "GONE" }"#,
        r#"DIR/bridge.toml:10: mind.claude.credential: the variable GONE is not set; set GONE where the bridge is started, or use { file = "PATH" }"#,
    );
    check(
        r#"{ env = "KEY" }"#,
        r#"{ env = "KEY", file = "key" }"#,
        r#"DIR/bridge.toml:10: mind.claude.credential: needs one of env and file; write { env = "NAME" } or { file = "PATH" }"#,
    );
    check(
        r#"{ env = "KEY" }"#,
        "{}",
        r#"DIR/bridge.toml:10: mind.claude.credential: needs one of env and file; write { env = "NAME" } or { file = "PATH" }"#,
    );
    check(
        r#"{ env = "KEY" }"#,
        r#"{ file = "gone" }"#,
        "DIR/bridge.toml:10: mind.claude.credential: DIR/gone: No such file or directory (os error 2); put the key alone in that file, mode 0600",
    );
}

#[test]
fn the_registration_covers_the_personas() {
    check(
        "[mind]",
        "[appservice]\nuser_prefix = \"ghost_\"\n\n[mind]",
        "DIR/bridge.toml:26: personas[0].id: @ghost_eir:hs.test is outside the namespace of DIR/registration.yaml; set server_name and user_prefix as they were when it was generated, or generate it anew (--force), install it and restart the homeserver",
    );
    check(
        "[mind]",
        "[appservice]\nurl = \"http://127.0.0.1:1\"\n\n[mind]",
        r#"fine ["DIR/bridge.toml:6: appservice.url: the registration says http://127.0.0.1:29600; make them equal; the homeserver follows the registration"]"#,
    );
    check("[mind]", "[mind]", "fine []");
}
