//! What is signed for, and by whom: nothing goes out unsigned by mistake.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_http::outbox_core::{
    DeliveryErrorKind as Kind, Error, Phase, SignatureHeader, Signer, SigningInput, async_trait,
};
use outbox_http::{
    DestinationRecord, Endpoint, GitHub, HttpFailure, HttpFailureKind as Failure, MapDestinations,
    SharedSecret, StandardWebhooks, Verifier, Webhooks, WebhooksBuilder, XSignature,
};
use support::{OK, Receiver, builder, send, short};

const STANDARD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A transport that has no signer of its own.
fn bare() -> WebhooksBuilder {
    Webhooks::builder()
        .allow_private_networks()
        .timeouts(short())
}

#[tokio::test]
async fn an_endpoint_for_which_nobody_signs_is_not_delivered_to() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let record = DestinationRecord::new(receiver.url());
    let destinations = MapDestinations::new().with("ci", record.endpoint().unwrap());
    let webhooks = bare()
        .recheck_disabled(Duration::from_secs(9))
        .destinations(destinations.clone())
        .build()
        .unwrap();
    let (result, delivery) = send(&webhooks, "ci").await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted, "{}", error.report());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
    assert!(
        error.report().contains("`unsigned()`"),
        "{}",
        error.report()
    );
    assert_eq!(
        HttpFailure::of(&error).unwrap().kind(),
        Failure::Destination
    );
    assert_eq!(delivery.phase(), Phase::Waiting);
    assert!(seen.try_recv().is_err());

    // It says so itself, or the transport does for all.
    let open = Endpoint::new(&receiver.url()).unwrap().unsigned();
    destinations.insert("open", open);
    send(&webhooks, "open").await.0.unwrap();
    let webhooks = bare().unsigned().destinations(destinations.clone());
    send(&webhooks.build().unwrap(), "ci").await.0.unwrap();
    let webhooks = builder().destinations(destinations).build().unwrap();
    send(&webhooks, "open").await.0.unwrap();
    for _ in 0..3 {
        let seen = seen.recv().await.unwrap();
        assert!(!seen.headers.contains_key("x-signature"), "{}", seen.head);
    }
}

#[tokio::test]
async fn two_signers_that_write_one_header_differently_send_nothing() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let secret = |text| SharedSecret::new(text).unwrap();
    let webhooks = builder()
        .signer(XSignature::with_secret(secret("another secret of ours")))
        .build()
        .unwrap();
    let error = send(&webhooks, &receiver.url()).await.0.unwrap_err();
    assert_eq!(HttpFailure::of(&error).unwrap().kind(), Failure::Signing);
    let report = error.report();
    assert!(
        report.contains("two signers write the header `x-signature`"),
        "{report}"
    );
    assert!(seen.try_recv().is_err());

    // The same twice, and what has room for several.
    let webhooks = builder()
        .signer(XSignature::with_secret(secret(support::SECRET)))
        .signer(GitHub::with_secret(secret(support::SECRET)))
        .signer(StandardWebhooks::new(STANDARD).unwrap())
        .signer(StandardWebhooks::new(OTHER).unwrap())
        .build()
        .unwrap();
    send(&webhooks, &receiver.url()).await.0.unwrap();
    let seen = seen.recv().await.unwrap();
    for verifier in [
        &StandardWebhooks::new(STANDARD).unwrap() as &dyn Verifier,
        &StandardWebhooks::new(OTHER).unwrap(),
        &XSignature::new(support::SECRET).unwrap(),
        &GitHub::new(support::SECRET).unwrap(),
    ] {
        verifier.verify(&seen.headers, &seen.body).unwrap();
    }
}

/// Writes the header as the specification's text does.
struct Capitals(StandardWebhooks);

#[async_trait]
impl Signer for Capitals {
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        let mut headers = self.0.sign(input).await?;
        for header in &mut headers {
            header.name = header.name.replace("webhook-s", "Webhook-S");
        }
        Ok(headers)
    }
}

#[tokio::test]
async fn a_signer_may_write_its_header_in_capitals() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let webhooks = bare()
        .signer(StandardWebhooks::new(STANDARD).unwrap())
        .signer(Capitals(StandardWebhooks::new(OTHER).unwrap()))
        .build()
        .unwrap();
    send(&webhooks, &receiver.url()).await.0.unwrap();
    let seen = seen.recv().await.unwrap();
    for key in [STANDARD, OTHER] {
        let verifier = StandardWebhooks::new(key).unwrap();
        verifier.verify(&seen.headers, &seen.body).unwrap();
    }
}

#[tokio::test]
async fn an_event_cannot_set_a_header_that_a_signer_writes() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let mut event = support::event(&receiver.url());
    for name in ["X-Signature", "x-webhook-id"] {
        event.headers.insert(name.into(), "forged".into());
    }
    let webhooks = builder().build().unwrap();
    let delivery = support::delivery(event);
    outbox_http::outbox_core::Transport::deliver(&webhooks, delivery)
        .await
        .unwrap();
    let seen = seen.recv().await.unwrap();
    let verifier = XSignature::new(support::SECRET).unwrap();
    verifier.verify(&seen.headers, &seen.body).unwrap();
    assert_ne!(seen.headers["x-webhook-id"], "forged");
}

/// A key service that is slow for one delivery holds up no other.
struct Slow(Arc<AtomicUsize>);

#[async_trait]
impl Signer for Slow {
    async fn sign(&self, _: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            std::future::pending::<()>().await;
        }
        Ok(vec![SignatureHeader::new("x-kms", "signed")])
    }
}

#[tokio::test]
async fn a_slow_key_service_holds_up_no_other_delivery() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let webhooks = bare().signer(Slow(Arc::default())).build().unwrap();
    let url = receiver.url();
    let stuck = tokio::spawn({
        let (webhooks, url) = (webhooks.clone(), url.clone());
        async move { send(&webhooks, &url).await.0 }
    });
    tokio::task::yield_now().await;
    send(&webhooks, &url).await.0.unwrap();
    assert_eq!(seen.recv().await.unwrap().headers["x-kms"], "signed");
    assert!(!stuck.is_finished());
    stuck.abort();
}
