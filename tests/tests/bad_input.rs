//! What a user can get wrong: each is a clear error, and nothing is lost.

use std::time::Duration;

use outbox_core::{
    DeadLetterFilter, DeadLetters, DeathReason, Enqueue, Error, ErrorKind, Maintenance, NewEvent,
    OutboxStore, Page, Relay, TokioTimer,
};
use outbox_http::{StandardWebhooks, Webhooks, XSignature};
use outbox_sqlx::{PgStore, SqliteStore};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::SqlitePool;
use tests::PgServer;

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("https://ci.example/hooks")
}

async fn pg_pool() -> PgPool {
    let url = PgServer::shared().create_database();
    PgPool::connect(&url).await.expect("the server runs")
}

async fn sqlite_pool(folder: &tempfile::TempDir) -> SqlitePool {
    let url = format!("sqlite:{}?mode=rwc", folder.path().join("t.db").display());
    SqlitePool::connect(&url).await.expect("a file can be made")
}

fn webhooks() -> Webhooks {
    Webhooks::builder().unsigned().build().expect("valid")
}

mod an_unmigrated_database {
    use super::*;

    fn assert_says_how_to_migrate(error: &Error) {
        assert_eq!(error.kind(), ErrorKind::Schema, "{error:?}");
        assert!(error.to_string().contains("migrate"), "{error}");
    }

    /// What the store is asked for fails, and says how to migrate.
    async fn refuses<S, C>(store: &S, conn: &mut C)
    where
        S: OutboxStore + Enqueue<C> + Clone + 'static,
    {
        let refused = store.enqueue(conn, event()).await;
        assert_says_how_to_migrate(&refused.expect_err("no tables"));
        let relay = Relay::builder(store.clone(), webhooks(), TokioTimer).build();
        let refused = relay.expect("valid").run_once().await;
        assert_says_how_to_migrate(&refused.expect_err("no tables"));
    }

    async fn works<S: Enqueue<C> + Maintenance, C>(store: &S, conn: &mut C) {
        store.enqueue(conn, event()).await.expect("stored");
        let stats = store.stats(10).await.expect("counted");
        assert_eq!(stats.pending.value, 1);
    }

    #[tokio::test]
    async fn is_named_with_the_remedy_on_postgres() {
        let pool = pg_pool().await;
        let store = PgStore::new(pool.clone());
        let mut conn = pool.acquire().await.unwrap();
        refuses(&store, &mut *conn).await;
        store.migrate().await.unwrap();
        works(&store, &mut *conn).await;
    }

    #[tokio::test]
    async fn is_named_with_the_remedy_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let pool = sqlite_pool(&folder).await;
        let store = SqliteStore::new(pool.clone()).unwrap();
        let mut conn = pool.acquire().await.unwrap();
        refuses(&store, &mut *conn).await;
        store.migrate().await.unwrap();
        works(&store, &mut *conn).await;
    }
}

mod a_wrong_url {
    use super::*;

    #[tokio::test]
    async fn is_a_store_that_can_not_be_reached() {
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_secs(1))
            .connect_lazy("postgres://nobody@127.0.0.1:1/none")
            .unwrap();
        let store = PgStore::new(pool);
        let relay = Relay::builder(store, webhooks(), TokioTimer)
            .build()
            .unwrap();
        let error = relay.run_once().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    }

    #[tokio::test]
    async fn is_a_database_that_does_not_exist() {
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_secs(1))
            .connect_lazy(&PgServer::shared().url("no_such_database"))
            .unwrap();
        let error = PgStore::new(pool).migrate().await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("no_such_database"), "{text}");
    }
}

mod an_oversized_payload {
    use super::*;

    fn oversized() -> NewEvent {
        NewEvent::bytes("T", vec![b'x'; (1 << 20) + 1]).to("https://ci.example/hooks")
    }

    fn assert_names_the_limit(error: &Error) {
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
        let text = error.to_string();
        assert!(
            text.contains("payload") && text.contains("1048576"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn leaves_the_transaction_usable_on_postgres() {
        let pool = pg_pool().await;
        let store = PgStore::new(pool.clone());
        store.migrate().await.unwrap();
        let mut tx = pool.begin().await.unwrap();
        assert_names_the_limit(&store.enqueue(&mut *tx, oversized()).await.unwrap_err());
        store.enqueue(&mut *tx, event()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(store.stats(10).await.unwrap().pending.value, 1);
    }

    #[tokio::test]
    async fn leaves_the_transaction_usable_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let pool = sqlite_pool(&folder).await;
        let store = SqliteStore::new(pool.clone()).unwrap();
        store.migrate().await.unwrap();
        let mut tx = pool.begin().await.unwrap();
        assert_names_the_limit(&store.enqueue(&mut *tx, oversized()).await.unwrap_err());
        store.enqueue(&mut *tx, event()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(store.stats(10).await.unwrap().pending.value, 1);
    }
}

mod an_unroutable_destination {
    use super::*;

    #[tokio::test]
    async fn becomes_a_dead_letter_with_a_reason_and_can_be_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let pool = sqlite_pool(&folder).await;
        let store = SqliteStore::new(pool.clone()).unwrap();
        store.migrate().await.unwrap();
        let mut conn = pool.acquire().await.unwrap();
        for destination in ["no url at all", "ftp://ci.example/hooks", "http://"] {
            let event = NewEvent::bytes("T", "kept").to(destination);
            store.enqueue(&mut *conn, event).await.unwrap();
        }
        drop(conn);

        let relay = Relay::builder(store.clone(), webhooks(), TokioTimer)
            .build()
            .unwrap();
        let report = relay.run_until_idle().await.unwrap();
        assert_eq!((report.dead, report.published), (3, 0));

        let letters = store
            .list(&DeadLetterFilter::all(), &Page::default())
            .await
            .unwrap();
        assert_eq!(letters.len(), 3);
        for letter in &letters {
            assert_eq!(letter.reason, DeathReason::Unroutable);
            assert_eq!(letter.event.payload.as_ref(), b"kept");
            assert!(letter.event.last_error.is_some());
        }
        let stats = store.stats(10).await.unwrap();
        assert_eq!((stats.pending.value, stats.dead.value), (0, 3));
    }
}

mod a_bad_table_name {
    use outbox_core::sql::TableNames;

    use super::*;

    #[test]
    fn is_refused_where_it_is_given() {
        let long = "x".repeat(64);
        for name in ["", "a\"b", "a\0b", "a`b", long.as_str()] {
            let error = TableNames::new(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.to_string().contains("prefix"), "{error}");
        }
    }
}

mod an_empty_secret {
    use super::*;

    #[test]
    fn is_refused_where_it_is_given() {
        for refused in [
            StandardWebhooks::new("").map(drop),
            StandardWebhooks::new("whsec_").map(drop),
            XSignature::new("").map(drop),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn does_not_become_no_signature_unasked() {
        let error = Webhooks::builder().build().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.to_string().contains("sign"), "{error}");
    }
}
