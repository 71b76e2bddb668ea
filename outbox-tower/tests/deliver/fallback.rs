use outbox_core::Transport;
use outbox_tower::fallback::FallbackLayer;
use outbox_tower::{ServiceTransport, TransportService};
use tower::Layer;

use crate::support::{Broken, Gate, Moody, delivery, delivery_to};

#[tokio::test]
async fn takes_what_the_first_did_not_take_for_sure_and_nothing_else() {
    let (first, second) = (Moody::default(), Gate::new());
    second.open(10);
    let stack = FallbackLayer::new(TransportService::new(second.clone()))
        .layer(TransportService::new(first));
    let transport = ServiceTransport::new(stack);
    transport.deliver(delivery()).await.unwrap();
    transport.deliver(delivery_to("down")).await.unwrap_err();
    transport.deliver(delivery_to("gone")).await.unwrap_err();
    assert_eq!(second.calls(), 0);
    transport.deliver(delivery_to("unroutable")).await.unwrap();
    assert_eq!(second.calls(), 1);
}

#[tokio::test]
async fn takes_over_from_a_service_that_is_not_ready() {
    let stack = FallbackLayer::new(TransportService::new(Moody::default())).layer(Broken);
    ServiceTransport::new(stack)
        .deliver(delivery())
        .await
        .unwrap();
}
