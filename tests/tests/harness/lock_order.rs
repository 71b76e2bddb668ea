//! In which order calls lock rows, whichever store makes them: another session has the first row; the
//! call under test waits for it, and has locked no other row by then.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::time::Duration;

use outbox_core::{
    ClaimRequest, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason, Destinations,
    Enqueue, Lease, LeaseStatus, Maintenance, NewEvent, OutboxStore, Outcome, Prune, Replay,
    Retention, Settlement,
};
use tokio::task::JoinHandle;

use crate::at::At;

const LEASE: Duration = Duration::from_secs(600);
const KEYS: &str = "SELECT CAST(dedup_key AS CHAR(9)) FROM outbox_dedup";
const BOTH: [Retention; 2] = [Retention::DeleteAtOnce, Retention::Keep];

/// What the scenes need of a database.
pub(crate) trait Server {
    type Session;

    /// Begins a transaction.
    const BEGIN: &'static str;
    /// Stores events with the numbers 1 to 40; where rows have places, the lower ones come later.
    const ROWS: &'static str;
    /// By which column the records of blocked keys are locked.
    const BLOCKS: &'static str;
    /// Whether a prune of published rows waits for rows that another session has, or passes them by.
    const PRUNES_WAIT: bool;
    /// How many de-duplication keys one enqueue takes in their order, at least.
    const KEYS: usize;

    /// The URL of an empty database.
    fn url() -> String;

    async fn connect(url: &str) -> Self::Session;

    /// Runs statements.
    async fn run(session: &mut Self::Session, statements: String);

    /// The one text of each row of a query.
    async fn rows(session: &mut Self::Session, query: String) -> Vec<String>;

    /// Returns once a session of the database waits for a lock; panics where the call ends without.
    async fn until_it_waits<T>(observer: &mut Self::Session, call: &JoinHandle<T>);
}

