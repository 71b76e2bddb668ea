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

/// The captured bytes as one line of text for people, `keep` decoded bytes at most: control
/// characters are dots.
pub(super) fn snippet(captured: Vec<u8>, headers: &HeaderMap, keep: usize) -> Option<String> {
    let decoded = match headers.get(CONTENT_ENCODING).map(|v| v.as_bytes()) {
        None | Some(b"identity") => captured,
        #[cfg(feature = "gzip")]
        Some(b"gzip") => crate::encoding::decode_start(&captured, keep),
        Some(_) => return None,
    };
    let start = &decoded[..decoded.len().min(keep)];
    let clean = |c: char| if c.is_control() { '.' } else { c };
    let text: String = String::from_utf8_lossy(start).chars().map(clean).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
