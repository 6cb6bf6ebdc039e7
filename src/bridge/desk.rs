//! Answers what people ask the bot of what is remembered about them, and what admins tell it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ruma::OwnedUserId;

use super::BridgeError;
use super::calls::patiently;
use super::commands;
use super::shared::{SayTarget, Shared, notice};
use crate::conversation::about_me::{self, FORGOTTEN, Question, Wish};
use crate::conversation::{Lane, Memory};
use crate::persona::memory::Hand;
use crate::store::Answer;

/// Answers the questions in the store, one after the other, until the service has drained.
pub(crate) async fn run(shared: Arc<Shared>) -> Result<(), BridgeError> {
    loop {
        let mut questions = shared.store.questions()?;
        // Those of one time in the order of the store.
        questions.sort_by_key(|question| question.at);
        for question in questions {
            let Some(members) = members(&shared, &question).await else { return Ok(()) };
            let answer = match &question.wish {
                Wish::Command(words) => commands::answer(&shared, &question, words, &members).await?,
                Wish::Tell | Wish::Forget => answer(&shared, &question, &readers(&shared, members)),
            };
            let wish = question.wish.name();
            tracing::info!(room = %question.room, wish, parts = answer.says.len(), "the bot was asked");
            shared.store.answer(question.event, answer, shared.clock.now()).await?;
            shared.outbox.notify_one();
        }
        tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            () = shared.questions.notified() => {}
        }
    }
}

/// Who is in the room; nobody where the bot may not look. None when the service ends.
async fn members(shared: &Shared, question: &Question) -> Option<BTreeSet<OwnedUserId>> {
    let identity = shared.identity(&shared.config.bot);
    let members = patiently(shared, || shared.client.joined_members(&identity, &question.room)).await?;
    let members = members.unwrap_or_else(|error| {
        tracing::debug!(%error, room = %question.room, "the bot is not where it was asked");
        Vec::new()
    });
    Some(members.into_iter().map(|(user, _)| user).collect())
}

/// Who of them reads along beside our own users.
fn readers(shared: &Shared, members: BTreeSet<OwnedUserId>) -> BTreeSet<OwnedUserId> {
    let directory = shared.directory();
    members.into_iter().filter(|user| !directory.is_ours(user)).collect()
}

fn answer(shared: &Shared, question: &Question, readers: &BTreeSet<OwnedUserId>) -> Answer {
    if !about_me::is_asked(question, readers) || !readers.contains(&question.user) {
        return Answer::default();
    }
    let mut forget = BTreeMap::new();
    let texts = match &question.wish {
        Wish::Tell => about_me::told(&told(shared, question, readers)),
        Wish::Forget => {
            for persona in &shared.config.personas {
                let id = &persona.persona.id;
                let numbers = shared.store.memories(id, |all| {
                    all.about(&question.user).map(|memory| memory.number).collect::<BTreeSet<_>>()
                });
                forget.insert(id.clone(), numbers);
            }
            vec![FORGOTTEN.to_owned()]
        }
        Wish::Command(_) => Vec::new(),
    };
    let cause = format!("asked:{}", question.event);
    let says = texts.iter().enumerate().map(|(part, text)| {
        let part = part.to_string();
        let target = SayTarget { room: &question.room, kind: "m.room.message", cause: &cause, part: &part };
        shared.say(&shared.config.bot, target, &notice(text))
    });
    Answer { says: says.collect(), forget }
}

/// For each Persona what she remembers of who asks, and of nobody else, as far as it may be said there.
fn told(shared: &Shared, question: &Question, readers: &BTreeSet<OwnedUserId>) -> Vec<(String, Vec<String>)> {
    let (lane, people) = (Lane::Direct(question.room.clone()), BTreeSet::from([question.user.clone()]));
    let hand = Hand { lane: &lane, people: &people, words: "", now: shared.clock.now() };
    let alone = about_me::is_alone(question, readers);
    let own = |memory: &Memory| alone && memory.origin.confided.values().all(|told_by| *told_by == people);
    let may = |memory: &&Memory| {
        memory.kept.people == people && (own(memory) || shared.config.dm_memories.allows(memory, &hand))
    };
    let personas = shared.config.personas.iter().map(|persona| &persona.persona);
    let of = |persona: &crate::conversation::Persona| {
        let texts = shared.store.memories(&persona.id, |all| {
            all.about(&question.user).filter(may).map(|memory| memory.kept.text.clone()).collect()
        });
        (persona.name.clone(), texts)
    };
    personas.map(of).collect()
}
