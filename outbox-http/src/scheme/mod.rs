//! Signature schemes: each signs what goes out and verifies what comes in.

mod body_mac;
mod github;
mod matching;
mod settings;
mod shopify;
mod slack;
mod standard;
mod stripe;
mod x_signature;

pub use github::GitHub;
pub use shopify::Shopify;
pub use slack::Slack;
pub use standard::{StandardKey, StandardWebhooks};
pub use stripe::Stripe;
pub use x_signature::XSignature;

use settings::{Settings, no_active_key, scheme_settings};
