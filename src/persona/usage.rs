//! What an attempt at a turn used, as far as it was measured.

use std::time::Duration;

/// What one attempt used: its API requests in order, and what is known of the whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Each request that began to be answered.
    pub requests: Vec<RequestUsage>,
    /// What the attempt cost, in USD, as the CLI reckons it; none where it did not say.
    pub money: Option<f64>,
    /// The model's context window in tokens, as the CLI reports it.
    pub window: Option<u64>,
    /// Resident memory of the CLI's process group when its newest answer began, in bytes.
    pub resident: Option<u64>,
}

/// Tokens of one API request, as the API counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestUsage {
    /// The model that answered.
    pub model: String,
    /// Input tokens that were neither read from the prompt cache nor written to it.
    pub input: u64,
    /// Tokens read from the prompt cache.
    pub cache_read: u64,
    /// Tokens written to the prompt cache for five minutes.
    pub written_5m: u64,
    /// Tokens written to the prompt cache for an hour.
    pub written_1h: u64,
    /// Output tokens.
    pub output: u64,
    /// From the request to the first token of its answer, as the CLI measured it; none where it did not tell.
    pub first_token: Option<Duration>,
}

impl RequestUsage {
    /// The tokens of the whole prompt: what the next request of the session can hope to read from the cache.
    pub fn prefix(&self) -> u64 {
        self.input + self.cache_read + self.written_5m + self.written_1h
    }
}
