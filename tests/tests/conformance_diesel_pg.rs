//! The conformance suites over `PgStore` of outbox-diesel, in databases whose clock is an hour behind the
//! application's.

use std::time::Duration;

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use outbox_diesel::PgStore;
use tests::{PgServer, past_conflicts, pg_advance, pg_check_clock, pg_shift_clock};

use self::harness::{Subject, Suite};

#[path = "harness/diesel.rs"]
mod harness;

/// The store has one connection; producers and other handles on the data have their own.
struct Pg {
    url: String,
    store: PgStore,
}

async fn fresh() -> Suite<Pg> {
    let url = PgServer::shared().create_database();
    let (_, database) = url.rsplit_once('/').expect("a database");
    PgServer::shared().sql(database, &pg_shift_clock(-1));
    let store = store(&url, 1);
    store.migrate().await.expect("migrated");
    let suite = Suite(Pg { url, store });
    let mut conn = suite.0.connect().await;
    let checked = conn.batch_execute(&pg_check_clock(-1)).await;
    checked.expect("the clock is an hour behind");
    suite
}

fn store(url: &str, connections: usize) -> PgStore {
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
    let pool = Pool::builder(manager).max_size(connections).build();
    PgStore::new(pool.expect("a pool"))
}

impl Subject for Pg {
    type Connection = AsyncPgConnection;
    type Store = PgStore;

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn open(&self) -> PgStore {
        store(&self.url, 10)
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
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
