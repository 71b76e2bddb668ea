//! Reading an answer's body: little, and not for long.

use std::pin::pin;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

/// Reads up to `max` bytes so that the connection can be used again, and keeps the first `keep`.
/// Whatever goes wrong ends the reading and nothing else: the head has decided the outcome.
pub(super) async fn read<B: Body<Data = Bytes>>(
    body: B,
    keep: usize,
    max: usize,
    until: Instant,
) -> Vec<u8> {
    let mut kept = Vec::new();
    if body.is_end_stream() {
        return kept;
    }
    let reading = async {
        let mut body = pin!(body);
        let mut left = max;
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
    // A body that doesn't end in time is dropped, and its connection with it.
    let _ = timeout_at(until, reading).await;
    kept
}

/// The captured bytes as one line of text for people: control characters are dots.
pub(super) fn snippet(captured: &[u8]) -> Option<String> {
    let text: String = String::from_utf8_lossy(captured)
        .chars()
        .map(|c| if c.is_control() { '.' } else { c })
        .collect();
    let text = text.trim();
    (!text.is_empty()).then(|| format!("the answer begins: {text}"))
}
