//! In which order calls lock rows in MariaDB and MySQL: settles, extensions and releases by `seq`, prunes of
//! published events by age and `seq`; replays, discards and the other prunes wait for no row that another
//! session has, but for the records of blocked keys, which all calls lock by lane. Claims wait for neither
//! a row nor an entry of an index, replays for one another, and settles last for records of blocked keys.

#[path = "harness/at.rs"]
mod at;
#[path = "harness/lock_order.rs"]
mod lock_order;

use std::num::NonZeroU32;
use std::time::Duration;

use at::At;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use lock_order::{Server, Subject};
use outbox_core::{
    ClaimRequest, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason, DestinationFilter,
    Destinations, LeaseStatus, NewEvent, OutboxStore, Outcome, Replay, Retention, Settlement,
};
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
        SELECT n, UNHEX(LPAD(HEX(n), 32, '0')), 0, 0, 0, 0, 1, 'T', 'd', 'c', 'x' FROM numbers";
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
            // MariaDB renews the answer only where nobody asked for 100 ms.
            tokio::time::sleep(Duration::from_millis(150)).await;
            let waits: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM
                 /*!80001 performance_schema.data_locks
                 WHERE lock_status = 'WAITING' AND object_schema = DATABASE() */
                 /*M! information_schema.innodb_trx t
                 JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
                 WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE() */",
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

/// A session that has locked all entries of the queue, and none of the rows: `SKIP LOCKED` leaves an
/// entry locked where it passes the row by.
async fn all_entries(url: &str) -> MySqlConnection {
    let (mut rows, mut entries) = (Maria::connect(url).await, Maria::connect(url).await);
    let begin = Maria::BEGIN;
    Maria::run(&mut rows, begin.to_owned()).await;
    let all = "SELECT seq FROM outbox_events FORCE INDEX (PRIMARY) FOR UPDATE";
    Maria::run(&mut rows, all.to_owned()).await;
    Maria::run(&mut entries, begin.to_owned()).await;
    let all = "SELECT CAST(seq AS CHAR(9)) FROM outbox_events FORCE INDEX (queue)
        WHERE shape < 9 FOR UPDATE SKIP LOCKED";
    let none = Maria::rows(&mut entries, all.to_owned()).await;
    assert!(none.is_empty(), "{none:?}");
    Maria::run(&mut rows, "ROLLBACK".to_owned()).await;
    entries
}

/// Two claims would else have what the other needs: each a row, and the entry of the other's.
async fn claims_wait_for_no_entry_of_the_queue<S: At + OutboxStore>() {
    const LONG: Duration = Duration::from_secs(60);
    let parked = "SELECT CAST(seq AS CHAR(9)) FROM outbox_events WHERE shape = 3";
    let keyed = "UPDATE outbox_events SET `key` = seq, shape = 2, place = seq << 54 >> 4";
    for makes_keyed in [false, true] {
        let url = Maria::url();
        let store = S::at(&url, 2, Retention::DeleteAtOnce).await;
        let mut observer = Maria::connect(&url).await;
        Maria::run(&mut observer, Maria::ROWS.to_owned()).await;
        let mut request = ClaimRequest::new(NonZeroU32::new(100).expect("rows"), LONG);
        if makes_keyed {
            Maria::run(&mut observer, keyed.to_owned()).await;
        } else {
            request.destinations = DestinationFilter::Except(vec!["d".to_owned()]);
        }
        let mut entries = all_entries(&url).await;
        let claim = tokio::time::timeout(LONG / 2, store.claim(&request)).await;
        let claim = claim.expect("a claim that waits for nobody");
        assert!(claim.expect("claimed").events.is_empty());
        assert!(
            Maria::rows(&mut observer, parked.to_owned())
                .await
                .is_empty()
        );

        Maria::run(&mut entries, "ROLLBACK".to_owned()).await;
        let claim = store.claim(&request).await.expect("claimed");
        let parked = Maria::rows(&mut observer, parked.to_owned()).await.len();
        let expected = if makes_keyed { (40, 0) } else { (0, 40) };
        assert_eq!((claim.events.len(), parked), expected);
    }
}

const LETTERS: &str = "INSERT INTO outbox_dead (seq, id, created_at, dead_at, attempts, replays,
        event_type, destination, content_type, reason, payload)
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 40)
    SELECT n, UNHEX(LPAD(HEX(n), 32, '0')), 0, 0, 1, 0, 'T', 'd', 'c', 'gone', 'x' FROM numbers";

