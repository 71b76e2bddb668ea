//! Refuses requests that are not what they claim to be.

mod layer;
mod refused;
mod run;
mod verifier;

pub use layer::{Verify, VerifyLayer};
pub use refused::Refused;
pub use verifier::{Verified, VerifyRequest};
