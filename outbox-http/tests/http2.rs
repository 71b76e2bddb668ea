//! HTTP/2, spoken with prior knowledge to a receiver that writes frames by hand.
#![cfg(feature = "http2")]
#![cfg_attr(
    feature = "http2",
    expect(clippy::unwrap_used, reason = "a test may panic")
)]

mod support;

use std::future::pending;
use std::time::Duration;

use outbox_http::outbox_core::{Delivery, DeliveryErrorKind as Kind, Phase, Transport};
use outbox_http::{HttpFailure, HttpFailureKind as Failure, HttpVersion};
use support::{Receiver, builder, send, short};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, pause, timeout};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads the preface, answers with empty settings.
async fn hello(stream: &mut TcpStream) -> Option<()> {
    stream.read_exact(&mut [0; 24]).await.ok()?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()
}

/// The next frame: kind, flags, stream, payload.
async fn next_frame(stream: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.ok()?;
    let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some((head[3], head[4], id, payload))
}

/// The stream on which the next request has ended.
async fn request(stream: &mut TcpStream) -> Option<u32> {
    loop {
        let (kind, flags, id, _) = next_frame(stream).await?;
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return Some(id);
        }
    }
}

/// Serves each request with the frames that `answer` makes for its stream.
async fn receiver(answer: fn(u32) -> Vec<u8>) -> Receiver {
    Receiver::run(move |mut stream| async move {
        if hello(&mut stream).await.is_none() {
            return;
        }
        while let Some(id) = request(&mut stream).await {
            if stream.write_all(&answer(id)).await.is_err() {
                break;
            }
        }
    })
    .await
}

async fn attempt(receiver: &Receiver) -> (Result<String, (Kind, Failure)>, Phase) {
    let webhooks = builder().http(HttpVersion::Http2).build().unwrap();
    let url = receiver.url();
    let sending = send(&webhooks, &url);
    let (result, delivery) = timeout(Duration::from_secs(2), sending).await.unwrap();
    let result = result
        .map(|receipt| receipt.detail.unwrap())
        .map_err(|error| (error.kind(), HttpFailure::of(&error).unwrap().kind()));
    (result, delivery.phase())
}

