//! The pooled client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use outbox_core::Error;

use super::connect::Connector;
use super::{PhaseBody, tls};
use crate::guard::{AddressGuard, GuardedResolver, Resolve};

/// Shorter than the keep-alive time of common servers (5 s in Node.js and Apache), so that a request
/// seldom meets a connection that the server is closing.
const IDLE: Duration = Duration::from_secs(4);

/// The most bytes of a response head, HTTP/1.
const MAX_HEAD: usize = 64 << 10;

/// What a pooled client is made of.
#[derive(Clone)]
pub(crate) struct ClientSettings {
    pub(crate) guard: Arc<AddressGuard>,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) idle_per_host: usize,
}

impl ClientSettings {
    pub(crate) fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            guard: Arc::default(),
            resolver,
            connect_timeout: super::Timeouts::default().connect,
            idle_timeout: IDLE,
            idle_per_host: 256,
        }
    }
}

/// A client with its pool. Clones share the pool.
#[derive(Clone)]
pub(crate) struct PooledClient(Client<Connector, PhaseBody>);

impl PooledClient {
    pub(crate) fn new(settings: &ClientSettings) -> Result<Self, Error> {
        let resolver = GuardedResolver {
            resolver: settings.resolver.clone(),
            guard: settings.guard.clone(),
        };
        let connector = Connector::new(
            settings.guard.clone(),
            resolver,
            Arc::new(tls::default_config()?),
            settings.connect_timeout,
        );
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(settings.idle_timeout)
            .pool_max_idle_per_host(settings.idle_per_host)
            .http1_max_buf_size(MAX_HEAD)
            .build(connector);
        Ok(Self(client))
    }

    /// Sends one request and waits for the head of the answer. No redirects, no retries beyond a
    /// request that no connection had taken yet.
    pub(crate) async fn send(
        &self,
        request: Request<PhaseBody>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        self.0.request(request).await
    }
}

impl fmt::Debug for PooledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PooledClient")
    }
}
