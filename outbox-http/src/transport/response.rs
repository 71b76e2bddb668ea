//! Reading an answer's body: little, and not for long.

use std::pin::pin;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

/// What is read of a body, so that its connection can be used again.
const MAX_READ: usize = 64 << 10;

/// Reads the body to its end if that comes soon, and keeps the first `keep` bytes. Whatever goes
/// wrong ends the reading and nothing else: the head has decided the outcome. A body that is longer
/// than 64 KiB or doesn't end in time is dropped, and its connection with it.
pub(super) async fn read<B: Body<Data = Bytes> + Unpin>(
    body: B,
    keep: usize,
    until: Instant,
) -> Vec<u8> {
    let mut kept = Vec::new();
    if body.is_end_stream() {
        return kept;
    }
    let reading = async {
        let mut body = pin!(body);
        let mut left = MAX_READ;
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let room = keep - kept.len();
            kept.extend_from_slice(&data[..data.len().min(room)]);
            left = left.saturating_sub(data.len());
            if left == 0 {
                break;
            }
        }
    };
    let _ = timeout_at(until, reading).await;
    kept
}

/// The captured bytes as one line of text for people, `keep` decoded bytes at most: characters that
/// control a terminal or turn its text round are dots.
pub(super) fn snippet(captured: Vec<u8>, headers: &HeaderMap, keep: usize) -> Option<String> {
    let coding = headers.get(CONTENT_ENCODING).map(|v| v.as_bytes());
    let is = |name: &[u8]| coding.is_some_and(|coding| coding.eq_ignore_ascii_case(name));
    let decoded = match coding {
        None => captured,
        Some(_) if is(b"identity") => captured,
        #[cfg(feature = "gzip")]
        Some(_) if is(b"gzip") || is(b"x-gzip") => crate::encoding::decode_start(&captured, keep),
        Some(_) => return None,
    };
    let start = &decoded[..decoded.len().min(keep)];
    let clean = |c: char| {
        if c.is_control() || is_format(c) {
            '.'
        } else {
            c
        }
    };
    let text: String = String::from_utf8_lossy(start).chars().map(clean).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Invisible characters: marks and overrides of direction, line and paragraph separators, joiners, the
/// byte order mark.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_one_line_that_reads_as_it_stands() {
        let text = "no:\u{1b}[2J\r\n\u{202e}evil\u{2028}\u{200b}ok é";
        let shown = snippet(text.into(), &HeaderMap::new(), 100);
        assert_eq!(shown.unwrap(), "no:.[2J...evil..ok é");
    }

    #[cfg(feature = "gzip")]
    #[test]
    fn codings_are_known_in_any_case() {
        let gzipped = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\xcf\x06\0G\xdd\xdcy\x02\0\0\0";
        for coding in ["gzip", "GZIP", "x-gzip"] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, coding.parse().unwrap());
            let shown = snippet(gzipped.to_vec(), &headers, 100);
            assert_eq!(shown.as_deref(), Some("ok"), "{coding}");
        }
    }
}
