//! What `PgStore` of outbox-sqlx does beyond the conformance suite.

use std::sync::Arc;

use outbox_core::sql::pg::Statements;
use outbox_core::sql::{Step, TableNames};
use outbox_core::{Enqueue, ErrorKind, Maintenance, NewEvent, Retention};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool};
use tests::PgServer;

async fn pool() -> PgPool {
    let url = PgServer::shared().create_database();
    PgPool::connect(&url).await.expect("connected")
}

async fn store() -> PgStore {
    let store = PgStore::new(pool().await);
    store.migrate().await.expect("migrated");
    store
}

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("d")
}

mod enqueue {
    use super::*;

    #[tokio::test]
    async fn takes_transactions_pooled_and_plain_connections_and_arcs() {
        let store = Arc::new(store().await);
        let mut tx = store.pool().begin().await.expect("begun");
        store.enqueue(&mut tx, event()).await.expect("transaction");
        tx.commit().await.expect("committed");
        let mut conn = store.pool().acquire().await.expect("acquired");
        store.enqueue(&mut conn, event()).await.expect("pooled");
        let mut conn = conn.detach();
        store.enqueue(&mut conn, event()).await.expect("plain");
        let stats = store.stats(10).await.expect("stats");
        assert_eq!(stats.pending.value, 3);
    }
}

mod schema {
    use super::*;

    #[tokio::test]
    async fn is_migrated_by_many_processes_at_once() {
        let pool = pool().await;
        let names = TableNames::new("out-box").expect("a prefix");
        let names = names.schema("My-Schema").expect("a schema");
        let one = || PgStore::new(pool.clone()).tables(names.clone());
        let stores = [one(), one(), one(), one()];
        let [a, b, c, d] = &stores;
        let all = tokio::join!(a.migrate(), b.migrate(), c.migrate(), d.migrate());
        for done in [all.0, all.1, all.2, all.3] {
            done.expect("migrated");
        }
        a.check_schema().await.expect("up to date");
        let mut conn = pool.acquire().await.expect("acquired");
        a.enqueue(&mut conn, event()).await.expect("enqueued");
    }

    #[tokio::test]
    async fn that_is_missing_is_an_error_that_says_what_to_call() {
        let store = PgStore::new(pool().await);
        let error = store.check_schema().await.expect_err("no tables");
        assert_eq!(error.kind(), ErrorKind::Schema);
        assert!(error.to_string().contains("PgStore::migrate"), "{error}");
    }
}

mod plans {
    use super::*;

    /// The plan that a pooled connection begins (`custom`) or ends up (`generic`) with.
    async fn plan(pool: &PgPool, mode: &str, statement: &str, parameters: &str) -> String {
        let mut conn = pool.acquire().await.expect("acquired");
        let script = format!("SET plan_cache_mode = force_{mode}_plan; PREPARE p AS {statement}");
        sqlx::raw_sql(AssertSqlSafe(script))
            .execute(&mut *conn)
            .await
            .expect("prepared");
        let explain = format!("EXPLAIN EXECUTE p({parameters})");
        let lines: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(explain))
            .persistent(false)
            .fetch_all(&mut *conn)
            .await
            .expect("explained");
        let _ = conn.detach();
        lines.into_iter().map(|(line,)| line + "\n").collect()
    }

    /// 20,000 rows of one shape, and statistics of them.
    async fn fill(store: &PgStore, shape: i16, destination: &str, lease: &str) {
        let fill = format!(
            "TRUNCATE outbox_events;
             INSERT INTO outbox_events
                 (id, event_type, destination, payload, shape, lease_until)
             SELECT gen_random_uuid(), 'T', {destination}, 'x', {shape}, {lease}
             FROM generate_series(1, 20000) n;
             ANALYZE outbox_events"
        );
        let done = sqlx::raw_sql(AssertSqlSafe(fill)).execute(store.pool());
        done.await.expect("filled");
    }

    async fn go_by_the_index_of_the_shape(destination: &str, lease: &str, filters: &str) {
        let store = store().await;
        let sql = Statements::new(&TableNames::default(), Retention::Keep).claim;
        let start = "gen_random_uuid(), 1000000, 1000000, true";
        let (rung, seq) = (6, 0);
        let fresh = |notes| Step::Fresh { rung, seq, notes };
        let (bare, after, rows) = (format!("{start}, 0"), String::new(), 100);
        let window = Step::FreshWindow { rung, rows, seq };
        let due = Step::DueWindow { rung, rows };
        let parked = Step::Parked { rung, after };
        let cases = [
            (0, "fresh", fresh(true), bare.clone()),
            (0, "fresh", fresh(false), bare),
            (0, "fresh", window, format!("{start}, 0, {filters}, 100")),
            (1, "due", due, format!("{start}, {filters}, 100")),
            (3, "parked", parked, format!("{start}, '', {filters}")),
        ];
        for (shape, index, step, parameters) in cases {
            fill(&store, shape, destination, lease).await;
            for mode in ["custom", "generic"] {
                let plan = plan(store.pool(), mode, sql.of(&step), &parameters).await;
                assert!(plan.contains(&format!("outbox_events_{index}")), "{plan}");
                assert!(!plan.contains("Seq Scan on outbox_events"), "{mode} {plan}");
            }
        }
    }

    #[tokio::test]
    async fn of_claims_go_by_the_index_of_the_shape() {
        go_by_the_index_of_the_shape("'d' || n % 10", "NULL", "NULL, NULL, ARRAY['d1']").await;
    }

    /// By the statistics, the conditions of a claim leave no row: a scan of the table and a sort of
    /// nothing would be cheap.
    #[tokio::test]
    async fn of_claims_go_by_the_index_where_all_rows_have_one_destination_and_a_lease() {
        let later = "now() + interval '1 hour'";
        go_by_the_index_of_the_shape("'d'", later, "NULL, NULL, ARRAY['d']").await;
        go_by_the_index_of_the_shape("'d'", later, "ARRAY['U'], ARRAY['e'], NULL").await;
    }
}
