//! One call: a ruma request made into HTTP, carried, and its answer told apart.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use ruma::DeviceId;
use ruma::api::auth_scheme::{AuthScheme, SendAccessToken};
use ruma::api::path_builder::PathBuilder;
use ruma::api::{AppserviceUserIdentity, MatrixVersion, OutgoingRequest, SupportedVersions};
use serde::de::DeserializeOwned;

use super::{CallError, CallErrorKind, Called, Client, Identity, TransportError};

/// The longest delay that a 429 is believed.
const LIMIT_MAX: Duration = Duration::from_secs(600);
/// The delay of a 429 that names none.
const LIMIT_DEFAULT: Duration = Duration::from_secs(1);
/// The most characters of a homeserver's own words that go into an error.
const WORDS_MAX: usize = 300;

/// The spec versions whose paths are used; both supported homeservers know them.
static VERSIONS: LazyLock<SupportedVersions> = LazyLock::new(|| SupportedVersions {
    versions: [MatrixVersion::V1_1, MatrixVersion::V1_7].into(),
    features: Default::default(),
});

/// As whom a request is made.
#[derive(Clone, Copy)]
pub(super) enum Speaker<'a> {
    /// The appservice itself, as its bot user.
    Appservice,
    /// A user of the namespace.
    As(&'a Identity),
}

impl Client {
    /// Makes a request and reads the wanted fields of its answer.
    pub(super) async fn ask<R, T>(&self, call: &'static str, speaker: Speaker<'_>, request: R) -> Called<T>
    where
        R: OutgoingRequest,
        for<'a> R::Authentication: AuthScheme<Input<'a> = SendAccessToken<'a>>,
        for<'a> R::PathBuilder: PathBuilder<Input<'a> = Cow<'a, SupportedVersions>>,
        T: DeserializeOwned,
    {
        let request = self.write(call, speaker, request)?;
        read(call, &self.carry(call, request).await?)
    }

    /// Makes a request whose answer says nothing but yes.
    pub(super) async fn tell<R>(&self, call: &'static str, speaker: Speaker<'_>, request: R) -> Called<()>
    where
        R: OutgoingRequest,
        for<'a> R::Authentication: AuthScheme<Input<'a> = SendAccessToken<'a>>,
        for<'a> R::PathBuilder: PathBuilder<Input<'a> = Cow<'a, SupportedVersions>>,
    {
        let request = self.write(call, speaker, request)?;
        self.carry(call, request).await.map(drop)
    }

    /// Makes a request with `body` in place of its own, byte for byte.
    pub(super) async fn ask_with<R, T>(
        &self,
        call: &'static str,
        speaker: Speaker<'_>,
        request: R,
        body: &str,
    ) -> Called<T>
    where
        R: OutgoingRequest,
        for<'a> R::Authentication: AuthScheme<Input<'a> = SendAccessToken<'a>>,
        for<'a> R::PathBuilder: PathBuilder<Input<'a> = Cow<'a, SupportedVersions>>,
        T: DeserializeOwned,
    {
        let mut request = self.write(call, speaker, request)?;
        *request.body_mut() = body.as_bytes().to_vec();
        read(call, &self.carry(call, request).await?)
    }

    fn write<R>(&self, call: &'static str, speaker: Speaker<'_>, request: R) -> Called<http::Request<Vec<u8>>>
    where
        R: OutgoingRequest,
        for<'a> R::Authentication: AuthScheme<Input<'a> = SendAccessToken<'a>>,
        for<'a> R::PathBuilder: PathBuilder<Input<'a> = Cow<'a, SupportedVersions>>,
    {
        let own = match speaker {
            Speaker::As(identity) => identity.token.as_deref(),
            Speaker::Appservice => None,
        };
        let token = SendAccessToken::Always(own.unwrap_or(&self.as_token));
        let mut written = request
            .try_into_http_request(self.url.as_str(), token, Cow::Borrowed(&*VERSIONS))
            .map_err(|_| unwritten(call))?;
        if let (Speaker::As(identity), None) = (speaker, own) {
            let mut masquerade = AppserviceUserIdentity::new(&identity.user);
            masquerade.device_id = identity.device.as_deref().map(<&DeviceId>::from);
            masquerade.maybe_add_to_uri(written.uri_mut()).map_err(|_| unwritten(call))?;
        }
        Ok(written)
    }

    /// Carries a written request: the body of a 2xx, an error for all else.
    pub(super) async fn carry(&self, call: &'static str, request: http::Request<Vec<u8>>) -> Called<Bytes> {
        let answer = self.transport.call(request).await.map_err(|error| no_answer(call, error))?;
        if answer.status().is_success() {
            return Ok(answer.into_body());
        }
        Err(refused(call, answer.status(), answer.headers(), answer.body()))
    }
}

/// Reads a 2xx; what cannot be read took effect all the same.
pub(super) fn read<T: DeserializeOwned>(call: &'static str, body: &[u8]) -> Called<T> {
    serde_json::from_slice(body).map_err(|_| CallError {
        call,
        kind: CallErrorKind::Uncertain,
        status: StatusCode::OK.as_u16(),
        errcode: String::new(),
        message: "the homeserver said yes in words that cannot be read".to_owned(),
    })
}

