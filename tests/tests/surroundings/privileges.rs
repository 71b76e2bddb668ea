//! Roles that have no more rights than the page for operators gives them.

use outbox_core::{
    Accepted, BeginKey, Begun, BlockedKeyPage, CompleteKey, DeadHeadPolicy, DeathReason,
    DestinationPage, Destinations, Fingerprint, Hold, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, LockRequest, LockStatus, Locks, Page, Prune, Replay,
};

use super::*;
use crate::on::On;

/// The page's grants: the first are PostgreSQL's, the second MySQL's.
fn grants(nth: usize) -> &'static str {
    let page = include_str!("../../../docs/operations.md");
    let (_, page) = page.split_once("\n## Privileges\n").unwrap();
    let (page, _) = page.split_once("\n## ").unwrap();
    let block = page.split("```sql\n").nth(nth + 1).unwrap();
    block.split("```").next().unwrap()
}

async fn produces<C, S: Enqueue<C> + OutboxStore>(store: &S, conn: &mut C) {
    let keyed = || event().key("k");
    let later = event().delay(Duration::from_millis(1)).expires_in(DAY);
    let once = || event().dedup_key("once").header("a", "b");
    let list = vec![keyed(), keyed(), keyed(), keyed(), later, once(), once()];
    let stored = store.enqueue_all(conn, list).await.unwrap();
    assert_eq!(stored.iter().filter(|one| one.duplicate).count(), 1);
    for one in [event(), keyed(), event().dedup_key("twice")] {
        assert!(!store.enqueue(conn, one).await.unwrap().duplicate);
    }
    assert!(store.enqueue(conn, once()).await.unwrap().duplicate);
    store.claim(&request()).await.unwrap_err();
}

async fn relays<S>(store: &S)
where
    S: OutboxStore + DeadLetters + Destinations + Maintenance + Locks,
{
    let to = "https://ci.example/hooks";
    let policy = DeadHeadPolicy::Block;
    store.set_dead_head_policy(to, policy).await.unwrap();
    let claim = store.claim(&request()).await.unwrap();
    let leases: Vec<_> = claim.events.iter().map(|one| one.lease).collect();
    store.extend(&leases, DAY).await.unwrap();
    store.release(&leases[..1]).await.unwrap();
    store.release_claim(leases[0].token).await.unwrap();

    let kept = || Outcome::Published;
    let again = || Outcome::Retry {
        after: Duration::ZERO,
        error: "500".to_owned(),
    };
    let dead = || Outcome::Dead {
        reason: DeathReason::Gone,
        error: "410".to_owned(),
    };
    let mut outcomes = [dead, again, kept, dead].into_iter().cycle();
    let mut settled = 0;
    while settled < 12 {
        let claim = store.claim(&request()).await.unwrap();
        let settle = |one: &outbox_core::Claimed| {
            let outcome = outcomes.next().map(|outcome| outcome());
            Settlement::new(one.lease, outcome.unwrap_or_else(kept))
        };
        let batch: Vec<_> = claim.events.iter().map(settle).collect();
        settled += store.settle(&batch).await.unwrap().len();
        let blocked = store.blocked_keys(&BlockedKeyPage::default()).await;
        if !blocked.unwrap().is_empty() {
            let replay = Replay::new(DeadLetterFilter::all());
            store.replay(&replay).await.unwrap();
        }
    }
    let all = DeadLetterFilter::all();
    store.list(&all, &Page::default()).await.unwrap();
    store.get(1).await.unwrap();
    store.discard(&all, 1, "a test").await.unwrap();
    let hold = Hold::For {
        period: DAY,
        reason: "429".to_owned(),
    };
    store.hold(to, hold).await.unwrap();
    let page = DestinationPage::default();
    assert_eq!(store.destinations(&page).await.unwrap().len(), 1);
    store.claim(&request()).await.unwrap();
    store.stats(100).await.unwrap();
    let mut prune = Prune::default();
    let age = Some(Duration::ZERO);
    (prune.published_after, prune.dead_after, prune.dedup_after) = (age, age, age);
    store.prune(&prune).await.unwrap();

    let lock = LockRequest::new("one at a time");
    let taken = store.try_lock(&lock).await.unwrap();
    assert!(!matches!(taken, LockStatus::Held { .. }), "{taken:?}");
    let (name, token) = (&lock.name, lock.token);
    store.extend_lock(name, token, DAY).await.unwrap();
    store.unlock(name, token, Duration::ZERO).await.unwrap();
}

async fn receives<C, S: IdempotencyKeys + Inbox<C> + OutboxStore>(store: &S, conn: &mut C) {
    let key = |name| IdempotencyKey::new("tests", name).unwrap();
    let requests =
        ["a", "b"].map(|name| BeginKey::new(key(name), Fingerprint::from_bytes([0; 32])));
    for request in &requests {
        assert_eq!(store.begin_key(request).await.unwrap(), Begun::Started);
    }
    let [a, b] = &requests;
    store.extend_key(&a.key, a.token, DAY).await.unwrap();
    let complete = CompleteKey::new(a, "done");
    store.complete_key(&complete).await.unwrap();
    store.abandon_key(&b.key, b.token).await.unwrap();
    store.prune_keys(10).await.unwrap();
    let message = InboxMessage::new(key("m"));
    let accepted = store.accept(conn, &message).await.unwrap();
    assert_eq!(accepted, Accepted::First);
    store.claim(&request()).await.unwrap_err();
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The URLs of a database for its producer, its relay and its receiver.
fn urls(scheme: &str, url: &str) -> [String; 3] {
    let (_, address) = url.split_once('@').unwrap();
    ["producer", "relay", "receiver"].map(|role| format!("{scheme}://{role}@{address}"))
}

#[tokio::test]
async fn are_enough_on_postgres() {
    let (store, _, url) = PgStore::open().await;
    store.migrate().await.unwrap();
    let roles = "CREATE ROLE producer LOGIN; CREATE ROLE relay LOGIN; CREATE ROLE receiver LOGIN";
    run::<sqlx::Postgres>(&url, &[roles, grants(0)]).await;
    let [producer, relay, receiver] = urls("postgres", &url);
    let store = PgStore::on(&producer, 2).await;
    produces(&store, &mut *store.pool().acquire().await.unwrap()).await;
    let store = PgStore::on(&relay, 1).await;
    store.check_schema().await.unwrap();
    relays(&store).await;
    let store = PgStore::on(&receiver, 2).await;
    receives(&store, &mut *store.pool().acquire().await.unwrap()).await;
}

#[tokio::test]
async fn are_enough_on_mysql() {
    let (store, _, url) = MySqlStore::open().await;
    store.migrate().await.unwrap();
    let roles = ["producer", "relay", "receiver"]
        .map(|role| format!("CREATE USER {role}@'%' IDENTIFIED BY ''"));
    run::<sqlx::MySql>(&url, &[&roles.join("; "), grants(1)]).await;
    let [producer, relay, receiver] = urls("mysql", &url);
    let store = MySqlStore::on(&producer, 2).await;
    produces(&store, &mut *store.pool().acquire().await.unwrap()).await;
    let store = MySqlStore::on(&relay, 1).await;
    store.check_schema().await.unwrap();
    relays(&store).await;
    let store = MySqlStore::on(&receiver, 2).await;
    receives(&store, &mut *store.pool().acquire().await.unwrap()).await;
}
