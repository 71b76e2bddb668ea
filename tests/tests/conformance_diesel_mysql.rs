//! The conformance suites over `MySqlStore` of outbox-diesel, on MariaDB or MySQL, with each of the pools. On
//! servers whose clock is not the application's.

use std::sync::LazyLock;
use std::time::Duration;

use diesel_async::pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use outbox_core::conformance::Capabilities;
use outbox_diesel::MySqlStore;
use tests::{MySqlServer, mysql_advance, past_conflicts};

use self::harness::{Subject, Suite};

#[path = "harness/diesel.rs"]
mod harness;

/// The store has one connection; producers and other handles on the data have their own.
struct Maria {
    url: String,
    store: MySqlStore,
    open: Open,
    histories: u32,
}

type Open = fn(&str, u32) -> MySqlStore;

/// Where others have played the same statements: these show that the pool leaves nothing open.
const FEW: u32 = 3;

/// The clock is an hour behind.
async fn fresh() -> Suite<Maria> {
    static SERVER: LazyLock<MySqlServer> = LazyLock::new(|| MySqlServer::start_with_clock(-1, &[]));
    on(&SERVER, on_deadpool, Capabilities::default().histories).await
}

/// The clock is an hour ahead.
async fn fresh_on_bb8() -> Suite<Maria> {
    static SERVER: LazyLock<MySqlServer> = LazyLock::new(|| MySqlServer::start_with_clock(1, &[]));
    on(&SERVER, on_bb8, FEW).await
}

async fn on(server: &MySqlServer, open: Open, histories: u32) -> Suite<Maria> {
    let url = server.create_database();
    let store = open(&url, 1);
    store.migrate().await.expect("migrated");
    Suite(Maria {
        url,
        store,
        open,
        histories,
    })
}

fn on_deadpool(url: &str, connections: u32) -> MySqlStore {
    let pool = deadpool::Pool::builder(manager(url)).max_size(connections as usize);
    MySqlStore::new(pool.build().expect("a pool"))
}

fn on_bb8(url: &str, connections: u32) -> MySqlStore {
    let pool = bb8::Pool::builder().max_size(connections);
    MySqlStore::new(pool.build_unchecked(manager(url)))
}

fn manager(url: &str) -> AsyncDieselConnectionManager<AsyncMysqlConnection> {
    AsyncDieselConnectionManager::new(url)
}

impl Subject for Maria {
    type Connection = AsyncMysqlConnection;
    type Store = MySqlStore;

    fn store(&self) -> &MySqlStore {
        &self.store
    }

    async fn open(&self) -> MySqlStore {
        (self.open)(&self.url, 10)
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