/// A store whose calls are looked at.
pub(crate) trait Subject:
    At
    + OutboxStore
    + DeadLetters
    + Destinations
    + Maintenance
    + Enqueue<Self::Connection>
    + Clone
    + 'static
{
    type Connection: Send + 'static;

    fn connect(url: &str) -> impl Future<Output = Self::Connection> + Send;

    /// Runs a statement.
    fn run(conn: &mut Self::Connection, statement: &'static str)
    -> impl Future<Output = ()> + Send;
}

struct Scene<S: Subject, D: Server> {
    url: String,
    store: S,
    blocker: D::Session,
    observer: D::Session,
}

impl<S: Subject, D: Server> Scene<S, D> {
    async fn new(retention: Retention) -> Self {
        let url = D::url();
        Self {
            store: S::at(&url, 2, retention).await,
            blocker: D::connect(&url).await,
            observer: D::connect(&url).await,
            url,
        }
    }

    async fn with_rows(retention: Retention) -> Self {
        let mut scene = Self::new(retention).await;
        D::run(&mut scene.blocker, D::ROWS.to_owned()).await;
        scene
    }

    /// Stores events in a transaction, on a connection of its own.
    fn put(&self, events: Vec<NewEvent>) -> impl Future<Output = ()> + Send + 'static {
        let (store, url) = (self.store.clone(), self.url.clone());
        async move {
            let mut conn = S::connect(&url).await;
            S::run(&mut conn, "BEGIN").await;
            let stored = store.enqueue_all(&mut conn, events).await;
            stored.expect("stored");
            S::run(&mut conn, "COMMIT").await;
        }
    }

    /// The leases of so many claims of so many rows.
    async fn claim(&self, claims: u32, rows: u32) -> Vec<Lease> {
        let mut leases = Vec::new();
        for _ in 0..claims {
            let request = ClaimRequest::new(NonZeroU32::new(rows).expect("rows"), LEASE);
            let claim = self.store.claim(&request).await.expect("claimed");
            leases.extend(claim.events.iter().map(|claimed| claimed.lease));
        }
        leases
    }

    /// The leases of all that is open, by number.
    async fn claim_all(&self, events: usize) -> Vec<Lease> {
        let mut leases = Vec::new();
        for _ in 0..100 {
            leases.extend(self.claim(1, 100).await);
            if leases.len() == events {
                leases.sort_unstable_by_key(|lease| lease.seq);
                return leases;
            }
        }
        panic!("{} of {events} came", leases.len());
    }

    async fn settle(&self, leases: &[Lease], outcome: fn(usize) -> Outcome) {
        let statuses = self.store.settle(&batch(leases, outcome)).await;
        let statuses = statuses.expect("settled");
        assert_eq!(statuses, vec![LeaseStatus::Ours; leases.len()]);
    }

    async fn other_locks(&mut self, query: &str) {
        let begin = D::BEGIN;
        D::run(&mut self.blocker, format!("{begin}; {query} FOR UPDATE")).await;
    }

    async fn other_ends(&mut self) {
        D::run(&mut self.blocker, "ROLLBACK".to_owned()).await;
    }

    /// How many rows of a query nobody has locked.
    async fn free(&mut self, query: &str) -> usize {
        let query = format!("{query} FOR UPDATE SKIP LOCKED");
        D::rows(&mut self.observer, query).await.len()
    }

    /// Makes the call while another session has the row that `first` names, and looks how many rows of
    /// `all` nobody has when it waits: all `rows` but that one.
    async fn locks_none_before<F>(
        &mut self,
        first: &str,
        all: &str,
        rows: usize,
        call: F,
    ) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.other_locks(first).await;
        assert_eq!(self.free(all).await, rows - 1, "before the call");
        let call = tokio::spawn(call);
        D::until_it_waits(&mut self.observer, &call).await;
        assert_eq!(self.free(all).await, rows - 1, "when the call waits");
        self.other_ends().await;
        call.await.expect("no panic")
    }

    /// The same for a call on all events that are under a lease.
    async fn locks_by_number<F>(&mut self, leases: &[Lease], call: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let first = leases.iter().map(|lease| lease.seq).min().expect("leases");
        let first = format!("SELECT CAST(seq AS CHAR(9)) FROM outbox_events WHERE seq = {first}");
        let all = "SELECT CAST(seq AS CHAR(9)) FROM outbox_events WHERE lease_token IS NOT NULL";
        self.locks_none_before(&first, all, leases.len(), call)
            .await
    }

    async fn settles(&mut self, claims: u32, outcome: fn(usize) -> Outcome) {
        let mut leases = self.claim(claims, 5).await;
        leases.reverse();
        let (store, batch) = (self.store.clone(), batch(&leases, outcome));
        let settle = async move { store.settle(&batch).await.expect("settled") };
        let statuses = self.locks_by_number(&leases, settle).await;
        assert_eq!(statuses, vec![LeaseStatus::Ours; leases.len()]);
    }

    /// Five keys that a dead letter blocks, each with an event under a lease.
    async fn blocked() -> (Self, Vec<Lease>) {
        let scene = Self::new(Retention::Keep).await;
        let policy = DeadHeadPolicy::Block;
        let set = scene.store.set_dead_head_policy("d", policy).await;
        set.expect("set");
        // By number, by bytes, by hash and by alphabet, each time another key comes first.
        let keys = ["c", "a", "e", "b", "D"];
        let events = keys.into_iter().chain(keys).map(|key| event().key(key));
        scene.put(events.collect()).await;
        let leases = scene.claim_all(10).await;
        scene.settle(&leases[..5], |_| dead()).await;
        (scene, leases[5..].to_vec())
    }

    /// Ten events, numbered from 1 on, with de-duplication keys, that have ended so.
    async fn ended(outcome: fn(usize) -> Outcome) -> Self {
        let scene = Self::new(Retention::Keep).await;
        let keyed = |n| event().dedup_key(format!("k{n:02}"));
        scene.put((1..=10).map(keyed).collect()).await;
        let leases = scene.claim_all(10).await;
        scene.settle(&leases, outcome).await;
        scene
    }

    /// Makes the call while another session has a row: it does without.
    async fn waits_for_none(&mut self, first: &str, end: &End) -> u64 {
        self.other_locks(first).await;
        let call = tokio::spawn(end.call(&self.store));
        let answer = tokio::time::timeout(LEASE / 20, call).await;
        self.other_ends().await;
        let answer = answer.expect("a call that waits for nobody");
        answer.expect("no panic")
    }

    async fn locks_blocks_by<F>(&mut self, column: &str, call: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let first = format!(
            "SELECT CAST({column} AS CHAR(19)) FROM outbox_blocked ORDER BY {column} LIMIT 1"
        );
        let first = D::rows(&mut self.observer, first).await.remove(0);
        let all = "SELECT CAST(seq AS CHAR(9)) FROM outbox_blocked";
        let first = format!("{all} WHERE {column} = '{}'", first.trim_end());
        self.locks_none_before(&first, all, 5, call).await
    }
}

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("d")
}

