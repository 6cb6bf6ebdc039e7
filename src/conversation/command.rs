//! What admins tell the bridge in chat: a command is a whole message, never mail. A new one is a line in [`NAMES`], a variant,
//! and where it is read.

use std::collections::BTreeSet;

use strsim::damerau_levenshtein;

use super::campaign::{Campaign, Slug};
use super::event::{Message, MessageKind};
use super::ids::PersonaId;
use super::memory::MemoryNumber;
use super::reminder::ReminderNumber;
use super::room::Persona;
use super::steer::{PREFIX, is_called};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// What can be said.
    Help,
    /// How everybody is.
    Status,
    /// Who there is.
    Personas,
    /// Nothing is asked of a Persona any more, or of anybody, and nothing is said.
    Hold(Option<PersonaId>),
    /// Who was held goes on.
    LetGo(Option<PersonaId>),
    /// Whom the brake holds.
    Held,
    /// Held mail is asked again, and parked says are sent again.
    Release(Option<PersonaId>),
    /// The next mail begins the next session.
    Refresh(PersonaId),
    /// She notes what would be lost with her session.
    Flush(PersonaId),
    /// What may be spent and is.
    Budget,
    /// What sessions used.
    Ledger(Option<PersonaId>),
    /// A Persona's memories are listed, shown (one), or forgotten.
    Memory(PersonaId, Memories),
    /// Campaigns.
    Campaign(Campaigns),
    /// A Persona's reminders are listed, or one is cancelled.
    Remind(PersonaId, Option<ReminderNumber>),
    /// Who may wake whom in a room, which may be named.
    Wakes(Option<String>),
    /// Which bridge this is.
    Version,
}

impl Command {
    /// Its name, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::Status => "status",
            Self::Personas => "personas",
            Self::Hold(_) => "brake hold",
            Self::LetGo(_) => "brake release",
            Self::Held => "brake show",
            Self::Release(_) => "release",
            Self::Refresh(_) => "refresh",
            Self::Flush(_) => "flush",
            Self::Budget => "budget",
            Self::Ledger(_) => "ledger",
            Self::Memory(..) => "memory",
            Self::Campaign(_) => "campaign",
            Self::Remind(..) => "remind",
            Self::Wakes(_) => "wakes",
            Self::Version => "version",
        }
    }
}

/// What is asked of a Persona's memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memories {
    /// All of them.
    List,
    /// One, with all that is known of it.
    Show(MemoryNumber),
    /// To forget these.
    Forget(BTreeSet<MemoryNumber>),
}

/// What is asked of campaigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Campaigns {
    /// Which are open.
    List,
    /// That one is open from now on, or bears another title.
    Open(Campaign),
    /// That one is over.
    Close(Slug),
}

/// The commands: how each is written, and what it does.
pub const NAMES: [(&str, &str, &str); 16] = [
    ("help", "", "this list"),
    ("status", "", "how everybody is: state, waiting mail, session, spend"),
    ("personas", "", "who there is"),
    ("pause", "NAME", "nothing is asked of her any more, and she says nothing"),
    ("resume", "NAME", "she goes on"),
    ("brake", "[hold|release|show] [NAME]", "everybody is held (also by `brake` alone) or goes on"),
    ("release", "[NAME]", "held mail is asked again, parked says are sent again"),
    ("refresh", "NAME", "her next mail begins her next session"),
    ("flush", "NAME", "she notes what would be lost with her session"),
    ("budget", "", "what may be spent, and what is spent today"),
    ("ledger", "[NAME]", "what the sessions used and cost in seven days"),
    ("memory", "NAME [show|forget LABEL]", "what she remembers; only where you and I are alone"),
    ("campaign", "[open SLUG TITLE|close SLUG]", "the open campaigns; one is opened or closed"),
    ("remind", "NAME [cancel LABEL]", "what she wants to be reminded of; only where you and I are alone"),
    ("wakes", "[ROOM]", "who wakes whom in a room, and why not"),
    ("version", "", "which bridge this is"),
];

/// The furthest that a word lies from what was probably meant.
const NEAR: usize = 2;
/// The longest command, in bytes.
const LONGEST: usize = 1_024;

/// The words of a message after the prefix, if it is meant for the bridge wherever it is said.
pub fn prefixed(message: &Message) -> Option<&str> {
    let text = plain(message)?;
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    first.eq_ignore_ascii_case(PREFIX).then_some(rest.trim())
}

/// The words of a message as they are said to the bridge where nobody else is.
pub fn plain(message: &Message) -> Option<&str> {
    let text = message.text.trim();
    let is_said = message.kind == MessageKind::Text && message.edits.is_none();
    (is_said && !text.is_empty()).then_some(text)
}

