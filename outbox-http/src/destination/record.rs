//! A destination as a table holds it: plain data.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::str::FromStr;

use outbox_core::Error;

use super::Endpoint;
use crate::client::{Identity, Timeouts};
use crate::encoding::Encoding;
use crate::guard::AddressGuard;
use crate::key_ring::KeyRing;
use crate::scheme::{GitHub, Shopify, Slack, StandardWebhooks, Stripe, XSignature};
use crate::secret::SecretText;

/// A destination as a table holds it. What is not set is the transport's.
///
/// ```
/// use outbox_http::{DestinationRecord, Scheme, SecretText};
///
/// let mut record = DestinationRecord::new("https://ci.example/hooks");
/// record.scheme = "github".parse::<Scheme>()?;
/// record.secrets.push(SecretText::new("2026-11", "correct horse battery staple"));
/// record.headers.insert("authorization".into(), "Bearer 4f1c".into());
/// record.disabled = Some("asked to stop".into());
/// # Ok::<(), outbox_http::outbox_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationRecord {
    /// Where it is.
    pub url: String,
    /// Why nothing is delivered for now, for operators; `None`: it is enabled.
    pub disabled: Option<String>,
    /// How its requests are signed, where it has secrets. Default: Standard Webhooks.
    pub scheme: Scheme,
    /// Its own secrets, the newest first; empty: the transport's signers sign, and where it has none,
    /// events wait.
    pub secrets: Vec<SecretText>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Its own deadlines.
    pub timeouts: Option<Timeouts>,
    /// What its bodies look like.
    pub encoding: Option<Encoding>,
    /// The most deliveries at a time by this process.
    pub max_in_flight: Option<NonZeroU32>,
    /// The largest request body in bytes.
    pub max_request: Option<usize>,
    /// Its client certificate.
    pub identity: Option<Identity>,
    /// Where its deliveries may go.
    pub guard: Option<AddressGuard>,
}

impl DestinationRecord {
    /// An enabled destination at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            disabled: None,
            scheme: Scheme::StandardWebhooks,
            secrets: Vec::new(),
            headers: BTreeMap::new(),
            timeouts: None,
            encoding: None,
            max_in_flight: None,
            max_request: None,
            identity: None,
            guard: None,
        }
    }

    /// What deliveries need.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig), naming what is wrong; neither the
    /// URL, nor a secret, nor the value of a header is quoted.
    pub fn endpoint(&self) -> Result<Endpoint, Error> {
        let mut endpoint = Endpoint::new(&self.url)?;
        if !self.secrets.is_empty() {
            endpoint = self.scheme.sign(endpoint, &self.secrets)?;
        }
        for (name, value) in &self.headers {
            endpoint = endpoint.header(name, value)?;
        }
        if let Some(timeouts) = self.timeouts {
            endpoint = endpoint.timeouts(timeouts)?;
        }
        if let Some(encoding) = &self.encoding {
            endpoint = endpoint.encoding(encoding.clone());
        }
        if let Some(limit) = self.max_in_flight {
            endpoint = endpoint.max_in_flight(limit);
        }
        if let Some(bytes) = self.max_request {
            endpoint = endpoint.max_request(bytes);
        }
        if let Some(identity) = &self.identity {
            endpoint = endpoint.identity(identity.clone());
        }
        if let Some(guard) = &self.guard {
            endpoint = endpoint.guard(guard.clone());
        }
        Ok(endpoint)
    }
}

/// Shows neither the URL, nor secrets, nor the values of headers.
impl std::fmt::Debug for DestinationRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DestinationRecord")
            .field("disabled", &self.disabled)
            .field("scheme", &self.scheme)
            .field("secrets", &self.secrets)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A signature scheme by name, as a column of a table holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// `standard-webhooks`: [`StandardWebhooks`].
    #[default]
    StandardWebhooks,
    /// `x-signature`: [`XSignature`].
    XSignature,
    /// `github`: [`GitHub`].
    GitHub,
    /// `stripe`: [`Stripe`].
    Stripe,
    /// `slack`: [`Slack`].
    Slack,
    /// `shopify`: [`Shopify`].
    Shopify,
}

impl Scheme {
    const NAMES: [(&str, Self); 6] = [
        ("standard-webhooks", Self::StandardWebhooks),
        ("x-signature", Self::XSignature),
        ("github", Self::GitHub),
        ("stripe", Self::Stripe),
        ("slack", Self::Slack),
        ("shopify", Self::Shopify),
    ];

    /// The endpoint, signed for with these secrets.
    fn sign(self, endpoint: Endpoint, secrets: &[SecretText]) -> Result<Endpoint, Error> {
        Ok(match self {
            Self::StandardWebhooks => {
                endpoint.signer(StandardWebhooks::with_keys(KeyRing::parse(secrets)?))
            }
            Self::XSignature => endpoint.signer(XSignature::with_keys(KeyRing::parse(secrets)?)),
            Self::GitHub => endpoint.signer(GitHub::with_keys(KeyRing::parse(secrets)?)),
            Self::Stripe => endpoint.signer(Stripe::with_keys(KeyRing::parse(secrets)?)),
            Self::Slack => endpoint.signer(Slack::with_keys(KeyRing::parse(secrets)?)),
            Self::Shopify => endpoint.signer(Shopify::with_keys(KeyRing::parse(secrets)?)),
        })
    }
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, scheme)| *scheme).ok_or_else(|| {
            let known: Vec<_> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            let problem = format!("is none of {}", known.join(", "));
            Error::invalid_config("scheme", problem)
        })
    }
}
