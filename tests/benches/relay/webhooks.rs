//! From PostgreSQL to a receiver in another process, beside the store's own rate and that of the
//! webhook client.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use outbox_core::{
    Delivery, DeliveryError, Event, EventId, Receipt, RelayBuilder, Transport, async_trait,
};
use outbox_http::{StandardWebhooks, Webhooks};

use crate::cpu::Processes;
use crate::setup::{Bench, Nothing, median, rate, relay, store};
use crate::throughput::{deliver, drain};

/// The argument that makes this program the receiver.
pub(crate) const RECEIVER: &str = "receiver";
const ROUNDS: usize = 3;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nwebhooks: {events} events of 400 bytes, thousand/s, median of {ROUNDS}");
    println!("batch    store  client  end to end  ratio to the lower  ratio to both in turn");
    let (mut receiver, url) = start();
    let processes = Processes::of(&bench.pool, receiver.id()).await;
    for batch in [16, 64, 256] {
        let (mut by_store, mut by_client, mut by_relay) = (Vec::new(), Vec::new(), Vec::new());
        let mut costs = Vec::new();
        for _ in 0..ROUNDS {
            bench.fill_for(events, &url).await;
            let before = processes.now();
            by_store.push(rate(events, drain(bench, batch, 1).await));
            costs.push(("store", processes.since(before, events)));
            let before = processes.now();
            by_client.push(rate(events, post(&url, events, batch).await));
            costs.push(("client", processes.since(before, events)));
            bench.fill_for(events, &url).await;
            let (counted, done) = Counted::until(events);
            let counted = Arc::new(counted);
            let build = || {
                settings(
                    relay(store(&bench.pool), Arc::clone(&counted), batch),
                    batch,
                )
            };
            bench.forget_statements().await;
            let before = processes.now();
            let took = deliver(build, done, events, 1).await;
            by_relay.push(rate(events, took));
            costs.push(("end to end", processes.since(before, events)));
        }
        let [by_store, by_client, by_relay] = [by_store, by_client, by_relay].map(median);
        let ratio = by_relay / by_store.min(by_client);
        // What is left where both need the same cores, and each could fill them alone.
        let in_turn = by_relay * (1.0 / by_store + 1.0 / by_client);
        println!(
            "{batch:5} {by_store:8.1} {by_client:7.1} {by_relay:11.1} {ratio:19.2} {in_turn:22.2}"
        );
        println!("      CPU for each event, µs, in the last round:");
        for (what, cost) in costs.iter().skip(costs.len() - 3) {
            println!("      {what:10} {cost}");
        }
        for line in bench.statements().await {
            println!("      {line}");
        }
    }
    receiver.kill().expect("killed");
    receiver.wait().expect("gone");
}

/// What suits many quick deliveries: fewer and larger settles. A crash repeats a few more.
fn settings(relay: RelayBuilder, batch: u32) -> RelayBuilder {
    let settle = usize::try_from(4 * batch).expect("small");
    relay
        .settle_after(Duration::from_millis(5))
        .settle_batch(settle)
}

/// The client alone, at this concurrency.
async fn post(url: &str, events: u32, concurrency: u32) -> Duration {
    let client = Arc::new(client());
    let each = events / concurrency;
    let begun = Instant::now();
    let tasks = (0..concurrency).map(|_| {
        let (client, url) = (Arc::clone(&client), url.to_owned());
        tokio::spawn(async move {
            for seq in 0..each {
                let id = EventId::new();
                let body = vec![b'x'; 400];
                let event = Event::new(id, seq.into(), "RepositoryPushed", &*url, body);
                let delivery = Delivery::new(Arc::new(event), Duration::from_secs(30));
                client.deliver(delivery).await.expect("delivered");
            }
        })
    });
    for task in join_all(tasks).await {
        task.expect("a task");
    }
    begun.elapsed()
}

fn client() -> Webhooks {
    let signer = StandardWebhooks::new(SECRET).expect("a secret");
    let webhooks = Webhooks::builder().signer(signer).allow_private_networks();
    webhooks.build().expect("valid")
}

/// The client, and a count of what it delivered.
struct Counted {
    client: Webhooks,
    count: Nothing,
}

impl Counted {
    fn until(events: u32) -> (Self, tokio::sync::oneshot::Receiver<()>) {
        let (count, done) = Nothing::until(events);
        let client = client();
        (Self { client, count }, done)
    }
}

#[async_trait]
impl Transport for Counted {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let receipt = self.client.deliver(delivery).await?;
        self.count.count();
        Ok(receipt)
    }
}

fn start() -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .arg(RECEIVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("an address");
    (child, format!("http://{}/hooks", line.trim()))
}

/// Reads each request to its end and answers 200; for as long as the benchmark lives, whose end is that
/// of the input.
pub(crate) async fn receive() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| async {
                let _ = request.into_body().collect().await;
                Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
            });
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
