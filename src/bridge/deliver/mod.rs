//! From the outbox to the rooms: the oldest say of each room, with its transaction id, until taken or refused for good.

mod attempt;
mod rounds;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ruma::OwnedRoomId;

use super::BridgeError;
use super::calls::backoff;
use super::shared::{SayTarget, Shared, thaw};
use crate::conversation::{Millis, RequestId};
use crate::homeserver::content;
use crate::homeserver::event::cause_of;
use crate::store::{NewSay, Parking, Say};
use attempt::{Tried, attempt};
use rounds::Rounds;

/// A 5xx that repeats this often for one say while other calls succeed parks it; while none succeeds it is an outage.
const SERVER_FAULTS: u32 = 10;
/// The pause after a try that nobody answered, once somebody has answered again.
const RETURNED: Duration = Duration::from_secs(2);
/// How many rooms are sent to at once.
const AT_ONCE: usize = 16;

/// How a room's head has fared in this process.
#[derive(Debug, Default, Clone)]
struct Trouble {
    tries: u32,
    server_faults: u32,
    /// How many calls had succeeded when the server first failed on this one.
    successes_before: u64,
    rejoined: bool,
    not_before: Millis,
    /// When it last failed because nobody answered, and how often the homeserver had come back by then.
    unreached: Option<(Millis, u64)>,
    /// A PUT may have been taken without our knowing.
    uncertain: bool,
    /// It was parked because of server faults and has one more try.
    tried_again: bool,
}

impl Trouble {
    /// When it may be tried again, where the homeserver has come back so often: once it has, what failed in its silence
    /// waits no longer than [`RETURNED`].
    fn due(&self, returned: u64) -> Millis {
        match self.unreached {
            Some((failed, before)) if returned > before => self.not_before.min(failed.plus(RETURNED)),
            Some(_) | None => self.not_before,
        }
    }
}

type Trying = BoxFuture<'static, (Say, Result<Tried, BridgeError>)>;

/// Sends what is owed.
pub(crate) struct Deliver {
    shared: Arc<Shared>,
    trying: FuturesUnordered<Trying>,
    busy: BTreeMap<OwnedRoomId, u64>,
    troubles: BTreeMap<RequestId, Trouble>,
    started: Millis,
    rounds: Rounds,
}

