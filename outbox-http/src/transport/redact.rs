//! Receivers' error pages repeat what was asked for; what is kept of them must not.

use http::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

use crate::destination::Endpoint;

const REDACTED: &str = "[redacted]";

/// The least length of a value that is looked for: shorter ones would blot out words.
const LEAST: usize = 4;

/// The least length of a part of the path that is looked for by itself, however the slashes beside it
/// are written: long enough for a token, and too long for most words.
const LEAST_PART: usize = 10;

/// The text without what is secret in the endpoint: the path and query of its URL, long parts of the
/// path, the values of the query, and those of its own headers. A piece of one at the end, where the
/// text was cut, goes too.
pub(super) fn redact(mut text: String, endpoint: &Endpoint) -> String {
    for secret in secrets(endpoint) {
        if text.contains(&secret) {
            text = text.replace(&secret, REDACTED);
        }
        let cut = secret.char_indices().map(|(at, _)| at).rev();
        let mut cut = cut.filter(|at| *at >= LEAST);
        if let Some(at) = cut.find(|at| text.ends_with(&secret[..*at])) {
            text.truncate(text.len() - at);
            text.push_str(REDACTED);
        }
    }
    text
}

/// The longest first, so that none is split by another.
fn secrets(endpoint: &Endpoint) -> Vec<String> {
    let uri = endpoint.target.uri();
    let mut secrets = Vec::new();
    if let Some(whole) = uri.path_and_query() {
        secrets.push(whole.as_str().to_owned());
        secrets.push(whole.path().to_owned());
    }
    let parts = uri.path().split('/');
    for part in parts.filter(|part| part.len() >= LEAST_PART) {
        secrets.push(part.to_owned());
        secrets.push(percent_decode_str(part).decode_utf8_lossy().into_owned());
    }
    if let Some(query) = uri.query() {
        secrets.push(query.to_owned());
        let value = |pair: &str| pair.split_once('=').map_or(pair, |(_, v)| v).to_owned();
        secrets.extend(query.split('&').map(value));
        let decoded = form_urlencoded::parse(query.as_bytes());
        secrets.extend(decoded.map(|(_, value)| value.into_owned()));
    }
    for (name, value) in &endpoint.headers {
        let Ok(value) = value.to_str() else { continue };
        secrets.push(value.to_owned());
        // The credentials without their scheme (`Bearer …`).
        if let Some((_, credentials)) = value.split_once(' ').filter(|_| name == AUTHORIZATION) {
            secrets.push(credentials.to_owned());
        }
    }
    secrets.retain(|secret| secret.len() >= LEAST);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}
