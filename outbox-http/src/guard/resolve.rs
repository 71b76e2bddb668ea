//! Name lookup with the guard in it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tower_service::Service;

use super::AddressGuard;
use crate::client::LookupFailed;

/// Looks up the addresses of a host name.
///
/// # Contract
///
/// All addresses that may be dialled, in order of preference. It need not check them: the guard
/// does, on each.
///
/// # Errors
///
/// Any error means that nothing was sent; the attempt is made again.
///
/// # Cancel safety
///
/// Dropping the future drops the lookup's result.
pub trait Resolve: Send + Sync {
    /// Looks up `host`.
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver (`getaddrinfo`), at most 64 lookups at a time, so that a slow name server
/// can't take every blocking thread of the process. A lookup whose attempt has given up counts until
/// it ends, since its thread can't be stopped.
#[derive(Debug, Clone)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(64)))
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        let slots = self.0.clone();
        Box::pin(blocking(slots, move || {
            let found = (host.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        }))
    }
}

/// Runs `lookup` on a blocking thread that keeps its slot until it has ended, whoever still waits.
async fn blocking<T: Send + 'static>(
    slots: Arc<Semaphore>,
    lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let slot = slots.acquire_owned().await.map_err(io::Error::other)?;
    let running = tokio::task::spawn_blocking(move || {
        let _slot = slot;
        lookup()
    });
    running.await.map_err(io::Error::other)?
}

/// A resolver for the connector that lets through only addresses that the guard admits.
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) guard: Arc<AddressGuard>,
}

impl GuardedResolver {
    /// The admitted addresses of `host`; an error where there are none.
    pub(crate) async fn lookup(self, host: String) -> io::Result<Vec<SocketAddr>> {
        let mut admitted = Vec::new();
        let mut refused = None;
        let found = self.resolver.resolve(&host).await;
        for address in found.map_err(LookupFailed).map_err(io::Error::other)? {
            match self.guard.check_address_of(&host, address) {
                Ok(()) => admitted.push(SocketAddr::new(address, 0)),
                Err(reason) => refused = Some(reason),
            }
        }
        match refused {
            _ if !admitted.is_empty() => Ok(admitted),
            Some(reason) => Err(io::Error::other(reason)),
            None => Err(io::Error::other(LookupFailed(io::Error::new(
                io::ErrorKind::NotFound,
                "the name has no address",
            )))),
        }
    }
}

impl Service<Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let lookup = self.clone().lookup(name.as_str().to_owned());
        Box::pin(async move { lookup.await.map(Vec::into_iter) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_lookup_that_nobody_waits_for_keeps_its_slot_until_it_ends() {
        let slots = Arc::new(Semaphore::new(1));
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let lookup = tokio::spawn(blocking(slots.clone(), move || {
            let _ = begun.send(());
            let _ = may_end.recv();
            Ok(())
        }));
        has_begun.await.unwrap();
        lookup.abort();
        assert!(lookup.await.unwrap_err().is_cancelled());
        assert_eq!(slots.available_permits(), 0, "its thread is still busy");
        end.send(()).unwrap();
        blocking(slots, || Ok(())).await.unwrap();
    }
}
