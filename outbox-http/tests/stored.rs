//! Destinations that are rows of a table: what is kept, for how long, and what it costs.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use outbox_http::outbox_core::{Error, ErrorKind, async_trait};
use outbox_http::{
    DestinationRecord, DestinationStore, Destinations, Endpoint, Resolution, Scheme, SecretText,
    StoredDestinations,
};
use tokio::sync::Semaphore;
use tokio::time::advance;

const SECOND: Duration = Duration::from_secs(1);

/// A table of which every query is counted, and waits where `gate` is shut.
#[derive(Clone)]
struct Table(Arc<State>);

struct State {
    row: Mutex<Option<DestinationRecord>>,
    down: AtomicBool,
    lookups: AtomicUsize,
    gate: Semaphore,
}

impl Table {
    fn of(row: Option<DestinationRecord>) -> Self {
        Self(Arc::new(State {
            row: Mutex::new(row),
            down: AtomicBool::new(false),
            lookups: AtomicUsize::new(0),
            gate: Semaphore::new(1_000),
        }))
    }

    fn lookups(&self) -> usize {
        self.0.lookups.load(Ordering::Relaxed)
    }

    fn put(&self, row: Option<DestinationRecord>) {
        *self.0.row.lock().unwrap() = row;
    }

    fn down(&self, down: bool) {
        self.0.down.store(down, Ordering::Relaxed);
    }

    fn destinations(&self) -> StoredDestinations<Self> {
        StoredDestinations::new(self.clone())
            .fresh_for(10 * SECOND)
            .stale_for(60 * SECOND)
            .unknown_for(2 * SECOND)
    }
}

#[async_trait]
impl DestinationStore for Table {
    async fn find(&self, _: &str) -> Result<Option<DestinationRecord>, Error> {
        self.0.lookups.fetch_add(1, Ordering::Relaxed);
        let _open = self.0.gate.acquire().await.unwrap();
        if self.0.down.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Unavailable, "the database is away"));
        }
        Ok(self.0.row.lock().unwrap().clone())
    }
}

fn row() -> DestinationRecord {
    let mut record = DestinationRecord::new("https://ci.example/hooks");
    record.scheme = Scheme::GitHub;
    record
        .secrets
        .push(SecretText::new("a", "correct horse battery staple"));
    record
}

fn disabled() -> DestinationRecord {
    let mut record = row();
    record.disabled = Some("asked to stop".into());
    record
}

