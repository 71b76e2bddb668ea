//! Deadlocks as the servers count them, where relays, operators and producers are at work on the same
//! rows. The stores make calls again that met one, so that nobody else could tell.

#[path = "harness/at.rs"]
mod at;
#[path = "harness/crowd.rs"]
mod crowd;

use std::fs;
use std::path::Path;
use std::time::Duration;

use crowd::{Subject, works};
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, AsyncMysqlConnection, AsyncPgConnection,
    TransactionManager,
};
use outbox_core::{Enqueue, Error, NewEvent};
use outbox_sqlx::sqlx::{
    Connection, Database, Executor, MySqlConnection, PgConnection, Transaction,
};
use tests::{MySqlServer, PgServer, poll_until};

macro_rules! sqlx_subject {
    ($store:ty, $connection:ty) => {
        impl Subject for $store {
            type Connection = $connection;

            async fn connect(url: &str) -> $connection {
                <$connection>::connect(url).await.expect("connected")
            }

            async fn produce(
                &self,
                conn: &mut $connection,
                events: Vec<NewEvent>,
            ) -> Result<(), Error> {
                let mut tx = conn.begin().await.expect("begun");
                let stored = self.enqueue_all(&mut tx, events).await;
                end(tx, stored.is_ok()).await;
                stored.map(drop)
            }
        }
    };
}

async fn end<DB: Database>(tx: Transaction<'_, DB>, good: bool) {
    let ended = match good {
        true => tx.commit().await,
        false => tx.rollback().await,
    };
    ended.expect("ended");
}

macro_rules! diesel_subject {
    ($store:ty, $connection:ty) => {
        impl Subject for $store {
            type Connection = $connection;

            async fn connect(url: &str) -> $connection {
                let conn = <$connection>::establish(url).await;
                conn.expect("connected")
            }

            async fn produce(
                &self,
                conn: &mut $connection,
                events: Vec<NewEvent>,
            ) -> Result<(), Error> {
                let begun = AnsiTransactionManager::begin_transaction(conn).await;
                begun.expect("begun");
                let stored = self.enqueue_all(conn, events).await;
                let ended = match &stored {
                    Ok(_) => AnsiTransactionManager::commit_transaction(conn).await,
                    Err(_) => AnsiTransactionManager::rollback_transaction(conn).await,
                };
                ended.expect("ended");
                stored.map(drop)
            }
        }
    };
}

sqlx_subject!(outbox_sqlx::PgStore, PgConnection);
sqlx_subject!(outbox_sqlx::MySqlStore, MySqlConnection);
diesel_subject!(outbox_diesel::PgStore, AsyncPgConnection);
diesel_subject!(outbox_diesel::MySqlStore, AsyncMysqlConnection);

/// Two sessions that update two rows in opposite orders: a deadlock.
async fn cross<C>(url: &str)
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let mut one = C::connect(url).await.expect("connected");
    let mut two = C::connect(url).await.expect("connected");
    for statement in [
        "CREATE TABLE crossed (n INT PRIMARY KEY, v INT)",
        "INSERT INTO crossed VALUES (1, 0), (2, 0)",
    ] {
        one.execute(statement).await.expect("made");
    }
    let (mut first, mut second) = (
        one.begin().await.expect("begun"),
        two.begin().await.expect("begun"),
    );
    let update = [
        "UPDATE crossed SET v = 1 WHERE n = 1",
        "UPDATE crossed SET v = 1 WHERE n = 2",
    ];
    first.execute(update[0]).await.expect("updated");
    second.execute(update[1]).await.expect("updated");
    let waits = async {
        let done = first.execute(update[1]).await;
        first.rollback().await.expect("rolled back");
        done.is_ok()
    };
    let waits_too = async {
        let done = second.execute(update[0]).await;
        second.rollback().await.expect("rolled back");
        done.is_ok()
    };
    let (one_is_done, two_is_done) = futures::join!(waits, waits_too);
    assert!(one_is_done != two_is_done, "one of them is ended");
}

