//! Events whose own deadline passes while the relay holds them.

use std::sync::{Arc, Mutex};

use outbox_core::{DeadLetterFilter, DeadLetters, DeathReason, Delivery, MemoryStore, Page};

use super::support::{Via, event, ms, ok, pass, payloads, put, relay, secs, store, text, until};

type Begun = Arc<Mutex<Vec<(String, u64)>>>;

/// Takes so long for each event, and tells when each began.
fn slow(
    by: u64,
) -> (
    Begun,
    Via<
        impl Fn(Delivery) -> futures::future::BoxFuture<'static, super::support::Delivered>
        + Send
        + Sync,
    >,
) {
    let begun = Begun::default();
    let (log, start) = (Arc::clone(&begun), tokio::time::Instant::now());
    let transport = Via(move |delivery: Delivery| {
        let at = start.elapsed().as_secs();
        log.lock().unwrap().push((text(&delivery), at));
        Box::pin(async move {
            pass(secs(by)).await;
            ok()
        }) as futures::future::BoxFuture<'static, _>
    });
    (begun, transport)
}

async fn expired(store: &MemoryStore) -> Vec<u32> {
    let all = DeadLetterFilter::all();
    let letters = store.list(&all, &Page::default()).await.unwrap();
    assert!(letters.iter().all(|l| l.reason == DeathReason::Expired));
    letters.iter().map(|l| l.event.attempts).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_key_goes_on_past_events_whose_deadline_has_passed() {
    let store = store();
    let event = |n: usize| event(n).key("k");
    let short = |n: usize| event(n).expires_in(secs(30));
    put(&store, [event(0), short(1), short(2), event(3)]).await;
    pass(secs(2)).await;
    let (begun, transport) = slow(20);
    let relay = relay(store.clone(), transport).build().unwrap();
    let report = relay.run_until_idle().await.unwrap();
    let begun: Vec<_> = begun.lock().unwrap().clone();
    let times = [("0", 0), ("1", 20), ("3", 40)];
    assert_eq!(begun, times.map(|(n, at)| (n.to_owned(), at)));
    assert_eq!((report.published, report.dead), (3, 1));
    assert_eq!(expired(&store).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_waits_in_the_relay_past_its_deadline_is_not_delivered() {
    let store = store();
    put(&store, (0..4).map(|n| event(n).expires_in(secs(5)))).await;
    let (begun, transport) = slow(10);
    let relay = relay(store.clone(), transport)
        .per_destination(1)
        .build()
        .unwrap();
    relay
        .run(async {
            until("delivered", || !payloads(&store).is_empty()).await;
            pass(ms(100)).await;
        })
        .await;
    assert_eq!(*begun.lock().unwrap(), [("0".to_owned(), 0)]);
    assert_eq!(expired(&store).await, [1, 1, 1]);
}