/// Where rows that had the same ids are not purged yet, an insert locks their entries of the unique index
/// and the next ones, in a way in which two inserts would wait for one another.
async fn replays_wait_for_one_another<S: At + DeadLetters + Clone + 'static>() {
    let url = Maria::url();
    let store = S::at(&url, 2, Retention::DeleteAtOnce).await;
    let (mut other, mut observer) = (Maria::connect(&url).await, Maria::connect(&url).await);
    Maria::run(&mut observer, LETTERS.to_owned()).await;
    let (begin, turn) = (
        Maria::BEGIN,
        "SELECT slot FROM outbox_guards WHERE slot = 64 FOR UPDATE",
    );
    Maria::run(&mut other, format!("{begin}; {turn}")).await;
    let replay = Replay::new(DeadLetterFilter::all());
    let replay = tokio::spawn(async move { store.replay(&replay).await });
    Maria::until_it_waits(&mut observer, &replay).await;
    let free = "SELECT CAST(seq AS CHAR(9)) FROM outbox_dead FOR UPDATE SKIP LOCKED";
    assert_eq!(Maria::rows(&mut observer, free.to_owned()).await.len(), 40);
    Maria::run(&mut other, "ROLLBACK".to_owned()).await;
    assert_eq!(replay.await.expect("no panic").expect("replayed"), 40);
}

/// A producer who has what a replay waits for may go on.
async fn replays_that_wait_hold_up_no_enqueue<S: Subject>() {
    let url = Maria::url();
    let store = S::at(&url, 2, Retention::DeleteAtOnce).await;
    let (mut other, mut observer) = (Maria::connect(&url).await, Maria::connect(&url).await);
    Maria::run(&mut observer, LETTERS.to_owned()).await;
    let (begin, rows) = (Maria::BEGIN, Maria::ROWS);
    let one = rows.replace("SELECT n,", "SELECT 100,") + " WHERE n = 20";
    Maria::run(&mut other, format!("{begin}; {one}")).await;
    let (replay, replays) = (Replay::new(DeadLetterFilter::all()), store.clone());
    let replay = tokio::spawn(async move { replays.replay(&replay).await });
    Maria::until_it_waits(&mut observer, &replay).await;
    let mut conn = S::connect(&url).await;
    let event = NewEvent::bytes("T", "x").to("d");
    let stored = store.enqueue_all(&mut conn, vec![event]);
    let stored = tokio::time::timeout(Duration::from_secs(30), stored).await;
    let stored = stored.expect("an enqueue that waits for nobody");
    assert_eq!(stored.expect("stored").len(), 1);
    assert!(!replay.is_finished());
    Maria::run(&mut other, "ROLLBACK".to_owned()).await;
    assert_eq!(replay.await.expect("no panic").expect("replayed"), 40);
}

/// A replay has rows and then wants the record of a blocked key. So a settle that has the record wants no
/// row any more.
async fn deaths_want_no_row_once_they_have_the_record_of_a_blocked_key<
    S: At + OutboxStore + Destinations + Clone + 'static,
>() {
    let url = Maria::url();
    let store = S::at(&url, 2, Retention::DeleteAtOnce).await;
    let (mut other, mut observer) = (Maria::connect(&url).await, Maria::connect(&url).await);
    Maria::run(&mut observer, Maria::ROWS.to_owned()).await;
    let keyed = "UPDATE outbox_events SET `key` = 'k', shape = 2, place = 5";
    Maria::run(&mut observer, keyed.to_owned()).await;
    let policy = DeadHeadPolicy::Block;
    store.set_dead_head_policy("d", policy).await.expect("set");
    let request = ClaimRequest::new(NonZeroU32::new(5).expect("rows"), Duration::from_secs(60));
    let claim = store.claim(&request).await.expect("claimed");
    let mut leases = claim.events.iter().map(|claimed| claimed.lease);
    let dead = || Outcome::Dead {
        reason: DeathReason::Gone,
        error: "410".to_owned(),
    };
    let first = Settlement::new(leases.next().expect("a lease"), dead());
    store.settle(&[first]).await.expect("settled");

    let (begin, record) = (Maria::BEGIN, "SELECT seq FROM outbox_blocked FOR UPDATE");
    Maria::run(&mut other, format!("{begin}; {record}")).await;
    let mut batch: Vec<_> = leases.map(|lease| Settlement::new(lease, dead())).collect();
    batch[3].outcome = Outcome::Release;
    let settle = tokio::spawn(async move { store.settle(&batch).await });
    Maria::until_it_waits(&mut observer, &settle).await;
    let dirty = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
    Maria::run(&mut observer, dirty.to_owned()).await;
    let leased = "SELECT CAST(seq AS CHAR(9)) FROM outbox_events WHERE lease_token IS NOT NULL";
    let leased = Maria::rows(&mut observer, leased.to_owned()).await;
    assert!(leased.is_empty(), "not written yet: {leased:?}");
    Maria::run(&mut other, "ROLLBACK".to_owned()).await;
    let statuses = settle.await.expect("no panic").expect("settled");
    assert_eq!(statuses, [LeaseStatus::Ours; 4]);
}

/// Makes a test of each scene that is MySQL's and MariaDB's own.
macro_rules! own_scenes {
    ($store:ty) => {
        own_scenes! {
            $store:
            claims_wait_for_no_entry_of_the_queue
            replays_wait_for_one_another
            replays_that_wait_hold_up_no_enqueue
            deaths_want_no_row_once_they_have_the_record_of_a_blocked_key
        }
    };
    ($store:ty: $($scene:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $scene() {
            super::$scene::<$store>().await;
        }
    )*};
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
    own_scenes!(outbox_sqlx::MySqlStore);
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
    own_scenes!(outbox_diesel::MySqlStore);
}
