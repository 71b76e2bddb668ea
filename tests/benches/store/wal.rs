//! What an event costs the server from enqueue to delivery: WAL and dead rows.

use outbox_core::Enqueue;
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{self, Connection, PgConnection};

use crate::check;
use crate::hand::{Kind, by_hand};
use crate::inserts::{self, Columns, MANY, MANY_MARKED, event};
use crate::setup::Bench;
use crate::worker::{Plan, WAIT, by_store};

/// Events of an enqueue and of a claim.
const BATCH: u32 = 100;
const MARKED: &str = "CREATE TABLE marked (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id uuid NOT NULL UNIQUE,
        event_type text NOT NULL,
        destination text NOT NULL,
        payload bytea NOT NULL,
        content_type text NOT NULL,
        headers text,
        created_at timestamptz NOT NULL DEFAULT now(),
        attempts integer NOT NULL DEFAULT 0,
        lease_token uuid,
        lease_until timestamptz,
        published_at timestamptz);
    CREATE INDEX ON marked (seq) WHERE published_at IS NULL";
const TIDY_NOTHING: &str = "DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT relid::regclass AS name FROM pg_stat_user_tables LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', t.name);
    END LOOP;
END $$";

enum Side {
    Store(PgStore),
    Hand,
    Marking,
}

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!(
        "\nwal: {events} events of 400 bytes, enqueued and drained by {BATCH}; for each event"
    );
    println!("                    WAL bytes  rows made dead  heap-only updates  dead at the end");
    let databases = [
        bench.another().await,
        bench.another().await,
        bench.another().await,
        bench.another().await,
    ];
    let [gone, kept, hand, marking] = &databases;
    measure("store", gone, Side::Store(gone.sqlx()), events).await;
    measure("store, kept", kept, Side::Store(kept.keeping()), events).await;
    measure("by hand", hand, Side::Hand, events).await;
    measure("marked as published", marking, Side::Marking, events).await;
}

async fn measure(what: &str, bench: &Bench, side: Side, events: u32) {
    bench.execute(MARKED).await;
    bench.execute(TIDY_NOTHING).await;
    bench.execute("CHECKPOINT").await;
    let before = written(bench).await;
    let plan = Plan::new(BATCH, 1, events);
    let mut conn = bench.pool.acquire().await.expect("connected");
    for _ in 0..events / BATCH {
        let columns: Vec<Columns> = (0..BATCH).map(|_| Columns::new()).collect();
        match &side {
            Side::Store(store) => {
                let all = (0..BATCH).map(|_| event()).collect();
                store.enqueue_all(&mut *conn, all).await.expect("enqueued");
            }
            Side::Hand => inserts::many(&mut conn, MANY, &columns).await,
            Side::Marking => inserts::many(&mut conn, MANY_MARKED, &columns).await,
        }
    }
    drop(conn);
    let drained = match &side {
        Side::Store(store) => by_store(|| store.clone(), plan).await,
        Side::Hand => by_hand(&bench.pool, Kind::Bare, plan).await,
        Side::Marking => by_hand(&bench.pool, Kind::Marking, plan).await,
    };
    check::once(&drained.log, events);
    let wal = written(bench).await - before;
    // A connection tells its statistics when it ends at the latest.
    bench.pool.close().await;
    let mut conn = PgConnection::connect(&bench.url).await.expect("connected");
    let (dead, hot, left) = loop {
        let counts: (i64, i64, i64) = sqlx::query_as(COUNTS)
            .fetch_one(&mut conn)
            .await
            .expect("counts");
        if counts.0 >= 2 * i64::from(events) {
            break counts;
        }
        tokio::time::sleep(WAIT).await;
    };
    let [wal, dead, hot, left] = [wal, dead, hot, left].map(|count| each(count, events));
    println!("{what:>19} {wal:10.0} {dead:15.2} {hot:18.2} {left:16.2}");
}

const COUNTS: &str = "SELECT sum(n_tup_upd + n_tup_del)::bigint, sum(n_tup_hot_upd)::bigint,
    sum(n_dead_tup)::bigint FROM pg_stat_user_tables";

async fn written(bench: &Bench) -> i64 {
    bench
        .number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
        .await
}

fn each(count: i64, events: u32) -> f64 {
    let count = u32::try_from(count).expect("not that many");
    f64::from(count) / f64::from(events)
}
