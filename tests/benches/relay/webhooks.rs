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
use crate::pulse::Pulse;
use crate::setup::{Bench, Nothing, median, rate, relay, store};
use crate::throughput::{deliver, drain};

/// The argument that makes this program the receiver.
pub(crate) const RECEIVER: &str = "receiver";
const ROUNDS: usize = 5;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What is measured, in the order in which one round does; the next begins with the second, and so on.
const SIDES: [&str; 3] = ["store", "client", "end to end"];

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nwebhooks: {events} events of 400 bytes, thousand/s, medians of {ROUNDS} rounds");
    println!("batch    store  client  end to end  ratio to the lower  ratio to both in turn");
    let (mut receiver, url) = start();
    let processes = Processes::of(&bench.pool, receiver.id()).await;
    for batch in [16, 64, 256] {
        let mut rates: [Vec<f64>; 3] = Default::default();
        let (mut ratios, mut in_turn) = (Vec::new(), Vec::new());
        let mut costs: [String; 3] = Default::default();
        let mut statements = Vec::new();
        for round in 0..ROUNDS {
            for side in (0..3).map(|nth| (round + nth) % 3) {
                if side != 1 {
                    bench.fill_for(events, &url).await;
                }
                bench.forget_statements().await;
                let pulse = Pulse::default();
                let before = processes.now();
                let took = match side {
                    0 => drain(bench, batch, 1).await,
                    1 => post(&url, events, batch).await,
                    _ => end_to_end(bench, events, batch, &pulse).await,
                };
                costs[side] = processes.since(before, events);
                rates[side].push(rate(events, took));
                if side == 2 {
                    statements = bench.statements().await;
                    statements.insert(0, pulse.to_string());
                }
            }
            let [store, client, relay] = [0, 1, 2].map(|side| rates[side][round]);
            ratios.push(relay / store.min(client));
            // What is left where both need the same cores, and each could fill them alone.
            in_turn.push(relay * (1.0 / store + 1.0 / client));
        }
        let shown: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        let [store, client, relay] = rates.map(median);
        let (ratio, in_turn) = (median(ratios), median(in_turn));
        println!(
            "{batch:5} {store:8.1} {client:7.1} {relay:11.1} {ratio:19.2} {in_turn:22.2}  ({})",
            shown.join(" ")
        );
        println!("      CPU for each event, µs, in the last round:");
        for (what, cost) in SIDES.iter().zip(costs) {
            println!("      {what:10} {cost}");
        }
        for line in statements {
            println!("      {line}");
        }
    }
    receiver.kill().expect("killed");
    receiver.wait().expect("gone");
}

async fn end_to_end(bench: &Bench, events: u32, batch: u32, pulse: &Pulse) -> Duration {
    let (counted, done) = Counted::until(events);
    let counted = Arc::new(counted);
    let build = || {
        let relay = relay(store(&bench.pool), Arc::clone(&counted), batch);
        settings(relay, batch).observer(pulse.clone())
    };
    deliver(build, done, events, 1).await
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