async fn endpoint(destinations: &impl Destinations) -> Arc<Endpoint> {
    match destinations.resolve("ci").await.unwrap() {
        Resolution::Endpoint(endpoint) => endpoint,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_looks_a_destination_up_once() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    let found = join_all((0..100).map(|_| endpoint(&destinations))).await;
    assert_eq!(table.lookups(), 1);
    assert!(found.iter().all(|other| Arc::ptr_eq(other, &found[0])));
}

#[tokio::test(start_paused = true)]
async fn a_burst_over_a_store_that_is_away_asks_it_once_a_second() {
    let table = Table::of(None);
    table.down(true);
    let destinations = table.destinations();
    let found = join_all((0..100).map(|_| destinations.resolve("ci"))).await;
    assert!(found.iter().all(Result::is_err));
    assert_eq!(table.lookups(), 1);
    advance(SECOND).await;
    table.down(false);
    table.put(Some(row()));
    endpoint(&destinations).await;
    assert_eq!(table.lookups(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_heeded_when_the_answer_is_no_longer_fresh() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    let first = endpoint(&destinations).await;
    table.put(Some(disabled()));
    advance(9 * SECOND).await;
    endpoint(&destinations).await;
    advance(SECOND).await;
    let found = destinations.resolve("ci").await.unwrap();
    assert!(matches!(found, Resolution::Disabled { reason } if reason == "asked to stop"));
    table.put(Some(row()));
    advance(10 * SECOND).await;
    let second = endpoint(&destinations).await;
    assert!(!Arc::ptr_eq(&first, &second));
    advance(10 * SECOND).await;
    let third = endpoint(&destinations).await;
    assert!(
        Arc::ptr_eq(&second, &third),
        "the same record keeps its endpoint, and so its limits"
    );
    assert_eq!(table.lookups(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_counts_while_the_store_is_away_but_not_for_ever() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    endpoint(&destinations).await;
    table.down(true);
    advance(11 * SECOND).await;
    endpoint(&destinations).await;
    endpoint(&destinations).await;
    assert_eq!(
        table.lookups(),
        2,
        "a failed lookup is not repeated at once"
    );
    advance(60 * SECOND).await;
    let error = destinations.resolve("ci").await.unwrap_err();
    assert_eq!(error.to_string(), "the database is away");
}

#[tokio::test(start_paused = true)]
async fn one_delivery_waits_for_a_new_answer_and_the_others_go_on() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    endpoint(&destinations).await;
    advance(11 * SECOND).await;
    let shut = table.0.gate.acquire_many(1_000).await.unwrap();
    let mut refresh = Box::pin(endpoint(&destinations));
    assert!(refresh.as_mut().now_or_never().is_none());
    for _ in 0..10 {
        assert!(endpoint(&destinations).now_or_never().is_some());
    }
    assert_eq!(table.lookups(), 2);
    drop(shut);
    refresh.await;
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_is_dropped_hinders_no_other() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    let shut = table.0.gate.acquire_many(1_000).await.unwrap();
    let mut dropped = Box::pin(endpoint(&destinations));
    assert!(dropped.as_mut().now_or_never().is_none());
    let mut waiting = Box::pin(endpoint(&destinations));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(dropped);
    drop(shut);
    waiting.await;
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_is_looked_up_again_soon() {
    let table = Table::of(None);
    let destinations = table.destinations();
    for _ in 0..10 {
        let found = destinations.resolve("ci").await.unwrap();
        assert!(matches!(found, Resolution::Unknown));
    }
    assert_eq!(table.lookups(), 1);
    table.put(Some(row()));
    advance(2 * SECOND).await;
    endpoint(&destinations).await;
}

/// A destination that was deleted is never delivered to on the strength of an old answer.
#[tokio::test(start_paused = true)]
async fn a_deleted_row_is_unknown_and_stays_so() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    endpoint(&destinations).await;
    table.put(None);
    advance(10 * SECOND).await;
    let found = destinations.resolve("ci").await.unwrap();
    assert!(matches!(found, Resolution::Unknown));
    table.down(true);
    advance(2 * SECOND).await;
    destinations.resolve("ci").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_looked_up_at_once() {
    let table = Table::of(Some(row()));
    let destinations = table.destinations();
    endpoint(&destinations).await;
    destinations.forget("other");
    endpoint(&destinations).await;
    assert_eq!(table.lookups(), 1);
    destinations.forget("ci");
    endpoint(&destinations).await;
    destinations.forget_all();
    endpoint(&destinations).await;
    assert_eq!(table.lookups(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_destinations_that_are_kept_is_bounded() {
    let table = Table::of(Some(row()));
    let destinations = table
        .destinations()
        .capacity(NonZeroUsize::new(10).unwrap());
    for n in 0..100 {
        destinations.resolve(&format!("{n}")).await.unwrap();
        destinations.resolve("often").await.unwrap();
    }
    assert_eq!(table.lookups(), 101, "what is used often stays");
    destinations.resolve("0").await.unwrap();
    assert_eq!(table.lookups(), 102, "what is not has gone");
}

#[tokio::test(start_paused = true)]
async fn a_row_that_makes_no_endpoint_says_what_is_wrong_and_quotes_nothing() {
    let change = |change: fn(&mut DestinationRecord)| {
        let mut record = row();
        change(&mut record);
        Table::of(Some(record))
    };
    let cases = [
        (
            change(|r| r.url = "https://user:s3cret@ci.example/".into()),
            "user name or password",
        ),
        (
            change(|r| r.secrets.push(SecretText::new("b", "s3cret"))),
            "the secret named \"b\" is refused: setting `secret` has 6 bytes",
        ),
        (
            change(|r| drop(r.headers.insert("host".into(), "s3cret".into()))),
            "belongs to the connection",
        ),
    ];
    for (table, problem) in cases {
        let destinations = table.destinations();
        for _ in 0..3 {
            let error = destinations.resolve("ci").await.unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(problem), "{text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
        assert_eq!(table.lookups(), 1);
        table.put(Some(row()));
        advance(2 * SECOND).await;
        endpoint(&destinations).await;
    }
}

#[test]
fn schemes_have_names() {
    for name in [
        "standard-webhooks",
        "x-signature",
        "github",
        "stripe",
        "slack",
        "shopify",
    ] {
        name.parse::<Scheme>().unwrap();
    }
    assert_eq!(
        "GitHub".parse::<Scheme>().unwrap_err().to_string(),
        "setting `scheme` is none of standard-webhooks, x-signature, github, stripe, slack, shopify"
    );
}

#[test]
fn a_record_shows_nothing_secret() {
    let mut record = DestinationRecord::new("https://ci.example/?token=s3cret");
    record.secrets.push(SecretText::new("a", "s3cret"));
    record
        .headers
        .insert("authorization".into(), "s3cret".into());
    let shown = format!("{record:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}
