//! Receivers that mean ill, on real sockets: every attempt ends within its deadline, in the right
//! class and phase, and takes little memory.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use outbox_http::outbox_core::{
    Delivery, DeliveryError, DeliveryErrorKind as Kind, Error, Phase, Receipt, SignatureHeader,
    Signer, SigningInput, async_trait,
};
use outbox_http::{
    AttemptReport, Destinations, Endpoint, HttpFailure, HttpFailureKind as Failure,
    MapDestinations, Resolution, Resolve, UrlDestinations,
};
use support::{OK, Receiver, builder, read_request, send, short};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Longer than every deadline of [`short`] that can matter, with room for a busy machine.
const SOON: Duration = Duration::from_millis(1_500);

async fn attempt(receiver: &Receiver) -> (Result<Receipt, DeliveryError>, Delivery) {
    let started = Instant::now();
    let webhooks = builder().build().unwrap();
    match timeout(SOON, send(&webhooks, &receiver.url())).await {
        Ok(ended) => ended,
        Err(_) => panic!("no end after {:?}", started.elapsed()),
    }
}

/// The attempt failed in this way and may have reached the receiver.
async fn ambiguous(receiver: &Receiver, failure: Failure) {
    let (result, delivery) = attempt(receiver).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient, "{}", error.report());
    assert_eq!(
        HttpFailure::of(&error).unwrap().kind(),
        failure,
        "{}",
        error.report()
    );
    assert_eq!(error.phase(), Some(Phase::Sending));
    assert_eq!(delivery.phase(), Phase::Sending);
}

/// Writes for ever, or until the other side has had enough.
async fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    while stream.write_all(bytes).await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// The resident memory of this process.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test]
async fn one_that_never_answers_ends_at_the_heads_deadline() {
    let receiver =
        Receiver::run(
            |mut stream| async move { while read_request(&mut stream).await.is_some() {} },
        )
        .await;
    ambiguous(&receiver, Failure::HeadTimeout).await;
}

#[tokio::test]
async fn one_that_does_not_even_read_ends_at_the_heads_deadline() {
    let receiver = Receiver::run(|stream| async move {
        sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    ambiguous(&receiver, Failure::HeadTimeout).await;
}

#[tokio::test]
async fn one_that_drips_headers_ends_at_the_heads_deadline() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx-a: ").await;
        drip(&mut stream, b"a").await;
    })
    .await;
    ambiguous(&receiver, Failure::HeadTimeout).await;
}

#[tokio::test]
async fn one_that_says_continue_for_ever_ends_at_the_heads_deadline() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        drip(
            &mut stream,
            b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
        )
        .await;
    })
    .await;
    ambiguous(&receiver, Failure::HeadTimeout).await;
}

#[tokio::test]
async fn a_body_that_drips_for_ever_changes_no_verdict() {
    for (status, delivered) in [("200 OK", true), ("503 Slow", false)] {
        let receiver = Receiver::run(move |mut stream| async move {
            read_request(&mut stream).await;
            let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            drip(&mut stream, b"1\r\na\r\n").await;
        })
        .await;
        let (result, delivery) = attempt(&receiver).await;
        assert_eq!(delivery.phase(), Phase::Answered);
        assert_eq!(result.is_ok(), delivered);
        if let Err(error) = result {
            assert_eq!(error.kind(), Kind::Transient);
            assert!(
                error.report().contains("the answer begins: aaa"),
                "{}",
                error.report()
            );
        }
    }
}

#[tokio::test]
async fn a_gigabyte_of_body_is_not_read() {
    for status in ["200 OK", "500 Big"] {
        let written = Arc::<AtomicUsize>::default();
        let count = written.clone();
        let receiver = Receiver::run(move |mut stream| {
            let count = count.clone();
            async move {
                read_request(&mut stream).await;
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: 1073741824\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let block = vec![b'x'; 64 << 10];
                while stream.write_all(&block).await.is_ok() {
                    count.fetch_add(block.len(), Ordering::Relaxed);
                }
            }
        })
        .await;
        let before = resident();
        let (result, delivery) = attempt(&receiver).await;
        assert_eq!(result.is_ok(), status == "200 OK");
        assert_eq!(delivery.phase(), Phase::Answered);
        // What the kernel's buffers took included.
        assert!(written.load(Ordering::Relaxed) < 32 << 20);
        assert!(resident().saturating_sub(before) < 32 << 20);
    }
}

