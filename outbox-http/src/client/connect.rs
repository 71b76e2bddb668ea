//! The connector: guard, name lookup, TCP or a tunnel, TLS, one deadline over all.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::proxy::EgressProxy;
use crate::guard::{AddressGuard, GuardedResolver};

type BoxError = Box<dyn StdError + Send + Sync>;
type Tcp = TokioIo<TcpStream>;

/// TLS over guarded TCP, within a deadline.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<GuardedTcp>,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(
        resolver: GuardedResolver,
        proxy: Option<EgressProxy>,
        tls: rustls::ClientConfig,
        limit: Duration,
    ) -> Self {
        let guard = resolver.guard.clone();
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(limit));
        let tcp = GuardedTcp {
            tcp,
            proxy,
            // Sooner than the deadline over all, which can't tell whose fault it is.
            proxy_limit: limit / 10 * 9,
            guard,
        };
        Self {
            https: (tcp, tls).into(),
            limit,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Tcp>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.limit, self.https.call(uri));
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectTimedOut.into()),
            }
        })
    }
}

/// TCP to admitted addresses only.
#[derive(Clone)]
struct GuardedTcp {
    tcp: HttpConnector<GuardedResolver>,
    proxy: Option<EgressProxy>,
    proxy_limit: Duration,
    guard: Arc<AddressGuard>,
}

impl Service<Uri> for GuardedTcp {
    type Response = Tcp;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Tcp, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // The connector never asks the resolver about an IP literal, so literals are checked here.
        if let Err(refused) = self.guard.check_uri(&uri) {
            return Box::pin(async move { Err(refused.into()) });
        }
        if let Some(proxy) = self.proxy.clone() {
            let limit = self.proxy_limit;
            return Box::pin(async move { Ok(TokioIo::new(proxy.tunnel(&uri, limit).await?)) });
        }
        let host = uri.host().unwrap_or_default().to_owned();
        let guard = self.guard.clone();
        let connecting = self.tcp.call(uri);
        Box::pin(async move {
            let stream = connecting.await?;
            // The last word is the socket's own, before a byte is written.
            let peer = stream.inner().peer_addr()?;
            guard.check_address_of(&host, peer.ip())?;
            Ok(stream)
        })
    }
}

/// The deadline for a connection has passed.
#[derive(Debug)]
pub(super) struct ConnectTimedOut;

impl fmt::Display for ConnectTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection in time")
    }
}

impl StdError for ConnectTimedOut {}

/// A name could not be looked up.
#[derive(Debug)]
pub(crate) struct LookupFailed(pub(crate) io::Error);

impl fmt::Display for LookupFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("name lookup failed")
    }
}

impl StdError for LookupFailed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}
