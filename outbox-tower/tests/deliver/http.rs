//! Services of `http::Request`, with tower-http's layers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use outbox_core::mock::event;
use outbox_core::{
    DeathReason, Delivery, DeliveryErrorKind, Error, ErrorKind, Phase, SignatureHeader, Signer,
    SigningInput, Transport, async_trait,
};
use outbox_tower::breaker::{Breaker, ByStatus, CircuitBreakerLayer, CircuitState};
use outbox_tower::http::HttpService;
use outbox_tower::sign::SignLayer;
use outbox_tower::{ByDestination, ServiceTransport};
use tower::{ServiceBuilder, util::BoxCloneService};
use tower_http::timeout::{ResponseBodyTimeoutLayer, TimeoutLayer};
use tower_http::trace::TraceLayer;

use crate::support::{SECOND, kind};

type Body = Full<Bytes>;
type Client = BoxCloneService<Request<Body>, Response<Body>, Infallible>;
type Seen = Arc<Mutex<Vec<(::http::request::Parts, Bytes)>>>;

/// Answers with the status that is the path's first segment.
fn receiver() -> (Client, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let service = tower::service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        let answer: BoxFuture<'static, Result<_, Infallible>> = Box::pin(async move {
            let (head, body) = request.into_parts();
            let status = head.uri.path()[1..].parse().unwrap();
            let body = body.collect().await.unwrap().to_bytes();
            log.lock().unwrap().push((head, body));
            if status == 1 {
                std::future::pending::<()>().await;
            }
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response
                .headers_mut()
                .insert("retry-after", "7".parse().unwrap());
            Ok(response)
        });
        answer
    });
    (BoxCloneService::new(service), seen)
}

fn delivery(status: u16) -> Delivery {
    let mut event = event();
    event.destination = format!("https://ci.example/{status}");
    event.content_type = "application/json".into();
    event
        .headers
        .insert("traceparent".into(), "00-1-2-01".into());
    for name in ["host", "Expect", "keep-alive", "proxy-connection"] {
        event.headers.insert(name.into(), "evil.example".into());
    }
    Delivery::new(Arc::new(event), 30 * SECOND)
}

#[tokio::test]
async fn an_event_is_posted_as_it_was_enqueued() {
    let (client, seen) = receiver();
    let transport = ServiceTransport::new(HttpService::new(client));
    let delivery = delivery(202);
    let receipt = transport.deliver(delivery.clone()).await.unwrap();
    assert_eq!(receipt.detail.as_deref(), Some("202 Accepted"));
    assert_eq!(delivery.phase(), Phase::Answered);
    let seen = seen.lock().unwrap();
    let (head, body) = &seen[0];
    assert_eq!((head.method.as_str(), &body[..]), ("POST", &b"{}"[..]));
    assert_eq!(head.headers["content-type"], "application/json");
    assert_eq!(head.headers["traceparent"], "00-1-2-01");
    assert_eq!(head.headers["webhook-id"], delivery.event().id.to_string());
    for name in ["host", "expect", "keep-alive", "proxy-connection"] {
        assert!(!head.headers.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn the_status_decides() {
    let (client, _) = receiver();
    let transport = ServiceTransport::new(HttpService::new(client));
    let rejected = DeliveryErrorKind::Permanent(DeathReason::Rejected);
    let gone = DeliveryErrorKind::Permanent(DeathReason::Gone);
    let cases = [
        (302, DeliveryErrorKind::Transient),
        (400, rejected),
        (408, DeliveryErrorKind::Transient),
        (410, gone),
        (429, DeliveryErrorKind::Throttled),
        (500, DeliveryErrorKind::Transient),
        (501, rejected),
    ];
    for (status, expected) in cases {
        let error = transport.deliver(delivery(status)).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{status}");
        assert_eq!(error.retry_after(), Some(7 * SECOND));
    }
}

#[tokio::test]
async fn what_is_no_url_is_unroutable() {
    let (client, seen) = receiver();
    let transport = ServiceTransport::new(HttpService::new(client));
    let result = transport
        .deliver(crate::support::delivery_to("orders"))
        .await;
    let unroutable = DeliveryErrorKind::Permanent(DeathReason::Unroutable);
    assert_eq!(kind(&result), Some(unroutable));
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn tower_http_trace_and_timeouts_compose() {
    let (client, _) = receiver();
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(ResponseBodyTimeoutLayer::new(5 * SECOND))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            5 * SECOND,
        ))
        .service(client);
    let transport = ServiceTransport::new(HttpService::<_, Body>::new(stack));
    transport.deliver(delivery(200)).await.unwrap();
    let result = transport.deliver(delivery(1)).await;
    assert_eq!(kind(&result), Some(DeliveryErrorKind::Transient));
}

#[tokio::test]
async fn own_layers_work_between_the_mapping_and_the_client() {
    let (client, seen) = receiver();
    let layer = CircuitBreakerLayer::new(Breaker::default().consecutive(1), ByDestination);
    let layer = layer.judge(ByStatus);
    let circuits = layer.circuits();
    let stack = ServiceBuilder::new().layer(layer).service(client);
    let transport = ServiceTransport::new(HttpService::<_, Body>::new(stack));
    transport.deliver(delivery(500)).await.unwrap_err();
    assert_eq!(circuits.state("https://ci.example/500"), CircuitState::Open);
    let open = transport.deliver(delivery(500)).await.unwrap_err();
    assert_eq!(open.kind(), DeliveryErrorKind::NotAttempted);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[derive(Clone)]
struct Stamp(Option<ErrorKind>);

#[async_trait]
impl Signer for Stamp {
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        if let Some(kind) = self.0 {
            return Err(Error::new(kind, "no key"));
        }
        let seconds = input.timestamp.duration_since(SystemTime::UNIX_EPOCH);
        let value = format!(
            "{}.{}.{}",
            input.id,
            seconds.unwrap().as_secs(),
            input.body.len()
        );
        Ok(vec![SignatureHeader::new("x-stamp", value)])
    }
}

fn signed(signer: Stamp) -> (impl Transport, Seen) {
    let (client, seen) = receiver();
    let clock = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let stack = ServiceBuilder::new()
        .layer(SignLayer::<_, Body>::new(signer).clock(clock))
        .service(client);
    (
        ServiceTransport::new(HttpService::<_, Bytes>::new(stack)),
        seen,
    )
}

#[tokio::test]
async fn a_request_is_signed_over_id_time_and_body() {
    let (transport, seen) = signed(Stamp(None));
    let delivery = delivery(200);
    transport.deliver(delivery.clone()).await.unwrap();
    let expected = format!("{}.1700000000.2", delivery.event().id);
    assert_eq!(seen.lock().unwrap()[0].0.headers["x-stamp"], expected);
}

#[tokio::test]
async fn a_key_service_that_cannot_answer_charges_nothing() {
    let (transport, seen) = signed(Stamp(Some(ErrorKind::Unavailable)));
    let error = transport.deliver(delivery(200)).await.unwrap_err();
    assert_eq!(error.kind(), DeliveryErrorKind::NotAttempted);
    let (transport, _) = signed(Stamp(Some(ErrorKind::Other)));
    let error = transport.deliver(delivery(200)).await.unwrap_err();
    assert_eq!(error.kind(), DeliveryErrorKind::Transient);
    assert_eq!(error.phase(), Some(Phase::Waiting));
    assert!(seen.lock().unwrap().is_empty());
}
