//! The conformance suites over `MySqlStore` of outbox-sqlx, on MariaDB or MySQL.

use std::sync::LazyLock;
use std::time::Duration;

use outbox_core::conformance::Capabilities;
use outbox_sqlx::MySqlStore;
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, MySql, MySqlPool, Transaction};
use tests::{MySqlServer, mysql_advance, past_conflicts};

use self::harness::{Subject, Suite};

#[path = "harness/sqlx.rs"]
mod harness;

/// The store has one connection; producers and other handles on the data have more.
struct Maria {
    url: String,
    store: MySqlStore,
    producers: MySqlPool,
    histories: u32,
}

async fn fresh() -> Suite<Maria> {
    on(MySqlServer::shared(), Capabilities::default().histories).await
}

/// Settings that must not matter.
const OTHERWISE: [&str; 7] = [
    "sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ONLY_FULL_GROUP_BY,PAD_CHAR_TO_FULL_LENGTH,\
        HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,NO_AUTO_VALUE_ON_ZERO,IGNORE_SPACE",
    "character-set-server=latin1",
    "collation-server=latin1_swedish_ci",
    "default-time-zone=+09:00",
    "transaction-isolation=SERIALIZABLE",
    "max-allowed-packet=2M",
    "innodb-autoinc-lock-mode=0",
];

/// On a server that is set otherwise than others, lets statements be no larger than an event, and whose
/// clock is an hour behind the application's.
async fn fresh_and_odd() -> Suite<Maria> {
    static SERVER: LazyLock<MySqlServer> =
        LazyLock::new(|| MySqlServer::start_with_clock(-1, &OTHERWISE));
    on(&SERVER, 3).await
}

async fn on(server: &MySqlServer, histories: u32) -> Suite<Maria> {
    let url = server.create_database();
    let store = MySqlStore::new(pool(&url, 1));
    store.migrate().await.expect("migrated");
    Suite(Maria {
        producers: pool(&url, 10),
        url,
        store,
        histories,
    })
}

fn pool(url: &str, connections: u32) -> MySqlPool {
    let options = MySqlPoolOptions::new().max_connections(connections);
    options.connect_lazy(url).expect("a pool")
}

impl Subject for Maria {
    type Database = MySql;
    type Store = MySqlStore;

    fn store(&self) -> &MySqlStore {
        &self.store
    }

    async fn open(&self) -> MySqlStore {
        MySqlStore::new(pool(&self.url, 10))
    }

    async fn begin(&self) -> Transaction<'static, MySql> {
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
        self.run(mysql_advance(by)).await;
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.histories = self.histories;
        capabilities
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);

mod set_otherwise {
    use super::fresh_and_odd as fresh;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
}
