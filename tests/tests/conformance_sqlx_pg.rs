//! The conformance suites over `PgStore` of outbox-sqlx.

use std::time::Duration;

use outbox_core::conformance::Capabilities;
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool, Postgres, Transaction};
use tests::{PgServer, past_conflicts, pg_advance, pg_check_clock, pg_shift_clock};

use self::harness::{Subject, Suite};

#[path = "harness/sqlx.rs"]
mod harness;

/// The store has one connection; producers and other handles on the data have more.
struct Pg {
    url: String,
    store: PgStore,
    producers: PgPool,
    in_transactions: bool,
}

async fn fresh() -> Suite<Pg> {
    with_mode(false).await
}

/// As behind an old PgBouncer, in a database that is set otherwise than others and whose clock is an
/// hour behind the application's.
async fn fresh_in_transactions() -> Suite<Pg> {
    with_mode(true).await
}

/// What must not matter.
const OTHERWISE: [&str; 9] = [
    "default_transaction_isolation = 'serializable'",
    "standard_conforming_strings = off",
    "timezone = 'Asia/Kathmandu'",
    "DateStyle = 'German, DMY'",
    "IntervalStyle = 'sql_standard'",
    "bytea_output = 'escape'",
    "array_nulls = off",
    "transform_null_equals = on",
    "plan_cache_mode = 'force_generic_plan'",
];

async fn with_mode(in_transactions: bool) -> Suite<Pg> {
    let url = PgServer::shared().create_database();
    if in_transactions {
        let (_, database) = url.rsplit_once('/').expect("a database");
        let set = OTHERWISE.map(|setting| format!("ALTER DATABASE {database} SET {setting};"));
        PgServer::shared().sql(database, &(set.concat() + &pg_shift_clock(-1)));
    }
    let store = PgStore::new(pool(&url, 1)).in_transactions(in_transactions);
    store.migrate().await.expect("migrated");
    let suite = Suite(Pg {
        producers: pool(&url, 10),
        url,
        store,
        in_transactions,
    });
    if in_transactions {
        suite.0.run(pg_check_clock(-1)).await;
    }
    suite
}

fn pool(url: &str, connections: u32) -> PgPool {
    let options = PgPoolOptions::new().max_connections(connections);
    options.connect_lazy(url).expect("a pool")
}

impl Subject for Pg {
    type Database = Postgres;
    type Store = PgStore;

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn open(&self) -> PgStore {
        PgStore::new(pool(&self.url, 10)).in_transactions(self.in_transactions)
    }

    async fn begin(&self) -> Transaction<'static, Postgres> {
        self.producers.begin().await.expect("begun")
    }

    async fn run(&self, statements: String) {
        past_conflicts(|| {
            let statements = AssertSqlSafe(statements.clone());
            let done = sqlx::raw_sql(statements).execute(&self.producers);
            async { done.await.map(drop) }
        })
        .await;
    }

    async fn advance(&self, by: Duration) {
        self.run(pg_advance(by)).await;
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        if self.in_transactions {
            // The statements are the same; three show that nothing is left open.
            capabilities.histories = 3;
        }
        capabilities
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);

mod in_transactions {
    use super::fresh_in_transactions as fresh;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
}