#[tokio::test]
async fn an_endless_head_is_no_http_and_takes_little_memory() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx-a: ").await;
        let block = vec![b'x'; 64 << 10];
        while stream.write_all(&block).await.is_ok() {}
    })
    .await;
    let before = resident();
    ambiguous(&receiver, Failure::Protocol).await;
    assert!(resident().saturating_sub(before) < 32 << 20);
}

#[cfg(feature = "gzip")]
#[tokio::test]
async fn a_zip_bomb_is_decoded_up_to_the_cap() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..16 {
        encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let mut answer = format!(
        "HTTP/1.1 500 Bomb\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        bomb.len()
    )
    .into_bytes();
    answer.extend_from_slice(&bomb);
    let receiver = Receiver::answering(answer).await;
    let before = resident();
    let (result, _) = attempt(&receiver).await;
    let report = result.unwrap_err().report();
    assert!(report.ends_with("xxx"), "{report}");
    assert!(report.len() < 1_200, "{}", report.len());
    assert!(resident().saturating_sub(before) < 32 << 20);
}

#[tokio::test]
async fn an_encoded_body_that_cannot_be_read_is_left_out() {
    let answer = "HTTP/1.1 500 No\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc";
    let receiver = Receiver::answering(answer).await;
    let (result, _) = attempt(&receiver).await;
    assert!(!result.unwrap_err().report().contains("abc"));
}

#[tokio::test]
async fn idle_connections_that_are_closed_lose_nothing_silently() {
    let requests = Arc::<AtomicUsize>::default();
    let count = requests.clone();
    let receiver = Receiver::run(move |mut stream| {
        let count = count.clone();
        async move {
            if read_request(&mut stream).await.is_some() {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(OK.as_bytes()).await;
            }
        }
    })
    .await;
    let webhooks = builder().build().unwrap();
    let mut delivered = 0;
    for _ in 0..50 {
        match send(&webhooks, &receiver.url()).await.0 {
            Ok(_) => delivered += 1,
            // Written to a connection that was closing: nobody can know, and the text says so.
            Err(error) => {
                assert_eq!(error.phase(), Some(Phase::Sending), "{}", error.report());
                assert_eq!(error.kind(), Kind::Transient);
            }
        }
    }
    assert!(requests.load(Ordering::Relaxed) >= delivered);
    assert!(delivered >= 25, "{delivered} of 50");
}

#[tokio::test]
async fn a_reset_after_the_request_is_ambiguous() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        stream.set_zero_linger().unwrap();
    })
    .await;
    ambiguous(&receiver, Failure::Broken).await;
}

#[tokio::test]
async fn an_end_in_the_middle_of_the_head_is_ambiguous() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 20").await;
    })
    .await;
    ambiguous(&receiver, Failure::Broken).await;
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_ambiguous() {
    let receiver = Receiver::run(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n\r\n\r\n").await;
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await;
    ambiguous(&receiver, Failure::Protocol).await;
}

#[tokio::test]
async fn a_redirect_to_the_metadata_address_is_not_followed() {
    let receiver = Receiver::answering(
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest/meta-data/?token=s3cret\r\n\
         content-length: 0\r\n\r\n",
    )
    .await;
    let (result, delivery) = attempt(&receiver).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient);
    assert_eq!(delivery.phase(), Phase::Answered);
    assert_eq!(
        error.report(),
        "the receiver answered 302 Found: redirects are not followed (to 169.254.169.254)"
    );
}

