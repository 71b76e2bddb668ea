use std::num::NonZeroU32;

use outbox_core::{DeliveryErrorKind, Phase, TokioTimer, Transport};
use outbox_tower::rate::{Rate, RateLayer};
use outbox_tower::{ByDestination, ServiceTransport, TransportService};
use tower::Layer;

use crate::support::{Moody, SECOND, delivery, delivery_to, poll_once};

fn two_a_second() -> Rate {
    Rate::per_second(NonZeroU32::new(2).unwrap())
}

#[tokio::test]
async fn a_key_over_its_rate_refuses_unattempted_and_says_when() {
    let moody = Moody::default();
    let layer = RateLayer::new(Rate::every(3_600 * SECOND), ByDestination);
    let transport = ServiceTransport::new(layer.layer(TransportService::new(moody.clone())));
    transport.deliver(delivery_to("a")).await.unwrap();
    let refused = transport.deliver(delivery_to("a")).await.unwrap_err();
    assert_eq!(refused.kind(), DeliveryErrorKind::NotAttempted);
    let after = refused.retry_after().unwrap();
    assert!(
        after > 3_590 * SECOND && after <= 3_600 * SECOND,
        "{after:?}"
    );
    transport.deliver(delivery_to("b")).await.unwrap();
    assert_eq!(moody.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_keep_the_rate_with_no_double_burst() {
    let layer = RateLayer::new(two_a_second(), ByDestination).max_wait(60 * SECOND, TokioTimer);
    let transport = ServiceTransport::new(layer.layer(TransportService::new(Moody::default())));
    let began = tokio::time::Instant::now();
    let all = (0..22).map(|_| transport.deliver(delivery()));
    for result in futures::future::join_all(all).await {
        result.unwrap();
    }
    let took = began.elapsed();
    assert!(took >= 10 * SECOND && took < 11 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_is_unsent_and_no_longer_than_allowed() {
    let layer = RateLayer::new(Rate::every(10 * SECOND), ByDestination);
    let layer = layer.max_wait(15 * SECOND, TokioTimer);
    let transport = ServiceTransport::new(layer.layer(TransportService::new(Moody::default())));
    transport.deliver(delivery()).await.unwrap();
    let second = delivery();
    let mut waiting = transport.deliver(second.clone());
    assert!(poll_once(&mut waiting).await.is_none());
    assert_eq!(second.phase(), Phase::Waiting);
    waiting.await.unwrap();
    let began = tokio::time::Instant::now();
    let both = tokio::join!(transport.deliver(delivery()), transport.deliver(delivery()));
    let refused = match both {
        (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
        both => panic!("one of them fits: {both:?}"),
    };
    assert_eq!(refused.kind(), DeliveryErrorKind::NotAttempted);
    assert!(began.elapsed() <= 15 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn one_may_wait_for_longer_than_the_clock_can_tell() {
    let layer = RateLayer::new(Rate::every(10 * SECOND), ByDestination);
    let layer = layer.max_wait(std::time::Duration::MAX, TokioTimer);
    let transport = ServiceTransport::new(layer.layer(TransportService::new(Moody::default())));
    for _ in 0..3 {
        transport.deliver(delivery()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_went_are_forgotten() {
    let layer = RateLayer::new(two_a_second(), ByDestination).max_wait(SECOND, TokioTimer);
    let transport = ServiceTransport::new(layer.layer(TransportService::new(Moody::default())));
    for n in 0..20_000 {
        transport
            .deliver(delivery_to(&n.to_string()))
            .await
            .unwrap();
        if n % 100 == 0 {
            tokio::time::advance(SECOND).await;
        }
    }
    assert!(layer.keys() <= 2_000, "{} keys", layer.keys());
}
