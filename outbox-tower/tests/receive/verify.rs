use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::routing::post as on_post;
use axum::{Extension, Router};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{Full, StreamBody};
use outbox_core::TokioTimer;
use outbox_tower::receive::{Payload, Verified, VerifyLayer};
use tower::{Layer, ServiceExt};

use crate::support::{ByHeader, SECOND, post, send, text};

fn app() -> (Router, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let echo = |Extension(verified): Extension<Verified>, body: Bytes| async move {
        count.fetch_add(1, Ordering::SeqCst);
        assert!(verified.fingerprint.is_some());
        (
            [("x-seen", format!("{} {:?}", verified.source, verified.id))],
            body,
        )
    };
    let layer = VerifyLayer::new(ByHeader)
        .body_limit(16)
        .body_timeout(5 * SECOND, TokioTimer);
    (Router::new().route("/", on_post(echo)).layer(layer), calls)
}

#[tokio::test]
async fn what_is_good_comes_through_byte_for_byte() {
    let (app, _) = app();
    let body = &b"\xff\0 {not json"[..];
    let request = post(&[("x-signature", "good"), ("webhook-id", "m1")], body);
    let response = send(&app, request).await;
    assert_eq!(response.headers()["x-seen"], "forge Some(\"m1\")");
    let echoed = axum::body::to_bytes(response.into_body(), 100)
        .await
        .unwrap();
    assert_eq!(echoed, body);
}

#[tokio::test]
async fn what_is_not_is_told_nothing_and_reaches_nobody() {
    let (app, calls) = app();
    let response = send(&app, post(&[], "x")).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let media_type = &response.headers()["content-type"];
    assert_eq!(media_type, "application/problem+json");
    assert_eq!(
        text(response).await,
        r#"{"title":"unauthorized","status":401}"#
    );
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_verifier_that_cannot_tell_makes_the_sender_try_again() {
    let (app, _) = app();
    let response = send(&app, post(&[("x-signature", "unsure")], "x")).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_and_without_a_length() {
    let (app, calls) = app();
    let good = [("x-signature", "good")];
    let known = send(&app, post(&good, "seventeen bytes..")).await;
    assert_eq!(known.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let chunks = futures::stream::iter((0..3).map(|_| Ok::<_, std::io::Error>("8 bytes.")));
    let streamed = send(&app, post(&good, Body::from_stream(chunks))).await;
    assert_eq!(streamed.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_or_does_not_come_is_refused() {
    let (app, _) = app();
    let broken = futures::stream::iter([Ok("a"), Err(std::io::Error::other("reset"))]);
    let response = send(&app, post(&[], Body::from_stream(broken))).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let silent = futures::stream::pending::<Result<Bytes, std::io::Error>>();
    let response = send(&app, post(&[], Body::from_stream(silent))).await;
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn a_plain_service_with_a_streaming_body_works_too() {
    let echo = tower::service_fn(|request: Request<Payload<_>>| async move {
        let body = http_body_util::BodyExt::collect(request.into_body()).await;
        let body = body.unwrap().to_bytes();
        Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(body)))
    });
    let service = VerifyLayer::new(ByHeader).layer(echo);
    let frames = futures::stream::iter(
        ["a", "b"].map(|text| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(text)))),
    );
    let request = Request::post("/")
        .header("x-signature", "good")
        .body(Payload::new(StreamBody::new(frames)))
        .unwrap();
    let response = service.oneshot(request).await.unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "ab");
}
