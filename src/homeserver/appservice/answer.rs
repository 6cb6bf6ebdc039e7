//! Answers, all of them JSON: Synapse takes an empty 200 for a failure.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Why a call is not answered with success, in the Matrix form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The homeserver's token is not there.
    MissingToken,
    /// It is another token.
    WrongToken,
    /// The body is not a JSON object, or was cut short.
    NotJson,
    /// The body is too long.
    TooLarge,
    /// We know no such user.
    NoUser,
    /// We know no such room.
    NoRoom,
    /// We have no such endpoint.
    NoEndpoint,
    /// The endpoint has another method.
    NoMethod,
    /// The store takes nothing at the moment.
    Full,
    /// Nobody took the transaction.
    Stopping,
    /// What was asked for cannot be read.
    Unreadable,
}

impl Refusal {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::MissingToken => {
                (StatusCode::UNAUTHORIZED, "M_MISSING_TOKEN", "the homeserver's token is missing")
            }
            Self::WrongToken => (StatusCode::FORBIDDEN, "M_FORBIDDEN", "this is not the homeserver's token"),
            Self::NotJson => (StatusCode::BAD_REQUEST, "M_NOT_JSON", "the body is not a JSON object"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "M_TOO_LARGE", "the body is too long"),
            Self::NoUser => (StatusCode::NOT_FOUND, "M_NOT_FOUND", "there is no such user"),
            Self::NoRoom => (StatusCode::NOT_FOUND, "M_NOT_FOUND", "there is no such room"),
            Self::NoEndpoint => (StatusCode::NOT_FOUND, "M_UNRECOGNIZED", "there is no such endpoint"),
            Self::NoMethod => {
                (StatusCode::METHOD_NOT_ALLOWED, "M_UNRECOGNIZED", "the endpoint has another method")
            }
            Self::Full => {
                let error = "the store takes nothing until its disk has space again";
                (StatusCode::SERVICE_UNAVAILABLE, "M_UNAVAILABLE", error)
            }
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "M_UNAVAILABLE", "the bridge is stopping"),
            Self::Unreadable => {
                (StatusCode::INTERNAL_SERVER_ERROR, "M_UNKNOWN", "it cannot be read; see the bridge's log")
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, errcode, error) = self.parts();
        json(status, &json!({"errcode": errcode, "error": error}))
    }
}

/// 200 `{}`.
pub(super) fn done() -> Response {
    json(StatusCode::OK, &json!({}))
}

/// An answer with a JSON body.
pub(super) fn json(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
