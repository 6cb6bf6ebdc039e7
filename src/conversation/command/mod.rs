//! What admins tell the bridge in chat: a command is a whole message, never mail. A new one is a line in [`NAMES`], a variant,
//! and where it is read.

mod near;

use std::collections::BTreeSet;

use self::near::{nearest, unknown};
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
    /// A Persona's memories are listed, shown or forgotten.
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
    /// These, with all that is known of them.
    Show(BTreeSet<MemoryNumber>),
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
    ("memory", "NAME [show|forget LABEL…]", "what she remembers; only where you and I are alone"),
    ("campaign", "[open SLUG TITLE|close SLUG]", "the open campaigns; one is opened or closed"),
    ("remind", "NAME [cancel LABEL]", "what she wants to be reminded of; only where you and I are alone"),
    ("wakes", "[ROOM]", "who wakes whom in a room, and why not"),
    ("version", "", "which bridge this is"),
];

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
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, rest) = split(&words);
    let name = first.to_lowercase();
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
        "brake" => {
            let (lever, whose) = split(rest);
            match (lever.to_lowercase().as_str(), whose) {
                ("" | "hold", whose) => whom(whose).map(Command::Hold),
                ("release", whose) => whom(whose).map(Command::LetGo),
                ("show", "") => Ok(Command::Held),
                _ => Err(usage(&name)),
            }
        }
        "release" => whom(rest).map(Command::Release),
        "refresh" => of(rest).map(Command::Refresh),
        "flush" => of(rest).map(Command::Flush),
        "ledger" => whom(rest).map(Command::Ledger),
        "memory" => memory(rest, personas),
        "campaign" => campaign(rest),
        "remind" => remind(rest, personas),
        "wakes" => Ok(Command::Wakes((!rest.is_empty()).then(|| rest.to_owned()))),
        _ => Err(unknown(&words, personas)),
    }
}

/// The first of words between which stands one blank, and the others.
fn split(words: &str) -> (&str, &str) {
    words.split_once(' ').unwrap_or((words, ""))
}

fn memory(rest: &str, personas: &[Persona]) -> Result<Command, String> {
    let Some((whom, word, labels)) = parted(rest, &["show", "forget"], personas) else {
        return persona(rest, personas, "memory").map(|id| Command::Memory(id, Memories::List));
    };
    let numbers: Option<BTreeSet<_>> = labels.split_whitespace().map(MemoryNumber::of_label).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| usage("memory"))?;
    let asked = if word == "show" { Memories::Show(numbers) } else { Memories::Forget(numbers) };
    persona(&whom, personas, "memory").map(|id| Command::Memory(id, asked))
}

fn remind(rest: &str, personas: &[Persona]) -> Result<Command, String> {
    let Some((whom, _, label)) = parted(rest, &["cancel"], personas) else {
        return persona(rest, personas, "remind").map(|id| Command::Remind(id, None));
    };
    let number = ReminderNumber::of_label(&label).ok_or_else(|| usage("remind"))?;
    persona(&whom, personas, "remind").map(|id| Command::Remind(id, Some(number)))
}

/// What stands before one of these words, it, and what stands behind it, in lower case; none where there is none of them, or all
/// of it is what a Persona is called.
fn parted(rest: &str, words: &[&str], personas: &[Persona]) -> Option<(String, String, String)> {
    let rest = rest.to_lowercase();
    if personas.iter().any(|persona| is_called(persona, &rest)) {
        return None;
    }
    let all: Vec<&str> = rest.split(' ').collect();
    let at = all.iter().rposition(|word| words.contains(word))?;
    Some((all[..at].join(" "), all[at].to_owned(), all[at + 1..].join(" ")))
}

fn campaign(rest: &str) -> Result<Command, String> {
    let wrong = || usage("campaign");
    let slug = |slug: &str| Slug::new(slug).map_err(|error| error.to_string());
    let (word, rest) = split(rest);
    let asked = match (word.to_lowercase().as_str(), rest) {
        ("" | "list", "") => Campaigns::List,
        ("open", rest) => {
            let (name, title) = rest.split_once(' ').ok_or_else(wrong)?;
            Campaigns::Open(Campaign::new(slug(name)?, title).map_err(|error| error.to_string())?)
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
        Some((_, near)) => format!("there is no Persona `{folded}`; did you mean `{command} {near}`?"),
        None => format!("there is no Persona `{folded}`; there are {}", ids.collect::<Vec<_>>().join(", ")),
    })
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
mod tests;
