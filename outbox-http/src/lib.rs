//! Webhook delivery for a transactional outbox, and verification for the receiving side.
//!
//! ```
//! use outbox_http::{StandardWebhooks, Webhooks};
//!
//! let webhooks = Webhooks::builder()
//!     .signer(StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?)
//!     .build()?;
//! # let _: &dyn outbox_core::Transport = &webhooks;
//! # Ok::<(), outbox_core::Error>(())
//! ```
//!
//! [`Webhooks`] is the transport: one signed POST for each attempt, under deadlines
//! ([`Timeouts`]), without redirects, to addresses that the [`AddressGuard`] admits. It is an
//! [`outbox_core::Transport`] and a `tower` service. What an answer means a [`Classifier`] says,
//! [`Strict`] by default; where an event goes, [`Destinations`] say: by default its destination is
//! the URL.
//!
//! The schemes sign, and as [`Verifier`]s check what they signed: [`StandardWebhooks`],
//! [`XSignature`], [`GitHub`], [`Stripe`], [`Slack`], [`Shopify`]. Each works with a [`KeyRing`], so
//! that secrets rotate without a gap; other schemes implement [`outbox_core::Signer`].
//!
//! # What an attempt can come to
//!
//! | what happened | error | phase |
//! |---|---|---|
//! | 2xx, whatever its body does; 409 to a repeated attempt | none | answered |
//! | another status | as the classifier says | answered |
//! | name lookup, connection or TLS failed, or took too long | transient | waiting: nothing was sent |
//! | reset, end, time-out, or nonsense after the request was begun | transient | sending: ambiguous |
//! | the guard refuses; no such destination; the event makes no request | unroutable | waiting |
//! | destination disabled, full, not signed for, or not looked up; egress proxy down | not attempted | waiting |
//! | the signer failed | transient | waiting |
//!
//! [`HttpFailure::of`] gives the details of a delivery error.
//!
//! # Features
//!
//! None is on by default. `ed25519`: Standard Webhooks `v1a`. `gzip`: request bodies, captured
//! answers. `http2`. `native-roots`: the system's certificates beside Mozilla's. `reqwest`: a client
//! of your own.

mod client;
mod clock;
mod destination;
mod encoding;
mod forward;
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
pub use destination::{
    DestinationRecord, DestinationStore, Destinations, Endpoint, MapDestinations, Resolution,
    Scheme, StaticDestination, StoredDestinations, UrlDestinations,
};
pub use encoding::Encoding;
pub use guard::{AddressGuard, Refused, Resolve, SystemResolver, Target};
pub use key_ring::{Key, KeyRing, SharedRing};
pub use outcome::{Answer, Classifier, Lenient, Strict, Verdict, retry_after};
pub use scheme::{GitHub, Shopify, Slack, StandardKey, StandardWebhooks, Stripe, XSignature};
pub use secret::{
    EnvSecrets, FileSecrets, MIN_SHARED_SECRET, Reload, SecretProvider, SecretText, SharedSecret,
    StandardSecret,
};
#[cfg(feature = "ed25519")]
pub use secret::{PublicKey, SigningKey};
pub use transport::{AttemptObserver, AttemptReport, Webhooks, WebhooksBuilder};
pub use verify::{Verified, Verifier, VerifyError, VerifyErrorKind};

// The examples in the page beside the code are tested with the crate's own.
#[cfg(doctest)]
#[doc = include_str!("../../docs/webhooks.md")]
mod pages {}
