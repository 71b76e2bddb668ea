use bytes::Bytes;
use http_body_util::Full;
use outbox_core::{
    DeliveryErrorKind, Error, Phase, SignatureHeader, Signer, SigningInput, TokioTimer, Transport,
    async_trait,
};
use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
use outbox_tower::concurrency::ConcurrencyLayer;
use outbox_tower::deadline::{DeadlineLayer, HttpDeadlineLayer};
use outbox_tower::fallback::FallbackLayer;
use outbox_tower::http::HttpService;
use outbox_tower::rate::{Rate, RateLayer};
use outbox_tower::route::Route;
use outbox_tower::sign::SignLayer;
use outbox_tower::trace::TraceLayer;
use outbox_tower::{ByDestination, ServiceTransport};
use tower::{Layer, ServiceBuilder};

use crate::support::{Broken, Never, Picky, SECOND, delivery, delivery_to, kind, poll_once};

#[tokio::test]
async fn every_clone_is_readied_before_it_is_called() {
    let transport = ServiceTransport::new(Picky::default());
    for _ in 0..3 {
        transport.deliver(delivery()).await.unwrap();
    }
}

#[tokio::test]
async fn a_serialized_service_is_readied_before_each_call() {
    let transport = ServiceTransport::serialized(Picky::default());
    for _ in 0..3 {
        transport.deliver(delivery()).await.unwrap();
    }
}

#[tokio::test]
async fn every_layer_readies_what_it_calls() {
    let rate = Rate::per_second(100.try_into().unwrap());
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new())
        .layer(ConcurrencyLayer::new(8, ByDestination))
        .layer(RateLayer::new(rate, ByDestination))
        .layer(CircuitBreakerLayer::per_destination(Breaker::default()))
        .layer(DeadlineLayer::new(SECOND, TokioTimer))
        .layer(FallbackLayer::new(Picky::default()))
        .service(Route::by_event_type().otherwise(Picky::default()));
    let transport = ServiceTransport::new(stack);
    for _ in 0..3 {
        transport.deliver(delivery()).await.unwrap();
    }
    let bare = TraceLayer::new().layer(Picky::default());
    ServiceTransport::new(bare)
        .deliver(delivery())
        .await
        .unwrap();
}

#[tokio::test]
async fn every_layer_of_requests_readies_what_it_calls() {
    struct Nothing;
    #[async_trait]
    impl Signer for Nothing {
        async fn sign(&self, _: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
            Ok(Vec::new())
        }
    }
    let stack = ServiceBuilder::new()
        .layer(HttpDeadlineLayer::new(SECOND, TokioTimer))
        .layer(SignLayer::<_, Full<Bytes>>::new(Nothing))
        .service(Picky::default());
    let transport = ServiceTransport::new(HttpService::<_, Bytes>::new(stack));
    for _ in 0..3 {
        let delivery = delivery_to("https://ci.example/hooks");
        transport.deliver(delivery).await.unwrap();
    }
}

#[cfg(feature = "metrics")]
#[tokio::test]
async fn the_metrics_layer_readies_what_it_calls() {
    let stack = outbox_tower::metrics::MetricsLayer::new().layer(Picky::default());
    let transport = ServiceTransport::new(stack);
    for _ in 0..3 {
        transport.deliver(delivery()).await.unwrap();
    }
}

#[tokio::test]
async fn the_attempt_is_waiting_until_the_call() {
    let stack = CircuitBreakerLayer::per_destination(Breaker::default()).layer(Never);
    let transports: [Box<dyn Transport>; 3] = [
        Box::new(ServiceTransport::new(Never)),
        Box::new(ServiceTransport::serialized(Never)),
        Box::new(ServiceTransport::new(stack)),
    ];
    for transport in transports {
        let delivery = delivery();
        let mut future = transport.deliver(delivery.clone());
        assert!(poll_once(&mut future).await.is_none());
        assert_eq!(delivery.phase(), Phase::Waiting);
    }
}

#[tokio::test]
async fn a_service_that_fails_before_the_call_was_not_attempted() {
    let layered = CircuitBreakerLayer::per_destination(Breaker::default()).layer(Broken);
    let transports: [Box<dyn Transport>; 3] = [
        Box::new(ServiceTransport::new(Broken)),
        Box::new(ServiceTransport::serialized(Broken)),
        Box::new(ServiceTransport::new(layered)),
    ];
    for transport in transports {
        let delivery = delivery();
        let result = transport.deliver(delivery.clone()).await;
        assert_eq!(kind(&result), Some(DeliveryErrorKind::NotAttempted));
        assert_eq!(delivery.phase(), Phase::Waiting);
        let report = result.unwrap_err().report();
        assert!(report.ends_with("no connection"), "{report}");
    }
}

#[tokio::test]
async fn a_serialized_service_that_hangs_in_a_call_holds_up_no_other() {
    let service = tower::service_fn(|delivery: outbox_core::Delivery| async move {
        if delivery.event().destination == "hangs" {
            std::future::pending::<()>().await;
        }
        Ok::<_, outbox_core::DeliveryError>(outbox_core::Receipt::new())
    });
    let transport = ServiceTransport::serialized(service);
    let mut hanging = transport.deliver(delivery_to("hangs"));
    assert!(poll_once(&mut hanging).await.is_none());
    transport.deliver(delivery()).await.unwrap();
}
