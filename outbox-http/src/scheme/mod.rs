//! Signature schemes: each signs what goes out and verifies what comes in.

mod matching;
mod settings;
mod standard;
mod x_signature;

pub use standard::{StandardKey, StandardWebhooks};
pub use x_signature::XSignature;

use settings::{Settings, no_active_key, scheme_settings};
