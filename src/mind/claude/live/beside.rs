//! What is asked beside the session: in processes of their own, whose sessions are thrown away.

use uuid::Uuid;

use super::{Mind, lost};
use crate::mind::claude::launch::{Opening, Texts};
use crate::mind::claude::manner::Manner;
use crate::mind::claude::process::{Ladder, Process, Start};
use crate::mind::claude::turn::{TurnEnd, turn};
use crate::mind::claude::{transcript, wire};
use crate::mind::{Feed, MindEvent};
use crate::persona::decide::Stop;
use crate::persona::probe::ACCOUNT;
use crate::persona::{Ending, Usage};

impl Mind {
    /// Asks a fork of the session once and throws it away; the session's own file and process are not touched.
    pub(super) async fn ping(&mut self, feed: &Feed) {
        let fork = Uuid::new_v5(&feed.session.id, feed.line.0.as_bytes());
        let (usage, stopped) = match self.ask_fork(feed, fork).await {
            Ok((TurnEnd::Stopped(how), usage)) => (usage, Some(how)),
            Ok((_, usage)) => (usage, None),
            Err(ending) => {
                tracing::debug!(?ending, "a ping did not reach the API");
                (Usage::default(), None)
            }
        };
        if let Some(path) = transcript::find(&self.folders.config, fork)
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!(%error, "the fork of a ping could not be removed");
        }
        self.tell(MindEvent::Pinged { usage }).await;
        if let Some(how) = stopped {
            self.end(Ladder::Asked(how)).await;
        }
    }

    async fn ask_fork(&mut self, feed: &Feed, fork: Uuid) -> Result<(TurnEnd, Usage), Ending> {
        self.prepare().await?;
        let session = &feed.session;
        let recorded = self.folders.schema(session);
        let schema = recorded.as_deref().unwrap_or(self.schema);
        let manner = Manner::of(&session.fingerprint, &self.config);
        let start = Start { session, manner: &manner, opening: Opening::Fork(fork), schema };
        self.ask_beside(feed, start).await
    }

    /// Asks once in a new session and removes all of it, with the folder, which is nobody else's.
    pub(super) async fn probe(&mut self, feed: &Feed) {
        if !self.folders.root.ends_with(ACCOUNT) {
            return self.tell(MindEvent::Probed { ending: no_answer(), usage: Usage::default() }).await;
        }
        let (ending, usage, stopped) = match self.ask_once(feed).await {
            Ok((TurnEnd::Classified(ending), usage)) => (ending, usage, None),
            Ok((TurnEnd::Stopped(how), usage)) => (no_answer(), usage, Some(how)),
            Ok((_, usage)) => (no_answer(), usage, None),
            Err(ending) => (ending, Usage::default(), None),
        };
        self.owner = None;
        if let Err(error) = std::fs::remove_dir_all(&self.folders.root) {
            tracing::warn!(%error, "the folder of a probe could not be removed");
        }
        self.tell(MindEvent::Probed { ending, usage }).await;
        if let Some(how) = stopped {
            self.end(Ladder::Asked(how)).await;
        }
    }

    async fn ask_once(&mut self, feed: &Feed) -> Result<(TurnEnd, Usage), Ending> {
        self.prepare().await?;
        let session = &feed.session;
        let texts = Texts { prompt: &feed.prompt, schema: "" };
        self.folders.write_texts(session, texts, Opening::Begin).map_err(lost("the prompt's file"))?;
        let manner = Manner::of_a_probe(&self.config);
        self.ask_beside(feed, Start { session, manner: &manner, opening: Opening::Begin, schema: "" }).await
    }

    /// Feeds one line to a process of its own and ends that.
    async fn ask_beside(&mut self, feed: &Feed, start: Start<'_>) -> Result<(TurnEnd, Usage), Ending> {
        let owner = self.owner.as_ref().ok_or_else(|| Ending::Lost { reason: "no owner".to_owned() })?;
        let process = Process::start(&self.config, &self.folders, owner, start).await;
        let mut process = process.map_err(lost("the guard's start"))?;
        let bytes = wire::user_line(feed.line, &feed.whole);
        let silence = self.config.silence;
        let ended = turn(&mut process, feed.line, &bytes, silence, &mut self.commands, &self.events).await;
        process.end(Ladder::Asked(Stop::Idle)).await;
        if let Some(process) = &self.process {
            // The record names the child that stays.
            let _ = owner.started(process.group());
        }
        Ok(ended)
    }
}

fn no_answer() -> Ending {
    Ending::Lost { reason: "the account did not answer".to_owned() }
}
