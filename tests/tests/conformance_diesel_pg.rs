//! The conformance suites over `PgStore` of outbox-diesel, with each of the pools. In databases whose clock is
//! not the application's.

use std::time::Duration;

use diesel_async::pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use outbox_core::conformance::Capabilities;
use outbox_diesel::PgStore;
use tests::{PgServer, past_conflicts, pg_advance, pg_check_clock, pg_shift_clock};

use self::harness::{Subject, Suite};

#[path = "harness/diesel.rs"]
mod harness;

/// The store has one connection; producers and other handles on the data have their own.
struct Pg {
    url: String,
    store: PgStore,
    open: Open,
    histories: u32,
}

type Open = fn(&str, u32) -> PgStore;

/// Where others have played the same statements: these show that the pool leaves nothing open.
const FEW: u32 = 3;

/// The clock is an hour behind.
async fn fresh() -> Suite<Pg> {
    with_clock(-1, on_deadpool, Capabilities::default().histories).await
}

/// The clock is an hour ahead.
async fn fresh_on_bb8() -> Suite<Pg> {
    with_clock(1, on_bb8, FEW).await
}

async fn with_clock(hours: i32, open: Open, histories: u32) -> Suite<Pg> {
    let url = PgServer::shared().create_database();
    let (_, database) = url.rsplit_once('/').expect("a database");
    PgServer::shared().sql(database, &pg_shift_clock(hours));
    let store = open(&url, 1);
    store.migrate().await.expect("migrated");
    let suite = Suite(Pg {
        url,
        store,
        open,
        histories,
    });
    let mut conn = suite.0.connect().await;
    let checked = conn.batch_execute(&pg_check_clock(hours)).await;
    checked.expect("the clock is shifted");
    suite
}

fn on_deadpool(url: &str, connections: u32) -> PgStore {
    let pool = deadpool::Pool::builder(manager(url)).max_size(connections as usize);
    PgStore::new(pool.build().expect("a pool"))
}

fn on_bb8(url: &str, connections: u32) -> PgStore {
    let pool = bb8::Pool::builder().max_size(connections);
    PgStore::new(pool.build_unchecked(manager(url)))
}

fn manager(url: &str) -> AsyncDieselConnectionManager<AsyncPgConnection> {
    AsyncDieselConnectionManager::new(url)
}

impl Subject for Pg {
    type Connection = AsyncPgConnection;
    type Store = PgStore;

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn open(&self) -> PgStore {
        (self.open)(&self.url, 10)
    }

    async fn connect(&self) -> AsyncPgConnection {
        let conn = AsyncPgConnection::establish(&self.url).await;
        conn.expect("connected")
    }

    async fn advance(&self, by: Duration) {
        past_conflicts(|| async {
            let mut conn = self.connect().await;
            conn.batch_execute(&pg_advance(by)).await
        })
        .await;
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.histories = self.histories;
        capabilities
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);

mod with_bb8 {
    use super::fresh_on_bb8 as fresh;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
}
