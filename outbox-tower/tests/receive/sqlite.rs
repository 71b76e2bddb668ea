//! The receiving half on a database: keys, inbox and effects in one SQLite file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post as on_post;
use futures::future::join_all;
use http::StatusCode;
use outbox_core::{Accepted, Error, ErrorKind, Inbox, ManualClock};
use outbox_sqlx::SqliteStore;
use outbox_sqlx::sqlx::{self, query, query_scalar};
use outbox_tower::receive::{IdempotencyLayer, Received, VerifyLayer};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::support::{ByHeader, SECOND, post, send, text};

const KEY: (&str, &str) = ("idempotency-key", "\"8e03978e\"");

/// A database that is gone with its folder.
struct Database {
    store: SqliteStore,
    folder: TempDir,
    clock: ManualClock,
}

impl Database {
    async fn new(clock: ManualClock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder, &clock).await;
        store.migrate().await.unwrap();
        let create = query("CREATE TABLE effect (what TEXT NOT NULL)");
        create.execute(store.pool()).await.unwrap();
        Self {
            store,
            folder,
            clock,
        }
    }

    /// A store as another process has it: connections of its own.
    async fn another(&self) -> SqliteStore {
        open(&self.folder, &self.clock).await
    }

    async fn effects(&self) -> i64 {
        let count = query_scalar("SELECT count(*) FROM effect");
        count.fetch_one(self.store.pool()).await.unwrap()
    }
}

async fn open(folder: &TempDir, clock: &ManualClock) -> SqliteStore {
    let store = SqliteStore::connect(folder.path().join("app.db")).await;
    store.unwrap().clock(clock.clone())
}

