//! The cases that are the same on every server.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::connection::{Connection, InstrumentationEvent};
use diesel_async::{AsyncConnection, SimpleAsyncConnection};
use futures::FutureExt;
use outbox_core::{
    ClaimRequest, Enqueue, Enqueued, Error, ErrorKind, LeaseStatus, Maintenance, NewEvent,
    OutboxStore, Outcome, Settlement, async_trait,
};
use outbox_diesel::{Connections, Loan};

/// A server, with what a store on it does beside the traits.
pub(crate) trait Server: 'static {
    type Async: AsyncConnection + 'static;
    type Plain: Connection;
    type Store: OutboxStore + Maintenance + Enqueue<Self::Async> + Clone + 'static;

    /// Lets the leases of all events expire.
    const EXPIRE: &'static str;
    /// A URL where no server is.
    const NOWHERE: &'static str;
    /// The call that makes the tables.
    const MIGRATE: &'static str;

    /// An empty database.
    fn create_database() -> String;

    /// Ends all other connections to the database.
    fn end_connections(url: &str);

    fn store(pool: impl Connections<Self::Async>) -> Self::Store;

    /// A store on a pool of deadpool's, which looks at connections before it lends them where
    /// `careful`.
    fn deadpool(url: &str, size: usize, careful: bool) -> Self::Store;

    /// A store on a pool of bb8's with one connection.
    fn bb8(url: &str) -> impl Future<Output = Self::Store>;

    fn enqueue_only() -> Self::Store;

    fn migrate(store: &Self::Store) -> impl Future<Output = Result<(), Error>>;

    fn check_schema(store: &Self::Store) -> impl Future<Output = Result<(), Error>>;

    fn enqueue_sync(
        store: &Self::Store,
        conn: &mut Self::Plain,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error>;
}

/// The cases as tests.
macro_rules! cases {
    ($server:ty) => {
        crate::cases::cases! { $server:
            a_bb8_pool_with_one_connection_serves_the_relay,
            a_store_without_a_pool_says_so,
            a_pool_of_the_users_own_serves,
            plain_connections_enqueue_in_their_own_transaction,
            statements_are_prepared_once_for_each_connection,
            dropped_calls_leave_the_only_connection_in_order,
            missing_tables_are_reported_with_the_call_that_makes_them,
            many_processes_migrate_at_once,
            an_unreachable_server_is_unavailable,
            a_killed_connection_is_unavailable_once_and_then_replaced,
        }
    };
    ($server:ty: $($case:ident,)*) => {
        $(#[tokio::test]
        async fn $case() {
            crate::cases::$case::<$server>().await;
        })*
    };
}
pub(crate) use cases;

pub(crate) fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(30))
}

pub(crate) fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("somewhere")
}

pub(crate) async fn migrated<S: Server>() -> String {
    let url = S::create_database();
    S::migrate(&S::deadpool(&url, 1, true)).await.unwrap();
    url
}

pub(crate) async fn connect<S: Server>(url: &str) -> S::Async {
    S::Async::establish(url).await.unwrap()
}

async fn deliver_one(store: &impl OutboxStore) {
    let claim = store.claim(&request()).await.unwrap();
    assert_eq!(claim.events.len(), 1);
    let settlement = Settlement::new(claim.events[0].lease, Outcome::Published);
    let settled = store.settle(&[settlement]).await.unwrap();
    assert_eq!(settled, [LeaseStatus::Ours]);
}

pub(crate) async fn a_bb8_pool_with_one_connection_serves_the_relay<S: Server>() {
    let url = migrated::<S>().await;
    let store = S::bb8(&url).await;
    let mut conn = connect::<S>(&url).await;
    store.enqueue(&mut conn, event()).await.unwrap();
    deliver_one(&store).await;
}

