//! Answers that are odd, wrong or too early: every one ends soon, and in the right class.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_http::outbox_core::{DeathReason, DeliveryErrorKind as Kind, Phase, Transport};
use outbox_http::{Endpoint, HttpFailure, HttpFailureKind as Failure, MapDestinations};
use support::{OK, Receiver, builder, delivery, event, read_request, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Longer than every deadline of `support::short` that can matter, with room for a busy machine.
const SOON: Duration = Duration::from_millis(1_500);

/// What became of one attempt at a receiver that answers with these bytes.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Delivered,
    /// Answered, and this came of it.
    Answered(Kind),
    /// Sent, and no answer that is one.
    Ambiguous(Failure),
}

async fn came(receiver: &Receiver) -> Came {
    let webhooks = builder().build().unwrap();
    let url = receiver.url();
    let sending = send(&webhooks, &url);
    let (result, delivery) = timeout(SOON, sending).await.expect("an end");
    match (result, delivery.phase()) {
        (Ok(_), Phase::Answered) => Came::Delivered,
        (Err(error), Phase::Answered) => Came::Answered(error.kind()),
        (Err(error), Phase::Sending) => {
            assert_eq!(error.kind(), Kind::Transient);
            Came::Ambiguous(HttpFailure::of(&error).unwrap().kind())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_can_be_read_counts_and_what_cannot_is_ambiguous() {
    let many = "x-a: b\r\n".repeat(101);
    let long = "a".repeat(300_000);
    let cases = [
        ("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", Came::Delivered),
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", Came::Delivered),
        (
            "HTTP/1.1 200 OK\nserver: a\ncontent-length: 0\n\n",
            Came::Delivered,
        ),
        (
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
            Came::Delivered,
        ),
        (
            "HTTP/1.1 299 Odd\r\ncontent-length: 5\r\n\r\nhel",
            Came::Delivered,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            Came::Delivered,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc",
            Came::Delivered,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
            Came::Delivered,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x01\x02",
            Came::Answered(Kind::Transient),
        ),
        (
            "HTTP/1.1 304 Not Modified\r\n\r\n",
            Came::Answered(Kind::Transient),
        ),
        (
            "HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n",
            Came::Answered(Kind::Transient),
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
            Came::Answered(Kind::Permanent(DeathReason::Gone)),
        ),
        (
            "HTTP/1.1 099 Odd\r\n\r\n",
            Came::Ambiguous(Failure::Protocol),
        ),
        (
            "HTTP/2.0 200 OK\r\n\r\n",
            Came::Ambiguous(Failure::Protocol),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
            Came::Ambiguous(Failure::Protocol),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            Came::Ambiguous(Failure::Protocol),
        ),
        (
            "HTTP/1.1 200 OK\r\nx-a: b\0c\r\n\r\n",
            Came::Ambiguous(Failure::Protocol),
        ),
        (
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            Came::Ambiguous(Failure::Protocol),
        ),
    ];
    let mut cases: Vec<_> = cases
        .into_iter()
        .map(|(a, came)| (a.to_owned(), came))
        .collect();
    cases.push((
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        Came::Ambiguous(Failure::Protocol),
    ));
    cases.push((
        format!("HTTP/1.1 200 OK\r\nx-a: {long}\r\n\r\n"),
        Came::Ambiguous(Failure::Protocol),
    ));
    cases.push((
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{long}\r\na\r\n0\r\n\r\n"),
        Came::Delivered,
    ));
    for (answer, expected) in cases {
        let shown: String = answer.chars().take(90).collect();
        let receiver = Receiver::answering(answer).await;
        assert_eq!(came(&receiver).await, expected, "{shown:?}");
    }
}

#[tokio::test]
async fn a_flood_of_interim_answers_ends_at_the_heads_deadline() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        let block = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        while stream.write_all(block.as_bytes()).await.is_ok() {}
    })
    .await;
    assert_eq!(came(&receiver).await, Came::Ambiguous(Failure::HeadTimeout));
}

/// A second answer that nobody asked for is not taken for the next request's.
#[tokio::test]
async fn an_answer_too_many_is_nobodys() {
    let gone = "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::answering(format!("{OK}{gone}")).await;
    let webhooks = builder().build().unwrap();
    for _ in 0..5 {
        let result = send(&webhooks, &receiver.url()).await.0;
        assert_eq!(result.unwrap().detail.as_deref(), Some("200 OK"));
    }
}

/// Who finds a request too large may say so before it has read it.
#[tokio::test]
async fn an_answer_before_the_request_is_read_counts() {
    let receiver = Receiver::run(|mut stream| async move {
        let _ = stream.read(&mut [0; 512]).await;
        let answer = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(answer).await;
        let _ = stream.shutdown().await;
        // Reads on without end, as a server that lingers does.
        while stream.read(&mut [0; 65_536]).await.is_ok_and(|n| n > 0) {}
    })
    .await;
    let mut event = event(&receiver.url());
    event.payload = vec![b'x'; 2 << 20].into();
    let webhooks = builder().build().unwrap();
    let sending = webhooks.deliver(delivery(event));
    let error = timeout(SOON, sending).await.unwrap().unwrap_err();
    assert_eq!(
        error.kind(),
        Kind::Permanent(DeathReason::Rejected),
        "{}",
        error.report()
    );
}

/// Dropping a delivery gives back its place, and harms no other.
#[tokio::test]
async fn a_dropped_delivery_leaves_nothing_behind() {
    let (arrived, seen) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first = arrived.clone();
    let receiver = Receiver::run(move |mut stream| {
        let first = first.clone();
        async move {
            while let Some(request) = read_request(&mut stream).await {
                if request.headers.contains_key("x-hang") {
                    first.notify_one();
                    std::future::pending::<()>().await;
                }
                let _ = stream.write_all(OK.as_bytes()).await;
            }
        }
    })
    .await;
    drop(seen);
    let endpoint = Endpoint::new(&receiver.url())
        .unwrap()
        .max_in_flight(NonZeroU32::MIN);
    let destinations = MapDestinations::new().with("ci", endpoint);
    let webhooks = builder().destinations(destinations).build().unwrap();
    for _ in 0..3 {
        let mut hanging = event("ci");
        hanging.headers.insert("x-hang".into(), "1".into());
        let hanging = delivery(hanging);
        let task = tokio::spawn({
            let (webhooks, hanging) = (webhooks.clone(), hanging.clone());
            async move { webhooks.deliver(hanging).await }
        });
        arrived.notified().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(hanging.phase(), Phase::Sending);
        send(&webhooks, "ci").await.0.unwrap();
    }
}
