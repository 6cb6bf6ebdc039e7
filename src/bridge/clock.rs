//! The one place where time is read and ids are drawn.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::conversation::{Millis, TurnId};

/// A clock: the wall's, or the runtime's own (which tests pause and advance).
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's wall clock.
    Wall,
    /// `base` at `origin`, then as the runtime's timer goes.
    Runtime {
        /// The time at `origin`.
        base: Millis,
        /// When it began.
        origin: Instant,
    },
}

impl Clock {
    /// A clock that shows `base` now and goes as the runtime's timer does.
    pub fn runtime(base: Millis) -> Self {
        Self::Runtime { base, origin: Instant::now() }
    }

    /// The time now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads time")]
    pub fn now(self) -> Millis {
        match self {
            Self::Wall => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                Millis::default().plus(since.unwrap_or(Duration::ZERO))
            }
            Self::Runtime { base, origin } => base.plus(origin.elapsed()),
        }
    }

    /// Sleeps until the time, or for ever without one.
    pub async fn sleep_until(self, until: Option<Millis>) {
        match until {
            Some(until) => tokio::time::sleep(until.since(self.now())).await,
            None => std::future::pending().await,
        }
    }
}

/// Draws an id.
#[expect(clippy::disallowed_methods, reason = "the one place that draws ids")]
pub fn draw() -> Uuid {
    Uuid::new_v4()
}

/// Draws a turn's id.
pub fn draw_turn() -> TurnId {
    TurnId(draw())
}
