//! What bodies look like on the wire, and destinations with settings of their own.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use outbox_http::outbox_core::{
    DeathReason, DeliveryErrorKind as Kind, Error, ErrorKind, Event, Phase, SignatureHeader,
    Signer, SigningInput, Transport, async_trait,
};
use outbox_http::{
    AttemptReport, Destinations, Encoding, Endpoint, GitHub, HttpFailureKind as Failure, Lenient,
    MapDestinations, Resolution, SharedSecret, StaticDestination, Verdict, Verifier, Webhooks,
    WebhooksBuilder, XSignature,
};
use support::{OK, Receiver, SECRET, Seen, builder, delivery, event, read_request, send};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

async fn sent(webhooks: WebhooksBuilder, change: impl FnOnce(&mut Event)) -> Seen {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let mut event = event(&receiver.url());
    event.created_at = UNIX_EPOCH + Duration::from_secs(1_614_265_330);
    event.aggregate_id = Some("7".into());
    event.key = Some("Ünï/7".into());
    event
        .headers
        .insert("traceparent".into(), "00-a-b-01".into());
    event.headers.insert("tracestate".into(), "x=1".into());
    change(&mut event);
    webhooks
        .build()
        .unwrap()
        .deliver(delivery(event))
        .await
        .unwrap();
    let seen = seen.recv().await.unwrap();
    XSignature::new(SECRET)
        .unwrap()
        .verify(&seen.headers, &seen.body)
        .unwrap();
    seen
}

#[tokio::test]
async fn cloud_events_in_binary_mode_stand_in_headers() {
    let encoding = Encoding::cloud_events_binary("/git").unwrap();
    let seen = sent(builder().encoding(encoding), |event| {
        event.headers.insert("ce-type".into(), "forged".into());
    })
    .await;
    assert_eq!(seen.body, b"{\"after\":\"4f1c\"}");
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.headers["ce-specversion"], "1.0");
    assert_eq!(seen.headers["ce-source"], "/git");
    assert_eq!(seen.headers["ce-type"], "RepositoryPushed");
    assert_eq!(seen.headers["ce-id"], seen.headers["x-webhook-id"]);
    assert_eq!(seen.headers["ce-time"], "2021-02-25T15:02:10.000000Z");
    assert_eq!(seen.headers["ce-subject"], "7");
    assert_eq!(seen.headers["ce-partitionkey"], "%C3%9Cn%C3%AF/7");
    assert_eq!(seen.headers["traceparent"], "00-a-b-01");
    assert_eq!(seen.headers["tracestate"], "x=1");
    assert_eq!(seen.headers.get_all("ce-type").iter().count(), 1);
}

#[tokio::test]
async fn cloud_events_in_structured_mode_embed_the_exact_payload() {
    let encoding = Encoding::cloud_events_structured("/git").unwrap();
    let payload = "{ \"a\" : 1.0,\"a\":2 }";
    let seen = sent(builder().encoding(encoding), |e| e.payload = payload.into()).await;
    assert_eq!(seen.headers["content-type"], "application/cloudevents+json");
    let text = String::from_utf8(seen.body.clone()).unwrap();
    assert!(text.ends_with(&format!(",\"data\":{payload}}}")), "{text}");
    let document: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(document["specversion"], "1.0");
    assert_eq!(document["type"], "RepositoryPushed");
    assert_eq!(document["partitionkey"], "Ünï/7");
    assert_eq!(document["traceparent"], "00-a-b-01");
    assert_eq!(document["datacontenttype"], "application/json");
}

#[tokio::test]
async fn cloud_events_carry_what_is_no_json_as_base64() {
    for (content_type, payload) in [
        ("application/octet-stream", &b"\x00\xff"[..]),
        ("application/json", b"{broken"),
        ("application/json", b"\"\xff\""),
        ("application/json", b"{}, \"type\": \"forged\""),
    ] {
        let encoding = Encoding::cloud_events_structured("/git").unwrap();
        let seen = sent(builder().encoding(encoding), |event| {
            event.payload = payload.into();
            event.content_type = content_type.into();
        })
        .await;
        let document: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
        assert!(document.get("data").is_none());
        assert!(document["data_base64"].is_string());
        assert_eq!(document["type"], "RepositoryPushed");
    }
}

#[cfg(feature = "gzip")]
#[tokio::test]
async fn a_compressed_body_is_signed_as_it_is_sent() {
    use std::io::Read;
    let seen = sent(builder().encoding(Encoding::raw().gzip()), |_| {}).await;
    assert_eq!(seen.headers["content-encoding"], "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&seen.body[..])
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "{\"after\":\"4f1c\"}");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_a_dead_letter() {
    let webhooks = builder().max_request(15).build().unwrap();
    let error = send(&webhooks, "http://127.0.0.1:1/").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Permanent(DeathReason::Unroutable));
    assert!(
        error.report().contains("has 16 bytes; at most 15"),
        "{}",
        error.report()
    );
}