#[tokio::test]
async fn streams_share_a_connection() {
    // 0x88 is `:status: 200` (RFC 7541, appendix A, index 8).
    let receiver = receiver(|id| frame(HEADERS, END_STREAM_AND_HEADERS, id, &[0x88])).await;
    let webhooks = builder().http(HttpVersion::Http2).build().unwrap();
    let sends = (0..20).map(|_| async { send(&webhooks, &receiver.url()).await.0 });
    for result in futures::future::join_all(sends).await {
        assert_eq!(result.unwrap().detail.as_deref(), Some("200 OK"));
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_goaway_before_the_answer_is_tried_again() {
    // Last stream 0: nothing was processed. No error.
    let receiver = receiver(|_| frame(GOAWAY, 0, 0, &[0; 8])).await;
    let (result, phase) = attempt(&receiver).await;
    let (kind, failure) = result.unwrap_err();
    assert_eq!(kind, Kind::Transient);
    assert_eq!(failure, Failure::Broken);
    assert_eq!(phase, Phase::Sending);
}

#[tokio::test]
async fn a_goaway_with_the_answer_harms_nothing() {
    let receiver = receiver(|id| {
        let mut bytes = frame(HEADERS, END_STREAM_AND_HEADERS, id, &[0x88]);
        let mut last = id.to_be_bytes().to_vec();
        last.extend_from_slice(&[0; 4]);
        bytes.extend(frame(GOAWAY, 0, 0, &last));
        bytes
    })
    .await;
    let webhooks = builder().http(HttpVersion::Http2).build().unwrap();
    for _ in 0..3 {
        send(&webhooks, &receiver.url()).await.0.unwrap();
    }
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn a_refused_stream_is_tried_again() {
    let receiver = receiver(|id| frame(RST_STREAM, 0, id, &7_u32.to_be_bytes())).await;
    let (result, _) = attempt(&receiver).await;
    assert_eq!(result.unwrap_err().0, Kind::Transient);
}

#[tokio::test]
async fn one_that_never_answers_ends_at_the_heads_deadline() {
    let receiver = receiver(|_| Vec::new()).await;
    let (result, phase) = attempt(&receiver).await;
    assert_eq!(result.unwrap_err(), (Kind::Transient, Failure::HeadTimeout));
    assert_eq!(phase, Phase::Sending);
}

#[tokio::test]
async fn frames_that_are_none_end_the_attempt() {
    let receiver = receiver(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
    let (result, phase) = attempt(&receiver).await;
    assert_eq!(result.unwrap_err().0, Kind::Transient);
    assert_eq!(phase, Phase::Sending);
}

const CONTINUATION: u8 = 9;

/// A head whose end never comes: small parts, or large ones.
#[tokio::test]
async fn a_head_without_end_ends_the_attempt() {
    for size in [0, 1, 16_000] {
        let receiver = Receiver::run(move |mut stream| async move {
            let _ = hello(&mut stream).await;
            let Some(id) = request(&mut stream).await else {
                return;
            };
            let _ = stream.write_all(&frame(HEADERS, 0, id, &[0x88])).await;
            // A literal without indexing whose name is "a" and whose value goes on.
            let part = frame(CONTINUATION, 0, id, &vec![0x88; size]);
            while stream.write_all(&part).await.is_ok() {}
        })
        .await;
        let (result, phase) = attempt(&receiver).await;
        assert_eq!(result.unwrap_err().0, Kind::Transient, "{size}");
        assert_eq!(phase, Phase::Sending);
    }
}

#[tokio::test]
async fn a_body_without_end_changes_no_verdict() {
    let receiver = Receiver::run(|mut stream| async move {
        let _ = hello(&mut stream).await;
        let Some(id) = request(&mut stream).await else {
            return;
        };
        let _ = stream.write_all(&frame(HEADERS, 4, id, &[0x88])).await;
        while stream
            .write_all(&frame(DATA, 0, id, &[0; 1_000]))
            .await
            .is_ok()
        {}
    })
    .await;
    let (result, phase) = attempt(&receiver).await;
    assert_eq!(result.unwrap(), "200 OK");
    assert_eq!(phase, Phase::Answered);
}

/// Streams that must not be opened, a window that never opens, floods of frames that say nothing.
#[tokio::test]
async fn one_that_lets_nothing_through_ends_at_a_deadline() {
    const MAX_CONCURRENT_STREAMS: [u8; 6] = [0, 3, 0, 0, 0, 0];
    const INITIAL_WINDOW_SIZE: [u8; 6] = [0, 4, 0, 0, 0, 0];
    for setting in [MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE] {
        for flood in [
            Vec::new(),
            frame(PING, 0, 0, &[0; 8]),
            frame(SETTINGS, 0, 0, &[]),
        ] {
            let receiver = Receiver::run(move |mut stream| {
                let flood = flood.clone();
                async move {
                    let _ = stream.read_exact(&mut [0; 24]).await;
                    let _ = stream.write_all(&frame(SETTINGS, 0, 0, &setting)).await;
                    while !flood.is_empty() && stream.write_all(&flood).await.is_ok() {}
                    pending::<()>().await;
                }
            })
            .await;
            let webhooks = builder()
                .http(HttpVersion::Http2)
                .timeouts(short().total(Duration::from_millis(500)))
                .build()
                .unwrap();
            let url = receiver.url();
            let sending = send(&webhooks, &url);
            let (result, _) = timeout(Duration::from_secs(2), sending).await.unwrap();
            assert_eq!(result.unwrap_err().kind(), Kind::Transient);
        }
    }
}

/// A transport whose deadlines are of no help.
fn patient() -> outbox_http::Webhooks {
    let minutes = Duration::from_secs(600);
    builder()
        .http(HttpVersion::Http2)
        .timeouts(short().head(minutes).total(minutes))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_connection_that_answers_no_ping_is_given_up() {
    let receiver = Receiver::run(|mut stream| async move {
        let _ = hello(&mut stream).await;
        if request(&mut stream).await.is_some() {
            // From here on, time passes whenever everybody waits.
            pause();
        }
        pending::<()>().await;
    })
    .await;
    let started = Instant::now();
    let error = send(&patient(), &receiver.url()).await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient);
    assert_eq!(HttpFailure::of(&error).unwrap().kind(), Failure::Broken);
    assert_eq!(error.phase(), Some(Phase::Sending));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test]
async fn a_slow_answer_on_a_connection_that_answers_pings_is_waited_for() {
    let receiver = Receiver::run(|mut stream| async move {
        let _ = hello(&mut stream).await;
        let Some(id) = request(&mut stream).await else {
            return;
        };
        pause();
        let mut pings = 0;
        while let Some((kind, flags, _, payload)) = next_frame(&mut stream).await {
            if kind == PING && flags == 0 {
                let _ = stream.write_all(&frame(PING, 1, 0, &payload)).await;
                pings += 1;
            }
            if pings == 2 {
                let answer = frame(HEADERS, END_STREAM_AND_HEADERS, id, &[0x88]);
                let _ = stream.write_all(&answer).await;
            }
        }
    })
    .await;
    let started = Instant::now();
    let event = std::sync::Arc::new(support::event(&receiver.url()));
    let delivery = Delivery::new(event, Duration::from_secs(600));
    patient().deliver(delivery).await.unwrap();
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(15), "{took:?}");
}
