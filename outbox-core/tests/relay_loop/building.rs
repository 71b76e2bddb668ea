//! Settings that make no relay.

use std::time::Duration;

use outbox_core::{Backoff, DestinationFilter, ErrorKind, RelayBuilder};

use super::support::{Faulty, Via, event, ms, ok, pass, put, relay, secs, store, until};

fn refused(change: impl FnOnce(RelayBuilder) -> RelayBuilder) -> String {
    let builder = relay(outbox_core::MemoryStore::new(), Via(|_| async { ok() }));
    let error = change(builder).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    error.to_string()
}

#[test]
fn a_refusal_names_the_setting_its_value_and_what_is_allowed() {
    assert_eq!(
        refused(|b| b.concurrency(0)),
        "setting `concurrency` is 0; it must be at least 1"
    );
    assert_eq!(
        refused(|b| b.lease(secs(10)).delivery_timeout(secs(10))),
        "setting `delivery_timeout` is 10s; it must be shorter than the lease (10s), or an attempt \
         could outlive it"
    );
    assert!(refused(|b| b.per_destination(0)).contains("`per_destination` is 0"));
    assert!(refused(|b| b.batch_size(0)).contains("`batch_size` is 0"));
    assert!(refused(|b| b.claim_bytes(0)).contains("`claim_bytes` is 0"));
    assert!(refused(|b| b.settle_batch(0)).contains("`settle_batch` is 0"));
    assert!(refused(|b| b.settle_after(secs(20))).contains("`settle_after` is 20s"));
    assert!(refused(|b| b.poll_interval(Duration::ZERO)).contains("`poll_interval` is 0"));
    assert!(refused(|b| b.delivery_timeout(Duration::ZERO)).contains("above zero"));
    assert!(refused(|b| b.store_timeout(Duration::ZERO)).contains("`store_timeout` is 0"));
    assert!(refused(|b| b.store_backoff(secs(2), secs(1))).contains("`store_backoff` has the cap"));
    assert!(refused(|b| b.event_types(Vec::<String>::new())).contains("`event_types` is empty"));
    let none = DestinationFilter::Only(Vec::new());
    assert!(refused(|b| b.destinations(none)).contains("`destinations` is empty"));
}

#[test]
fn a_policy_that_is_none_is_refused() {
    let refusal = refused(|b| b.retry(Backoff::exponential().max_attempts(0)));
    assert!(refusal.contains("`max_attempts` is 0"));
}

#[tokio::test(start_paused = true)]
async fn extreme_durations_are_no_overflow() {
    let store = store();
    put(&store, [event(0)]).await;
    let faulty = Faulty::new(store);
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .lease(Duration::MAX)
        .delivery_timeout(Duration::MAX - ms(1))
        .poll_interval(Duration::MAX)
        .drain_budget(Duration::MAX)
        .settle_after(Duration::MAX / 4)
        .store_timeout(Duration::MAX)
        .store_backoff(Duration::MAX, Duration::MAX)
        .build()
        .unwrap();
    let report = relay.run(pass(ms(10))).await;
    assert_eq!((report.published, report.abandoned), (1, 0));
    faulty.down();
    let report = relay
        .run(until("a failure", || faulty.failures() == 1))
        .await;
    assert_eq!(report.abandoned, 0);
}
