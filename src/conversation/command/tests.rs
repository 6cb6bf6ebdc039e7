//! How commands are read, and what is answered to what is none.

use proptest::prelude::*;
use ruma::user_id;

use super::*;

fn personas() -> [Persona; 2] {
    let of = |id: &str, name: &str| Persona {
        id: PersonaId(id.into()),
        user: user_id!("@persona_x:hs.test").to_owned(),
        name: name.into(),
    };
    [of("eir", "Eir"), of("brage", "Old Brage")]
}

fn eir() -> PersonaId {
    PersonaId("eir".into())
}

#[track_caller]
fn check(words: &str, expect: Command) {
    assert_eq!(read(words, &personas()), Ok(expect), "{words}");
}

#[track_caller]
fn answers(words: &str, expect: &str) {
    assert_eq!(read(words, &personas()), Err(expect.to_owned()), "{words}");
}

#[test]
fn each_command_is_read() {
    let brage = || PersonaId("brage".into());
    check("", Command::Help);
    check(" STATUS ", Command::Status);
    check("personas", Command::Personas);
    check("pause Eir", Command::Hold(Some(eir())));
    check("resume old brage", Command::LetGo(Some(brage())));
    check("brake", Command::Hold(None));
    check("brake hold eir", Command::Hold(Some(eir())));
    check("brake release", Command::LetGo(None));
    check("brake show", Command::Held);
    check("release", Command::Release(None));
    check("release eir", Command::Release(Some(eir())));
    check("refresh eir", Command::Refresh(eir()));
    check("flush eir", Command::Flush(eir()));
    check("budget", Command::Budget);
    check("ledger", Command::Ledger(None));
    check("memory eir", Command::Memory(eir(), Memories::List));
    check("memory old brage show n3", Command::Memory(brage(), Memories::Show([MemoryNumber(3)].into())));
    check("memory eir forget n3", Command::Memory(eir(), Memories::Forget([MemoryNumber(3)].into())));
    let slug = || Slug::new("fair").unwrap();
    check("campaign", Command::Campaign(Campaigns::List));
    let fair = Campaign::new(slug(), "The big fair").unwrap();
    check("campaign open fair The big fair", Command::Campaign(Campaigns::Open(fair)));
    check("campaign close fair", Command::Campaign(Campaigns::Close(slug())));
    check("remind old brage", Command::Remind(brage(), None));
    check("remind eir cancel r3", Command::Remind(eir(), Some(ReminderNumber(3))));
    check("wakes", Command::Wakes(None));
    check("wakes #swarm:hs.test", Command::Wakes(Some("#swarm:hs.test".into())));
    check("version", Command::Version);
}

#[test]
fn what_is_nearly_a_command_is_answered_by_what_was_meant() {
    answers("statsu", "I do not know `statsu`; did you mean `status`?");
    answers("puase eir", "I do not know `puase`; did you mean `pause eir`?");
    answers("pause eri", "there is no Persona `eri`; did you mean `pause eir`?");
    answers("pause somebody", "there is no Persona `somebody`; there are eir, brage");
    answers("good morning", "I do not know `good`; `help` lists what I do");
    answers("pause", "it is written `pause NAME`: nothing is asked of her any more, and she says nothing");
    answers(
        "remind eir cancel n3",
        "it is written `remind NAME [cancel LABEL]`: what she wants to be reminded of; only where you and I are alone",
    );
    answers("status of eir", "it is written `status`: how everybody is: state, waiting mail, session, spend");
}

