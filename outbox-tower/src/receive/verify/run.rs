use std::future::poll_fn;
use std::time::Duration;

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body::Body;
use tower::BoxError;
use tower_service::Service;

use super::{VerifyLayer, VerifyRequest};
use crate::receive::fingerprint::fingerprint;
use crate::receive::problem::Problem;

/// One request, from its first byte to its answer.
pub(super) async fn run<S, V, B, RB>(
    layer: VerifyLayer<V>,
    mut inner: S,
    request: Request<B>,
) -> Result<Response<RB>, S::Error>
where
    S: Service<Request<B>, Response = Response<RB>>,
    V: VerifyRequest + ?Sized,
    B: Body<Error: Into<BoxError>> + From<Bytes>,
    RB: From<Bytes>,
{
    match verify(&layer, request).await {
        Ok(request) => {
            poll_fn(|cx| inner.poll_ready(cx)).await?;
            inner.call(request).await
        }
        Err(problem) => Ok(problem.into_response()),
    }
}

async fn verify<V, B>(layer: &VerifyLayer<V>, request: Request<B>) -> Result<Request<B>, Problem>
where
    V: VerifyRequest + ?Sized,
    B: Body<Error: Into<BoxError>> + From<Bytes>,
{
    let (mut head, body) = request.into_parts();
    let body = layer.limits.read(body).await?;
    let mut verified = layer
        .verifier
        .verify(&head, &body)
        .await
        .map_err(|refused| {
            tracing::info!(path = head.uri.path(), reason = %refused, "request refused");
            if refused.is_unavailable() {
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "try again later");
                return problem.after(Duration::from_secs(1));
            }
            Problem::new(StatusCode::UNAUTHORIZED, "unauthorized")
        })?;
    verified.fingerprint = Some(fingerprint(&[&body]));
    head.extensions.insert(verified);
    Ok(Request::from_parts(head, B::from(body)))
}