fn batch(leases: &[Lease], outcome: fn(usize) -> Outcome) -> Vec<Settlement> {
    let settlement = |(place, lease): (usize, &Lease)| Settlement::new(*lease, outcome(place));
    leases.iter().enumerate().map(settlement).collect()
}

fn dead() -> Outcome {
    Outcome::Dead {
        reason: DeathReason::Gone,
        error: "410".to_owned(),
    }
}

fn mixed(place: usize) -> Outcome {
    let (after, error) = (Duration::from_secs(60), "500".to_owned());
    match place % 4 {
        0 => Outcome::Published,
        1 => Outcome::Retry { after, error },
        2 => Outcome::Release,
        _ => dead(),
    }
}

/// What takes rows away, and tells how many; at any age.
enum End {
    Replay,
    Discard,
    PruneDead,
    PrunePublished,
    PruneDedup,
}

const OF_LETTERS: [End; 3] = [End::Replay, End::Discard, End::PruneDead];

impl End {
    fn call<S: Subject>(&self, store: &S) -> Pin<Box<dyn Future<Output = u64> + Send>> {
        let (store, letters) = (store.clone(), DeadLetterFilter::destination("d"));
        let mut prune = Prune::default();
        (prune.published_after, prune.dedup_after) = (None, None);
        let age = Some(Duration::ZERO);
        match self {
            Self::Replay => {
                let replay = Replay::new(letters);
                return Box::pin(async move { store.replay(&replay).await.expect("replayed") });
            }
            Self::Discard => {
                return Box::pin(async move {
                    let discarded = store.discard(&letters, 100, "a test").await;
                    discarded.expect("discarded")
                });
            }
            Self::PruneDead => prune.dead_after = age,
            Self::PrunePublished => prune.published_after = age,
            Self::PruneDedup => prune.dedup_after = age,
        }
        Box::pin(async move {
            let pruned = store.prune(&prune).await.expect("pruned");
            pruned.published + pruned.dead + pruned.dedup
        })
    }
}

pub(crate) async fn settles_lock_rows_by_their_number<S: Subject, D: Server>() {
    for retention in BOTH {
        let mut scene = Scene::<S, D>::with_rows(retention).await;
        for claims in [1, 2] {
            scene.settles(claims, |_| Outcome::Published).await;
        }
        scene.settles(2, mixed).await;
    }
}

pub(crate) async fn extensions_lock_rows_by_their_number<S: Subject, D: Server>() {
    let mut scene = Scene::<S, D>::with_rows(Retention::Keep).await;
    let mut leases = scene.claim(2, 5).await;
    leases.reverse();
    let (store, all) = (scene.store.clone(), leases.clone());
    let extend = async move { store.extend(&all, LEASE).await.expect("extended") };
    let statuses = scene.locks_by_number(&leases, extend).await;
    assert_eq!(statuses, vec![LeaseStatus::Ours; leases.len()]);
}

pub(crate) async fn releases_of_a_claim_lock_rows_by_their_number<S: Subject, D: Server>() {
    let mut scene = Scene::<S, D>::with_rows(Retention::Keep).await;
    let leases = scene.claim(1, 5).await;
    let (store, token) = (scene.store.clone(), leases[0].token);
    let release = async move { store.release_claim(token).await.expect("released") };
    assert_eq!(scene.locks_by_number(&leases, release).await, 5);
}

/// However a database finds rows: it locks those that it takes, not all that it looks at.
pub(crate) async fn claims_wait_for_no_row_and_take_the_others<S: Subject, D: Server>() {
    let mut scene = Scene::<S, D>::with_rows(Retention::Keep).await;
    let first = "SELECT seq FROM outbox_events WHERE seq <= 10";
    scene.other_locks(first).await;
    let claims = tokio::time::timeout(LEASE / 20, scene.claim(3, 5)).await;
    scene.other_ends().await;
    let leases = claims.expect("claims that wait for nobody");
    assert_eq!(leases.len(), 15);
    assert!(leases.iter().all(|lease| lease.seq > 10), "{leases:?}");
}

