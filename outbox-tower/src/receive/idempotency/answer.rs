//! How an answer is kept.
//!
//! One version byte, the status (2 bytes, big-endian), a byte that says whether the body was left
//! out, the number of headers (2 bytes), each header as length (2 bytes), name, length (2 bytes),
//! value; the rest is the body.

use ::http::header::{HeaderMap, HeaderName, HeaderValue};
use ::http::{Response, StatusCode};
use bytes::{Buf, BufMut, Bytes, BytesMut};

const VERSION: u8 = 1;

/// Headers that belong to one connection or one moment, or to one client.
const NOT_KEPT: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "date",
    "set-cookie",
    "retry-after",
];

pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
pub(super) const BODY_OMITTED: HeaderName = HeaderName::from_static("idempotent-body-omitted");

/// The answer as bytes; `None` where its headers alone are over the limit. A body over the limit is
/// left out.
pub(super) fn encode(
    status: StatusCode,
    headers: &HeaderMap,
    body: Option<&Bytes>,
    limit: usize,
) -> Option<Bytes> {
    let kept: Vec<_> = headers
        .iter()
        .filter(|(name, _)| !NOT_KEPT.contains(&name.as_str()))
        .collect();
    let mut out = BytesMut::new();
    out.put_u8(VERSION);
    out.put_u16(status.as_u16());
    out.put_u8(u8::from(body.is_none()));
    out.put_u16(u16::try_from(kept.len()).ok()?);
    for (name, value) in kept {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            out.put_u16(u16::try_from(part.len()).ok()?);
            out.put_slice(part);
        }
    }
    if out.len() > limit {
        return None;
    }
    if let Some(body) = body {
        out.put_slice(body);
    }
    Some(out.freeze())
}

/// The kept answer; `None` where the bytes make none.
pub(super) fn decode<B: From<Bytes>>(mut bytes: Bytes) -> Option<Response<B>> {
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }
    let status = StatusCode::from_u16(bytes.try_get_u16().ok()?).ok()?;
    let omitted = bytes.try_get_u8().ok()? == 1;
    let count = bytes.try_get_u16().ok()?;
    let mut headers = HeaderMap::new();
    for _ in 0..count {
        let name = HeaderName::from_bytes(&part(&mut bytes)?).ok()?;
        let value = HeaderValue::from_bytes(&part(&mut bytes)?).ok()?;
        headers.append(name, value);
    }
    let yes = HeaderValue::from_static("true");
    headers.insert(REPLAYED, yes.clone());
    if omitted {
        headers.insert(BODY_OMITTED, yes);
    }
    let mut response = Response::new(B::from(bytes));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Some(response)
}

fn part(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::from(bytes.try_get_u16().ok()?);
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_status_headers_and_body_and_leaves_out_what_is_of_the_moment() {
        let mut headers = HeaderMap::new();
        headers.append("location", "/repos/7".parse().unwrap());
        headers.append("x-multi", "a".parse().unwrap());
        headers.append("x-multi", "b".parse().unwrap());
        headers.append("set-cookie", "session=1".parse().unwrap());
        headers.append("date", "now".parse().unwrap());
        let body = Bytes::from_static(b"\0\xff");
        let kept = encode(StatusCode::CREATED, &headers, Some(&body), 1_000).unwrap();
        let response = decode::<Bytes>(kept).unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()["location"], "/repos/7");
        assert_eq!(response.headers().get_all("x-multi").iter().count(), 2);
        assert!(!response.headers().contains_key("set-cookie"));
        assert!(!response.headers().contains_key("date"));
        assert_eq!(response.headers()[REPLAYED], "true");
        assert_eq!(response.body(), &body);
    }

    #[test]
    fn bytes_that_make_no_answer_are_told_and_never_panic() {
        let kept = encode(StatusCode::OK, &HeaderMap::new(), None, 100).unwrap();
        assert!(
            decode::<Bytes>(kept.clone())
                .unwrap()
                .headers()
                .contains_key(BODY_OMITTED)
        );
        for end in 0..kept.len() {
            assert!(decode::<Bytes>(kept.slice(..end)).is_none());
        }
        assert!(decode::<Bytes>(Bytes::from_static(b"\x02\0\xc8\0\0\0")).is_none());
        assert!(decode::<Bytes>(Bytes::from_static(b"\x01\0\xc8\0\0\x01\xff\xffa")).is_none());
    }
}
