//! Ours: the arrivals through `persona::session`, which decides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Scene, Turn};
use crate::conversation::Millis;
use crate::persona::session::care::{Care, Moment, Policy, Reason, Standing, Tasks, care, next_look};
use crate::persona::session::hazard::Gaps;
use crate::persona::session::meter::Meter;
use crate::persona::session::price::Usd;
use crate::persona::session::terms::PING;

/// How it went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// What it cost.
    pub cost: Usd,
    /// How often a generation was followed by the next, by reason.
    pub refreshes: BTreeMap<Reason, u64>,
    /// How often the cache was used to keep it warm.
    pub pings: u64,
}

/// The session as it stands.
#[derive(Clone, Copy, Debug)]
struct Live {
    used: Millis,
    prefix: u64,
    meter: Meter,
    /// Why the next mail begins the next generation.
    ended: Option<Reason>,
}

struct Loop<'a> {
    scene: Scene<'a>,
    policy: &'a Policy,
    gaps: Gaps,
    replay: Replay,
}

pub(super) fn replay(turns: &[Turn], scene: &Scene<'_>, policy: &Policy) -> Replay {
    let mut run = Loop { scene: *scene, policy, gaps: Gaps::default(), replay: Replay::default() };
    let mut live: Option<(Live, Millis)> = None;
    for turn in turns {
        let now = millis(turn.at);
        let after = match live {
            None => {
                run.replay.cost += scene.terms().refresh_cold(turn.added);
                run.begun(now, turn)
            }
            Some((session, mail)) => {
                let idle = run.idle(session, mail, now);
                run.gaps.record(now.since(mail));
                run.mail(idle, mail, now, turn)
            }
        };
        live = Some((run.boundary(after), now));
    }
    run.replay
}

fn millis(at: Duration) -> Millis {
    Millis(0).plus(at)
}

impl Loop<'_> {
    /// Sleeps until mail comes, and looks when it is said to be time.
    fn idle(&mut self, mut session: Live, mail: Millis, until: Millis) -> Live {
        let mut now = session.used;
        while session.ended.is_none() {
            let look = next_look(&self.standing(&session, mail, now, 0), self.policy);
            let Some(look) = look.filter(|look| *look < until) else { break };
            now = look;
            match care(&self.standing(&session, mail, now, 0), Moment::IdleDeadline, self.policy) {
                (Care::Ping, _) => {
                    let cost = self.scene.terms().warm(session.prefix, PING);
                    self.replay.cost += cost;
                    self.replay.pings += 1;
                    session.meter.ping(cost);
                    session.used = now;
                }
                (Care::Refresh, reason) => session.ended = Some(reason),
                (Care::Keep | Care::Flush | Care::Close, _) => {}
            }
        }
        session
    }

    /// Takes the mail, in this session or the next.
    fn mail(&mut self, mut session: Live, mail: Millis, now: Millis, turn: &Turn) -> Live {
        session.meter.woken();
        let (terms, grown) = (self.scene.terms(), turn.added.tokens());
        let standing = self.standing(&session, mail, now, grown);
        let is_warm = standing.is_warm();
        let decided = match session.ended {
            Some(reason) => (Care::Refresh, reason),
            None => care(&standing, Moment::Mail, self.policy),
        };
        if let (Care::Refresh, reason) = decided {
            self.replay.cost +=
                if is_warm { terms.refresh_warm(turn.added) } else { terms.refresh_cold(turn.added) };
            *self.replay.refreshes.entry(reason).or_default() += 1;
            return self.begun(now, turn);
        }
        if is_warm {
            self.replay.cost += terms.warm(session.prefix, turn.added);
            session.meter.read(session.prefix, terms.tariff(session.prefix + grown));
        } else {
            self.replay.cost += terms.cold(session.prefix, turn.added);
        }
        Live { used: now, prefix: session.prefix + grown, ..session }
    }

    /// Looks at what is to be done after a turn.
    fn boundary(&self, session: Live) -> Live {
        match care(&self.standing(&session, session.used, session.used, 0), Moment::Boundary, self.policy) {
            (Care::Refresh, reason) => Live { ended: Some(reason), ..session },
            (Care::Keep | Care::Ping | Care::Flush | Care::Close, _) => session,
        }
    }

    fn begun(&self, now: Millis, turn: &Turn) -> Live {
        let terms = self.scene.terms();
        let meter = Meter { rehydrated: terms.rehydrated, shared: terms.shared, ..Meter::default() };
        Live { used: now, prefix: terms.rehydrated + turn.added.tokens(), meter, ended: None }
    }

    fn standing(&self, session: &Live, mail: Millis, now: Millis, ahead: u64) -> Standing<'_> {
        Standing {
            now,
            used: session.used,
            idle_since: mail,
            ttl: self.scene.ttl,
            price: self.scene.price,
            window: self.scene.price.window,
            prefix: session.prefix,
            ahead,
            meter: session.meter,
            gaps: &self.gaps,
            rss: 0,
            tasks: Tasks::Safe,
            marks: BTreeSet::new(),
            word: None,
        }
    }
}