/// Deaths write the records of blocked keys also where these are blocked already.
pub(crate) async fn deaths_lock_blocked_keys_in_their_order<S: Subject, D: Server>() {
    let (mut scene, leases) = Scene::<S, D>::blocked().await;
    let (store, batch) = (scene.store.clone(), batch(&leases, |_| dead()));
    let settle = async move { store.settle(&batch).await.expect("settled") };
    let statuses = scene.locks_blocks_by(D::BLOCKS, settle).await;
    assert_eq!(statuses, [LeaseStatus::Ours; 5]);
}

pub(crate) async fn ends_of_letters_lock_blocked_keys_in_their_order<S: Subject, D: Server>() {
    for end in OF_LETTERS {
        let (mut scene, _) = Scene::<S, D>::blocked().await;
        let call = end.call(&scene.store);
        assert_eq!(scene.locks_blocks_by(D::BLOCKS, call).await, 5);
    }
}

/// So that no order of theirs matters.
pub(crate) async fn ends_of_letters_wait_for_no_letter<S: Subject, D: Server>() {
    for end in OF_LETTERS {
        let mut scene = Scene::<S, D>::ended(|_| dead()).await;
        let first = "SELECT seq FROM outbox_dead WHERE seq = 1";
        assert_eq!(scene.waits_for_none(first, &end).await, 9);
    }
}

/// Nor for one of a key that is blocked, where letters of that key are taken.
pub(crate) async fn ends_of_letters_wait_for_none_of_their_keys<S: Subject, D: Server>() {
    for end in OF_LETTERS {
        let (mut scene, leases) = Scene::<S, D>::blocked().await;
        scene.settle(&leases, |_| dead()).await;
        let seq = leases[0].seq;
        let first = format!("SELECT seq FROM outbox_dead WHERE seq = {seq}");
        assert_eq!(scene.waits_for_none(&first, &end).await, 9);
    }
}

pub(crate) async fn prunes_wait_for_no_row_or_lock_rows_by_age<S: Subject, D: Server>() {
    let mut scene = Scene::<S, D>::ended(|_| Outcome::Published).await;
    let (end, all) = (
        End::PrunePublished,
        "SELECT CAST(seq AS CHAR(9)) FROM outbox_published",
    );
    let first = format!("{all} WHERE seq = 1");
    if D::PRUNES_WAIT {
        let call = end.call(&scene.store);
        assert_eq!(scene.locks_none_before(&first, all, 10, call).await, 10);
    } else {
        assert_eq!(scene.waits_for_none(&first, &end).await, 9);
    }
}

pub(crate) async fn prunes_of_keys_wait_for_no_enqueue<S: Subject, D: Server>() {
    let mut scene = Scene::<S, D>::ended(|_| Outcome::Published).await;
    let first = format!("{KEYS} WHERE dedup_key = 'k01'");
    assert_eq!(scene.waits_for_none(&first, &End::PruneDedup).await, 9);
}

pub(crate) async fn enqueues_take_keys_in_their_order<S: Subject, D: Server>() {
    let mut scene = Scene::<S, D>::new(Retention::Keep).await;
    let keys = || {
        let numbers = (1..=D::KEYS).rev();
        numbers.map(|n| event().dedup_key(format!("k{n:04}")))
    };
    scene.put(keys().collect()).await;
    let again = scene.put(keys().collect());
    let first = format!("{KEYS} WHERE dedup_key = 'k0001'");
    scene.locks_none_before(&first, KEYS, D::KEYS, again).await;
}

/// Makes a test of each scene.
macro_rules! scenes {
    ($store:ty, $server:ty) => {
        crate::lock_order::scenes! {
            $store, $server:
            settles_lock_rows_by_their_number
            extensions_lock_rows_by_their_number
            releases_of_a_claim_lock_rows_by_their_number
            claims_wait_for_no_row_and_take_the_others
            deaths_lock_blocked_keys_in_their_order
            ends_of_letters_lock_blocked_keys_in_their_order
            ends_of_letters_wait_for_no_letter
            ends_of_letters_wait_for_none_of_their_keys
            prunes_wait_for_no_row_or_lock_rows_by_age
            prunes_of_keys_wait_for_no_enqueue
            enqueues_take_keys_in_their_order
        }
    };
    ($store:ty, $server:ty: $($scene:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $scene() {
            crate::lock_order::$scene::<$store, $server>().await;
        }
    )*};
}
pub(crate) use scenes;
