//! What sessions used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mail::LaneForm;
use super::turn::Id;
use crate::conversation::{Millis, PersonaId, TurnId};
use crate::persona::session::{
    Account, CacheVerdict, Entry, EntryKind, Gaps, Meter, Request, Tokens, Ttl, Unnoted, Usd,
};

/// [`Entry`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct EntryForm {
    persona: String,
    at: u64,
    kind: EntryKindForm,
}

/// [`EntryKind`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EntryKindForm {
    Request(Box<RequestForm>),
    Ping { generation: u32, tokens: TokensForm, nanodollars: Option<u64> },
    Probe { tokens: TokensForm, nanodollars: Option<u64>, answered: bool },
    Warmth { generation: u32, pings: u32, paid: u64, saved: u64 },
    Begun { generation: u32, why: String },
}

/// [`Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RequestForm {
    generation: u32,
    turn: u64,
    attempt: u32,
    number: u32,
    model: String,
    tokens: TokensForm,
    new: u64,
    expected: u64,
    gap_ms: Option<u64>,
    ttl: TtlForm,
    verdict: VerdictForm,
    nanodollars: Option<u64>,
    first_token_ms: Option<u64>,
    rss: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flush: Option<String>,
}

/// [`Tokens`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TokensForm {
    input: u64,
    read: u64,
    written_5m: u64,
    written_1h: u64,
    output: u64,
}

/// [`Ttl`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum TtlForm {
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    OneHour,
}

/// [`CacheVerdict`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerdictForm {
    First,
    Rebuilt,
    Hit,
    Expired,
    Broken,
}

/// [`Account`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::store) struct AccountForm {
    prefix: u64,
    used: Option<u64>,
    ttl: Option<TtlForm>,
    rehydrated: u64,
    shared: u64,
    rent: u64,
    pings: u32,
    pinged: u64,
    window: Option<u64>,
    resident: Option<u64>,
    #[serde(rename = "attempts")]
    turns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<(Id, u32)>,
    /// Counts of gaps, without the empty ones at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mail: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unnoted: Vec<LaneForm>,
}

