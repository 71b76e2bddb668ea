//! In which order calls lock rows in PostgreSQL: settles and extensions by `seq`, however the rows lie
//! in the table and in whatever order they are named, so that no two of them wait for each other;
//! replays, discards and prunes wait for no row that another session has, but for the records of
//! blocked keys, which all calls lock by destination and key.

#[path = "harness/at.rs"]
mod at;
#[path = "harness/lock_order.rs"]
mod lock_order;
#[path = "harness/waiting.rs"]
mod waiting;

use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use lock_order::{Server, Subject};
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Connection, PgConnection};
use tests::PgServer;
use tokio::task::JoinHandle;

struct Pg;

impl Server for Pg {
    type Session = PgConnection;

    const BEGIN: &'static str = "BEGIN";
    const ROWS: &'static str =
        "INSERT INTO outbox_events (seq, id, event_type, destination, payload)
        SELECT n, gen_random_uuid(), 'T', 'd', 'x' FROM generate_series(40, 1, -1) n";
    const BLOCKS: &'static str = "key";
    const PRUNES_WAIT: bool = false;
    const KEYS: usize = 1_200;

    fn url() -> String {
        PgServer::shared().create_database()
    }

    async fn connect(url: &str) -> PgConnection {
        PgConnection::connect(url).await.expect("connected")
    }

    async fn run(session: &mut PgConnection, statements: String) {
        let statements = sqlx::raw_sql(AssertSqlSafe(statements));
        statements.execute(session).await.expect("done");
    }

    async fn rows(session: &mut PgConnection, query: String) -> Vec<String> {
        let rows = sqlx::query_scalar(AssertSqlSafe(query));
        rows.fetch_all(session).await.expect("rows")
    }

    async fn until_it_waits<T>(observer: &mut PgConnection, call: &JoinHandle<T>) {
        waiting::until_it_waits(observer, call).await;
    }
}

mod by_sqlx {
    use super::*;

    impl Subject for outbox_sqlx::PgStore {
        type Connection = PgConnection;

        async fn connect(url: &str) -> PgConnection {
            Pg::connect(url).await
        }

        async fn run(conn: &mut PgConnection, statement: &'static str) {
            Pg::run(conn, statement.to_owned()).await;
        }
    }

    lock_order::scenes!(outbox_sqlx::PgStore, Pg);
}

mod by_diesel {
    use super::*;

    impl Subject for outbox_diesel::PgStore {
        type Connection = AsyncPgConnection;

        async fn connect(url: &str) -> AsyncPgConnection {
            let conn = AsyncPgConnection::establish(url).await;
            conn.expect("connected")
        }

        async fn run(conn: &mut AsyncPgConnection, statement: &'static str) {
            conn.batch_execute(statement).await.expect("done");
        }
    }

    lock_order::scenes!(outbox_diesel::PgStore, Pg);
}

/// A database whose texts are ordered by alphabet.
mod by_alphabet {
    use super::*;

    struct Alphabet;

    impl Server for Alphabet {
        type Session = PgConnection;

        const BEGIN: &'static str = Pg::BEGIN;
        const ROWS: &'static str = Pg::ROWS;
        const BLOCKS: &'static str = Pg::BLOCKS;
        const PRUNES_WAIT: bool = Pg::PRUNES_WAIT;
        const KEYS: usize = Pg::KEYS;

        fn url() -> String {
            let server = PgServer::shared();
            let other = server.create_database();
            let (_, name) = other.rsplit_once('/').expect("a name");
            let create = format!(
                "CREATE DATABASE {name}_en TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'"
            );
            server.sql("postgres", &create);
            server.url(&format!("{name}_en"))
        }

        async fn connect(url: &str) -> PgConnection {
            Pg::connect(url).await
        }

        async fn run(session: &mut PgConnection, statements: String) {
            Pg::run(session, statements).await;
        }

        async fn rows(session: &mut PgConnection, query: String) -> Vec<String> {
            Pg::rows(session, query).await
        }

        async fn until_it_waits<T>(observer: &mut PgConnection, call: &JoinHandle<T>) {
            Pg::until_it_waits(observer, call).await;
        }
    }

    lock_order::scenes!(
        outbox_sqlx::PgStore, Alphabet:
        deaths_lock_blocked_keys_in_their_order
        ends_of_letters_lock_blocked_keys_in_their_order
        enqueues_take_keys_in_their_order
    );
}
