//! What a Persona's session used: gathered here until the next row of hers is written, and in the ledger with it.

use std::sync::Arc;

use super::BridgeError;
use super::shared::Shared;
use crate::conversation::{Millis, PersonaId};
use crate::persona::session::{
    Attempt, CacheVerdict, Cause, Counted, Entry, EntryKind, Fingerprint, Meter, Reason, Session, Usd,
};
use crate::persona::{OpenTurn, Usage};

/// A Persona's entries that are not written down yet.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    persona: PersonaId,
    entries: Vec<Entry>,
    fed: Option<Millis>,
    /// When the words were put that were fed.
    put: Millis,
    /// Tokens of the mail that was fed.
    mail: u64,
    /// Tokens of what sessions are believed to share.
    shared_part: u64,
}

impl Keeper {
    /// `shared_part` is about how many tokens sessions share, until it is measured.
    pub(crate) fn new(shared: Arc<Shared>, persona: PersonaId, shared_part: u64) -> Self {
        let (entries, put) = (Vec::new(), Millis::default());
        Self { shared, persona, entries, fed: None, put, mail: 0, shared_part }
    }

    /// A line is fed now, with so many tokens of mail, whose words were put at a time.
    pub(crate) fn feeds(&mut self, mail: u64, put: Millis) {
        self.mail = mail;
        self.put = put;
        self.fed = Some(self.shared.clock.now());
    }

    /// A generation begins.
    pub(crate) fn begins(&mut self, generation: u32, why: Reason) {
        self.note(EntryKind::Begun { generation, why: why.name().to_owned() });
    }

    /// Counts a ping that is over.
    pub(crate) fn pinged(&mut self, session: &mut Session, usage: &Usage) {
        let now = self.shared.clock.now();
        if let Some((tokens, money)) = session.account.pinged(usage, now, &self.shared.config.prices) {
            self.shared.spend().add(&self.persona, money.unwrap_or_default(), now);
            self.note(EntryKind::Ping { generation: session.generation, tokens, money });
        }
    }

    /// An idle period with pings is over, and the mail that came saved so much by them.
    pub(crate) fn woken(&mut self, session: &Session, saved: Usd) {
        let Meter { pings, pinged, .. } = session.account.meter;
        if pings > 0 {
            self.note(EntryKind::Warmth { generation: session.generation, pings, paid: pinged, saved });
        }
    }

    /// What is to be written down now.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Counts an attempt that has ended, and answers what it cost; operators are told of what is not as it should be.
    pub(crate) async fn count(
        &mut self,
        session: &mut Session,
        turn: &OpenTurn,
        (usage, recalled): (&Usage, bool),
        resumed_with: &Fingerprint,
    ) -> Result<Usd, BridgeError> {
        let now = self.shared.clock.now();
        let fed = self.fed.take().unwrap_or(now);
        // When a reply was given that stands in the file is not known, but not before its words were put.
        let (fed, ended) = if recalled { (self.put, self.put) } else { (fed, now) };
        let attempt = Attempt {
            generation: session.generation,
            turn: turn.id,
            attempt: turn.attempt,
            fed,
            ended,
            recalled,
            usage,
            ttl: self.shared.config.mind.cached_for(),
            mail: self.mail,
            shared: self.shared_part,
            goes_on: session.last_committed.is_some(),
            flush: turn.flush.as_deref(),
        };
        let counted = session.account.count(&attempt, &self.shared.config.prices);
        self.complain(session, &counted, resumed_with).await?;
        let mut cost = Usd::default();
        for request in counted.requests {
            cost += request.money.unwrap_or_default();
            self.note(EntryKind::Request(request));
        }
        self.shared.spend().add(&self.persona, cost, now);
        Ok(cost)
    }

    async fn complain(
        &self,
        session: &Session,
        counted: &Counted,
        resumed_with: &Fingerprint,
    ) -> Result<(), BridgeError> {
        let (id, generation) = (&self.persona, session.generation);
        if let Some(broken) = counted.requests.iter().find(|row| row.verdict == CacheVerdict::Broken) {
            let cause = Cause::of(&session.fingerprint, resumed_with);
            tracing::error!(persona = %id, %cause, "the prompt cache held too little of a session that was just used");
            let text = format!(
                "{id}: the prompt cache held {} of {} tokens of session {generation}, which was just used; the likely cause: {cause}",
                broken.tokens.read, broken.expected
            );
            self.shared.tell(&format!("broken:{id}:{generation}:{}", broken.turn), &text).await?;
        }
        if let Some(model) = &counted.unknown {
            let text = format!(
                "the price of the model {model} is not known, so its money is not counted; add it to the file of [session] prices"
            );
            self.shared.tell(&format!("price:{model}"), &text).await?;
        }
        if let Some((counted, by_table)) = counted.differs {
            tracing::warn!(persona = %id, %counted, %by_table, "the CLI reckons another price than the table");
        }
        Ok(())
    }

    fn note(&mut self, kind: EntryKind) {
        self.entries.push(Entry { persona: self.persona.clone(), at: self.shared.clock.now(), kind });
    }
}
