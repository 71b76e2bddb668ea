//! What a request looks like, and what answers mean.

mod support;

use std::time::Duration;

use outbox_http::outbox_core::{DeathReason, DeliveryErrorKind, ErrorKind, Phase, Transport};
use outbox_http::{HttpFailure, HttpFailureKind, StandardWebhooks, Verifier, Webhooks, XSignature};
use support::{OK, Receiver, SECRET, builder, delivery, event, send};

const STANDARD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[tokio::test]
async fn posts_the_exact_payload_signed_with_every_scheme() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let webhooks = builder()
        .signer(StandardWebhooks::new(STANDARD).unwrap())
        .build()
        .unwrap();
    let mut event = event(&receiver.url());
    event
        .headers
        .insert("traceparent".into(), "00-a-b-01".into());
    let id = event.id.to_string();
    let delivery = delivery(event);
    let receipt = webhooks.deliver(delivery.clone()).await.unwrap();
    assert_eq!(receipt.detail.as_deref(), Some("200 OK"));
    assert_eq!(delivery.phase(), Phase::Answered);

    let seen = seen.recv().await.unwrap();
    assert!(
        seen.head.starts_with("POST /hooks HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(seen.body, b"{\"after\":\"4f1c\"}");
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.headers["traceparent"], "00-a-b-01");
    assert_eq!(seen.headers["x-webhook-id"], id);
    assert!(
        seen.headers["user-agent"]
            .to_str()
            .unwrap()
            .starts_with("outbox-http/")
    );
    let standard = StandardWebhooks::new(STANDARD).unwrap();
    let verified = standard.verify(&seen.headers, &seen.body).unwrap();
    assert_eq!(verified.id.as_deref(), Some(id.as_str()));
    let course = XSignature::new(SECRET).unwrap();
    course.verify(&seen.headers, &seen.body).unwrap();
}

#[tokio::test]
async fn uses_one_connection_again() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let webhooks = builder().build().unwrap();
    for _ in 0..3 {
        send(&webhooks, &receiver.url()).await.0.unwrap();
    }
    for _ in 0..3 {
        seen.recv().await.unwrap();
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn answers_become_outcomes() {
    let rejected = DeliveryErrorKind::Permanent(DeathReason::Rejected);
    let gone = DeliveryErrorKind::Permanent(DeathReason::Gone);
    let cases = [
        ("400 Bad Request", rejected),
        ("404 Not Found", rejected),
        ("410 Gone", gone),
        ("429 Too Many Requests", DeliveryErrorKind::Throttled),
        ("500 Internal Server Error", DeliveryErrorKind::Transient),
        ("302 Found", DeliveryErrorKind::Transient),
    ];
    let webhooks = builder().build().unwrap();
    for (status, kind) in cases {
        let answer =
            format!("HTTP/1.1 {status}\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nwhy?");
        let receiver = Receiver::answering(answer).await;
        let (result, delivery) = send(&webhooks, &receiver.url()).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(
            error.report(),
            format!("the receiver answered {status}: the answer begins: why?")
        );
        assert_eq!(delivery.phase(), Phase::Answered);
    }
}

#[tokio::test]
async fn nothing_is_sent_where_nobody_listens() {
    let (result, delivery) = send(&builder().build().unwrap(), "http://127.0.0.1:1/").await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), DeliveryErrorKind::Transient);
    assert_eq!(error.phase(), Some(Phase::Waiting));
    assert_eq!(delivery.phase(), Phase::Waiting);
    assert_eq!(
        HttpFailure::of(&error).unwrap().kind(),
        HttpFailureKind::Connect
    );
}

#[tokio::test]
async fn the_guard_is_on_unless_told_otherwise() {
    let webhooks = Webhooks::builder().unsigned().build().unwrap();
    let (result, delivery) = send(&webhooks, "http://127.0.0.1/").await;
    let error = result.unwrap_err();
    assert_eq!(
        error.kind(),
        DeliveryErrorKind::Permanent(DeathReason::Unroutable)
    );
    assert_eq!(
        HttpFailure::of(&error).unwrap().kind(),
        HttpFailureKind::Refused
    );
    assert_eq!(delivery.phase(), Phase::Waiting);
}

#[tokio::test]
async fn what_is_no_url_is_unroutable() {
    let webhooks = builder().build().unwrap();
    for destination in [
        "ci",
        "ftp://ci.example/",
        "http://",
        "https://u:p@ci.example/",
        "http://a b/",
    ] {
        let error = send(&webhooks, destination).await.0.unwrap_err();
        assert_eq!(
            error.kind(),
            DeliveryErrorKind::Permanent(DeathReason::Unroutable)
        );
        assert!(!error.report().contains("u:p"));
    }
}

#[tokio::test]
async fn headers_of_an_event_can_inject_nothing() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let webhooks = builder().build().unwrap();
    for (name, value) in [
        ("x-a", "1\r\nx-b: 2"),
        ("x-a\r\nx-b", "1"),
        ("host", "other.example"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-signature"),
    ] {
        let mut event = event(&receiver.url());
        event.headers.insert(name.into(), value.into());
        let error = webhooks.deliver(delivery(event)).await.unwrap_err();
        assert_eq!(
            error.kind(),
            DeliveryErrorKind::Permanent(DeathReason::Unroutable),
            "{name}"
        );
    }
    assert!(seen.try_recv().is_err());
}

#[test]
fn a_transport_without_a_signer_is_refused() {
    let error = Webhooks::builder().build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert_eq!(
        error.to_string(),
        "setting `signer` is missing; add one, or say `unsigned()`"
    );
}
