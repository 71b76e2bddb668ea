//! A user's own `reqwest` client in place of the built-in one.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use outbox_core::Error;
use reqwest::dns::{Addrs, Name, Resolving};
use reqwest::redirect;

use super::failure::from_reqwest;
use super::{HttpFailure, HttpFailureKind, PhaseBody, ResponseBody, Timeouts};
use crate::guard::GuardedResolver;

/// Builds the client with what delivery needs: no redirects, no proxy from the environment, no
/// `Referer`, the guard in the name lookup, and the deadline to connect.
pub(crate) fn build(
    builder: reqwest::ClientBuilder,
    resolver: GuardedResolver,
    timeouts: &Timeouts,
) -> Result<reqwest::Client, Error> {
    builder
        .redirect(redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .connect_timeout(timeouts.connect)
        .dns_resolver(Arc::new(resolver))
        .build()
        .map_err(|source| {
            Error::invalid_config("reqwest", "has unusable settings")
                .with_source(source.without_url())
        })
}

/// Sends one request and waits for the head of the answer.
pub(super) async fn send(
    client: &reqwest::Client,
    request: Request<PhaseBody>,
) -> Result<Response<ResponseBody>, HttpFailure> {
    let request = request.map(|body| reqwest::Body::wrap(body.size_is_free()));
    let request = reqwest::Request::try_from(request).map_err(|source| {
        HttpFailure::new(HttpFailureKind::Request).with_source(source.without_url())
    })?;
    let asked = request.url().clone();
    let answer = client.execute(request).await.map_err(from_reqwest)?;
    if *answer.url() != asked {
        let detail = "the reqwest client followed a redirect, which it must not";
        return Err(HttpFailure::new(HttpFailureKind::Protocol).with_detail(detail));
    }
    Ok(Response::from(answer).map(ResponseBody::Reqwest))
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = self.clone().lookup(name.as_str().to_owned());
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup.await?;
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
