use std::time::Duration;

use ::http::header::RETRY_AFTER;
use ::http::response::Parts;
use outbox_core::{DeliveryError, Receipt};

/// The longest `Retry-After` that is passed on.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the head of an answer: 2xx is delivered, 410 is gone, 429 is throttled; 3xx, 408, 409, 421,
/// 423, 425 and 5xx are transient; the other 4xx, 501 and 505 are refusals for good. Seconds in
/// `Retry-After` are passed on, up to a day.
///
/// # Errors
///
/// All but 2xx.
pub fn by_status(head: &Parts) -> Result<Receipt, DeliveryError> {
    let status = head.status;
    let text = format!("answered {status}");
    let error = match status.as_u16() {
        200..=299 => return Ok(Receipt::with_detail(status.to_string())),
        410 => DeliveryError::gone(text),
        429 => DeliveryError::throttled(text),
        408 | 409 | 421 | 423 | 425 => DeliveryError::transient(text),
        400..=499 | 501 | 505 => DeliveryError::rejected(text),
        _ => DeliveryError::transient(text),
    };
    Err(match retry_after(head) {
        Some(after) => error.with_retry_after(after),
        None => error,
    })
}

fn retry_after(head: &Parts) -> Option<Duration> {
    let text = head.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Only too many digits can fail here.
    let after = text.parse().map_or(LONGEST, Duration::from_secs);
    Some(after.min(LONGEST))
}
