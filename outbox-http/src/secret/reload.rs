//! The rotation job of a ring.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use outbox_core::Error;
use outbox_core::jobs::SecretRotation;

use super::SecretProvider;
use crate::key_ring::SharedRing;

/// Loads a ring anew from its provider: what [`outbox_core::jobs::RotateSecrets`] calls on a schedule.
/// Every process reloads its own.
///
/// ```
/// use std::time::Duration;
/// use outbox_http::outbox_core::jobs::RotateSecrets;
/// use outbox_http::outbox_core::{Schedule, ScheduledJob};
/// use outbox_http::{FileSecrets, KeyRing, Reload, SharedRing, StandardKey, StandardWebhooks};
///
/// # let at_start = [outbox_http::SecretText::new("a", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
/// let provider = FileSecrets::new(["/run/secrets/webhook", "/run/secrets/webhook-old"]);
/// # /*
/// let ring: SharedRing<StandardKey> = SharedRing::load(&provider).await?;
/// # */
/// # let ring: SharedRing<StandardKey> = KeyRing::parse(&at_start)?.into();
/// let scheme = StandardWebhooks::with_keys(ring.clone());
/// let job = RotateSecrets::new(Reload::new(ring, provider));
/// let job = ScheduledJob::new("secrets", Schedule::every(Duration::from_secs(60)), job);
/// # Ok::<(), outbox_http::outbox_core::Error>(())
/// ```
pub struct Reload<K, P> {
    ring: SharedRing<K>,
    provider: P,
}

impl<K, P> Reload<K, P> {
    /// Loads `ring` from `provider`.
    pub const fn new(ring: SharedRing<K>, provider: P) -> Self {
        Self { ring, provider }
    }
}

#[async_trait]
impl<K, P> SecretRotation for Reload<K, P>
where
    K: FromStr<Err = Error> + Send + Sync,
    P: SecretProvider,
{
    async fn rotate(&self) -> Result<(), Error> {
        self.ring.refresh(&self.provider).await
    }
}

impl<K, P> fmt::Debug for Reload<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}
