//! Behind a relay: its time-out for an attempt never takes a verdict away.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use outbox_http::outbox_core::{Enqueue, MemoryStore, NewEvent, Relay, Report, TokioTimer};
use outbox_http::{AttemptReport, HttpFailureKind, Timeouts, WebhooksBuilder};
use support::{Receiver, builder, read_request};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

const LIMIT: Duration = Duration::from_secs(2);

/// One event through a relay whose attempts may take [`LIMIT`], by a transport with the default
/// deadlines, which are longer.
async fn relayed(webhooks: WebhooksBuilder, url: String) -> Report {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let event = NewEvent::json("Pushed", &7).unwrap().to(url);
    store.enqueue(&mut tx, event).await.unwrap();
    tx.commit();
    let webhooks = webhooks.timeouts(Timeouts::default()).build().unwrap();
    let relay = Relay::builder(store, webhooks, TokioTimer)
        .delivery_timeout(LIMIT)
        .build()
        .unwrap();
    relay.run_once().await.unwrap()
}

#[tokio::test]
async fn a_body_that_drips_past_the_relays_time_out_changes_no_verdict() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head).await;
        while stream.write_all(b"1\r\na\r\n").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let report = relayed(builder(), receiver.url()).await;
    assert_eq!((report.published, report.retried), (1, 0), "{report:?}");
}

#[tokio::test]
async fn an_attempt_that_the_relay_would_end_tells_first_what_it_was_waiting_for() {
    let receiver =
        Receiver::run(
            |mut stream| async move { while read_request(&mut stream).await.is_some() {} },
        )
        .await;
    let told = Arc::<Mutex<Vec<_>>>::default();
    let notes = told.clone();
    let observer = move |report: &AttemptReport<'_>| {
        notes.lock().unwrap().push((report.failure, report.took));
    };
    let report = relayed(builder().observer(observer), receiver.url()).await;
    assert_eq!((report.published, report.retried), (0, 1), "{report:?}");
    let told = told.lock().unwrap();
    let [(failure, took)] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(failure, Some(HttpFailureKind::TotalTimeout));
    assert!(took < LIMIT, "{took:?}");
}
