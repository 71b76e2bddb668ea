//! MariaDB.

use std::time::Duration;

use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_async::pooled_connection::{self, AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::{AsyncMysqlConnection, SimpleAsyncConnection};
use outbox_core::sql::TableNames;
use outbox_core::{Enqueue, Enqueued, Error, ErrorKind, NewEvent, OutboxStore};
use outbox_diesel::{Connections, MySqlStore};
use tests::MySqlServer;

use crate::cases::{Server, cases, connect, event, migrated, request};

struct Maria;

impl Server for Maria {
    type Async = AsyncMysqlConnection;
    /// One that needs no libmysqlclient.
    type Plain = AsyncConnectionWrapper<AsyncMysqlConnection>;
    type Store = MySqlStore;

    const EXPIRE: &'static str = "UPDATE outbox_events SET lease_until = 0, place = 0";
    const NOWHERE: &'static str = "mysql://nobody@127.0.0.1:1/none";
    const MIGRATE: &'static str = "MySqlStore::migrate";

    fn create_database() -> String {
        MySqlServer::shared().create_database()
    }

    fn end_connections(url: &str) {
        let (_, database) = url.rsplit_once('/').unwrap();
        let (server, others) = (
            MySqlServer::shared(),
            format!(
                "SELECT id FROM information_schema.processlist
                 WHERE db = '{database}' AND id <> connection_id()"
            ),
        );
        for id in server.sql("mysql", &others).lines() {
            server.sql("mysql", &format!("KILL {id}"));
        }
    }

    fn store(pool: impl Connections<AsyncMysqlConnection>) -> MySqlStore {
        MySqlStore::new(pool)
    }

    fn deadpool(url: &str, size: usize, careful: bool) -> MySqlStore {
        let mut config = ManagerConfig::default();
        if !careful {
            config.recycling_method = pooled_connection::RecyclingMethod::Fast;
        }
        let manager = AsyncDieselConnectionManager::new_with_config(url, config);
        let pool = pooled_connection::deadpool::Pool::builder(manager).max_size(size);
        MySqlStore::new(pool.build().unwrap())
    }

    async fn bb8(url: &str) -> MySqlStore {
        let pool = pooled_connection::bb8::Pool::builder().max_size(1);
        let pool = pool.build(AsyncDieselConnectionManager::new(url)).await;
        MySqlStore::new(pool.unwrap())
    }

    fn enqueue_only() -> MySqlStore {
        MySqlStore::enqueue_only()
    }

    async fn migrate(store: &MySqlStore) -> Result<(), Error> {
        store.migrate().await
    }

    async fn check_schema(store: &MySqlStore) -> Result<(), Error> {
        store.check_schema().await
    }

    fn enqueue_sync(
        store: &MySqlStore,
        conn: &mut Self::Plain,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        store.enqueue_all_sync(conn, events)
    }
}

cases!(Maria);

#[tokio::test]
async fn tables_may_be_in_any_database_and_have_any_prefix() {
    let names = TableNames::new("Out box").and_then(|names| names.schema("My-Schema"));
    let url = Maria::create_database();
    let store = Maria::deadpool(&url, 1, true).tables(names.unwrap());
    store.migrate().await.unwrap();
    store.check_schema().await.unwrap();
    let mut conn = connect::<Maria>(&url).await;
    let keyed = event().key("k");
    store.enqueue(&mut conn, keyed).await.unwrap();
    let claim = store.claim(&request()).await.unwrap();
    assert_eq!(claim.events.len(), 1);
    let token = claim.events[0].lease.token;
    assert_eq!(store.release_claim(token).await.unwrap(), 1);
}

#[tokio::test]
async fn the_time_zone_of_a_session_does_not_matter() {
    let url = migrated::<Maria>().await;
    let mut conn = connect::<Maria>(&url).await;
    conn.batch_execute("SET time_zone = '+09:00'")
        .await
        .unwrap();
    let store = Maria::deadpool(&url, 1, true);
    store.enqueue(&mut conn, event()).await.unwrap();
    let claim = store.claim(&request()).await.unwrap();
    assert!(claim.events[0].age < Duration::from_secs(60));
}

#[tokio::test]
async fn another_transaction_in_the_way_is_a_conflict_in_every_language() {
    let url = migrated::<Maria>().await;
    let store = Maria::enqueue_only();
    let mut first = connect::<Maria>(&url).await;
    first.batch_execute("START TRANSACTION").await.unwrap();
    let once = || event().dedup_key("once");
    store.enqueue(&mut first, once()).await.unwrap();
    let mut second = connect::<Maria>(&url).await;
    second
        .batch_execute("SET innodb_lock_wait_timeout = 0, lc_messages = 'de_DE'")
        .await
        .unwrap();
    let error = store.enqueue(&mut second, once()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
}

#[tokio::test]
async fn a_user_signs_in_by_a_password_the_server_has_not_seen_yet() {
    let url = Maria::create_database();
    MySqlServer::shared().sql(
        "mysql",
        "CREATE USER secret@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO secret@'%'",
    );
    let (_, address) = url.split_once('@').unwrap();
    let store = Maria::deadpool(&format!("mysql://secret:secret@{address}"), 1, true);
    store.migrate().await.unwrap();
    store.check_schema().await.unwrap();
}

#[tokio::test]
async fn a_failed_migration_keeps_nobody_else_from_one() {
    let url = Maria::create_database();
    let (_, database) = url.rsplit_once('/').unwrap();
    MySqlServer::shared().sql(
        "mysql",
        &format!("CREATE USER maker@'%'; GRANT SELECT ON {database}.* TO maker@'%'"),
    );
    let (_, address) = url.split_once('@').unwrap();
    let refused = Maria::deadpool(&format!("mysql://maker@{address}"), 1, true);
    let error = refused.migrate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "{error:?}");
    // The pool keeps the connection. Where it kept the lock too, this would wait for a minute.
    let store = Maria::deadpool(&url, 1, true);
    let migrated = tokio::time::timeout(Duration::from_secs(30), store.migrate()).await;
    migrated.expect("nothing holds the lock").unwrap();
    drop(refused);
}
