//! Name lookup with the guard in it.

use std::io;
use std::net::{IpAddr, SocketAddr};
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
/// can't take every blocking thread of the process.
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
        Box::pin(async move {
            let _slot = slots.acquire().await.map_err(io::Error::other)?;
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
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