#[tokio::test]
async fn an_endpoint_has_its_own_signer_headers_and_deadlines() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let secret = || SharedSecret::existing("mysecret").unwrap();
    let endpoint = Endpoint::new(&receiver.url())
        .unwrap()
        .signer(GitHub::with_secret(secret()))
        .header("Authorization", "Bearer 4f1c")
        .unwrap();
    let endpoint = endpoint.timeouts(support::short()).unwrap();
    let zero = endpoint
        .clone()
        .timeouts(support::short().head(Duration::ZERO));
    assert!(
        zero.unwrap_err()
            .to_string()
            .starts_with("setting `timeouts.head` is 0ns")
    );
    assert!(!format!("{endpoint:?}").contains("4f1c"));
    let destinations = MapDestinations::new().with("ci", endpoint);
    let webhooks = builder().destinations(destinations).build().unwrap();
    send(&webhooks, "ci").await.0.unwrap();
    let seen = seen.recv().await.unwrap();
    assert_eq!(seen.headers["authorization"], "Bearer 4f1c");
    assert!(seen.headers.get("x-signature").is_none());
    GitHub::with_secret(secret())
        .verify(&seen.headers, &seen.body)
        .unwrap();
    for (name, value) in [
        ("host", "a"),
        ("x a", "1"),
        ("x-a", "1\r\nx-b: 2"),
        ("TE", "trailers"),
    ] {
        let error = Endpoint::new("http://a.example/")
            .unwrap()
            .header(name, value)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    }
}

#[tokio::test]
async fn a_disabled_destination_costs_no_attempt_until_it_is_enabled() {
    let (receiver, _seen) = Receiver::recording(OK).await;
    let destinations = MapDestinations::new().with("ci", Endpoint::new(&receiver.url()).unwrap());
    let webhooks = builder()
        .destinations(destinations.clone())
        .recheck_disabled(Duration::from_secs(9))
        .build()
        .unwrap();
    assert!(destinations.disable("ci", "asked to stop"));
    let (result, delivery) = send(&webhooks, "ci").await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
    assert_eq!(error.report(), "the destination is disabled: asked to stop");
    assert_eq!(delivery.phase(), Phase::Waiting);
    assert!(destinations.enable("ci"));
    send(&webhooks, "ci").await.0.unwrap();
    let error = send(&webhooks, "nobody").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Permanent(DeathReason::Unroutable));
}

#[tokio::test]
async fn a_static_destination_takes_every_event() {
    let (receiver, mut seen) = Receiver::recording(OK).await;
    let endpoint = Endpoint::new(&receiver.url()).unwrap();
    let webhooks = builder().destinations(StaticDestination::new(endpoint));
    let webhooks = webhooks.build().unwrap();
    for destination in ["", "pushes", "https://elsewhere.example/"] {
        send(&webhooks, destination).await.0.unwrap();
        seen.recv().await.unwrap();
    }
}

struct Down;

#[async_trait]
impl Destinations for Down {
    async fn resolve(&self, _: &str) -> Result<Resolution, Error> {
        Err(Error::new(ErrorKind::Unavailable, "the database is away"))
    }
}

#[tokio::test]
async fn destinations_that_cannot_be_looked_up_cost_no_attempt() {
    let webhooks = builder().destinations(Down).build().unwrap();
    let error = send(&webhooks, "ci").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted);
    assert!(error.report().ends_with("the database is away"));
}

#[tokio::test]
async fn an_endpoint_takes_no_more_at_a_time_than_it_should() {
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (seen, free) = (arrived.clone(), go.clone());
    let receiver = Receiver::run(move |mut stream| {
        let (seen, free) = (seen.clone(), free.clone());
        async move {
            while read_request(&mut stream).await.is_some() {
                seen.notify_one();
                free.notified().await;
                let _ = stream.write_all(OK.as_bytes()).await;
            }
        }
    })
    .await;
    let endpoint = Endpoint::new(&receiver.url())
        .unwrap()
        .max_in_flight(NonZeroU32::MIN);
    let destinations = MapDestinations::new().with("ci", endpoint);
    let webhooks = builder().destinations(destinations).build().unwrap();
    let first = tokio::spawn({
        let webhooks = webhooks.clone();
        async move { send(&webhooks, "ci").await.0 }
    });
    arrived.notified().await;
    let error = send(&webhooks, "ci").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted);
    go.notify_one();
    first.await.unwrap().unwrap();
    go.notify_one();
    send(&webhooks, "ci").await.0.unwrap();
}

