//! A session whose every request the API refuses from some time on: put aside, told, and followed by the next.

use std::path::PathBuf;

use super::ground::{Meeting, word, words};
use crate::fake::messages_api::Answer;

/// The files of Eir's sessions that are put aside as spoilt.
fn quarantined(meeting: &Meeting) -> Vec<PathBuf> {
    let projects = std::fs::read_dir(meeting.bridge.dir.join("minds/eir/config/projects")).unwrap();
    let files = projects.flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "quarantined")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_api_rejects_twice_is_put_aside_and_the_next_answers_the_same_mail() {
    let test = "a_session_that_the_api_rejects_twice_is_put_aside_and_the_next_answers_the_same_mail";
    let Some(mut meeting) = Meeting::begin(test).await else { return };
    meeting.ask(1, 1).await;
    let spoilt = meeting.mind.api.requests()[0].session.clone();
    let first = spoilt.clone();
    meeting.mind.api.rule(move |request| {
        if request.session == first {
            return Answer::error(400, "invalid_request_error", "messages: something in it");
        }
        Answer::say(&format!("Yes, {}.", words(&request.words()).pop().unwrap_or_default()))
    });
    meeting.ask(2, 2).await;
    let newest = meeting.mind.api.requests().pop().unwrap();
    assert!(newest.session != spoilt && newest.words().contains(&word(2)));
    let alarm =
        "session 1 of eir is not used any more: the API refused the request (400); its file is put aside";
    meeting.bridge.logs(alarm).await;
    let aside = quarantined(&meeting);
    assert!(aside.len() == 1 && aside[0].to_string_lossy().contains(&spoilt), "{aside:?}");
    assert!(std::fs::read_to_string(&aside[0]).unwrap().contains(&word(1)), "nothing of it is lost");
    assert!(meeting.bridge.is_ready().await);
}
