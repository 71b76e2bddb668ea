use outbox_core::{DeathReason, DeliveryErrorKind, Transport};
use outbox_tower::route::Route;
use outbox_tower::{ByDestination, ServiceTransport, TransportService};

use crate::support::{Moody, delivery_to, kind};

#[tokio::test]
async fn goes_by_key_and_otherwise_to_the_rest() {
    let (one, rest) = (Moody::default(), Moody::default());
    let route = Route::by(ByDestination)
        .on("one", TransportService::new(one.clone()))
        .otherwise(TransportService::new(rest.clone()));
    let transport = ServiceTransport::new(route);
    for destination in ["one", "two", "three"] {
        transport.deliver(delivery_to(destination)).await.unwrap();
    }
    assert_eq!((one.calls(), rest.calls()), (1, 2));
}

#[tokio::test]
async fn without_a_route_an_event_is_unroutable() {
    let route = Route::by_event_type().on("Other", TransportService::new(Moody::default()));
    let result = ServiceTransport::new(route).deliver(delivery_to("d")).await;
    let unroutable = DeliveryErrorKind::Permanent(DeathReason::Unroutable);
    assert_eq!(kind(&result), Some(unroutable));
}