#[tokio::test]
async fn a_409_to_a_repeated_attempt_is_delivered() {
    let (receiver, _seen) =
        Receiver::recording("HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n").await;
    let webhooks = builder().build().unwrap();
    let attempt = async |attempts: u32, replays: u32| {
        let mut event = event(&receiver.url());
        (event.attempts, event.replays) = (attempts, replays);
        webhooks.deliver(delivery(event)).await
    };
    assert_eq!(attempt(1, 0).await.unwrap_err().kind(), Kind::Transient);
    let receipt = attempt(2, 0).await.unwrap();
    assert_eq!(
        receipt.detail.as_deref(),
        Some("409 Conflict: received before")
    );
    attempt(1, 1).await.unwrap();
}

#[tokio::test]
async fn the_delivery_header_is_heeded_only_where_asked() {
    for (wish, kind) in [
        ("disable", DeathReason::Gone),
        ("abort-message", DeathReason::Rejected),
    ] {
        let answer =
            format!("HTTP/1.1 500 No\r\nwebhook-delivery: {wish}\r\ncontent-length: 0\r\n\r\n");
        let receiver = Receiver::answering(answer).await;
        let deaf = builder().build().unwrap();
        let error = send(&deaf, &receiver.url()).await.0.unwrap_err();
        assert_eq!(error.kind(), Kind::Transient);
        let heeding = builder().heed_delivery_header().build().unwrap();
        let error = send(&heeding, &receiver.url()).await.0.unwrap_err();
        assert_eq!(error.kind(), Kind::Permanent(kind));
    }
}

#[tokio::test]
async fn lenient_tries_a_404_again() {
    let (receiver, _seen) =
        Receiver::recording("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
    let webhooks = builder().classifier(Lenient).build().unwrap();
    let error = send(&webhooks, &receiver.url()).await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient);
}

type Told = (
    Option<u16>,
    Option<Verdict>,
    Option<Failure>,
    Phase,
    Option<String>,
    Option<String>,
);

#[tokio::test]
async fn the_observer_is_told_of_every_attempt() {
    let told = Arc::<Mutex<Vec<Told>>>::default();
    let notes = told.clone();
    let observer = move |report: &AttemptReport<'_>| {
        notes.lock().unwrap().push((
            report.status.map(|s| s.as_u16()),
            report.verdict,
            report.failure,
            report.phase,
            report.host.map(str::to_owned),
            report.snippet.map(str::to_owned),
        ));
    };
    let (receiver, _seen) =
        Receiver::recording("HTTP/1.1 500 No\r\ncontent-length: 4\r\n\r\nwhy?").await;
    let webhooks = builder().observer(observer).build().unwrap();
    send(&webhooks, &receiver.url()).await.0.unwrap_err();
    send(&webhooks, "http://127.0.0.1:1/").await.0.unwrap_err();
    let host = || Some("127.0.0.1".to_owned());
    let status = http::StatusCode::INTERNAL_SERVER_ERROR;
    assert_eq!(
        *told.lock().unwrap(),
        [
            (
                Some(500),
                Some(Verdict::Transient),
                Some(Failure::Status(status)),
                Phase::Answered,
                host(),
                Some("why?".into())
            ),
            (
                None,
                None,
                Some(Failure::Connect),
                Phase::Waiting,
                host(),
                None
            ),
        ]
    );
}

/// 410 reports the destination, not the event alone: an observer can disable it.
#[tokio::test]
async fn a_destination_that_is_gone_can_be_disabled_so_that_later_events_wait() {
    let (receiver, mut seen) =
        Receiver::recording("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n").await;
    let destinations = MapDestinations::new().with("ci", Endpoint::new(&receiver.url()).unwrap());
    let table = destinations.clone();
    let observer = move |report: &AttemptReport<'_>| {
        if report.verdict == Some(Verdict::Gone) {
            assert!(table.disable(&report.event.destination, "gone"));
        }
    };
    let webhooks = builder().destinations(destinations).observer(observer);
    let webhooks = webhooks.build().unwrap();
    let error = send(&webhooks, "ci").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Permanent(DeathReason::Gone));
    let error = send(&webhooks, "ci").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted);
    seen.recv().await.unwrap();
    assert!(seen.try_recv().is_err(), "the second was not sent");
}

struct Kms(ErrorKind);

#[async_trait]
impl Signer for Kms {
    async fn sign(&self, _: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        match self.0 {
            ErrorKind::Other => Ok(vec![SignatureHeader::new("x-a", "1\r\nx-b: 2")]),
            kind => Err(Error::new(kind, "the key service is away")),
        }
    }
}

#[tokio::test]
async fn what_cannot_be_signed_is_not_sent() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Other] {
        let webhooks = Webhooks::builder()
            .signer(Kms(kind))
            .allow_private_networks()
            .build()
            .unwrap();
        let (result, delivery) = send(&webhooks, "http://127.0.0.1:1/").await;
        assert_eq!(result.unwrap_err().kind(), Kind::Transient);
        assert_eq!(delivery.phase(), Phase::Waiting);
    }
}
