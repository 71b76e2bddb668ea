//! The conformance suites over `MySqlStore` of outbox-diesel, on MariaDB or MySQL whose clock
//! is an hour behind the application's.

use std::sync::LazyLock;
use std::time::Duration;

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use outbox_diesel::MySqlStore;
use tests::{MySqlServer, mysql_advance, past_conflicts};

use self::harness::{Subject, Suite};

#[path = "harness/diesel.rs"]
mod harness;

/// The store has one connection; producers and other handles on the data have their own.
struct Maria {
    url: String,
    store: MySqlStore,
}

async fn fresh() -> Suite<Maria> {
    static SERVER: LazyLock<MySqlServer> = LazyLock::new(|| MySqlServer::start_with_clock(-1, &[]));
    let url = SERVER.create_database();
    let store = store(&url, 1);
    store.migrate().await.expect("migrated");
    Suite(Maria { url, store })
}

fn store(url: &str, connections: usize) -> MySqlStore {
    let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new(url);
    let pool = Pool::builder(manager).max_size(connections).build();
    MySqlStore::new(pool.expect("a pool"))
}

impl Subject for Maria {
    type Connection = AsyncMysqlConnection;
    type Store = MySqlStore;

    fn store(&self) -> &MySqlStore {
        &self.store
    }

    async fn open(&self) -> MySqlStore {
        store(&self.url, 10)
    }

    async fn connect(&self) -> AsyncMysqlConnection {
        let conn = AsyncMysqlConnection::establish(&self.url).await;
        conn.expect("connected")
    }

    async fn advance(&self, by: Duration) {
        past_conflicts(|| async {
            let mut conn = self.connect().await;
            conn.batch_execute(&mysql_advance(by)).await
        })
        .await;
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