/// What the log says, from each deadlock on, without the rows' fields.
fn deadlocks_in(log: &Path, sign: &str) -> Vec<String> {
    let log = fs::read_to_string(log).expect("a log");
    let parts = log.split(sign).skip(1);
    let is_told = |line: &&str| !line.starts_with([' ', '\t']);
    let lines = |part: &str| part.lines().filter(is_told).collect::<Vec<_>>().join("\n");
    parts.map(lines).collect()
}

async fn none_on_postgres<S: Subject>() {
    let server = PgServer::start_with(&["deadlock_timeout=20ms", "log_error_verbosity=verbose"]);
    let url = server.create_database();
    let log = server.socket_dir().join("log");
    let deadlocks = || {
        // A session tells its numbers when it ends, at the latest.
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'test_0'";
        poll_until("all sessions have ended", Duration::from_secs(20), || {
            server.sql("postgres", sessions) == "0"
        });
        let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'test_0'";
        server.sql("postgres", count)
    };
    let conflicts = works::<S>(&url).await;
    let told = deadlocks_in(&log, "deadlock detected");
    assert!(told.is_empty(), "{}", told.join("\n\n"));
    assert_eq!(deadlocks(), "0");
    assert_eq!(conflicts, 0);

    cross::<PgConnection>(&url).await;
    assert_eq!(deadlocks(), "1");
    assert_eq!(deadlocks_in(&log, "deadlock detected").len(), 1);
}

async fn none_on_mysql<S: Subject>() {
    // MySQL logs them as notes.
    let options = [
        "innodb-print-all-deadlocks=ON",
        "loose-log-error-verbosity=3",
    ];
    let server = MySqlServer::start_with(&options);
    let url = server.create_database();
    let deadlocks = || {
        let count = "SELECT count FROM information_schema.innodb_metrics
             WHERE name = 'lock_deadlocks'";
        server.sql("mysql", count)
    };
    let data = server.sql("mysql", "SELECT @@datadir");
    let log = Path::new(&data).parent().expect("a folder").join("log");
    // MariaDB has a statement that skips what is locked wait for a moment, and calls it a deadlock where
    // somebody looks just then. Nobody waited for long, so none of these is one.
    let sign = "(1) TRANSACTION";
    // Nothing is purged while somebody may look back: rows that are gone keep their locks.
    let mut snapshot = MySqlConnection::connect(&url).await.expect("connected");
    let looks = snapshot.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    looks.await.expect("begun");
    let conflicts = works::<S>(&url).await;
    let told = deadlocks_in(&log, sign);
    let (passing, met): (Vec<_>, Vec<_>) = told.iter().partition(|all| all.contains("SKIP LOCKED"));
    assert!(met.is_empty(), "{met:#?}");
    let maria = server.sql("mysql", "SELECT VERSION()").contains("MariaDB");
    assert!(maria || passing.is_empty(), "{passing:#?}");
    assert_eq!(deadlocks(), passing.len().to_string());
    assert!(conflicts <= passing.len(), "{conflicts} of {passing:#?}");

    cross::<MySqlConnection>(&url).await;
    assert_eq!(deadlocks(), (told.len() + 1).to_string());
    assert_eq!(deadlocks_in(&log, sign).len(), told.len() + 1);
}

mod on_postgres {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn none_is_met_by_sqlx() {
        none_on_postgres::<outbox_sqlx::PgStore>().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn none_is_met_by_diesel() {
        none_on_postgres::<outbox_diesel::PgStore>().await;
    }
}

mod on_mysql {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn none_is_met_by_sqlx() {
        none_on_mysql::<outbox_sqlx::MySqlStore>().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn none_is_met_by_diesel() {
        none_on_mysql::<outbox_diesel::MySqlStore>().await;
    }
}
