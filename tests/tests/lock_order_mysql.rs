//! In which order calls lock rows in MariaDB: settles, extensions and releases by `seq`, prunes of
//! published events by age and `seq`; replays, discards and the other prunes wait for no row that another
//! session has, but for the records of blocked keys, which all calls lock by lane.

#[path = "harness/at.rs"]
mod at;
#[path = "harness/lock_order.rs"]
mod lock_order;

use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use lock_order::{Server, Subject};
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Connection, MySqlConnection};
use tests::MySqlServer;
use tokio::task::JoinHandle;

struct Maria;

impl Server for Maria {
    type Session = MySqlConnection;

    const BEGIN: &'static str = outbox_core::sql::mysql::BEGIN;
    const ROWS: &'static str = "INSERT INTO outbox_events (seq, id, shape, place, available_at,
            created_at, size, event_type, destination, content_type, payload)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 40)
        SELECT n, UNHEX(MD5(n)), 0, 0, 0, 0, 1, 'T', 'd', 'c', 'x' FROM numbers";
    const BLOCKS: &'static str = "lane";
    const PRUNES_WAIT: bool = true;
    // More than one insert has.
    const KEYS: usize = 1_200;

    fn url() -> String {
        MySqlServer::shared().create_database()
    }

    async fn connect(url: &str) -> MySqlConnection {
        MySqlConnection::connect(url).await.expect("connected")
    }

    async fn run(session: &mut MySqlConnection, statements: String) {
        let statements = sqlx::raw_sql(AssertSqlSafe(statements));
        statements.execute(session).await.expect("done");
    }

    async fn rows(session: &mut MySqlConnection, query: String) -> Vec<String> {
        let rows = sqlx::query_scalar(AssertSqlSafe(query));
        rows.fetch_all(session).await.expect("rows")
    }

    async fn until_it_waits<T>(observer: &mut MySqlConnection, call: &JoinHandle<T>) {
        loop {
            // The server renews the answer only where nobody asked for 100 ms.
            tokio::time::sleep(Duration::from_millis(150)).await;
            let waits: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM information_schema.innodb_trx t
                 JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
                 WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()",
            )
            .fetch_one(&mut *observer)
            .await
            .expect("counted");
            if waits > 0 {
                return;
            }
            assert!(!call.is_finished(), "the call did not wait");
        }
    }
}

mod by_sqlx {
    use super::*;

    impl Subject for outbox_sqlx::MySqlStore {
        type Connection = MySqlConnection;

        async fn connect(url: &str) -> MySqlConnection {
            Maria::connect(url).await
        }

        async fn run(conn: &mut MySqlConnection, statement: &'static str) {
            Maria::run(conn, statement.to_owned()).await;
        }
    }

    lock_order::scenes!(outbox_sqlx::MySqlStore, Maria);
}

mod by_diesel {
    use super::*;

    impl Subject for outbox_diesel::MySqlStore {
        type Connection = AsyncMysqlConnection;

        async fn connect(url: &str) -> AsyncMysqlConnection {
            let conn = AsyncMysqlConnection::establish(url).await;
            conn.expect("connected")
        }

        async fn run(conn: &mut AsyncMysqlConnection, statement: &'static str) {
            conn.batch_execute(statement).await.expect("done");
        }
    }

    lock_order::scenes!(outbox_diesel::MySqlStore, Maria);
}
