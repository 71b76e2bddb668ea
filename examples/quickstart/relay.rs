//! The relay: several workers on one outbox, and what they tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outbox_core::{Backoff, Observer, Poke, Relay, TokioTimer, Transition};
use outbox_http::Webhooks;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::database::Database;
use crate::pushes::AnyError;
use crate::signature;

/// Short, so that the demo is; see `Backoff::exponential` for a service's.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_millis(500);
const ATTEMPT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(250);

/// What the relays did so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) delivered: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) dead: AtomicU64,
}

/// Counts what a relay does.
struct Count(Arc<Tally>);

impl Observer for Count {
    fn on(&self, transition: &Transition<'_>) {
        let counter = match transition {
            Transition::Delivered { .. } => &self.0.delivered,
            Transition::Retrying { .. } => &self.0.retried,
            Transition::Dead { .. } => &self.0.dead,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Tally {
    pub(crate) fn text(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        format!(
            "{} delivered, {} failed attempts, {} dead",
            of(&self.delivered),
            of(&self.retried),
            of(&self.dead)
        )
    }
}

/// Relays that run until they are told to stop.
#[derive(Debug)]
pub(crate) struct Workers {
    pub(crate) tally: Arc<Tally>,
    stop: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Workers {
    /// Starts `workers` relays, which `wake` makes look at once.
    pub(crate) fn start(database: &Database, workers: u32, wake: &Poke) -> Result<Self, AnyError> {
        let tally = Arc::new(Tally::default());
        let stop = watch::Sender::new(false);
        let mut running = JoinSet::new();
        let webhooks = Webhooks::builder()
            .signer(signature::scheme()?)
            .allow_private_networks() // the demo's receivers are on this machine
            .build()?;
        for _ in 0..workers {
            let relay = Relay::builder(database.store(), webhooks.clone(), TokioTimer)
                .retry(
                    Backoff::exponential()
                        .base(FIRST_RETRY)
                        .cap(LONGEST_RETRY)
                        .max_attempts(1_000),
                )
                .lease(database.lease())
                .delivery_timeout(ATTEMPT)
                .poll_interval(POLL)
                .wake(wake.clone())
                .observer(Count(Arc::clone(&tally)))
                .build()?;
            let mut stopped = stop.subscribe();
            let shutdown = async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            running.spawn(async move {
                relay.run(shutdown).await;
            });
        }
        Ok(Self {
            tally,
            stop,
            running,
        })
    }

    /// Finishes what is being sent, settles it, gives back the rest.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        self.running.join_all().await;
    }
}