#[tokio::test]
async fn a_hundred_redirects_are_one_request() {
    let requests = Arc::<AtomicUsize>::default();
    let count = requests.clone();
    let receiver = Receiver::run(move |mut stream| {
        let count = count.clone();
        async move {
            while read_request(&mut stream).await.is_some() {
                let n = count.fetch_add(1, Ordering::Relaxed);
                let status = [301, 302, 303, 307, 308][n % 5];
                let answer = format!(
                    "HTTP/1.1 {status} Next\r\nlocation: /{n}\r\ncontent-length: 0\r\n\r\n"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await;
    let (result, _) = attempt(&receiver).await;
    assert!(result.unwrap_err().report().ends_with("(to the same host)"));
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn invalid_chunks_change_no_verdict() {
    for (status, delivered) in [("200 OK", true), ("500 No", false)] {
        let answer = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc");
        let receiver = Receiver::answering(answer).await;
        let (result, delivery) = attempt(&receiver).await;
        assert_eq!(result.is_ok(), delivered);
        assert_eq!(delivery.phase(), Phase::Answered);
    }
}

/// A resolver that never answers.
struct Stuck;

impl Resolve for Stuck {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

/// A resolver that knows nobody.
struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(async { Err(io::Error::new(io::ErrorKind::NotFound, "NXDOMAIN")) })
    }
}

async fn not_sent(webhooks: &outbox_http::Webhooks, url: &str, failure: Failure) {
    let (result, delivery) = timeout(SOON, send(webhooks, url)).await.unwrap();
    let error = result.unwrap_err();
    assert_eq!(
        HttpFailure::of(&error).unwrap().kind(),
        failure,
        "{}",
        error.report()
    );
    assert_eq!(error.kind(), Kind::Transient);
    assert_eq!(error.phase(), Some(Phase::Waiting));
    assert_eq!(delivery.phase(), Phase::Waiting);
}

#[tokio::test]
async fn a_name_server_that_never_answers_ends_at_the_deadline_to_connect() {
    let webhooks = builder().resolver(Stuck).build().unwrap();
    not_sent(&webhooks, "http://ci.example/", Failure::ConnectTimeout).await;
}

#[tokio::test]
async fn the_total_deadline_covers_the_time_before_a_connection() {
    let timeouts = short()
        .connect(Duration::from_secs(60))
        .total(Duration::from_millis(300));
    let webhooks = builder()
        .resolver(Stuck)
        .timeouts(timeouts)
        .build()
        .unwrap();
    not_sent(&webhooks, "http://ci.example/", Failure::TotalTimeout).await;
}

#[tokio::test]
async fn a_name_that_nobody_has_is_not_sent() {
    let webhooks = builder().resolver(Nobody).build().unwrap();
    not_sent(&webhooks, "http://ci.example/?token=s3cret", Failure::Dns).await;
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_not_sent() {
    let receiver = Receiver::run(|stream| async move {
        sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let url = receiver.url().replace("http", "https");
    not_sent(&builder().build().unwrap(), &url, Failure::ConnectTimeout).await;
}

#[tokio::test]
async fn no_error_text_holds_the_urls_secrets() {
    let receiver = Receiver::answering("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").await;
    let webhooks = builder().resolver(Nobody).build().unwrap();
    let secret = "s3cret";
    for url in [
        format!("{}?token={secret}", receiver.url()),
        format!("http://127.0.0.1:1/{secret}"),
        format!("http://nobody.example/{secret}?{secret}"),
        format!("https://{}/{secret}", receiver.address),
        format!("http://user:{secret}@nobody.example/"),
        format!("nourl {secret}"),
    ] {
        let error = send(&webhooks, &url).await.0.unwrap_err();
        let text = format!("{} {error:?}", error.report());
        assert!(!text.contains(secret), "{text}");
    }
}

/// Error pages repeat what was asked for.
#[tokio::test]
async fn an_answer_that_repeats_the_request_tells_no_secret() {
    let receiver = Receiver::run(|mut stream| async move {
        while let Some(seen) = read_request(&mut stream).await {
            let token = seen.headers["authorization"].to_str().unwrap();
            let line = seen.head.lines().next().unwrap();
            let page = format!("no: {line} with {token}, key=s3cret/1, {line}");
            let length = page.len();
            let answer = format!("HTTP/1.1 404 No\r\ncontent-length: {length}\r\n\r\n{page}");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await;
    let told = Arc::<Mutex<Vec<String>>>::default();
    let notes = told.clone();
    let observer = move |report: &AttemptReport<'_>| {
        notes.lock().unwrap().push(format!("{report:?}"));
    };
    let url = format!("{}/s3cret-path?key=s3cret%2F1", receiver.url());
    let endpoint = Endpoint::new(&url).unwrap();
    let endpoint = endpoint.header("authorization", "Bearer s3cret").unwrap();
    let destinations = MapDestinations::new().with("ci", endpoint);
    // Captures that end in the middle of a secret too.
    for capture in [1_024, 35, 90, 110, 150] {
        let webhooks = builder().capture(capture).observer(observer.clone());
        let webhooks = webhooks.destinations(destinations.clone()).build().unwrap();
        let error = send(&webhooks, "ci").await.0.unwrap_err();
        let text = format!("{} {error:?}", error.report());
        assert!(text.contains("no: POST [redacted]"), "{text}");
        assert!(!text.contains("s3c"), "{capture}: {text}");
    }
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 5);
    assert!(!told.iter().any(|text| text.contains("s3c")), "{told:?}");
}

/// Slashes are escaped in JSON, and a page may show the last part of the path alone.
#[tokio::test]
async fn an_answer_that_repeats_a_part_of_the_path_tells_no_token() {
    let page = r#"{"path":"\/services\/T0\/s3cret%2Bt0ken","key":"s3cret+t0ken"}"#;
    let length = page.len();
    let answer = format!("HTTP/1.1 404 No\r\ncontent-length: {length}\r\n\r\n{page}");
    let receiver = Receiver::answering(answer).await;
    let url = format!("http://{}/services/T0/s3cret%2Bt0ken", receiver.address);
    let error = send(&builder().build().unwrap(), &url).await.0.unwrap_err();
    let report = error.report();
    assert!(!report.contains("s3cret"), "{report}");
    assert!(report.contains("services"), "{report}");
}

/// The report of an attempt, whatever the destination: a URL is one too.
#[tokio::test]
async fn a_report_shows_neither_the_urls_secrets_nor_the_payload() {
    let told = Arc::<Mutex<String>>::default();
    let notes = told.clone();
    let observer = move |report: &AttemptReport<'_>| *notes.lock().unwrap() = format!("{report:?}");
    let webhooks = builder().observer(observer).build().unwrap();
    let url = "http://127.0.0.1:1/s3cret?s3cret";
    send(&webhooks, url).await.0.unwrap_err();
    let told = told.lock().unwrap();
    assert!(told.contains("127.0.0.1"), "{told}");
    assert!(!told.contains("s3cret") && !told.contains("4f1c"), "{told}");
}

#[tokio::test]
async fn what_is_kept_of_urls_is_not_shown() {
    let urls = UrlDestinations::default();
    let found = urls.resolve("https://ci.example/s3cret?s3cret").await;
    let shown = format!("{urls:?} {found:?}");
    assert!(shown.contains("ci.example"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

struct Never;

#[async_trait]
impl Signer for Never {
    async fn sign(&self, _: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        pending().await
    }
}

#[async_trait]
impl Destinations for Never {
    async fn resolve(&self, _: &str) -> Result<Resolution, Error> {
        pending().await
    }
}

#[tokio::test]
async fn a_key_service_that_never_answers_ends_at_the_total_deadline() {
    let timeouts = short().total(Duration::from_millis(200));
    let webhooks = builder().signer(Never).timeouts(timeouts).build().unwrap();
    not_sent(&webhooks, "http://127.0.0.1:1/", Failure::TotalTimeout).await;
}

#[tokio::test]
async fn a_lookup_of_a_destination_that_never_ends_costs_no_attempt() {
    let timeouts = short().total(Duration::from_millis(200));
    let webhooks = builder().destinations(Never).timeouts(timeouts);
    let webhooks = webhooks.build().unwrap();
    let sending = timeout(SOON, send(&webhooks, "ci"));
    let error = sending.await.unwrap().0.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted);
    assert_eq!(error.phase(), Some(Phase::Waiting));
}