pub(crate) async fn a_store_without_a_pool_says_so<S: Server>() {
    let refused = S::enqueue_only().claim(&request()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

pub(crate) async fn a_pool_of_the_users_own_serves<S: Server>() {
    struct Fresh(String);

    #[async_trait]
    impl<C: AsyncConnection + 'static> Connections<C> for Fresh {
        async fn connection(&self) -> Result<Loan<C>, Error> {
            Ok(Box::new(Box::new(C::establish(&self.0).await.unwrap())))
        }
    }

    let url = migrated::<S>().await;
    let store = S::store(Fresh(url.clone()));
    let mut conn = connect::<S>(&url).await;
    store.enqueue(&mut conn, event()).await.unwrap();
    deliver_one(&store).await;
}

pub(crate) async fn plain_connections_enqueue_in_their_own_transaction<S: Server>() {
    let url = migrated::<S>().await;
    let path = url.clone();
    let plain = tokio::task::spawn_blocking(move || enqueue_plainly::<S>(&path));
    let answers = plain.await.unwrap();
    let duplicates: Vec<bool> = answers.iter().map(|one| one.duplicate).collect();
    assert_eq!(duplicates, [false, true, false]);
    let store = S::deadpool(&url, 1, true);
    assert_eq!(store.stats(100).await.unwrap().pending.value, 2);
}

fn enqueue_plainly<S: Server>(url: &str) -> Vec<Enqueued> {
    type Failure = diesel::result::Error;

    let mut conn = S::Plain::establish(url).unwrap();
    let outbox = S::enqueue_only();
    let rolled_back = conn.transaction::<(), Failure, _>(|conn| {
        S::enqueue_sync(&outbox, conn, &[event()]).unwrap();
        Err(Failure::RollbackTransaction)
    });
    assert!(rolled_back.is_err());
    let keyed = [event().dedup_key("k"), event().dedup_key("k"), event()];
    let stored = conn
        .transaction::<_, Failure, _>(|conn| Ok(S::enqueue_sync(&outbox, conn, &keyed).unwrap()));
    stored.unwrap()
}

pub(crate) async fn statements_are_prepared_once_for_each_connection<S: Server>() {
    let url = migrated::<S>().await;
    let mut conn = connect::<S>(&url).await;
    let prepared = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&prepared);
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::CacheQuery { sql, .. } = event {
            seen.lock().unwrap().push(sql.to_owned());
        }
    });
    let outbox = S::enqueue_only();
    for round in 0..3 {
        // What is there and what is missing makes no other statement.
        let full = event().key("k").expires_in(Duration::from_secs(60));
        let full = full.header("a", "b").aggregate("a", "b").max_attempts(3);
        outbox.enqueue(&mut conn, event()).await.unwrap();
        outbox.enqueue(&mut conn, full).await.unwrap();
        let key = format!("{round}");
        let many = vec![event(), event().dedup_key(key)];
        outbox.enqueue_all(&mut conn, many).await.unwrap();
    }
    let mut prepared = prepared.lock().unwrap().clone();
    let all = prepared.len();
    prepared.sort_unstable();
    prepared.dedup();
    assert_eq!(prepared.len(), all, "{prepared:#?}");
}

pub(crate) async fn dropped_calls_leave_the_only_connection_in_order<S: Server>() {
    let url = migrated::<S>().await;
    let store = S::deadpool(&url, 1, false);
    let mut conn = connect::<S>(&url).await;
    store.enqueue(&mut conn, event()).await.unwrap();
    store.claim(&request()).await.unwrap();
    conn.batch_execute(S::EXPIRE).await.unwrap();
    // Each is polled so often, then dropped.
    for polls in 0..12 {
        let cut = request();
        let mut claim = store.claim(&cut);
        for _ in 0..polls {
            if (&mut claim).now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(claim);
        // A pool of one: this comes after the claim.
        store.release_claim(cut.token).await.unwrap();
    }
    deliver_one(&store).await;
}

pub(crate) async fn missing_tables_are_reported_with_the_call_that_makes_them<S: Server>() {
    let url = S::create_database();
    let store = S::deadpool(&url, 1, true);
    let mut conn = connect::<S>(&url).await;
    for error in [
        store.claim(&request()).await.unwrap_err(),
        store.enqueue(&mut conn, event()).await.unwrap_err(),
        S::check_schema(&store).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Schema, "{error:?}");
        assert!(error.to_string().contains(S::MIGRATE), "{error}");
    }
}

pub(crate) async fn many_processes_migrate_at_once<S: Server>() {
    let url = S::create_database();
    let stores: Vec<S::Store> = (0..6).map(|_| S::deadpool(&url, 1, true)).collect();
    for migrated in futures::future::join_all(stores.iter().map(S::migrate)).await {
        migrated.unwrap();
    }
    S::check_schema(&stores[0]).await.unwrap();
}

pub(crate) async fn an_unreachable_server_is_unavailable<S: Server>() {
    let store = S::deadpool(S::NOWHERE, 1, true);
    let error = store.claim(&request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.is_retryable());
}

pub(crate) async fn a_killed_connection_is_unavailable_once_and_then_replaced<S: Server>() {
    let url = migrated::<S>().await;
    let store = S::deadpool(&url, 1, false);
    store.claim(&request()).await.unwrap();
    S::end_connections(&url);
    let mut failures = Vec::new();
    while let Err(error) = store.claim(&request()).await {
        failures.push(error.kind());
        assert!(failures.len() < 3, "{error:?}");
    }
    let unavailable = |kind: &ErrorKind| *kind == ErrorKind::Unavailable;
    assert!(failures.iter().all(unavailable), "{failures:?}");
}