/// How the next runs of a handler end, and how many there were.
#[derive(Clone)]
struct Runs {
    store: SqliteStore,
    count: Arc<AtomicUsize>,
    /// This many runs fail between effect and commit.
    failures: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Runs {
    fn new(store: &SqliteStore, failures: usize) -> Self {
        Self {
            store: store.clone(),
            count: Arc::default(),
            failures: Arc::new(AtomicUsize::new(failures)),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    fn gated(store: &SqliteStore) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        Self {
            gate,
            ..Self::new(store, 0)
        }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn fails(&self) -> bool {
        let left = |failures: usize| failures.checked_sub(1);
        let next = self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        next.is_ok()
    }

    async fn run(State(runs): State<Self>) -> (StatusCode, String) {
        let run = runs.count.fetch_add(1, Ordering::SeqCst) + 1;
        runs.gate.acquire().await.unwrap().forget();
        (StatusCode::CREATED, format!("run {run}"))
    }

    fn behind_keys(&self) -> Router {
        self.behind(IdempotencyLayer::new(self.store.clone()).lease(30 * SECOND))
    }

    fn behind(&self, layer: IdempotencyLayer) -> Router {
        let router = Router::new().route("/", on_post(Self::run)).layer(layer);
        router.with_state(self.clone())
    }

    async fn accept(&self, message: &Received) -> Result<StatusCode, Error> {
        let failed = |error: sqlx::Error| Error::new(ErrorKind::Unavailable, error.to_string());
        let mut tx = self.store.begin_immediate().await?;
        match self.store.accept(&mut tx, message).await? {
            Accepted::First => {
                let effect = query("INSERT INTO effect VALUES ('pushed')");
                effect.execute(&mut *tx).await.map_err(failed)?;
            }
            Accepted::Mismatch => return Ok(StatusCode::UNPROCESSABLE_ENTITY),
            _ => {}
        }
        if self.fails() {
            return Ok(StatusCode::INTERNAL_SERVER_ERROR); // and the transaction rolls back
        }
        tx.commit().await.map_err(failed)?;
        Ok(StatusCode::NO_CONTENT)
    }

    fn behind_verification(&self) -> Router {
        let on_message = |State(runs): State<Self>, message: Received| async move {
            runs.count.fetch_add(1, Ordering::SeqCst);
            let accepted = runs.accept(&message).await;
            accepted.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
        };
        let router = Router::new().route("/", on_post(on_message));
        let router = router.layer(VerifyLayer::new(ByHeader));
        router.with_state(self.clone())
    }
}

#[tokio::test]
async fn a_repeat_gets_the_kept_answer_of_another_process_and_another_body_is_refused() {
    let database = Database::new(ManualClock::new()).await;
    let runs = Runs::new(&database.store, 0);
    let first = send(&runs.behind_keys(), post(&[KEY], "abc")).await;
    assert_eq!(first.status(), StatusCode::CREATED);
    let another = Runs::new(&database.another().await, 0);
    let app = another.behind_keys();
    let repeat = send(&app, post(&[KEY], "abc")).await;
    assert_eq!(repeat.status(), StatusCode::CREATED);
    assert_eq!(repeat.headers()["idempotent-replayed"], "true");
    assert_eq!(text(repeat).await, "run 1");
    let other = send(&app, post(&[KEY], "abd")).await;
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!((runs.count(), another.count()), (1, 0));
}

#[tokio::test]
async fn of_requests_at_once_one_runs_and_the_others_conflict() {
    let database = Database::new(ManualClock::new()).await;
    let runs = Runs::gated(&database.store);
    let app = runs.behind_keys();
    let requests = (0..64).map(|_| {
        let app = app.clone();
        tokio::spawn(async move { send(&app, post(&[KEY], "abc")).await })
    });
    let requests: Vec<_> = requests.collect();
    let deadline = std::time::Instant::now() + 60 * SECOND;
    while requests.iter().filter(|task| task.is_finished()).count() < 63 {
        assert!(std::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    runs.gate.add_permits(1);
    let mut statuses = Vec::new();
    for response in join_all(requests).await {
        let response = response.unwrap();
        if response.status() == StatusCode::CONFLICT {
            assert!(response.headers().contains_key("retry-after"));
        }
        statuses.push(response.status().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (201, &[409; 63][..]));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_crashed_handlers_key_is_free_when_its_lease_ends() {
    let clock = ManualClock::new();
    let database = Database::new(clock.clone()).await;
    let runs = Runs::gated(&database.store);
    let app = runs.behind_keys();
    let other = app.clone();
    let crashed = tokio::spawn(async move { send(&other, post(&[KEY], "abc")).await });
    while runs.count() == 0 {
        tokio::task::yield_now().await;
    }
    crashed.abort();
    assert!(crashed.await.unwrap_err().is_cancelled());
    clock.advance(28 * SECOND);
    let busy = send(&app, post(&[KEY], "abc")).await;
    assert_eq!(busy.status(), StatusCode::CONFLICT);
    assert_eq!(busy.headers()["retry-after"], "2");
    clock.advance(2 * SECOND);
    runs.gate.add_permits(1);
    let taken_over = send(&app, post(&[KEY], "abc")).await;
    assert_eq!(taken_over.status(), StatusCode::CREATED);
    assert_eq!(
        (text(taken_over).await.as_str(), runs.count()),
        ("run 2", 2)
    );
}

#[tokio::test]
async fn an_answer_is_kept_for_its_retention_and_no_longer() {
    let clock = ManualClock::new();
    let database = Database::new(clock.clone()).await;
    let runs = Runs::new(&database.store, 0);
    let layer = IdempotencyLayer::new(database.store.clone()).retention(60 * SECOND);
    let app = runs.behind(layer);
    send(&app, post(&[KEY], "abc")).await;
    clock.advance(59 * SECOND);
    let kept = send(&app, post(&[KEY], "abc")).await;
    assert_eq!(text(kept).await, "run 1");
    clock.advance(SECOND);
    let another_request = send(&app, post(&[KEY], "abd")).await;
    assert_eq!(text(another_request).await, "run 2");
}

#[tokio::test]
async fn effect_and_de_duplication_commit_together_or_not_at_all() {
    let database = Database::new(ManualClock::new()).await;
    let runs = Runs::new(&database.store, 2);
    let app = runs.behind_verification();
    let headers = [("x-signature", "good"), ("webhook-id", "m1")];
    for (expected, effects) in [(500, 0), (500, 0), (204, 1), (204, 1), (204, 1)] {
        assert_eq!(send(&app, post(&headers, "a")).await.status(), expected);
        assert_eq!(database.effects().await, effects);
    }
    assert_eq!(send(&app, post(&headers, "b")).await.status(), 422);
    assert_eq!((database.effects().await, runs.count()), (1, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_message_delivered_many_times_at_once_one_has_its_effect() {
    let database = Database::new(ManualClock::new()).await;
    let app = Runs::new(&database.store, 3).behind_verification();
    let deliveries = (0..16).map(|_| {
        let app = app.clone();
        tokio::spawn(async move {
            let headers = [("x-signature", "good"), ("webhook-id", "m1")];
            send(&app, post(&headers, "a")).await.status()
        })
    });
    let statuses = join_all(deliveries.collect::<Vec<_>>()).await;
    let of = |wanted| {
        statuses
            .iter()
            .filter(|status| *status.as_ref().unwrap() == wanted)
            .count()
    };
    assert_eq!((of(500), of(204)), (3, 13));
    assert_eq!(database.effects().await, 1);
}
