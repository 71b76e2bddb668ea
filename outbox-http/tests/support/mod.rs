//! A scripted receiver on a real socket, and events to send to it.
#![allow(dead_code, reason = "each test file uses a part")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_http::outbox_core::{Delivery, DeliveryError, Event, EventId, Receipt, Transport};
use outbox_http::{SharedSecret, Timeouts, Webhooks, WebhooksBuilder, XSignature};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) const SECRET: &str = "correct horse battery staple";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A listener whose every connection runs `script`.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn run<F, Fut>(script: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let accepted = connections.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(script(stream));
            }
        });
        Self {
            address,
            connections,
            task,
        }
    }

    /// Answers every request with these bytes and keeps the connection.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::recording(answer).await.0
    }

    /// The same, and shows what it got.
    pub(crate) async fn recording(
        answer: impl Into<Vec<u8>>,
    ) -> (Self, mpsc::UnboundedReceiver<Seen>) {
        let answer = Arc::new(answer.into());
        let (tx, rx) = mpsc::unbounded_channel();
        let receiver = Self::run(move |mut stream| {
            let (answer, tx) = (answer.clone(), tx.clone());
            async move {
                while let Some(seen) = read_request(&mut stream).await {
                    let _ = tx.send(seen);
                    if stream.write_all(&answer).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await;
        (receiver, rx)
    }

    /// How many connections were accepted.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request as received: head in lower case names, body.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Reads one request with a `content-length`; `None` at the end of the connection.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut chunk = [0; 4096];
        let n = stream.read(&mut chunk).await.ok()?;
        if n == 0 {
            return None;
        }
        bytes.extend_from_slice(&chunk[..n]);
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut headers = http::HeaderMap::new();
    for line in head.lines().skip(1).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(
            http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    let length: usize = headers
        .get("content-length")
        .map_or(0, |v| v.to_str().unwrap().parse().unwrap());
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        let mut chunk = vec![0; length - body.len()];
        let n = stream.read(&mut chunk).await.ok()?;
        if n == 0 {
            return None;
        }
        body.extend_from_slice(&chunk[..n]);
    }
    Some(Seen {
        head,
        headers,
        body,
    })
}

/// An event for this destination.
pub(crate) fn event(destination: &str) -> Event {
    let mut event = Event::new(
        EventId::new(),
        1,
        "RepositoryPushed",
        destination,
        &b"{\"after\":\"4f1c\"}"[..],
    );
    event.content_type = "application/json".into();
    event.attempts = 1;
    event
}

pub(crate) fn delivery(event: Event) -> Delivery {
    Delivery::new(Arc::new(event), Duration::from_secs(30))
}

/// A transport for tests: the loopback is allowed, deadlines are short.
pub(crate) fn builder() -> WebhooksBuilder {
    Webhooks::builder()
        .signer(XSignature::with_secret(SharedSecret::new(SECRET).unwrap()))
        .allow_private_networks()
        .timeouts(short())
}

pub(crate) fn short() -> Timeouts {
    Timeouts::default()
        .connect(Duration::from_millis(500))
        .head(Duration::from_millis(200))
        .body(Duration::from_millis(200))
        .total(Duration::from_secs(2))
}

/// Sends one event there; what came of it, and the delivery with its phase.
pub(crate) async fn send(
    webhooks: &Webhooks,
    url: &str,
) -> (Result<Receipt, DeliveryError>, Delivery) {
    let delivery = delivery(event(url));
    (webhooks.deliver(delivery.clone()).await, delivery)
}
