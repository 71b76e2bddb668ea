//! The conformance suites over `MySqlStore` of outbox-sqlx, on MariaDB or MySQL.

use std::time::Duration;

use outbox_sqlx::MySqlStore;
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, MySql, MySqlPool, Transaction};
use tests::{MySqlServer, mysql_advance, past_deadlocks};

use self::harness::{Subject, Suite};

#[path = "harness/sqlx.rs"]
mod harness;

struct Maria {
    url: String,
    store: MySqlStore,
}

async fn fresh() -> Suite<Maria> {
    let url = MySqlServer::shared().create_database();
    let store = MySqlStore::new(pool(&url).await);
    store.migrate().await.expect("migrated");
    Suite(Maria { url, store })
}

async fn pool(url: &str) -> MySqlPool {
    let options = MySqlPoolOptions::new().max_connections(10);
    options.connect(url).await.expect("connected")
}

impl Subject for Maria {
    type Database = MySql;
    type Store = MySqlStore;

    fn store(&self) -> &MySqlStore {
        &self.store
    }

    async fn open(&self) -> MySqlStore {
        MySqlStore::new(pool(&self.url).await)
    }

    async fn begin(&self) -> Transaction<'static, MySql> {
        self.store.pool().begin().await.expect("begun")
    }

    async fn run(&self, statements: String) {
        past_deadlocks(|| {
            let statements = AssertSqlSafe(statements.clone());
            let done = sqlx::raw_sql(statements).execute(self.store.pool());
            async { done.await.map(drop) }
        })
        .await;
    }

    async fn advance(&self, by: Duration) {
        self.run(mysql_advance(by)).await;
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
