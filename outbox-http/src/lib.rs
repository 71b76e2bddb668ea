//! Webhook delivery for a transactional outbox, and verification for the receiving side.
//!
//! [`Webhooks`] is the transport: one signed POST for each attempt, with deadlines, without
//! redirects, and only to addresses that the [`AddressGuard`] admits. The schemes
//! ([`StandardWebhooks`], [`XSignature`]) sign; as a [`Verifier`] each checks what it signed.
//!
//! ```
//! use outbox_http::{StandardWebhooks, Webhooks};
//!
//! let webhooks = Webhooks::builder()
//!     .signer(StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?)
//!     .build()?;
//! # let _ = webhooks;
//! # Ok::<(), outbox_core::Error>(())
//! ```

mod client;
mod clock;
mod destination;
mod encoding;
mod guard;
mod header;
mod hex;
mod key_ring;
mod outcome;
mod scheme;
mod secret;
mod transport;
mod verify;

pub use {http, outbox_core};

pub use client::{HttpFailure, HttpFailureKind, HttpVersion, Identity, Timeouts};
pub use destination::{Destinations, Endpoint, MapDestinations, Resolution, UrlDestinations};
pub use encoding::Encoding;
pub use guard::{AddressGuard, Refused, Resolve, SystemResolver, Target};
pub use key_ring::{Key, KeyRing, SharedRing};
pub use outcome::{Answer, Classifier, Lenient, Strict, Verdict, retry_after};
pub use scheme::{GitHub, Shopify, Slack, StandardKey, StandardWebhooks, Stripe, XSignature};
pub use secret::{
    EnvSecrets, FileSecrets, MIN_SHARED_SECRET, SecretProvider, SecretText, SharedSecret,
    StandardSecret,
};
#[cfg(feature = "ed25519")]
pub use secret::{PublicKey, SigningKey};
pub use transport::{AttemptObserver, AttemptReport, Webhooks, WebhooksBuilder};
pub use verify::{Verified, Verifier, VerifyError, VerifyErrorKind};
