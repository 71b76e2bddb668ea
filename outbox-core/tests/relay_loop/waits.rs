//! What a receiver or a limiter may ask for.

use std::time::{Duration, SystemTime};

use outbox_core::{Backoff, DeliveryError, DestinationPage, Destinations, Jitter, MemoryStore};

use super::support::{Faulty, Seen, Via, event, no, put, relay, secs, stats, store, until};

fn policy() -> Backoff {
    Backoff::exponential()
        .jitter(Jitter::None)
        .retry_after_cap(secs(3_600))
}

/// How long the only destination is held, from the start of the test.
async fn held(store: &MemoryStore) -> Duration {
    let page = DestinationPage::default();
    let state = store.destinations(&page).await.unwrap().remove(0);
    let start = SystemTime::UNIX_EPOCH + secs(1_000_000);
    state.held_until.unwrap().duration_since(start).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_destination_is_held_no_longer_than_the_cap_on_the_last_attempt_too() {
    for asked in [secs(365 * 86_400), Duration::MAX] {
        for attempts in [1, 5] {
            let store = store();
            put(&store, [event(0)]).await;
            let faulty = Faulty::new(store.clone());
            let transport = Via(move |_| async move {
                no(DeliveryError::throttled("429").with_retry_after(asked))
            });
            let relay = relay(faulty.clone(), transport)
                .retry(policy().max_attempts(attempts))
                .build()
                .unwrap();
            relay.run(until("held", || faulty.calls("hold") == 1)).await;
            let held = held(&store).await;
            assert!(held <= secs(3_601), "{attempts} attempts: {held:?}");
            assert!(held >= secs(3_599), "{attempts} attempts: {held:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_not_made_is_put_off_no_longer_than_the_cap() {
    let store = store();
    put(&store, [event(0)]).await;
    let seen = Seen::default();
    let transport = Via(|_| async {
        no(DeliveryError::not_attempted("limiter").with_retry_after(Duration::MAX))
    });
    let relay = relay(store.clone(), transport)
        .retry(policy().retry_after_cap(secs(20)))
        .observer(seen.clone())
        .build()
        .unwrap();
    relay
        .run(until("twice", || seen.count("deferred") == 2))
        .await;
    assert_eq!(stats(&store).await.dead.value, 0);
}