/// Reads a command.
///
/// # Errors
/// What was probably meant, or how the command is written: the answer. Nothing is carried out then.
pub fn read(words: &str, personas: &[Persona]) -> Result<Command, String> {
    if words.len() > LONGEST {
        let length = words.len();
        return Err(format!(
            "that is too long for a command: {length} bytes, at most {LONGEST}; `help` lists what I do"
        ));
    }
    let (first, rest) = words.trim().split_once(char::is_whitespace).unwrap_or((words.trim(), ""));
    let (name, rest) = (first.to_lowercase(), rest.trim());
    let of = |rest: &str| persona(rest, personas, &name);
    let whom = |rest: &str| if rest.is_empty() { Ok(None) } else { of(rest).map(Some) };
    let alone = |command: Command| if rest.is_empty() { Ok(command) } else { Err(usage(&name)) };
    match name.as_str() {
        "" | "help" => Ok(Command::Help),
        "status" => alone(Command::Status),
        "personas" => alone(Command::Personas),
        "budget" => alone(Command::Budget),
        "version" => alone(Command::Version),
        "pause" => of(rest).map(|id| Command::Hold(Some(id))),
        "resume" => of(rest).map(|id| Command::LetGo(Some(id))),
        "brake" => match split(rest) {
            ("" | "hold", whose) => whom(whose).map(Command::Hold),
            ("release", whose) => whom(whose).map(Command::LetGo),
            ("show", "") => Ok(Command::Held),
            _ => Err(usage(&name)),
        },
        "release" => whom(rest).map(Command::Release),
        "refresh" => of(rest).map(Command::Refresh),
        "flush" => of(rest).map(Command::Flush),
        "ledger" => whom(rest).map(Command::Ledger),
        "memory" => memory(rest, personas),
        "campaign" => campaign(rest),
        "remind" => remind(rest, personas),
        "wakes" => Ok(Command::Wakes((!rest.is_empty()).then(|| rest.to_owned()))),
        "stop" | "go" => {
            Err("say `stop` or `!persona go` in the room that is meant; `brake` holds everybody".to_owned())
        }
        _ => Err(unknown(&name, rest)),
    }
}

fn split(rest: &str) -> (&str, &str) {
    let (first, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (first, rest.trim())
}

fn memory(rest: &str, personas: &[Persona]) -> Result<Command, String> {
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let label = words.last().and_then(|label| MemoryNumber::of_label(label));
    let asked = match (label, words.len().checked_sub(2).map(|at| words[at])) {
        (Some(number), Some("show")) => Memories::Show(number),
        (Some(number), Some("forget")) => Memories::Forget([number].into()),
        _ => Memories::List,
    };
    if asked != Memories::List {
        words.truncate(words.len() - 2);
    }
    persona(&words.join(" "), personas, "memory").map(|id| Command::Memory(id, asked))
}

fn remind(rest: &str, personas: &[Persona]) -> Result<Command, String> {
    let (whom, label) = match rest.rsplit_once(char::is_whitespace) {
        Some((before, label)) => match before.trim_end().strip_suffix("cancel") {
            Some(whom) if whom.ends_with(char::is_whitespace) => (whom.trim_end(), Some(label)),
            Some(_) | None => (rest, None),
        },
        None => (rest, None),
    };
    let number = |label: &str| ReminderNumber::of_label(label).ok_or_else(|| usage("remind"));
    let cancel = label.map(number).transpose()?;
    persona(whom, personas, "remind").map(|id| Command::Remind(id, cancel))
}

fn campaign(rest: &str) -> Result<Command, String> {
    let wrong = || usage("campaign");
    let slug = |slug: &str| Slug::new(slug).map_err(|error| error.to_string());
    let asked = match split(rest) {
        ("" | "list", "") => Campaigns::List,
        ("open", rest) => {
            let (name, title) = rest.split_once(char::is_whitespace).ok_or_else(wrong)?;
            Campaigns::Open(Campaign::new(slug(name)?, title.trim()).map_err(|error| error.to_string())?)
        }
        ("close", name) if !name.is_empty() => Campaigns::Close(slug(name)?),
        _ => return Err(wrong()),
    };
    Ok(Command::Campaign(asked))
}

/// The Persona who is named, or what was probably meant.
fn persona(name: &str, personas: &[Persona], command: &str) -> Result<PersonaId, String> {
    let folded = name.to_lowercase();
    if name.is_empty() {
        return Err(usage(command));
    }
    if let Some(found) = personas.iter().find(|persona| is_called(persona, &folded)) {
        return Ok(found.id.clone());
    }
    let ids = personas.iter().map(|persona| persona.id.as_str());
    Err(match nearest(&folded, ids.clone()) {
        Some(near) => format!("there is no Persona `{folded}`; did you mean `{command} {near}`?"),
        None => format!("there is no Persona `{folded}`; there are {}", ids.collect::<Vec<_>>().join(", ")),
    })
}

fn unknown(name: &str, rest: &str) -> String {
    match nearest(name, NAMES.iter().map(|(known, ..)| *known)) {
        Some(near) => format!("I do not know `{name}`; did you mean `{}`?", format!("{near} {rest}").trim()),
        None => format!("I do not know `{name}`; `help` lists what I do"),
    }
}

/// The word that lies nearest, if one is near.
fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|known| (damerau_levenshtein(given, &known.to_lowercase()), known));
    near.filter(|(distance, known)| *distance <= NEAR && *distance < known.len())
        .min()
        .map(|(_, known)| known)
}

fn usage(command: &str) -> String {
    let known = NAMES.iter().find(|(name, ..)| *name == command);
    let (arguments, does) = known.map_or(("", ""), |(_, arguments, does)| (*arguments, *does));
    format!("it is written `{}`: {does}", format!("{command} {arguments}").trim())
}

/// What can be said, a line each.
pub fn help() -> String {
    let line = |(name, arguments, does): &(&str, &str, &str)| {
        format!("{}: {does}", format!("{name} {arguments}").trim())
    };
    let lines: Vec<String> = NAMES.iter().map(line).collect();
    format!(
        "{}\nHere such a word stands alone, elsewhere after {PREFIX}. In a room with Personas `stop`, `NAME stop`, `{PREFIX} go` and \
         `NAME go` stop them and let them go on.",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
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
        check("memory old brage show n3", Command::Memory(brage(), Memories::Show(MemoryNumber(3))));
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
        answers(
            "pause",
            "it is written `pause NAME`: nothing is asked of her any more, and she says nothing",
        );
        answers(
            "remind eir cancel n3",
            "it is written `remind NAME [cancel LABEL]`: what she wants to be reminded of; only where you and I are alone",
        );
        answers(
            "status of eir",
            "it is written `status`: how everybody is: state, waiting mail, session, spend",
        );
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
}
