//! The seams for `Arc<T>`, `Box<T>` and `&T`, so that what is chosen at run time (`Box<dyn Verifier>`)
//! goes wherever a type does. [`Classifier`](crate::Classifier) and
//! [`AttemptObserver`](crate::AttemptObserver) are functions already.
//!
//! Futures are handed on as they are: a pointer costs no allocation.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::HeaderMap;
use outbox_core::Error;

use crate::{
    DestinationRecord, DestinationStore, Destinations, Resolution, Resolve, SecretProvider,
    SecretText, Verified, Verifier, VerifyError,
};

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Verifier + ?Sized> Verifier for $pointer {
            fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, VerifyError> {
                (**self).verify(headers, body)
            }
        }

        impl<T: Resolve + ?Sized> Resolve for $pointer {
            fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
                (**self).resolve(host)
            }
        }

        impl<T: SecretProvider + ?Sized> SecretProvider for $pointer {
            fn secrets<'a, 'f>(&'a self) -> BoxFuture<'f, Result<Vec<SecretText>, Error>>
            where
                'a: 'f,
                Self: 'f,
            {
                (**self).secrets()
            }
        }

        impl<T: Destinations + ?Sized> Destinations for $pointer {
            fn resolve<'a, 'b, 'f>(
                &'a self,
                destination: &'b str,
            ) -> BoxFuture<'f, Result<Resolution, Error>>
            where
                'a: 'f,
                'b: 'f,
                Self: 'f,
            {
                (**self).resolve(destination)
            }
        }

        impl<T: DestinationStore + ?Sized> DestinationStore for $pointer {
            fn find<'a, 'b, 'f>(
                &'a self,
                destination: &'b str,
            ) -> BoxFuture<'f, Result<Option<DestinationRecord>, Error>>
            where
                'a: 'f,
                'b: 'f,
                Self: 'f,
            {
                (**self).find(destination)
            }
        }
    )*};
}

forward!(Arc<T>, Box<T>, &T);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EnvSecrets, FileSecrets, GitHub, KeyRing, MapDestinations, Reload, SharedRing,
        SharedSecret, StandardKey, StoredDestinations, Stripe, SystemResolver, UrlDestinations,
        Webhooks,
    };

    /// Each is chosen where the program runs.
    #[test]
    fn what_is_chosen_at_run_time_goes_wherever_a_type_does() {
        fn is<T>(_: impl Fn(T)) {}
        let pick = std::env::args().count() > 1_000;
        let secret = || SharedSecret::existing("a").unwrap();
        let verifier: Box<dyn Verifier> = if pick {
            Box::new(GitHub::with_secret(secret()))
        } else {
            Box::new(Stripe::with_secret(secret()))
        };
        fn refuses(verifier: impl Verifier) -> bool {
            verifier.verify(&HeaderMap::new(), b"").is_err()
        }
        assert!(refuses(&verifier));
        let shared: Arc<dyn Verifier> = verifier.into();
        assert!(refuses(shared));
        let provider: Box<dyn SecretProvider> = if pick {
            Box::new(FileSecrets::new(["/run/secrets/a"]))
        } else {
            Box::new(EnvSecrets::new(["A"]))
        };
        let ring: SharedRing<StandardKey> = KeyRing::new([]).into();
        let _ = Reload::new(ring, provider);
        let destinations: Arc<dyn Destinations> = if pick {
            Arc::new(UrlDestinations::default())
        } else {
            Arc::new(MapDestinations::new())
        };
        let resolver: Box<dyn Resolve> = Box::new(SystemResolver::default());
        let webhooks = Webhooks::builder()
            .destinations(destinations)
            .resolver(resolver);
        assert!(webhooks.build().is_ok());
        is(|store: Box<dyn DestinationStore>| drop(StoredDestinations::new(store)));
    }
}