#[test]
fn what_is_nearly_stop_or_go_is_answered_by_the_whole_word_and_where_it_is_said() {
    let meant = |given: &str, meant: &str| {
        answers(
            given,
            &format!(
                "I do not know `{given}`; did you mean `!persona {meant}`? That is said in the room that is meant"
            ),
        );
    };
    meant("stpo", "stop");
    meant("sotp", "stop");
    meant("gp", "go");
    meant("eir stpo", "eir stop");
    meant("stop eir", "eir stop");
    meant("eri go", "eir go");
    meant("old brage: sto", "brage stop");
    answers("paul stop", "I do not know `paul`; did you mean `pause stop`?");
    answers("puase go", "I do not know `puase`; did you mean `pause go`?");
    let elsewhere = "say `!persona stop` in the room that is meant; `brake` holds everybody";
    for words in ["stop", "STOP", "stop that now"] {
        answers(words, elsewhere);
    }
    answers("go", "say `!persona go` in the room that is meant; `brake release` lets everybody go on");
    answers(
        "Eir  stop",
        "say `!persona eir stop` in a room where she sits; `pause eir` holds her everywhere",
    );
    answers(
        "eir: go",
        "say `!persona eir go` in a room where she sits; `resume eir` lets her go on everywhere",
    );
}

#[test]
fn case_and_blanks_are_folded_but_for_the_case_of_a_title() {
    let brage = || PersonaId("brage".into());
    check("Pause  old \t Brage ", Command::Hold(Some(brage())));
    check("Brake\nHOLD  EIR", Command::Hold(Some(eir())));
    check("REMIND old   brage Cancel  R3", Command::Remind(brage(), Some(ReminderNumber(3))));
    let forget = Memories::Forget([MemoryNumber(3), MemoryNumber(4)].into());
    check("Memory Old  Brage Forget N3  n4", Command::Memory(brage(), forget));
    let fair = Campaign::new(Slug::new("fair").unwrap(), "The Big fair").unwrap();
    check("Campaign  OPEN fair   The Big fair", Command::Campaign(Campaigns::Open(fair)));
    check("campaign List", Command::Campaign(Campaigns::List));
}

#[test]
fn labels_that_are_none_or_missing_are_answered_by_how_the_command_is_written() {
    let memory = "it is written `memory NAME [show|forget LABEL…]`: what she remembers; only where you and I are alone";
    for words in ["memory eir forget", "memory eir forget n3 x4", "memory eir show r3", "memory forget n3"] {
        answers(words, memory);
    }
    let remind = "it is written `remind NAME [cancel LABEL]`: what she wants to be reminded of; only where you and I are alone";
    for words in ["remind eir cancel", "remind eir cancel r3 r4", "remind cancel r3"] {
        answers(words, remind);
    }
}

#[test]
fn help_tells_what_operators_were_promised() {
    let help = help();
    let mut told: Vec<&str> = help.lines().filter_map(|line| line.split([' ', ':']).next()).collect();
    told.pop();
    let promised = "help status personas pause resume brake release refresh flush budget ledger memory campaign remind \
                    wakes version";
    assert_eq!(told, promised.split_whitespace().collect::<Vec<_>>());
    for word in ["`stop`", "`NAME stop`", "`!persona go`", "`NAME go`"] {
        assert!(help.lines().last().is_some_and(|line| line.contains(word)), "{word}");
    }
    for line in help.lines().filter(|line| line.contains("NAME [") || line.contains("NAME:")) {
        assert!(line.split_once(": ").is_some_and(|(_, does)| !does.is_empty()), "{line}");
    }
}

#[test]
fn what_is_longer_than_any_command_is_answered_so() {
    let words = |length: usize| format!("pause eir{}", " ".repeat(length - 9));
    check(&words(LONGEST), Command::Hold(Some(eir())));
    answers(
        &words(LONGEST + 1),
        "that is too long for a command: 1025 bytes, at most 1024; `help` lists what I do",
    );
}

proptest! {
    #[test]
    fn no_words_are_too_much_for_it(words in "\\PC{0,60}") {
        let _ = read(&words, &personas());
    }

    #[test]
    fn a_slip_of_the_hand_is_never_carried_out(which in 0_usize..16, at in 0_usize..8, letter in "[a-z]") {
        let name = NAMES[which].0;
        let mut slip = name.to_owned();
        slip.insert_str(at.min(name.len()), &letter);
        prop_assume!(NAMES.iter().all(|(known, ..)| *known != slip));
        let words = format!("{slip} eir");
        prop_assert!(read(&words, &personas()).is_err());
    }
}
