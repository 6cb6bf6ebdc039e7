//! Commands of admins in chat: each becomes a question to the bot when it comes in, is carried out as the order that the
//! command line gives, and answered by the bot.

mod show;
mod wakes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ruma::{OwnedRoomId, OwnedUserId};

use super::BridgeError;
use super::directory::Directory;
use super::orders::{self, Lever, Order, OrderError};
use super::reminders::Reminders;
use super::shared::{SayTarget, Shared, notice};
use super::translate::{Path, level};
use crate::conversation::about_me::{self, Question, Wish};
use crate::conversation::command::{self, Command};
use crate::conversation::{Content, Event, Level, Millis, Persona, PersonaId};
use crate::persona::session::care::Word;
use crate::persona::session::sums;
use crate::store::Answer;

/// How far back the ledger goes that is shown.
const LEDGER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The answer to who may not say commands.
const ADMINS_ONLY: &str =
    "I take commands of admins alone; ask me \"what do you remember about me?\" if you like.";
/// The answer to what was carried out before the bridge could say so.
const DONE: &str = "That was dealt with before I was stopped; `status` shows how things stand.";
/// The answer where somebody else reads along.
const ALONE_ONLY: &str = "That holds words of people: I tell it only in a room of you and me.";

/// What is said to the bridge in an event: after the prefix in any room, by itself in a room of the bot without Personas. Who is
/// no admin says nothing to it elsewhere.
pub(crate) fn asked(directory: &Directory, event: &Event, path: Path) -> Option<Question> {
    let Content::Message(message) = &event.content else { return None };
    let level = level(directory, &event.sender);
    if directory.is_ours(&event.sender) || level < Level::Chat || directory.is_encrypted(&event.room) {
        return None;
    }
    let is_bots = directory.is_bots(&event.room);
    let prefixed = command::prefixed(message);
    let words = match prefixed {
        Some(words) if is_bots || (level == Level::Admin && was_there(directory, &event.room, path)) => words,
        None if is_bots && about_me::question(event, &directory.bot).is_none() => command::plain(message)?,
        Some(_) | None => return None,
    };
    let (room, user) = (event.room.clone(), event.sender.clone());
    let wish = Wish::Command(words.to_owned());
    Some(Question { event: event.id.clone(), room, user, wish, at: event.at, mentions: prefixed.is_some() })
}

/// What is read back of a time before any Persona came is history.
fn was_there(directory: &Directory, room: &OwnedRoomId, path: Path) -> bool {
    path != Path::ReadBack || directory.personas.iter().any(|persona| directory.has_passed(&persona.id, room))
}

/// Carries out what is asked, by whom is in the room, and words the answer.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    question: &Question,
    words: &str,
    members: &BTreeSet<OwnedUserId>,
) -> Result<Answer, BridgeError> {
    let bot = &shared.config.bot;
    let is_alone = *members == BTreeSet::from([bot.clone(), question.user.clone()]);
    if !question.mentions && !is_alone {
        return Ok(Answer::default());
    }
    let user_level = level(&shared.directory(), &question.user);
    if user_level < Level::Admin {
        if is_alone {
            let key = format!("no-admin:{}:{}", question.room, question.user);
            say_once(shared, &question.room, key, ADMINS_ONLY).await?;
        }
        return Ok(Answer::default());
    }
    let personas: Vec<Persona> = shared.config.personas.iter().map(|known| known.persona.clone()).collect();
    let text = match command::read(words, &personas) {
        Ok(command) => {
            let (author, room, command_name) = (&question.user, &question.room, command.name());
            tracing::info!(%author, %room, command = command_name, "an admin's command");
            if shared.store.is_heeded(&question.event)? {
                DONE.to_owned()
            } else {
                carry_out(shared, command, (question, is_alone)).await?
            }
        }
        Err(meant) => meant,
    };
    let cause = format!("command:{}", question.event);
    let (room, text) = if members.contains(bot) {
        (Some(question.room.clone()), text)
    } else {
        // Where the bot is not, it answers where it always is.
        (shared.store.control_room()?, format!("{} asked in {}:\n{text}", question.user, question.room))
    };
    let say = room.map(|room| {
        let target = SayTarget { room: &room, kind: "m.room.message", cause: &cause, part: "0" };
        shared.say(bot, target, &notice(&text))
    });
    Ok(Answer { says: say.into_iter().collect(), ..Answer::default() })
}

async fn say_once(shared: &Shared, room: &OwnedRoomId, key: String, text: &str) -> Result<(), BridgeError> {
    let target = SayTarget { room, kind: "m.room.message", cause: &key, part: "0" };
    let say = shared.say(&shared.config.bot, target, &notice(text));
    shared.store.say_once(key, vec![say], shared.clock.now()).await?;
    Ok(())
}

/// Does it; answers what follows, in words.
async fn carry_out(
    shared: &Arc<Shared>,
    command: Command,
    (question, is_alone): (&Question, bool),
) -> Result<String, BridgeError> {
    let order = match command {
        Command::Help => return Ok(command::help()),
        Command::Status => return show::status(shared, is_alone),
        Command::Personas => return Ok(show::personas(shared)),
        Command::Budget => return Ok(show::budget(shared)),
        Command::Wakes(named) => return Ok(wakes::wakes(shared, &question.room, named.as_deref())),
        Command::Version => return Ok(show::version(shared)),
        Command::Ledger(of) => return ledger(shared, of.as_ref()),
        Command::Memory(..) | Command::Remind(..) if !is_alone => return Ok(ALONE_ONLY.to_owned()),
        Command::Memory(persona, asked) => Order::Memory { persona, asked },
        Command::Remind(persona, cancel) => {
            Order::Remind { persona, asked: cancel.map_or(Reminders::List, Reminders::Cancel) }
        }
        Command::Hold(persona) => Order::Brake { lever: Lever::Hold, persona },
        Command::LetGo(persona) => Order::Brake { lever: Lever::Release, persona },
        Command::Held => Order::Brake { lever: Lever::Show, persona: None },
        Command::Refresh(persona) => Order::Session { persona, word: Word::Refresh },
        Command::Flush(persona) => Order::Session { persona, word: Word::Flush },
        Command::Release(of) => {
            Order::Release { of: of.and_then(|id| Some((id.clone(), shared.user_of(&id)?))) }
        }
        Command::Campaign(asked) => Order::Campaign(asked),
    };
    // A release writes twice; what is let go on again does no harm.
    let store = if matches!(order, Order::Release { .. }) {
        shared.store.clone()
    } else {
        shared.store.for_question(&question.event)
    };
    let follows = match orders::heed(shared, &store, &order, Some(question.at)).await {
        Ok(follows) => follows,
        Err(OrderError::Store(error)) => return Err(error.into()),
        Err(refused) => return Ok(refused.to_string()),
    };
    Ok(match (&order, show::held(shared, is_alone)) {
        (Order::Brake { .. }, held) => orders::braked(held),
        (Order::Release { .. }, Some(held)) => format!("{follows}; the brake holds {held}: `brake release`"),
        _ => follows,
    })
}

fn ledger(shared: &Shared, of: Option<&PersonaId>) -> Result<String, BridgeError> {
    let since: Millis = shared.clock.now().minus(LEDGER);
    let mut entries = shared.store.ledger(since)?;
    entries.retain(|entry| of.is_none_or(|persona| entry.persona == *persona));
    Ok(sums::text(&sums::sum(&entries, since)).trim_end().to_owned())
}
