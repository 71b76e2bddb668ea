//! The grants of `docs/operations.md` suffice: each kind of process works by a role that has no others.

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    BeginKey, ClaimRequest, CompleteKey, DeadHeadPolicy, DeadLetterFilter, DeadLetters,
    DeathReason, Destinations, Enqueue, Fingerprint, Hold, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, Maintenance, NewEvent, OutboxStore, Outcome, Prune, Replay, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool};
use tests::PgServer;

const LEASE: Duration = Duration::from_secs(60);
const DOCS: &str = include_str!("../../docs/operations.md");

/// The statements of the page, for roles with this ending.
fn grants(ending: &str) -> String {
    let section = DOCS.split("## Privileges").nth(1).expect("a section");
    let statements = section.split("```sql").nth(1).expect("statements");
    let statements = statements.split("```").next().expect("an end");
    ["producer", "relay", "receiver"]
        .iter()
        .fold(statements.to_owned(), |text, role| {
            text.replace(&format!("TO {role};"), &format!("TO {role}{ending};"))
        })
}

/// A store whose sessions have the rights of this role alone.
async fn store(url: &str, role: &str) -> PgStore {
    let set = format!("SET ROLE {role}");
    let options = PgPoolOptions::new().after_connect(move |conn, _| {
        let set = AssertSqlSafe(set.clone());
        Box::pin(async move { sqlx::raw_sql(set).execute(conn).await.map(drop) })
    });
    PgStore::new(options.connect(url).await.expect("connected"))
}

async fn produce(store: &PgStore) {
    let mut conn = store.pool().acquire().await.expect("acquired");
    let event = || NewEvent::bytes("T", "x").to("d");
    let timed = event().delay(Duration::from_millis(1)).key("k");
    for event in [event(), event().dedup_key("once"), timed] {
        store.enqueue(&mut *conn, event).await.expect("stored");
    }
    let many = vec![event().dedup_key("once"), event().dedup_key("twice")];
    store.enqueue_all(&mut *conn, many).await.expect("stored");
}

async fn relay(store: &PgStore) {
    store.check_schema().await.expect("checked");
    let policy = store.set_dead_head_policy("d", DeadHeadPolicy::Block);
    policy.await.expect("set");
    let a_moment = Hold::For {
        period: Duration::from_micros(1),
        reason: "429".to_owned(),
    };
    store.hold("d", a_moment).await.expect("held");
    let mut claimed = Vec::new();
    while claimed.len() < 4 {
        let request = ClaimRequest::new(NonZeroU32::new(10).expect("rows"), LEASE);
        claimed.extend(store.claim(&request).await.expect("claimed").events);
    }
    let leases: Vec<_> = claimed.iter().map(|claimed| claimed.lease).collect();
    store.extend(&leases, LEASE).await.expect("extended");
    store.release(&leases[..1]).await.expect("released");
    store
        .release_claim(leases[1].token)
        .await
        .expect("released");
    let error = "410".to_owned();
    let request = ClaimRequest::new(NonZeroU32::new(10).expect("rows"), LEASE);
    let claim = store.claim(&request).await.expect("claimed");
    let dead = |claimed: &outbox_core::Claimed| {
        let outcome = Outcome::Dead {
            reason: DeathReason::Gone,
            error: error.clone(),
        };
        Settlement::new(claimed.lease, outcome)
    };
    let batch: Vec<_> = claim.events.iter().map(dead).collect();
    assert!(!batch.is_empty());
    store.settle(&batch).await.expect("settled");
    let one = Replay::new(DeadLetterFilter::seq(batch[0].lease.seq));
    assert_eq!(store.replay(&one).await.expect("replayed"), 1);
    let all = DeadLetterFilter::all();
    store.discard(&all, 10, "why").await.expect("discarded");
    let mut prune = Prune::default();
    prune.dead_after = Some(Duration::ZERO);
    store.prune(&prune).await.expect("pruned");
    store.stats(100).await.expect("told");
}

async fn receive(store: &PgStore) {
    let message = InboxMessage::from_source("s", "1").expect("a message");
    let mut conn = store.pool().acquire().await.expect("acquired");
    store.accept(&mut *conn, &message).await.expect("accepted");
    drop(conn);
    let key = IdempotencyKey::new("s", "1").expect("a key");
    let begin = BeginKey::new(key.clone(), Fingerprint::from_bytes([1; 32]));
    store.begin_key(&begin).await.expect("begun");
    let extended = store.extend_key(&key, begin.token, LEASE).await;
    extended.expect("extended");
    let completed = store.complete_key(&CompleteKey::new(&begin, "x")).await;
    completed.expect("completed");
    store.prune_keys(1).await.expect("pruned");
}

#[tokio::test]
async fn that_the_documentation_names_are_enough() {
    let url = PgServer::shared().create_database();
    let owner = PgPool::connect(&url).await.expect("connected");
    let migrated = PgStore::new(owner.clone()).migrate().await;
    migrated.expect("migrated");
    let ending = format!("_{}", std::process::id());
    let roles = ["producer", "relay", "receiver"].map(|role| format!("{role}{ending}"));
    for role in &roles {
        let create = AssertSqlSafe(format!("CREATE ROLE {role}"));
        let created = sqlx::raw_sql(create).execute(&owner).await;
        created.expect("created");
    }
    let granted = sqlx::raw_sql(AssertSqlSafe(grants(&ending))).execute(&owner);
    granted.await.expect("granted");
    let [producer, relay_role, receiver] = roles;
    produce(&store(&url, &producer).await).await;
    relay(&store(&url, &relay_role).await).await;
    receive(&store(&url, &receiver).await).await;
}
