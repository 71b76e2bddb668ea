//! The egress proxy: used on purpose only, and its own trouble costs no event an attempt.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outbox_http::AddressGuard;
use outbox_http::outbox_core::{DeathReason, DeliveryErrorKind as Kind, Phase};
use support::{OK, Receiver, builder, read_request, send};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;

/// A proxy that answers CONNECT with this status, and tunnels where it is 200.
async fn proxy(status: &'static str, used: Arc<AtomicUsize>) -> Receiver {
    Receiver::run(move |mut stream| {
        let used = used.clone();
        async move {
            let Some(request) = read_request(&mut stream).await else {
                return;
            };
            used.fetch_add(1, Ordering::Relaxed);
            let target = request.head.split(' ').nth(1).unwrap().to_owned();
            assert!(request.head.starts_with("CONNECT "), "{}", request.head);
            assert_eq!(request.headers["proxy-authorization"], "Basic dTpw");
            let answer = format!("HTTP/1.1 {status}\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
            if status.starts_with("200") {
                let mut target = TcpStream::connect(target).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut target).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn deliveries_go_through_the_tunnel() {
    let used = Arc::<AtomicUsize>::default();
    let proxy = proxy("200 OK", used.clone()).await;
    let receiver = Receiver::answering(OK).await;
    let url = format!("http://u:p@{}", proxy.address);
    let webhooks = builder().egress_proxy(&url).unwrap().build().unwrap();
    send(&webhooks, &receiver.url()).await.0.unwrap();
    send(&webhooks, &receiver.url()).await.0.unwrap();
    assert_eq!(used.load(Ordering::Relaxed), 1);
    let guarded = builder()
        .guard(AddressGuard::public_internet())
        .egress_proxy(&url)
        .unwrap()
        .build()
        .unwrap();
    let error = send(&guarded, &receiver.url()).await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Permanent(DeathReason::Unroutable));
    assert_eq!(
        used.load(Ordering::Relaxed),
        1,
        "the guard goes on checking URLs"
    );
}

#[tokio::test]
async fn only_the_receivers_own_trouble_is_charged() {
    for (status, kind) in [
        ("407 Proxy Authentication Required", Kind::NotAttempted),
        ("403 Forbidden", Kind::NotAttempted),
        ("502 Bad Gateway", Kind::Transient),
        ("504 Gateway Timeout", Kind::Transient),
    ] {
        let proxy = proxy(status, Arc::default()).await;
        let url = format!("http://u:p@{}/", proxy.address);
        let webhooks = builder().egress_proxy(&url).unwrap().build().unwrap();
        let (result, delivery) = send(&webhooks, "http://127.0.0.1:1/").await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{}", error.report());
        assert_eq!(delivery.phase(), Phase::Waiting);
    }
    let webhooks = builder()
        .egress_proxy("http://127.0.0.1:1")
        .unwrap()
        .build()
        .unwrap();
    let error = send(&webhooks, "http://127.0.0.1:2/").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted);
}

/// What a URL can't hold as it is stands percent-encoded in it, and is sent as it is.
#[tokio::test]
async fn credentials_are_sent_as_they_are_meant() {
    let (sent, mut seen) = mpsc::unbounded_channel();
    let proxy = Receiver::run(move |mut stream| {
        let sent = sent.clone();
        async move {
            if let Some(request) = read_request(&mut stream).await {
                let _ = sent.send(request.headers["proxy-authorization"].clone());
            }
            let _ = stream.write_all(b"HTTP/1.1 407 No\r\n\r\n").await;
        }
    })
    .await;
    let url = format!("http://us%3Aer:p%40ss%2F%C3%BC^@{}", proxy.address);
    let webhooks = builder().egress_proxy(&url).unwrap().build().unwrap();
    send(&webhooks, "http://127.0.0.1:1/").await.0.unwrap_err();
    // `us:er:p@ss/ü^`
    assert_eq!(seen.recv().await.unwrap(), "Basic dXM6ZXI6cEBzcy/DvF4=");
}

/// A proxy whose machine is gone: packets to it are never answered.
#[tokio::test]
async fn a_proxy_that_cannot_be_reached_costs_no_attempt() {
    // The queue of a listener that accepts nobody is filled: further handshakes are never answered.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _first = TcpStream::connect(address).await.unwrap();
    let url = format!("http://{address}");
    let webhooks = builder().egress_proxy(&url).unwrap().build().unwrap();
    let error = send(&webhooks, "http://127.0.0.1:2/").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::NotAttempted, "{}", error.report());
}

#[test]
fn a_proxy_url_that_says_more_is_refused() {
    for url in [
        "",
        "proxy:3128",
        "https://proxy:3128",
        "http://proxy/path",
        "http://proxy/#x",
        "socks5://proxy",
    ] {
        let error = builder().egress_proxy(url).unwrap_err().to_string();
        assert!(error.starts_with("setting `egress_proxy` "), "{error}");
    }
}
