//! Behind a relay: its time-out for an attempt never takes a verdict away.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_http::outbox_core::{
    Backoff, Enqueue, MemoryStore, NewEvent, Relay, Report, TokioTimer,
};
use outbox_http::{AttemptReport, HttpFailureKind, Timeouts, WebhooksBuilder};
use support::{OK, Receiver, builder, read_request};
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

/// A receiver that breaks in one of many ways, by turns, and takes the event down when it has read it.
#[tokio::test]
async fn every_event_arrives_at_a_receiver_that_breaks_in_every_way() {
    const EVENTS: usize = 600;
    let took = Arc::<Mutex<HashMap<String, usize>>>::default();
    let (notes, turn) = (took.clone(), Arc::new(AtomicUsize::new(0)));
    let receiver = Receiver::run(move |mut stream| {
        let (notes, turn) = (notes.clone(), turn.clone());
        async move {
            while let Some(seen) = read_request(&mut stream).await {
                let id = seen.headers["x-webhook-id"].to_str().unwrap().to_owned();
                *notes.lock().unwrap().entry(id).or_default() += 1;
                let answer: &[u8] = match turn.fetch_add(1, Ordering::Relaxed) % 9 {
                    0 => b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
                    1 => b"HTTP/1.1 20",
                    2 => b"no http\r\n\r\n",
                    3 => {
                        stream.set_zero_linger().unwrap();
                        return;
                    }
                    4 => return,
                    5 => b"HTTP/1.1 409 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n",
                    6 => b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
                    7 => b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                    _ => OK.as_bytes(),
                };
                if stream.write_all(answer).await.is_err() || !answer.ends_with(b"0\r\n\r\n") {
                    return;
                }
            }
        }
    })
    .await;
    let store = MemoryStore::new();
    let mut tx = store.begin();
    for n in 0..EVENTS {
        let event = NewEvent::json("Pushed", &n).unwrap().to(receiver.url());
        store.enqueue(&mut tx, event).await.unwrap();
    }
    tx.commit();
    let webhooks = builder().build().unwrap();
    let retry = Backoff::exponential()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(5))
        .max_attempts(100);
    let relay = Relay::builder(store, webhooks, TokioTimer)
        .retry(retry)
        .concurrency(64)
        .per_destination(64)
        .poll_interval(Duration::from_millis(5))
        .build()
        .unwrap();
    // Retries are due within milliseconds: each round delivers what the last one left.
    let mut published = 0;
    while published < EVENTS {
        let report = relay.run_until_idle().await.unwrap();
        assert_eq!(report.dead, 0, "{report:?}");
        published += usize::try_from(report.published).unwrap();
    }
    assert_eq!(published, EVENTS);
    assert_eq!(took.lock().unwrap().len(), EVENTS);
}