impl Deliver {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let started = shared.clock.now();
        Self {
            shared,
            trying: FuturesUnordered::new(),
            busy: BTreeMap::new(),
            troubles: BTreeMap::new(),
            started,
            rounds: Rounds::default(),
        }
    }

    /// Runs until the service has drained.
    pub(crate) async fn run(mut self) -> Result<(), BridgeError> {
        loop {
            self.try_parked().await?;
            let heads = self.shared.store.heads_of(|user, room| self.shared.may_speak(user, room))?;
            let free = self.shared.look_at_full_rooms(&heads).await?;
            let next = self.begin(heads).into_iter().chain(self.next_round()).chain(free).min();
            let shared = self.shared.clone();
            tokio::select! {
                biased;
                Some((say, tried)) = self.trying.next(), if !self.trying.is_empty() => {
                    self.busy.remove(&say.say.room);
                    self.settle(say, tried?).await?;
                }
                () = shared.drained.cancelled() => return Ok(()),
                () = shared.outbox.notified() => {}
                () = shared.clock.sleep_until(next), if next.is_some() => {}
            }
        }
    }

    /// When what is parked because of server faults is tried again, if there is any.
    fn next_round(&self) -> Option<Millis> {
        let any = !self.shared.store.failed_heads().is_empty();
        any.then(|| self.rounds.next().unwrap_or(self.started))
    }

    /// Lets the oldest such say of each room have one more try if that is due.
    async fn try_parked(&mut self) -> Result<(), BridgeError> {
        let now = self.shared.clock.now();
        if self.next_round().is_none_or(|next| next > now) {
            return Ok(());
        }
        self.rounds.made(now);
        let heads = self.shared.store.failed_heads();
        self.shared.store.unpark(heads.clone()).await?;
        for say in self.shared.store.says(&heads)? {
            let uncertain = self.trouble(&say).uncertain;
            let trouble = Trouble { uncertain, tried_again: true, ..Trouble::default() };
            self.troubles.insert(say.say.request, trouble);
        }
        Ok(())
    }

    /// The homeserver has taken a say.
    fn taken(&mut self, request: &RequestId) {
        let trouble = self.troubles.remove(request);
        if trouble.is_some_and(|trouble| trouble.tried_again) {
            self.rounds.over();
        } else {
            self.rounds.taken();
        }
    }

    /// Begins all tries that are due; answers when the next one is.
    fn begin(&mut self, heads: Vec<Say>) -> Option<Millis> {
        let now = self.shared.clock.now();
        let mut next = None;
        for say in heads {
            if self.busy.contains_key(&say.say.room) || self.busy.len() >= AT_ONCE {
                continue;
            }
            let trouble = self.trouble(&say);
            let full = self.shared.waits_until(&say.say).unwrap_or_default();
            let due = trouble.due(self.shared.tally.returned()).max(full);
            if due > now {
                next = Some(next.map_or(due, |next: Millis| next.min(due)));
                continue;
            }
            self.busy.insert(say.say.room.clone(), say.seq);
            let shared = self.shared.clone();
            self.trying.push(Box::pin(async move {
                let tried = attempt(&shared, &say, &trouble).await;
                (say, tried)
            }));
        }
        next
    }

    /// What waited when this process began may have been taken before it.
    fn trouble(&mut self, say: &Say) -> Trouble {
        let uncertain = say.since <= self.started;
        self.troubles
            .entry(say.say.request.clone())
            .or_insert_with(|| Trouble { uncertain, ..Trouble::default() })
            .clone()
    }

    async fn settle(&mut self, say: Say, tried: Tried) -> Result<(), BridgeError> {
        let now = self.shared.clock.now();
        match tried {
            Tried::Sent(event) => {
                self.taken(&say.say.request);
                self.shared.store.sent(say.seq, event, now).await?;
            }
            Tried::Later { after, uncertain, server_fault, reached } => {
                self.later(&say, after, uncertain, server_fault, reached).await?;
            }
            Tried::Unwanted => self.unwanted(say).await?,
            Tried::Stopped => {}
            Tried::TooLarge => self.split(say).await?,
            Tried::Done => {
                self.troubles.remove(&say.say.request);
                self.shared.store.split(say.seq, Vec::new(), now).await?;
            }
            Tried::Park(reason) => self.park(&say, Parking::Refused(reason)).await?,
            Tried::Gone => self.gone(&say).await?,
            Tried::Rejoined => {
                let trouble = self.troubles.entry(say.say.request.clone()).or_default();
                trouble.rejoined = true;
            }
        }
        Ok(())
    }

    async fn later(
        &mut self,
        say: &Say,
        after: Option<Duration>,
        uncertain: bool,
        server_fault: bool,
        reached: bool,
    ) -> Result<(), BridgeError> {
        let now = self.shared.clock.now();
        let successes = self.shared.tally.answered();
        let trouble = self.troubles.entry(say.say.request.clone()).or_default();
        trouble.not_before = now.plus(after.unwrap_or_else(|| backoff(trouble.tries)));
        trouble.unreached = (!reached).then(|| (now, self.shared.tally.returned()));
        trouble.tries = trouble.tries.saturating_add(1);
        trouble.uncertain |= uncertain;
        trouble.server_faults = if server_fault { trouble.server_faults + 1 } else { 0 };
        if trouble.server_faults <= 1 {
            trouble.successes_before = successes;
        }
        let again_and_again = trouble.server_faults >= SERVER_FAULTS && successes > trouble.successes_before;
        let given_up = again_and_again || (trouble.tried_again && server_fault);
        if !reached
            && self.shared.readiness.say("mouth", "the homeserver cannot be reached; what is said waits")
        {
            tracing::warn!("the homeserver cannot be reached; what is said waits in the outbox");
        }
        if given_up {
            let reason = "the homeserver failed on it again and again while other calls succeeded";
            self.park(say, Parking::Failed(reason.to_owned())).await?;
        }
        Ok(())
    }

    async fn split(&mut self, say: Say) -> Result<(), BridgeError> {
        let parts = thaw(&say.say.body).and_then(|body| content::split(&body));
        let Some(parts) = parts else {
            return self.park(&say, Parking::Refused("it is too large and cannot be split".to_owned())).await;
        };
        let origin = cause_of(&say.say.body);
        let smaller = parts.iter().enumerate().map(|(index, content)| {
            let part = format!("{}.{}", say.say.part, index + 1);
            let NewSay { sender, room, kind, cause, .. } = &say.say;
            let target = SayTarget { room, kind, cause, part: &part };
            self.shared.say_of(sender, target, content, origin.as_ref())
        });
        let smaller = smaller.collect();
        self.shared.store.split(say.seq, smaller, self.shared.clock.now()).await?;
        Ok(())
    }

    async fn park(&mut self, say: &Say, parking: Parking) -> Result<(), BridgeError> {
        let trouble = self.troubles.entry(say.say.request.clone()).or_default();
        let (tried_again, uncertain) = (trouble.tried_again, trouble.uncertain);
        // Whenever it goes again, that it may have been taken must not be forgotten.
        *trouble = Trouble { uncertain, ..Trouble::default() };
        if self.shared.store.failed_heads().is_empty() && !tried_again {
            self.rounds.made(self.shared.clock.now());
        }
        let (Parking::Refused(reason) | Parking::Failed(reason)) = &parking;
        let (reason, is_told) = (reason.clone(), tried_again && matches!(parking, Parking::Failed(_)));
        self.shared.store.park(say.seq, parking).await?;
        if is_told {
            return Ok(());
        }
        let text = format!("{} could not say something in {}: {reason}", say.say.sender, say.say.room);
        // About the control room itself there is no other place to speak.
        if say.say.sender == self.shared.config.bot {
            tracing::warn!("{text}");
            return Ok(());
        }
        self.shared.tell(&format!("parked:{}", say.say.request), &text).await
    }

    /// It is for nobody who is still heard: it is dropped, and operators are told once a turn.
    async fn unwanted(&mut self, say: Say) -> Result<(), BridgeError> {
        let NewSay { sender, room, cause, .. } = &say.say;
        let text = format!(
            "what {sender} had to say in {room} was dropped: whoever it was for is blocked in [permissions] by now"
        );
        self.shared.tell(&format!("unwanted:{cause}"), &text).await?;
        self.troubles.remove(&say.say.request);
        self.shared.store.split(say.seq, Vec::new(), self.shared.clock.now()).await?;
        Ok(())
    }

    async fn gone(&mut self, say: &Say) -> Result<(), BridgeError> {
        let NewSay { sender, room, .. } = &say.say;
        let persona = self.shared.directory().persona(sender).map(|persona| persona.id.clone());
        let Some(persona) = persona else {
            return self.park(say, Parking::Refused("the bot is not in the room".to_owned())).await;
        };
        self.shared.directory().unseat(&persona, room);
        let dropped = self.shared.store.unseat(&persona, sender.clone(), room.clone()).await?;
        let text = format!(
            "{sender} is not in {room} any more and comes back only by invite; {dropped} unsent messages were dropped"
        );
        self.shared.tell(&format!("gone:{sender}:{room}:{}", say.say.request), &text).await
    }
}