/// Counts without the empty ones at the end.
fn counted(counts: &[u32]) -> Vec<u32> {
    let last = counts.iter().rposition(|count| *count > 0);
    counts[..last.map_or(0, |last| last + 1)].to_vec()
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<Entry> for EntryForm {
    fn from(entry: Entry) -> Self {
        let kind = match entry.kind {
            EntryKind::Request(request) => EntryKindForm::Request(Box::new(request.into())),
            EntryKind::Ping { generation, tokens, money } => EntryKindForm::Ping {
                generation,
                tokens: tokens.into(),
                nanodollars: money.map(|money| money.0),
            },
            EntryKind::Probe { tokens, money, answered } => EntryKindForm::Probe {
                tokens: tokens.into(),
                nanodollars: money.map(|money| money.0),
                answered,
            },
            EntryKind::Warmth { generation, pings, paid, saved } => {
                EntryKindForm::Warmth { generation, pings, paid: paid.0, saved: saved.0 }
            }
            EntryKind::Begun { generation, why } => EntryKindForm::Begun { generation, why },
        };
        Self { persona: entry.persona.0, at: entry.at.0, kind }
    }
}

impl From<EntryForm> for Entry {
    fn from(form: EntryForm) -> Self {
        let kind = match form.kind {
            EntryKindForm::Request(request) => EntryKind::Request((*request).into()),
            EntryKindForm::Ping { generation, tokens, nanodollars } => {
                EntryKind::Ping { generation, tokens: tokens.into(), money: nanodollars.map(Usd) }
            }
            EntryKindForm::Probe { tokens, nanodollars, answered } => {
                EntryKind::Probe { tokens: tokens.into(), money: nanodollars.map(Usd), answered }
            }
            EntryKindForm::Warmth { generation, pings, paid, saved } => {
                EntryKind::Warmth { generation, pings, paid: Usd(paid), saved: Usd(saved) }
            }
            EntryKindForm::Begun { generation, why } => EntryKind::Begun { generation, why },
        };
        Self { persona: PersonaId(form.persona), at: Millis(form.at), kind }
    }
}

impl From<Request> for RequestForm {
    fn from(request: Request) -> Self {
        Self {
            generation: request.generation,
            turn: request.turn,
            attempt: request.attempt,
            number: request.number,
            model: request.model,
            tokens: request.tokens.into(),
            new: request.new,
            expected: request.expected,
            gap_ms: request.gap.map(ms),
            ttl: request.ttl.into(),
            verdict: request.verdict.into(),
            nanodollars: request.money.map(|money| money.0),
            first_token_ms: request.first_token.map(ms),
            rss: request.rss,
            flush: request.flush,
        }
    }
}

impl From<RequestForm> for Request {
    fn from(form: RequestForm) -> Self {
        Self {
            generation: form.generation,
            turn: form.turn,
            attempt: form.attempt,
            number: form.number,
            model: form.model,
            tokens: form.tokens.into(),
            new: form.new,
            expected: form.expected,
            gap: form.gap_ms.map(Duration::from_millis),
            ttl: form.ttl.into(),
            verdict: form.verdict.into(),
            money: form.nanodollars.map(Usd),
            first_token: form.first_token_ms.map(Duration::from_millis),
            rss: form.rss,
            flush: form.flush,
        }
    }
}

impl From<Tokens> for TokensForm {
    fn from(tokens: Tokens) -> Self {
        let Tokens { input, read, written_5m, written_1h, output } = tokens;
        Self { input, read, written_5m, written_1h, output }
    }
}

impl From<TokensForm> for Tokens {
    fn from(form: TokensForm) -> Self {
        let TokensForm { input, read, written_5m, written_1h, output } = form;
        Self { input, read, written_5m, written_1h, output }
    }
}

impl From<Ttl> for TtlForm {
    fn from(ttl: Ttl) -> Self {
        match ttl {
            Ttl::FiveMinutes => Self::FiveMinutes,
            Ttl::OneHour => Self::OneHour,
        }
    }
}

impl From<TtlForm> for Ttl {
    fn from(form: TtlForm) -> Self {
        match form {
            TtlForm::FiveMinutes => Self::FiveMinutes,
            TtlForm::OneHour => Self::OneHour,
        }
    }
}

impl From<CacheVerdict> for VerdictForm {
    fn from(verdict: CacheVerdict) -> Self {
        match verdict {
            CacheVerdict::First => Self::First,
            CacheVerdict::Rebuilt => Self::Rebuilt,
            CacheVerdict::Hit => Self::Hit,
            CacheVerdict::Expired => Self::Expired,
            CacheVerdict::Broken => Self::Broken,
        }
    }
}

impl From<VerdictForm> for CacheVerdict {
    fn from(form: VerdictForm) -> Self {
        match form {
            VerdictForm::First => Self::First,
            VerdictForm::Rebuilt => Self::Rebuilt,
            VerdictForm::Hit => Self::Hit,
            VerdictForm::Expired => Self::Expired,
            VerdictForm::Broken => Self::Broken,
        }
    }
}

impl From<Account> for AccountForm {
    fn from(account: Account) -> Self {
        let Meter { rehydrated, shared, rent, pings, pinged } = account.meter;
        Self {
            prefix: account.prefix,
            used: account.used.map(|used| used.0),
            ttl: account.ttl.map(TtlForm::from),
            rehydrated,
            shared,
            rent: rent.0,
            pings,
            pinged: pinged.0,
            window: account.window,
            resident: account.resident,
            turns: account.turns,
            last: account.last.map(|(turn, attempt)| (Id(turn.0), attempt)),
            gaps: counted(account.gaps.counts()),
            mail: account.mail.map(|mail| mail.0),
            unnoted: account.unnoted.0.iter().map(LaneForm::from).collect(),
        }
    }
}

impl From<AccountForm> for Account {
    fn from(form: AccountForm) -> Self {
        let meter = Meter {
            rehydrated: form.rehydrated,
            shared: form.shared,
            rent: Usd(form.rent),
            pings: form.pings,
            pinged: Usd(form.pinged),
        };
        Self {
            prefix: form.prefix,
            used: form.used.map(Millis),
            ttl: form.ttl.map(Ttl::from),
            meter,
            window: form.window,
            resident: form.resident,
            turns: form.turns,
            last: form.last.map(|(turn, attempt)| (TurnId(turn.0), attempt)),
            gaps: Gaps::of(&form.gaps),
            mail: form.mail.map(Millis),
            unnoted: Unnoted(form.unnoted.into_iter().map(Into::into).collect()),
        }
    }
}
