//! What a claim of `MySqlStore` reads on MariaDB: the rows that it takes, whatever waits behind them.

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{ClaimRequest, Enqueue, Hold, NewEvent, OutboxStore};
use outbox_sqlx::MySqlStore;
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use tests::MySqlServer;

const ROWS: u32 = 20;
const BACKLOG: usize = 6_000;

/// The rows and index entries that the server has read so far.
fn reads(server: &MySqlServer) -> u64 {
    let status = server.sql("mysql", "SHOW GLOBAL STATUS LIKE 'Handler_read%'");
    let counts = status.lines().filter_map(|line| line.split('\t').nth(1));
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

async fn put(store: &MySqlStore, events: Vec<NewEvent>) {
    let mut tx = store.pool().begin().await.expect("begun");
    store.enqueue_all(&mut tx, events).await.expect("stored");
    tx.commit().await.expect("committed");
}

fn events(like: impl Fn(usize) -> NewEvent) -> Vec<NewEvent> {
    (0..BACKLOG).map(like).collect()
}

/// What the next claim reads.
async fn claim(server: &MySqlServer, store: &MySqlStore) -> (usize, u64) {
    let rows = NonZeroU32::new(ROWS).expect("not zero");
    let before = reads(server);
    let request = ClaimRequest::new(rows, Duration::from_secs(600));
    let claim = store.claim(&request).await.expect("claimed");
    (claim.events.len(), reads(server) - before)
}

#[tokio::test]
async fn a_claim_reads_little_however_much_waits() {
    let server = MySqlServer::start();
    let url = server.create_database();
    let pool = MySqlPoolOptions::new().max_connections(1).connect(&url);
    let store = MySqlStore::new(pool.await.expect("connected"));
    store.migrate().await.expect("migrated");
    let event = || NewEvent::bytes("T", "x").to("d");
    let day = Duration::from_secs(86_400);

    put(&store, events(|_| event().delay(day))).await;
    put(&store, events(|_| event())).await;
    put(&store, events(|_| event().key("hot"))).await;
    put(&store, events(|_| event().to("held"))).await;
    let hold = Hold::Disabled {
        reason: "test".to_owned(),
    };
    store.hold("held", hold).await.expect("held");
    // Parks what is at the front, some windows at a time.
    for _ in 0..3 {
        claim(&server, &store).await;
    }
    for _ in 0..5 {
        let (claimed, reads) = claim(&server, &store).await;
        assert_eq!(claimed, 20, "what one shape leaves, the others may use");
        assert!(reads < 5_000, "{reads} reads for {claimed} events");
    }
}
