use std::convert::Infallible;

use ::http::{Request, Response};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use outbox_core::{DeliveryErrorKind, Phase, TokioTimer, Transport};
use outbox_tower::concurrency::ConcurrencyLayer;
use outbox_tower::deadline::{DeadlineExceeded, DeadlineLayer, HttpDeadlineLayer};
use outbox_tower::http::HttpService;
use outbox_tower::{ByDestination, ServiceTransport};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::support::{Never, SECOND, delivery, delivery_to};

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

type Endless = StreamBody<futures::stream::Pending<Result<Frame<Bytes>, Infallible>>>;

/// Answers with a head at once, and a body that never ends.
async fn endless(_: Request<Full<Bytes>>) -> Result<Response<Endless>, Infallible> {
    Ok(Response::new(StreamBody::new(futures::stream::pending())))
}

#[tokio::test(start_paused = true)]
async fn of_tower_ends_at_the_head_of_an_answer_as_does_its_limit() {
    let mut service = ServiceBuilder::new()
        .timeout(5 * SECOND)
        .concurrency_limit(1)
        .service(tower::service_fn(endless));
    let first = service.ready().await.unwrap();
    let first = first.call(Request::default()).await.unwrap();
    let second = service.ready().await.unwrap();
    second.call(Request::default()).await.unwrap(); // while the first body still comes
    let body = tokio::time::timeout(60 * SECOND, first.into_body().collect());
    assert!(body.await.is_err(), "the time-out is for the head alone");
}

/// A transport reads the head alone: the event is delivered, and no body holds a place.
#[tokio::test(start_paused = true)]
async fn is_not_needed_for_the_body_of_an_answer_to_a_delivery() {
    let stack = ServiceBuilder::new()
        .layer(ConcurrencyLayer::new(1, ByDestination))
        .service(HttpService::new(tower::service_fn(endless)));
    let transport = ServiceTransport::new(stack);
    for _ in 0..3 {
        let delivery = delivery_to("https://ci.example/hooks");
        transport.deliver(delivery.clone()).await.unwrap();
        assert_eq!(delivery.phase(), Phase::Answered);
    }
}

#[tokio::test(start_paused = true)]
async fn covers_a_body_that_never_ends() {
    let endless = tower::service_fn(endless);
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
