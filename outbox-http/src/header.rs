//! Headers that events and endpoints may set.

use http::{HeaderName, HeaderValue};

/// Names that belong to the connection or the framing (RFC 9110, section 7.6.1; RFC 9112, section
/// 6): whoever sets one could smuggle a request.
const RESERVED: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header in the types of HTTP; what could inject another header, or reserved names, are refused.
/// The problem names the header and never quotes its value.
pub(crate) fn parse(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("has the name {name:?}, which HTTP doesn't allow"))?;
    if RESERVED.contains(&parsed.as_str()) {
        return Err(format!(
            "has the name {name:?}, which belongs to the connection"
        ));
    }
    match HeaderValue::from_bytes(value.as_bytes()) {
        Ok(value) => Ok((parsed, value)),
        Err(_) => Err(format!("{name:?} has a value that HTTP doesn't allow")),
    }
}
