//! One connection of a homeserver to the ear.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection that is kept alive.
pub(crate) struct Ear {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Ear {
    pub(crate) async fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the ear listens");
        stream.set_nodelay(true).expect("a fresh socket");
        Self { stream: BufReader::new(stream), token: token.to_owned() }
    }

    /// Puts a transaction and waits until it is taken.
    pub(crate) async fn put(&mut self, txn: &str, body: &str) {
        let head = format!(
            "PUT /_matrix/app/v1/transactions/{txn} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes()).await.expect("the ear reads");
        let status = self.answer().await.expect("the ear answers");
        assert!(status.starts_with("HTTP/1.1 200"), "{txn}: {status}");
    }

    async fn answer(&mut self) -> std::io::Result<String> {
        let mut status = String::new();
        self.stream.read_line(&mut status).await?;
        let (mut line, mut length) = (String::new(), 0);
        while self.stream.read_line(&mut line).await? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(status)
    }
}