pub(super) fn unwritten(call: &'static str) -> CallError {
    CallError {
        call,
        kind: CallErrorKind::Refused,
        status: 0,
        errcode: String::new(),
        message: "the request cannot be written; check the homeserver's URL and the tokens".to_owned(),
    }
}

fn no_answer(call: &'static str, error: TransportError) -> CallError {
    let (kind, message) = match error {
        TransportError::NotSent(message) => (CallErrorKind::NotSent, message),
        TransportError::Uncertain(message) => (CallErrorKind::Uncertain, message),
    };
    CallError { call, kind, status: 0, errcode: String::new(), message }
}

/// Tells a refusal apart by status, errcode and, where a homeserver leaves no other way, its words.
fn refused(call: &'static str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CallError {
    let said = Said::read(body);
    let kind = kind(status, headers, &said);
    CallError { call, kind, status: status.as_u16(), errcode: said.errcode, message: said.message }
}

/// What an error answer says.
struct Said {
    errcode: String,
    message: String,
    retry_after: Option<Duration>,
}

impl Said {
    fn read(body: &[u8]) -> Self {
        let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |key: &str| json.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let message = match (body.is_empty(), json.is_object()) {
            (true, _) => "(an empty answer)".to_owned(),
            (false, false) => format!("(an answer of {} bytes that is not Matrix's JSON)", body.len()),
            (false, true) => tidy(without_prefix(text("error"))),
        };
        let retry_after = json.get("retry_after_ms").and_then(serde_json::Value::as_f64);
        Self {
            errcode: text("errcode").chars().filter(|c| c.is_ascii_graphic()).take(WORDS_MAX).collect(),
            message,
            retry_after: retry_after.and_then(|ms| {
                Duration::try_from_secs_f64(ms / 1000.0).ok().or((ms > 0.0).then_some(LIMIT_MAX))
            }),
        }
    }
}

fn kind(status: StatusCode, headers: &HeaderMap, said: &Said) -> CallErrorKind {
    match (status.as_u16(), said.errcode.as_str()) {
        (429, _) | (_, "M_LIMIT_EXCEEDED") => CallErrorKind::Limited(limit(headers, said)),
        (_, "M_USER_IN_USE" | "M_ROOM_IN_USE" | "M_DUPLICATE_ANNOTATION") => CallErrorKind::Already,
        (413, _) | (_, "M_TOO_LARGE") => CallErrorKind::TooLarge,
        // Conduit says no more than this of an event above 65,535 bytes.
        (400, "M_INVALID_PARAM") if said.message == "Event is invalid" => CallErrorKind::TooLarge,
        (401, _) => CallErrorKind::Unauthorized,
        (408, _) => CallErrorKind::Uncertain,
        // Matrix names its refusals; a proxy before a homeserver that is away does not.
        (400..500, "") => CallErrorKind::Server,
        (403, _) | (400, "M_FORBIDDEN" | "M_BAD_STATE" | "M_EXCLUSIVE" | "M_UNAUTHORIZED") => {
            CallErrorKind::Forbidden
        }
        (400, _) if said.message.contains("cannot masquerade") => CallErrorKind::Forbidden,
        (404, _) => CallErrorKind::NotFound,
        (500.., _) => CallErrorKind::Server,
        _ => CallErrorKind::Refused,
    }
}

/// How long a 429 asks to wait: its milliseconds, else its header's whole seconds, else a second; ten minutes at most.
fn limit(headers: &HeaderMap, said: &Said) -> Duration {
    let header = || {
        let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        Some(Duration::from_secs(seconds.trim().parse().ok()?))
    };
    said.retry_after.or_else(header).unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX)
}

/// Removes the errcode that Conduit writes before its words.
fn without_prefix(message: &str) -> &str {
    match message.split_once(": ") {
        Some((code, rest))
            if code.starts_with("M_") && code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') =>
        {
            rest
        }
        _ => message,
    }
}

