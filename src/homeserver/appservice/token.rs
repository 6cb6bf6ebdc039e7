//! The homeserver's token: from the header or, as Conduit sends it too, from the query; compared in constant time.

use axum::http::{HeaderMap, Uri, header};
use subtle::ConstantTimeEq;

use super::answer::Refusal;

/// Refuses a call that does not carry the token.
pub(super) fn check(expected: &str, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
    let token = bearer(headers).or_else(|| query(uri)).ok_or(Refusal::MissingToken)?;
    if bool::from(token.as_bytes().ct_eq(expected.as_bytes())) {
        return Ok(());
    }
    tracing::warn!(
        "a call with a wrong token was refused; hs_token must be the same here and at the homeserver"
    );
    Err(Refusal::WrongToken)
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

fn query(uri: &Uri) -> Option<String> {
    let pairs = url::form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.into_iter().find(|(key, _)| key == "access_token").map(|(_, token)| token.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_token(authorization: Option<&str>, uri: &str, expect: Result<(), Refusal>) {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        }
        assert_eq!(check("s3cret+&", &headers, &uri.parse().unwrap()), expect, "{authorization:?} {uri}");
    }

    #[test]
    fn the_token_is_taken_from_the_header_or_the_query() {
        check_token(Some("Bearer s3cret+&"), "/", Ok(()));
        check_token(Some("bearer  s3cret+&"), "/", Ok(()));
        check_token(None, "/?a=b&access_token=s3cret%2B%26", Ok(()));
        check_token(Some("Basic eHk="), "/?access_token=s3cret%2B%26", Ok(()));
        check_token(Some("Bearer s3cret+&"), "/?access_token=wrong", Ok(()));
    }

    #[test]
    fn a_missing_token_is_told_from_a_wrong_one() {
        check_token(None, "/", Err(Refusal::MissingToken));
        check_token(None, "/?token=s3cret%2B%26", Err(Refusal::MissingToken));
        check_token(Some("Basic eHk="), "/", Err(Refusal::MissingToken));
        for wrong in ["Bearer x", "Bearer s3cret+", "Bearer s3cret+&x", "Bearer "] {
            check_token(Some(wrong), "/", Err(Refusal::WrongToken));
        }
        check_token(Some("Bearer wrong"), "/?access_token=s3cret%2B%26", Err(Refusal::WrongToken));
        check_token(None, "/?access_token=", Err(Refusal::WrongToken));
    }
}
