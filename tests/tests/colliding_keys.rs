//! Keys of one destination whose hashes are equal: what happens to them where stores go by the hash.
//! The tests make them so.

#[path = "harness/open.rs"]
mod open;

use std::num::NonZeroU32;
use std::time::Duration;

use open::Open;
use outbox_core::{
    ClaimRequest, Claimed, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason,
    Destinations, Enqueue, LeaseStatus, NewEvent, OutboxStore, Outcome, Settlement,
};
use outbox_sqlx::{MySqlStore, PgStore, sqlx};

async fn claim(store: &impl OutboxStore) -> Vec<Claimed> {
    let rows = NonZeroU32::new(10).expect("rows");
    let request = ClaimRequest::new(rows, Duration::from_secs(600));
    store.claim(&request).await.expect("claimed").events
}

async fn settle(store: &impl OutboxStore, claimed: &Claimed, outcome: Outcome) {
    let batch = [Settlement::new(claimed.lease, outcome)];
    let settled = store.settle(&batch).await.expect("settled");
    assert_eq!(settled, [LeaseStatus::Ours]);
}

fn names(claimed: &[Claimed]) -> Vec<String> {
    let name = |one: &Claimed| String::from_utf8_lossy(&one.event.payload).into_owned();
    claimed.iter().map(name).collect()
}

async fn publish_all(store: &impl OutboxStore) -> Vec<String> {
    let mut came = Vec::new();
    for _ in 0..4 {
        let run = claim(store).await;
        for claimed in &run {
            settle(store, claimed, Outcome::Published).await;
        }
        came.extend(names(&run));
    }
    came
}

/// Two events each of two keys, where a dead event blocks its key.
async fn enqueue<C, S>(store: &S, conn: &mut C)
where
    S: Enqueue<C> + Destinations,
{
    let block = DeadHeadPolicy::Block;
    store.set_dead_head_policy("d", block).await.expect("set");
    let events = ["a1", "b1", "a2", "b2"];
    let events = events.map(|name| NewEvent::bytes("T", name).to("d").key(&name[..1]));
    let stored = store.enqueue_all(conn, events.to_vec()).await;
    stored.expect("enqueued");
}

/// They are as one key: in the order of their numbers, one run at a time. While a letter blocks one, the
/// other waits too but for what comes before the blocked ones (`free`). Nothing is lost or overtaken.
async fn are_as_one_key<S: OutboxStore + DeadLetters>(store: &S, free: &[&str]) {
    let run = claim(store).await;
    assert_eq!(names(&run), ["a1", "b1", "a2", "b2"]);
    for claimed in &run[1..] {
        settle(store, claimed, Outcome::Release).await;
    }
    assert_eq!(names(&claim(store).await), [""; 0]);
    let (reason, error) = (DeathReason::Rejected, "400".to_owned());
    settle(store, &run[0], Outcome::Dead { reason, error }).await;
    let came = publish_all(store).await;
    assert_eq!(came, free, "the rest waits for a's letter");
    let discarded = store.discard(&DeadLetterFilter::all(), 10, "a test").await;
    assert_eq!(discarded.expect("discarded"), 1);
    let came = publish_all(store).await;
    assert_eq!(came, ["b1", "a2", "b2"][free.len()..]);
}

#[tokio::test]
async fn wait_for_each_other_on_postgresql() {
    let (store, mut conn, _) = PgStore::open().await;
    enqueue(&store, &mut *conn).await;
    drop(conn);
    let collide = "ALTER TABLE outbox_events ALTER COLUMN khash DROP EXPRESSION;
                   UPDATE outbox_events SET khash = 1";
    let done = sqlx::raw_sql(collide).execute(store.pool()).await;
    done.expect("of one hash");
    are_as_one_key(&store, &[]).await;
}

#[tokio::test]
async fn wait_for_each_other_on_mysql() {
    let (store, mut conn, _) = MySqlStore::open().await;
    enqueue(&store, &mut *conn).await;
    drop(conn);
    let collide = "UPDATE outbox_events SET place = 1";
    let done = sqlx::raw_sql(collide).execute(store.pool()).await;
    done.expect("of one hash");
    are_as_one_key(&store, &["b1"]).await;
}
