//! Signed POSTs of 400 bytes to a receiver in another process: `outbox-http` beside a bare loop over
//! the same HTTP client with the same signing, and what signing costs.
//!
//! `cargo bench -p outbox-http`. Machines drift: only the ratios within one run count.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and may panic"
)]

use std::cell::Cell;
use std::convert::Infallible;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use outbox_http::outbox_core::{Delivery, Event, EventId, Signer, SigningInput, Transport};
use outbox_http::{StandardWebhooks, Stripe, Webhooks, XSignature};
use sha2::Sha256;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Short rounds in turns, so that both sides meet the same disturbances.
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 21;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|a| a == "--receiver") {
        return runtime().block_on(receive());
    }
    if arguments.iter().any(|a| a == "--test") {
        // `cargo test --benches` only wants to know that it runs.
        return signing(1);
    }
    signing(20_000);
    let (mut receiver, address) = start();
    println!(
        "\n400-byte bodies, one client thread, receiver in another process; medians of {ROUNDS}"
    );
    println!("concurrency   bare k/s  µs CPU   outbox-http k/s  µs CPU   ratio");
    for concurrency in [16, 64, 256] {
        compare(address, concurrency);
    }
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The same program as receiver, and where it listens.
fn start() -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("--receiver")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap())
}

/// Reads each request to its end and answers 200.
async fn receive() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<hyper::body::Incoming>| async {
                let _ = request.into_body().collect().await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
            });
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// One side's result: requests each second, CPU time for each.
#[derive(Clone, Copy)]
struct Rate {
    per_second: f64,
    cpu: Duration,
}

fn compare(address: SocketAddr, concurrency: usize) {
    let url = format!("http://{address}/hooks");
    let (bare, ours) = (Bare::new(&url), Ours::new(&url));
    let runtime = runtime();
    let (mut bare_rates, mut our_rates) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let bare = bare.clone();
        let a = drive(&runtime, concurrency, move || {
            let bare = bare.clone();
            async move { bare.send().await }
        });
        let ours = ours.clone();
        let b = drive(&runtime, concurrency, move || {
            let ours = ours.clone();
            async move { ours.send().await }
        });
        // The first round opens the connections.
        if round > 0 {
            bare_rates.push(a);
            our_rates.push(b);
        }
    }
    let pairs = bare_rates.iter().zip(&our_rates);
    let mut ratios: Vec<f64> = pairs.map(|(a, b)| b.per_second / a.per_second).collect();
    ratios.sort_by(f64::total_cmp);
    let (bare, ours) = (median(bare_rates), median(our_rates));
    println!(
        "{concurrency:>11}   {:>8.1}  {:>6.1}   {:>15.1}  {:>6.1}   {:>5.2}",
        bare.per_second / 1e3,
        bare.cpu.as_secs_f64() * 1e6,
        ours.per_second / 1e3,
        ours.cpu.as_secs_f64() * 1e6,
        ratios[ratios.len() / 2],
    );
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    rates[rates.len() / 2]
}

/// Keeps this many requests in flight for one round.
fn drive<F, Fut>(runtime: &Runtime, concurrency: usize, send: F) -> Rate
where
    F: Fn() -> Fut + Clone + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let (started, cpu) = (Instant::now(), cpu_time());
    let count = Rc::new(Cell::new(0_u32));
    let tasks = LocalSet::new();
    for _ in 0..concurrency {
        let (send, count) = (send.clone(), count.clone());
        tasks.spawn_local(async move {
            while started.elapsed() < ROUND {
                send().await;
                count.set(count.get() + 1);
            }
        });
    }
    runtime.block_on(tasks);
    Rate {
        per_second: f64::from(count.get()) / started.elapsed().as_secs_f64(),
        cpu: (cpu_time() - cpu) / count.get(),
    }
}

/// CPU time of the main thread, on which everything here runs (Linux; zero elsewhere).
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

fn payload(bytes: usize) -> Bytes {
    Bytes::from(vec![b'x'; bytes])
}

/// What a careful hand would write over the same client: signed by hand, the body of the answer read.
#[derive(Clone)]
struct Bare {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    key: Hmac<Sha256>,
    id: EventId,
    body: Bytes,
}

impl Bare {
    fn new(url: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let key = STANDARD.decode(&SECRET["whsec_".len()..]).unwrap();
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            uri: url.parse().unwrap(),
            key: Hmac::new_from_slice(&key).unwrap(),
            id: EventId::new(),
            body: payload(400),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "signed as of now")]
    async fn send(&self) {
        let id = self.id.to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let timestamp = now.as_secs().to_string();
        let mut mac = self.key.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", &self.body] {
            mac.update(part);
        }
        let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::USER_AGENT, HeaderValue::from_static("bench"));
        headers.insert("webhook-id", id.try_into().unwrap());
        headers.insert("webhook-timestamp", timestamp.try_into().unwrap());
        headers.insert("webhook-signature", signature.try_into().unwrap());
        let answer = self.client.request(request).await.unwrap();
        assert!(answer.status().is_success());
        answer.into_body().collect().await.unwrap();
    }
}

#[derive(Clone)]
struct Ours {
    webhooks: Webhooks,
    event: Arc<Event>,
}

impl Ours {
    fn new(url: &str) -> Self {
        let webhooks = Webhooks::builder()
            .signer(StandardWebhooks::new(SECRET).unwrap())
            .allow_private_networks()
            .build()
            .unwrap();
        let mut event = Event::new(EventId::new(), 1, "Pushed", url, payload(400));
        event.content_type = "application/json".to_owned();
        let event = Arc::new(event);
        Self { webhooks, event }
    }

    async fn send(&self) {
        let delivery = Delivery::new(self.event.clone(), Duration::from_secs(30));
        self.webhooks.deliver(delivery).await.unwrap();
    }
}

/// What a signature costs, by scheme and size.
#[expect(clippy::disallowed_methods, reason = "signed as of now")]
fn signing(times: u32) {
    println!("signing, µs      400 B   4 KiB  64 KiB");
    let schemes: [(&str, Box<dyn Signer>); 3] = [
        ("Standard", Box::new(StandardWebhooks::new(SECRET).unwrap())),
        ("X-Signature", Box::new(XSignature::new(SECRET).unwrap())),
        ("Stripe", Box::new(Stripe::new(SECRET).unwrap())),
    ];
    let runtime = runtime();
    for (name, scheme) in schemes {
        print!("{name:<14}");
        for size in [400, 4 << 10, 64 << 10] {
            let input = SigningInput::new(EventId::new(), SystemTime::now(), payload(size));
            let started = Instant::now();
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(scheme.sign(black_box(&input)).await.unwrap());
                }
            });
            let each = started.elapsed().as_secs_f64() / f64::from(times);
            print!("{:>8.2}", each * 1e6);
        }
        println!();
    }
}
