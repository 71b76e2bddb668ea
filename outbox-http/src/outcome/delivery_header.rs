//! The response header `webhook-delivery`.

use http::HeaderMap;

use super::Verdict;

/// What a receiver wishes beside its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryHeader {
    /// `disable`: no more events.
    Disable,
    /// `abort-message`: not this event again.
    AbortMessage,
}

impl DeliveryHeader {
    /// The wish, where there is one that is known.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        match headers.get("webhook-delivery")?.as_bytes() {
            b"disable" => Some(Self::Disable),
            b"abort-message" => Some(Self::AbortMessage),
            _ => None,
        }
    }

    /// What an answer that means failure means with it.
    pub(crate) const fn verdict(self) -> Verdict {
        match self {
            Self::Disable => Verdict::Gone,
            Self::AbortMessage => Verdict::Rejected,
        }
    }
}