/// One line without control characters, cut.
fn tidy(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, headers: &[(&str, &str)], body: &str, expect: CallErrorKind) -> CallError {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>();
        let error = refused("send", StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes());
        assert_eq!(error.kind, expect, "{status} {body}");
        assert_eq!(error.status, status);
        error
    }

    fn ms(ms: u64) -> CallErrorKind {
        CallErrorKind::Limited(Duration::from_millis(ms))
    }

    #[test]
    fn a_limit_waits_as_long_as_it_is_told() {
        check(
            429,
            &[("retry-after", "4")],
            r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":3584}"#,
            ms(3584),
        );
        check(429, &[("retry-after", "4")], r#"{"errcode":"M_LIMIT_EXCEEDED"}"#, ms(4000));
        check(429, &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], "<html>", ms(1000));
        check(429, &[], "", ms(1000));
        check(429, &[], r#"{"retry_after_ms":-5}"#, ms(1000));
        check(429, &[], r#"{"retry_after_ms":"soon"}"#, ms(1000));
        check(429, &[], r#"{"retry_after_ms":0.5e7}"#, ms(600_000));
        check(429, &[], r#"{"retry_after_ms":1e300}"#, ms(600_000));
        check(429, &[("retry-after", "99999")], "{}", ms(600_000));
    }

    #[test]
    fn what_is_already_so_is_told_apart() {
        for code in ["M_USER_IN_USE", "M_ROOM_IN_USE", "M_DUPLICATE_ANNOTATION"] {
            check(400, &[], &format!(r#"{{"errcode":"{code}","error":"no"}}"#), CallErrorKind::Already);
        }
    }

    #[test]
    fn too_large_is_told_apart_on_both_servers() {
        use CallErrorKind::{Refused, TooLarge};
        check(413, &[], r#"{"errcode":"M_TOO_LARGE","error":"event too large"}"#, TooLarge);
        check(413, &[], "<html>nginx</html>", TooLarge);
        let conduit = r#"{"errcode":"M_INVALID_PARAM","error":"M_INVALID_PARAM: Event is invalid"}"#;
        assert_eq!(check(400, &[], conduit, TooLarge).message, "Event is invalid");
        check(400, &[], r#"{"errcode":"M_INVALID_PARAM","error":"M_INVALID_PARAM: Bad limit"}"#, Refused);
        check(400, &[], r#"{"errcode":"M_TOO_LARGE","error":"M_TOO_LARGE: Message is too long"}"#, TooLarge);
    }

    #[test]
    fn a_closed_door_is_forbidden_by_every_name() {
        use CallErrorKind::Forbidden;
        check(403, &[], r#"{"errcode":"M_FORBIDDEN","error":"User @a:x not in room !r:x"}"#, Forbidden);
        check(403, &[], r#"{"errcode":"M_BAD_STATE","error":"banned"}"#, Forbidden);
        check(400, &[], r#"{"errcode":"M_BAD_STATE","error":"banned"}"#, Forbidden);
        check(
            400,
            &[],
            r#"{"errcode":"M_EXCLUSIVE","error":"M_EXCLUSIVE: User is not in namespace."}"#,
            Forbidden,
        );
        let masquerade =
            r#"{"errcode":"M_UNKNOWN","error":"Application service cannot masquerade as this user"}"#;
        check(400, &[], masquerade, Forbidden);
    }

    #[test]
    fn server_faults_keep_their_silence() {
        use CallErrorKind::Server;
        assert_eq!(check(500, &[], "", Server).message, "(an empty answer)");
        assert_eq!(
            check(500, &[], r#"{"errcode":"M_UNKNOWN","error":"M_UNKNOWN: Bad"}"#, Server).message,
            "Bad"
        );
        let proxy = check(502, &[], "<html>secret</html>", Server);
        assert!(!proxy.to_string().contains("secret"));
        check(504, &[], "[1]", Server);
        check(404, &[], "404 page not found", Server);
        check(403, &[], "<html>forbidden</html>", Server);
    }

    #[test]
    fn the_rest_is_told_by_status() {
        check(401, &[], r#"{"errcode":"M_UNKNOWN_TOKEN","error":"no"}"#, CallErrorKind::Unauthorized);
        check(404, &[], r#"{"errcode":"M_NOT_FOUND","error":"no"}"#, CallErrorKind::NotFound);
        check(404, &[], r#"{"errcode":"M_UNRECOGNIZED","error":"no"}"#, CallErrorKind::NotFound);
        check(400, &[], r#"{"errcode":"M_UNKNOWN_DEVICE","error":"no"}"#, CallErrorKind::Refused);
        check(302, &[], "", CallErrorKind::Refused);
        check(408, &[], "", CallErrorKind::Uncertain);
    }

    #[test]
    fn words_are_one_short_line() {
        let body = serde_json::json!({ "errcode": "M_X\nfake log line", "error": format!("a\r\nb{}", "x".repeat(999)) });
        let error = check(400, &[], &body.to_string(), CallErrorKind::Refused);
        assert!(error.message.starts_with("a  bxx") && error.message.len() == WORDS_MAX);
        assert_eq!(error.errcode, "M_Xfakelogline");
    }

    #[test]
    fn only_an_errcode_is_a_prefix() {
        assert_eq!(without_prefix("M_FORBIDDEN: Event is not authorized."), "Event is not authorized.");
        assert_eq!(without_prefix("M_forbidden: no"), "M_forbidden: no");
        assert_eq!(without_prefix("User: no"), "User: no");
    }

    #[test]
    fn a_yes_that_cannot_be_read_is_uncertain() {
        #[derive(Debug, serde::Deserialize)]
        struct Sent {
            #[expect(dead_code, reason = "only whether it is read counts")]
            event_id: ruma::OwnedEventId,
        }
        let error = read::<Sent>("send", b"<html>").unwrap_err();
        assert_eq!((error.kind, error.status), (CallErrorKind::Uncertain, 200));
        assert!(read::<Sent>("send", br#"{"event_id":"$x","more":[]}"#).is_ok());
    }
}
