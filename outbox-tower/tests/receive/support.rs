use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::Request;
use http::request::Parts;
use http_body_util::BodyExt;
use outbox_core::async_trait;
use outbox_tower::receive::{Refused, Verified, VerifyRequest};
use tower::ServiceExt;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Takes what says `x-signature: good`, from `x-source`, with the id in `webhook-id`.
#[derive(Clone)]
pub(crate) struct ByHeader;

#[async_trait]
impl VerifyRequest for ByHeader {
    async fn verify(&self, head: &Parts, _: &Bytes) -> Result<Verified, Refused> {
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        match header("x-signature") {
            Some("good") => {}
            Some("unsure") => return Err(Refused::unavailable("the key service is down")),
            _ => return Err(Refused::new("a secret reason")),
        }
        let verified = Verified::new(header("x-source").unwrap_or("forge"));
        Ok(match header("webhook-id") {
            Some(id) => verified.with_id(id),
            None => verified,
        })
    }
}

pub(crate) fn post(headers: &[(&str, &str)], body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::post("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

pub(crate) async fn send(app: &Router, request: Request<Body>) -> Response {
    app.clone().oneshot(request).await.unwrap()
}

pub(crate) async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
