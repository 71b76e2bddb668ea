//! What every scheme has: keys, a clock, a tolerance.

use std::time::Duration;

use outbox_core::{Error, ErrorKind};

use crate::clock::WallClock;
use crate::key_ring::SharedRing;
use crate::verify::DEFAULT_TOLERANCE;

#[derive(Debug)]
pub(super) struct Settings<K> {
    pub(super) keys: SharedRing<K>,
    pub(super) clock: WallClock,
    pub(super) tolerance: Duration,
}

impl<K> Clone for Settings<K> {
    fn clone(&self) -> Self {
        Self {
            keys: self.keys.clone(),
            clock: self.clock.clone(),
            tolerance: self.tolerance,
        }
    }
}

impl<K> Settings<K> {
    pub(super) const fn new(keys: SharedRing<K>) -> Self {
        Self {
            keys,
            clock: WallClock::SYSTEM,
            tolerance: DEFAULT_TOLERANCE,
        }
    }
}

/// Signing with a ring of which nothing counts now. Trying again helps: the next key may start.
pub(super) fn no_active_key(scheme: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("no key of the {scheme} signer counts now"),
    )
}

/// The constructors and setters that all schemes share.
macro_rules! scheme_settings {
    ($scheme:ident, $key:ty) => {
        impl $scheme {
            /// Signs and verifies with these keys: one [`Key`](crate::Key), a
            /// [`KeyRing`](crate::KeyRing), or a [`SharedRing`](crate::SharedRing) that is rotated
            /// from outside.
            pub fn with_keys(keys: impl Into<crate::SharedRing<$key>>) -> Self {
                Self(super::Settings::new(keys.into()))
            }

            /// Signs and verifies with one secret, named `default`.
            pub fn with_secret(secret: impl Into<$key>) -> Self {
                Self::with_keys(crate::Key::new("default", secret.into()))
            }

            /// The keys, shared with this scheme: [`replace`](crate::SharedRing::replace) them to
            /// rotate, read their [`uses`](crate::KeyRing::uses).
            #[must_use]
            pub fn keys(&self) -> crate::SharedRing<$key> {
                self.0.keys.clone()
            }

            /// The clock that verification and the choice of keys go by. Default: the system's.
            #[must_use]
            pub fn clock(
                mut self,
                now: impl Fn() -> std::time::SystemTime + Send + Sync + 'static,
            ) -> Self {
                self.0.clock = crate::clock::WallClock::new(now);
                self
            }
        }
    };
    ($scheme:ident, $key:ty, tolerance) => {
        super::scheme_settings!($scheme, $key);

        impl $scheme {
            /// How far a timestamp may lie from the clock, both ways. Default: 5 minutes.
            #[must_use]
            pub const fn tolerance(mut self, tolerance: std::time::Duration) -> Self {
                self.0.tolerance = tolerance;
                self
            }
        }
    };
}
pub(super) use scheme_settings;
