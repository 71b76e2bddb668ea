use std::convert::Infallible;

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use outbox_core::{DeliveryErrorKind, Phase, TokioTimer, Transport};
use outbox_tower::ServiceTransport;
use outbox_tower::deadline::{DeadlineExceeded, DeadlineLayer, HttpDeadlineLayer};
use tower::{Layer, ServiceExt};

use crate::support::{Never, SECOND, delivery};

#[tokio::test(start_paused = true)]
async fn covers_a_service_that_never_becomes_ready() {
    let stack = DeadlineLayer::new(5 * SECOND, TokioTimer).layer(Never);
    let delivery = delivery();
    let error = ServiceTransport::new(stack)
        .deliver(delivery.clone())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), DeliveryErrorKind::Transient);
    assert_eq!(delivery.phase(), Phase::Waiting);
}

#[tokio::test(start_paused = true)]
async fn covers_a_body_that_never_ends() {
    let endless = tower::service_fn(|_: Request<Full<Bytes>>| async {
        let frames = futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
        Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
    });
    let service = HttpDeadlineLayer::new(5 * SECOND, TokioTimer).layer(endless);
    let response = service.oneshot(Request::default()).await.unwrap();
    let began = tokio::time::Instant::now();
    let error = response.into_body().collect().await.unwrap_err();
    assert!(error.is::<DeadlineExceeded>());
    assert_eq!(began.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn leaves_a_body_in_time_alone() {
    let service = tower::service_fn(|_: Request<Full<Bytes>>| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"all of it"))))
    });
    let service = HttpDeadlineLayer::new(5 * SECOND, TokioTimer).layer(service);
    let response = service.oneshot(Request::default()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "all of it");
}
