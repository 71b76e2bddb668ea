//! A pooled client: one for each identity and guard.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use outbox_core::Error;

use super::connect::Connector;
use super::failure::from_hyper;
use super::proxy::EgressProxy;
use super::tls::Roots;
use super::{HttpFailure, HttpVersion, Identity, PhaseBody, ResponseBody, Timeouts};
use crate::guard::{AddressGuard, GuardedResolver, Resolve};

/// Shorter than the keep-alive time of common servers (5 s in Node.js and Apache), so that a request
/// seldom meets a connection that the server is closing.
const IDLE: Duration = Duration::from_secs(4);

/// The most bytes of a response head.
const MAX_HEAD: usize = 64 << 10;

/// What pooled clients are made of.
#[derive(Clone)]
pub(crate) struct ClientSettings {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) roots: Roots,
    pub(crate) proxy: Option<EgressProxy>,
    pub(crate) version: HttpVersion,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) idle_per_host: usize,
}

impl ClientSettings {
    pub(crate) fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            resolver,
            roots: Roots::default(),
            proxy: None,
            version: HttpVersion::default(),
            connect_timeout: Timeouts::default().connect,
            idle_timeout: IDLE,
            idle_per_host: 256,
        }
    }
}

/// A client with its pool. Clones share the pool.
#[derive(Clone)]
pub(crate) enum PooledClient {
    Hyper(Arc<Client<Connector, PhaseBody>>),
    #[cfg(feature = "reqwest")]
    Reqwest(reqwest::Client),
}

impl PooledClient {
    pub(crate) fn new(
        settings: &ClientSettings,
        guard: &Arc<AddressGuard>,
        identity: Option<&Identity>,
    ) -> Result<Self, Error> {
        let resolver = GuardedResolver {
            resolver: settings.resolver.clone(),
            guard: guard.clone(),
        };
        let tls = settings.roots.config(identity, settings.version)?;
        let proxy = settings.proxy.clone();
        let connector = Connector::new(resolver, proxy, tls, settings.connect_timeout);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(settings.idle_timeout)
            .pool_max_idle_per_host(settings.idle_per_host)
            .http1_max_buf_size(MAX_HEAD);
        #[cfg(feature = "http2")]
        builder
            .http2_only(settings.version == HttpVersion::Http2)
            .http2_keep_alive_interval(Duration::from_secs(10))
            .http2_keep_alive_timeout(Duration::from_secs(5))
            .http2_keep_alive_while_idle(true)
            .http2_max_header_list_size(16 << 10);
        Ok(Self::Hyper(Arc::new(builder.build(connector))))
    }

    /// Sends one request and waits for the head of the answer. No redirects, no retries beyond a
    /// request that no connection had taken yet.
    pub(crate) async fn send(
        &self,
        request: Request<PhaseBody>,
    ) -> Result<Response<ResponseBody>, HttpFailure> {
        match self {
            Self::Hyper(client) => match client.request(request).await {
                Ok(answer) => Ok(answer.map(ResponseBody::Hyper)),
                Err(error) => Err(from_hyper(&error)),
            },
            #[cfg(feature = "reqwest")]
            Self::Reqwest(client) => super::reqwest_client::send(client, request).await,
        }
    }
}
