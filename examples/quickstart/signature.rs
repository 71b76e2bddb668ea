//! The secret that sender and receiver share, as Standard Webhooks have it.

use hyper::HeaderMap;
use outbox_core::Error;
use outbox_http::{StandardWebhooks, Verifier};

/// A demo's; a service reads its own from its configuration.
const SECRET: &str = "whsec_cXVpY2tzdGFydC1kZW1vLXNlY3JldC0wMTIzNDU2Nzg5";

/// Signs for the sender, verifies for the receiver.
pub(crate) fn scheme() -> Result<StandardWebhooks, Error> {
    StandardWebhooks::new(SECRET)
}

/// The webhook's id, where the signature fits headers and body.
pub(crate) fn verified_id(
    scheme: &StandardWebhooks,
    headers: &HeaderMap,
    body: &[u8],
) -> Option<String> {
    scheme.verify(headers, body).ok()?.id
}
