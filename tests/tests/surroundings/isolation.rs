//! The isolation level that a database gives to all sessions.

use outbox_core::Error;

use super::*;
use crate::on::On;

/// A store on PostgreSQL.
trait Pg: On + OutboxStore + Maintenance + Clone + 'static {
    /// Whatever changes the schema.
    fn make(&self) -> impl Future<Output = Result<(), Error>> + Send;

    async fn check(&self) -> Result<(), Error>;
}

macro_rules! pg {
    ($($store:ty)*) => {$(
        impl Pg for $store {
            async fn make(&self) -> Result<(), Error> {
                self.migrate().await?;
                self.enable_notify_trigger().await
            }

            async fn check(&self) -> Result<(), Error> {
                self.check_schema().await
            }
        }
    )*};
}
pg!(PgStore outbox_diesel::PgStore);

/// The URL of a database where transactions are at this level, unless they say otherwise.
async fn database(level: &str) -> String {
    let url = PgServer::shared().create_database();
    let (_, database) = url.rsplit_once('/').unwrap();
    let set = format!("ALTER DATABASE {database} SET default_transaction_isolation = '{level}'");
    run::<sqlx::Postgres>(&url, &[&set]).await;
    url
}

/// Thirty events with keys and one without.
async fn put(url: &str) {
    let pool = PgPool::connect(url).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let keyed = |n: u32| event().key(n % 3).dedup_key(n.to_string());
    let list = (0..30).map(keyed).chain([event()]);
    let stored = PgStore::new(pool)
        .enqueue_all(&mut tx, list.collect())
        .await;
    stored.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn of_the_database_is_that_of_producers_alone_where_calls_are_transactions() {
    for level in ["repeatable read", "serializable"] {
        let url = database(level).await;
        let store = PgStore::on(&url, 2).await.in_transactions(true);
        store.migrate().await.unwrap();
        put(&url).await;
        assert_eq!(drain(&store).await, 31);
    }
}

async fn keeps_no_processes_from_migrating_at_once<S: Pg>() {
    for level in ["repeatable read", "serializable"] {
        let store = S::on(&database(level).await, 6).await;
        let all = (0..6).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.make().await })
        });
        for done in futures::future::join_all(all).await {
            done.unwrap().unwrap();
        }
        store.check().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_database_keeps_no_processes_from_migrating_at_once() {
    keeps_no_processes_from_migrating_at_once::<PgStore>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_database_keeps_no_processes_from_migrating_at_once_through_diesel() {
    keeps_no_processes_from_migrating_at_once::<outbox_diesel::PgStore>().await;
}

async fn that_claims_of_keys_cannot_bear_is_named<S: Pg>() {
    let url = database("repeatable read").await;
    let store = S::on(&url, 2).await;
    store.make().await.unwrap();
    put(&url).await;
    // A claim that has taken others by then keeps them.
    let mut taken = 0;
    let refused = loop {
        match store.claim(&request()).await {
            Ok(claim) => taken += claim.events.len(),
            Err(error) => break error.to_string(),
        }
        assert_eq!(taken, 1, "only the event without a key");
    };
    assert!(refused.contains("ALTER ROLE"), "{refused}");

    // What the documentation says to do. A setting of the role goes before that of the database.
    let (_, database) = url.rsplit_once('/').unwrap();
    let role = format!("relay_{database}");
    let create = format!("CREATE ROLE {role} LOGIN SUPERUSER");
    let set = format!("ALTER ROLE {role} SET default_transaction_isolation = 'read committed'");
    run::<sqlx::Postgres>(&url, &[&create, &set]).await;
    let store = S::on(&url.replace("postgres@", &format!("{role}@")), 2).await;
    let mut published = 0;
    while published < 30 {
        published += publish(&store).await;
    }
}

#[tokio::test]
async fn of_the_database_that_claims_of_keys_cannot_bear_is_named() {
    that_claims_of_keys_cannot_bear_is_named::<PgStore>().await;
}

#[tokio::test]
async fn of_the_database_that_claims_of_keys_cannot_bear_is_named_through_diesel() {
    that_claims_of_keys_cannot_bear_is_named::<outbox_diesel::PgStore>().await;
}
