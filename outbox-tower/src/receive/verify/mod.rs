//! Refuses requests that are not what they claim to be.

mod layer;
mod refused;
mod run;
mod verifier;
#[cfg(feature = "webhooks")]
mod webhooks;

pub use layer::{Verify, VerifyLayer};
pub use refused::Refused;
pub use verifier::{Verified, VerifyRequest};
#[cfg(feature = "webhooks")]
pub use webhooks::WebhookVerifier;
