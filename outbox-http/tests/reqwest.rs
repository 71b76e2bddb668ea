//! A `reqwest` client in place of the built-in one.
#![cfg(feature = "reqwest")]

mod support;

use outbox_http::outbox_core::{DeliveryErrorKind as Kind, Phase};
use outbox_http::{HttpFailure, HttpFailureKind as Failure};
use support::{OK, Receiver, builder, read_request, send};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn delivers_with_a_content_length() {
    let receiver = Receiver::run(|mut stream| async move {
        while let Some(seen) = read_request(&mut stream).await {
            let fits = seen.headers["content-length"] == "16" && seen.body.len() == 16;
            let status = if fits { "200 OK" } else { "400 No" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await;
    for webhooks in [
        builder().reqwest(reqwest::Client::builder()),
        builder().reqwest_client(reqwest::Client::new()),
    ] {
        let webhooks = webhooks.build().unwrap();
        let (result, delivery) = send(&webhooks, &receiver.url()).await;
        assert_eq!(result.unwrap().detail.as_deref(), Some("200 OK"));
        assert_eq!(delivery.phase(), Phase::Answered);
    }
}

#[tokio::test]
async fn knows_what_was_sent_and_what_was_not() {
    let webhooks = builder()
        .reqwest(reqwest::Client::builder())
        .build()
        .unwrap();
    let (result, delivery) = send(&webhooks, "http://127.0.0.1:1/s3cret").await;
    let error = result.unwrap_err();
    assert_eq!(HttpFailure::of(&error).unwrap().kind(), Failure::Connect);
    assert_eq!(delivery.phase(), Phase::Waiting);
    assert!(!error.report().contains("s3cret"));

    let silent =
        Receiver::run(
            |mut stream| async move { while read_request(&mut stream).await.is_some() {} },
        )
        .await;
    let (result, delivery) = send(&webhooks, &silent.url()).await;
    let error = result.unwrap_err();
    assert_eq!(
        HttpFailure::of(&error).unwrap().kind(),
        Failure::HeadTimeout
    );
    assert_eq!(delivery.phase(), Phase::Sending);

    let resetting = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        stream.set_zero_linger().unwrap();
    })
    .await;
    let error = send(&webhooks, &resetting.url()).await.0.unwrap_err();
    assert_eq!(error.phase(), Some(Phase::Sending));
}

#[tokio::test]
async fn a_redirect_is_never_a_success() {
    let receiver = Receiver::run(|mut stream| async move {
        while let Some(seen) = read_request(&mut stream).await {
            let answer = match seen.head.contains("/login") {
                true => OK,
                false => "HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n",
            };
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await;
    let hardened = builder()
        .reqwest(reqwest::Client::builder())
        .build()
        .unwrap();
    let error = send(&hardened, &receiver.url()).await.0.unwrap_err();
    assert!(error.report().contains("302"), "{}", error.report());
    let as_is = builder()
        .reqwest_client(reqwest::Client::new())
        .build()
        .unwrap();
    let error = send(&as_is, &receiver.url()).await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient, "{}", error.report());
}

/// Deliveries that were meant to go through a proxy must not go out without it.
#[test]
fn an_egress_proxy_beside_a_reqwest_client_is_refused() {
    for webhooks in [
        builder().reqwest(reqwest::Client::builder()),
        builder().reqwest_client(reqwest::Client::new()),
    ] {
        let webhooks = webhooks.egress_proxy("http://proxy:3128").unwrap();
        let error = webhooks.build().unwrap_err().to_string();
        assert!(
            error.starts_with("setting `egress_proxy` is not used"),
            "{error}"
        );
    }
}
