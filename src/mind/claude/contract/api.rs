//! A Messages API on the loopback that gives every request the same typed reply.

use std::convert::Infallible;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::mind::claude::{Config, Credential};

/// The longest head and the longest body of a request that are read.
const HEAD: u64 = 64 * 1024;
const BODY: usize = 16 * 1024 * 1024;

/// The API, listening.
#[derive(Debug)]
pub(in crate::mind::claude) struct Api {
    listener: TcpListener,
    /// Its address.
    pub(in crate::mind::claude) url: Url,
    reply: Value,
    asked: Mutex<Vec<Value>>,
}

impl Api {
    /// Listens on a free port of 127.0.0.1.
    pub(in crate::mind::claude) async fn bind(reply: Value) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let url = url.parse().map_err(io::Error::other)?;
        Ok(Self { listener, url, reply, asked: Mutex::default() })
    }

    /// How the CLI is run so that it asks this API and nobody else.
    pub(in crate::mind::claude) fn asked_by(&self, config: &Config) -> Config {
        let credential = Credential { variable: "ANTHROPIC_API_KEY", secret: "none".to_owned() };
        Config { base_url: Some(self.url.clone()), credential, ..config.clone() }
    }

    /// The bodies of what it was asked so far.
    pub(in crate::mind::claude) fn asked(&self) -> Vec<Value> {
        self.book().clone()
    }

    fn book(&self) -> MutexGuard<'_, Vec<Value>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers for ever.
    pub(in crate::mind::claude) async fn serve(&self) -> Infallible {
        let mut calls = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => if let Ok((stream, _)) = accepted {
                    calls.push(self.call(BufReader::new(stream)));
                },
                // A call that broke off is asked again, or not, as the CLI thinks fit.
                _ = calls.next(), if !calls.is_empty() => {}
            }
        }
    }

    /// Answers one request and closes the connection.
    async fn call(&self, mut stream: BufReader<TcpStream>) -> io::Result<()> {
        let Some((is_message, length)) = head(&mut stream).await? else { return Ok(()) };
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let (status, kind, text) = if is_message {
            ("200 OK", "text/event-stream", self.answer(&body))
        } else {
            ("404 Not Found", "application/json", "{}".to_owned())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            text.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    }

    /// Takes note of a request; the stream of events that answers it.
    fn answer(&self, body: &[u8]) -> String {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let model = body["model"].clone();
        let number = {
            let mut asked = self.book();
            asked.push(body);
            asked.len()
        };
        events(number, &model, &self.reply)
    }
}

/// Reads a request's head: whether it is one for a message, and how long its body is; none where nothing was asked.
async fn head(stream: &mut BufReader<TcpStream>) -> io::Result<Option<(bool, usize)>> {
    let mut lines = stream.take(HEAD).lines();
    let Some(first) = lines.next_line().await? else { return Ok(None) };
    let path = first.strip_prefix("POST ").and_then(|rest| rest.split([' ', '?']).next());
    let mut length = 0;
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if length > BODY {
        return Err(io::Error::other("a request is too long"));
    }
    Ok(Some((path == Some("/v1/messages"), length)))
}

/// The events of one message that calls StructuredOutput with `reply`.
fn events(number: usize, model: &Value, reply: &Value) -> String {
    let usage = json!({"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 1});
    let message = json!({"id": format!("msg_{number:024}"), "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let block = json!({"type": "tool_use", "id": format!("toolu_{number:024}"), "name": "StructuredOutput",
        "input": {}});
    let piece = json!({"type": "input_json_delta", "partial_json": reply.to_string()});
    let stop = json!({"stop_reason": "tool_use", "stop_sequence": null});
    [
        ("message_start", json!({"message": message})),
        ("content_block_start", json!({"index": 0, "content_block": block})),
        ("content_block_delta", json!({"index": 0, "delta": piece})),
        ("content_block_stop", json!({"index": 0})),
        ("message_delta", json!({"delta": stop, "usage": {"output_tokens": 20}})),
        ("message_stop", json!({})),
    ]
    .map(|(kind, mut data)| {
        data["type"] = kind.into();
        format!("event: {kind}\ndata: {data}\n\n")
    })
    .concat()
}
