//! A word with the CLI that costs nothing: does it start with our arguments and answer a control request? It speaks to an API
//! of our own, so that nobody else is asked and no network is waited for.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::contract::api::Api;
use super::launch::{Folders, Opening, Texts, arguments, environment, start_environment};
use super::manner::Manner;
use super::{Config, spawner};
use crate::conversation::{Millis, PersonaId};
use crate::persona::session::Session;

/// How long the CLI may take to start and answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The folder it is started in, below the Personas' state; no Persona's id holds a `~`.
const FOLDER: &str = "~doctor";
/// The control request: it makes no API call and no transcript.
const INITIALIZE: &str =
    r#"{"type":"control_request","request_id":"doctor","request":{"subtype":"initialize"}}"#;

/// Starts the CLI as a Persona's mind is started and asks it to say hello.
///
/// # Errors
/// It does not start with our arguments, or does not answer; in words for the operator.
pub async fn handshake(config: &Config, schema: &str) -> Result<(), String> {
    let api =
        Api::bind(Value::Null).await.map_err(|error| format!("an API of our own cannot listen: {error}"))?;
    let config = &api.asked_by(config);
    let folders = Folders::of(config, &PersonaId(FOLDER.to_owned()));
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, FOLDER.as_bytes());
    let session = Session { generation: 0, ..Session::fresh(id, Millis(0)) };
    let prepared = folders
        .make()
        .and_then(|()| folders.write_texts(&session, Texts { prompt: "Hello.", schema }, Opening::Begin));
    prepared.map_err(|error| format!("{}: {error}", config.state.display()))?;
    let manner = Manner::configured(config);
    let mut command = Command::new(&config.program);
    command.args(arguments(&manner, &folders, schema, &session, Opening::Begin)).current_dir(&folders.cwd);
    command.env_clear().envs(environment(&manner, config, &folders));
    command.envs(start_environment(config, Opening::Begin));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let answered = tokio::select! {
        answered = tokio::time::timeout(PATIENCE, hello(command)) => answered,
        never = api.serve() => match never {},
    };
    // What is left of it is an empty folder of the CLI's own settings.
    let _ = std::fs::remove_dir_all(&folders.root);
    match answered {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(format!("{} cannot be spoken to ({error})", config.program.display())),
        Err(_) => Err(format!("it did not answer within {} s", PATIENCE.as_secs())),
    }
}

async fn hello(command: Command) -> io::Result<Result<(), String>> {
    let mut child = spawner::spawn(command).await?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
    stdin.write_all(format!("{INITIALIZE}\n").as_bytes()).await?;
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        if line["type"] != "control_response" {
            continue;
        }
        drop(stdin);
        child.wait().await?;
        return Ok(match line["response"]["subtype"].as_str() {
            Some("success") => Ok(()),
            _ => Err("it refused the control request `initialize`".to_owned()),
        });
    }
    Ok(Err(last_words(child).await?))
}

/// Why it went away without an answer.
async fn last_words(child: Child) -> io::Result<String> {
    let output = child.wait_with_output().await?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let words: String =
        stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing").chars().take(200).collect();
    Ok(format!("it ended without an answer ({}) and said: {words}", output.status))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::mind::claude::{Credential, Resuming, Ttl};

    async fn check(script: &str, expected: Result<(), &str>) {
        let dir = tempfile::TempDir::new().unwrap();
        let program = dir.path().join("claude");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let config = Config {
            program,
            guard: "/bin/false".into(),
            model: "m".into(),
            effort: None,
            state: dir.path().join("minds"),
            base_url: None,
            credential: Credential { variable: "ANTHROPIC_API_KEY", secret: "sk".into() },
            ttl: Ttl::Auto,
            silence: Duration::from_secs(1),
            resuming: Resuming::default(),
        };
        let answer = handshake(&config, "{}").await;
        assert_eq!(answer, expected.map_err(str::to_owned));
        assert_eq!(std::fs::read_dir(&config.state).unwrap().count(), 0, "nothing is left behind");
    }

    #[tokio::test]
    async fn an_answer_is_good() {
        let hello = r#"read line; case "$line" in *initialize*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"doctor"}}';; esac; cat >/dev/null"#;
        check(hello, Ok(())).await;
    }

    #[tokio::test]
    async fn it_is_asked_without_our_credential_and_speaks_to_nobody_else() {
        let hello = r#"read line
case "$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY" in "http://127.0.0.1:"*" none") answer=success;; *) answer=error;; esac
echo "{\"type\":\"control_response\",\"response\":{\"subtype\":\"$answer\"}}""#;
        check(hello, Ok(())).await;
    }

    #[tokio::test]
    async fn other_lines_are_passed_over() {
        let hello = r#"read line; echo noise; echo '{"type":"system"}'; echo '{"type":"control_response","response":{"subtype":"success"}}'"#;
        check(hello, Ok(())).await;
    }

    #[tokio::test]
    async fn a_refusal_is_told() {
        let refusal = r#"read line; echo '{"type":"control_response","response":{"subtype":"error"}}'"#;
        check(refusal, Err("it refused the control request `initialize`")).await;
    }

    #[tokio::test]
    async fn unknown_arguments_are_told() {
        check(
            "read line; echo \"error: unknown option '--restricted'\" >&2; exit 1",
            Err("it ended without an answer (exit status: 1) and said: error: unknown option '--restricted'"),
        )
        .await;
    }
}
