//! How a run ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use outbox_core::{Delivery, TokioSpawn};

use super::support::{
    Faulty, Seen, Via, event, highest_attempt, ms, ok, pass, payloads, put, relay, secs, stats,
    store, until,
};

#[tokio::test(start_paused = true)]
async fn started_deliveries_finish_and_the_rest_goes_back_uncharged() {
    let store = store();
    put(&store, (0..10).map(event)).await;
    put(&store, (10..15).map(|n| event(n).to("keyed").key("k"))).await;
    let transport = Via(|_| async {
        pass(secs(5)).await;
        ok()
    });
    let relay = relay(store.clone(), transport)
        .per_destination(4)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let report = relay.run(pass(ms(100))).await;
    assert_eq!(report.published, 5, "four, and the head of the run");
    assert_eq!((report.released, report.abandoned), (10, 0));
    assert!(start.elapsed() < ms(5_200) && report.took == start.elapsed());
    let stats = stats(&store).await;
    assert_eq!((stats.due.value, stats.claimed.value), (10, 0));
    let (attempts, transport) = highest_attempt();
    super::support::relay(store, transport)
        .build()
        .unwrap()
        .run_until_idle()
        .await
        .unwrap();
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn leases_are_extended_while_draining() {
    let store = store();
    put(&store, [event(0)]).await;
    let faulty = Faulty::new(store.clone());
    let transport = Via(|_| async {
        pass(secs(14)).await;
        ok()
    });
    let relay = relay(faulty.clone(), transport)
        .lease(secs(15))
        .delivery_timeout(ms(14_500));
    let report = relay.build().unwrap().run(pass(ms(10))).await;
    assert_eq!(report.published, 1);
    assert_eq!(faulty.calls("extend"), 2);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_budget_abandons_what_still_runs() {
    for tasks in [false, true] {
        let store = store();
        put(&store, [event(0), event(1).key("k"), event(2).key("k")]).await;
        let dropped = Arc::new(AtomicUsize::new(0));
        struct Guard(Arc<AtomicUsize>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = Arc::clone(&dropped);
        let transport = Via(move |_| {
            let guard = Guard(Arc::clone(&count));
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                ok()
            }
        });
        let seen = Seen::default();
        let mut builder = relay(store.clone(), transport)
            .drain_budget(secs(2))
            .observer(seen.clone());
        if tasks {
            builder = builder.spawn(TokioSpawn);
        }
        let start = tokio::time::Instant::now();
        let report = builder.build().unwrap().run(pass(ms(100))).await;
        assert_eq!(
            (report.abandoned, report.released),
            (2, 1),
            "{tasks} {report:?}"
        );
        assert!(start.elapsed() >= secs(2) && start.elapsed() < ms(2_200));
        until("the deliveries are dropped", || {
            dropped.load(Ordering::SeqCst) == 2
        })
        .await;
        assert!(seen.has("abandoned 2"), "{:?}", seen.lines());
        // Their leases expire by themselves, the attempt counted.
        pass(secs(61)).await;
        assert_eq!(stats(&store).await.due.value, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_aborts_at_once() {
    let store = store();
    put(&store, (0..3).map(event)).await;
    let relay = relay(store.clone(), Via(|_| std::future::pending()))
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let report = relay.run_until(pass(ms(100)), pass(ms(300))).await;
    assert_eq!(report.abandoned, 3);
    assert!(start.elapsed() < ms(320), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_even_if_the_store_never_answers() {
    let store = store();
    let faulty = Faulty::new(store.clone());
    faulty.hang();
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .drain_budget(secs(3))
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    relay.run(pass(ms(100))).await;
    assert!(start.elapsed() < secs(9), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_settle_that_is_never_answered_is_made_again_while_draining() {
    let store = store();
    put(&store, (0..5).map(event)).await;
    let faulty = Faulty::new(store.clone());
    faulty.mute(&["settle"]);
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .store_timeout(secs(4))
        .build()
        .unwrap();
    let (report, ()) = futures::join!(relay.run(pass(ms(10))), async {
        pass(secs(2)).await;
        faulty.up();
    });
    assert_eq!((report.published, report.abandoned), (5, 0));
    assert!(report.took < secs(5), "{:?}", report.took);
}

#[tokio::test(start_paused = true)]
async fn what_was_delivered_is_settled_through_an_outage_while_draining() {
    let store = store();
    put(&store, (0..5).map(event)).await;
    let faulty = Faulty::new(store.clone());
    let transport = Via(|_| async {
        pass(ms(50)).await;
        ok()
    });
    let relay = relay(faulty.clone(), transport).build().unwrap();
    let (report, ()) = futures::join!(relay.run(pass(ms(10))), async {
        pass(ms(20)).await;
        faulty.down();
        pass(secs(5)).await;
        faulty.up();
    });
    assert_eq!((report.published, report.abandoned), (5, 0));
    assert_eq!(payloads(&store).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_outage_beyond_the_budget_is_reported_as_abandoned() {
    let store = store();
    put(&store, (0..5).map(event)).await;
    let faulty = Faulty::new(store.clone());
    faulty.fail_before(&["settle"]);
    let relay = relay(faulty, Via(|_| async { ok() }))
        .drain_budget(secs(2))
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let report = relay.run(pass(ms(10))).await;
    assert_eq!((report.published, report.abandoned), (0, 5));
    assert!(start.elapsed() < secs(3), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_claim_brings_after_the_signal_goes_back() {
    let store = store();
    put(&store, (0..5).map(event)).await;
    let seen = Seen::default();
    struct SlowClaims(Faulty);
    #[outbox_core::async_trait]
    impl outbox_core::OutboxStore for SlowClaims {
        async fn claim(
            &self,
            request: &outbox_core::ClaimRequest,
        ) -> Result<outbox_core::Claim, outbox_core::Error> {
            let claim = self.0.claim(request).await;
            pass(ms(100)).await;
            claim
        }
        async fn settle(
            &self,
            batch: &[outbox_core::Settlement],
        ) -> Result<Vec<outbox_core::LeaseStatus>, outbox_core::Error> {
            self.0.settle(batch).await
        }
        async fn extend(
            &self,
            leases: &[outbox_core::Lease],
            by: std::time::Duration,
        ) -> Result<Vec<outbox_core::LeaseStatus>, outbox_core::Error> {
            self.0.extend(leases, by).await
        }
        async fn release(
            &self,
            leases: &[outbox_core::Lease],
        ) -> Result<Vec<outbox_core::LeaseStatus>, outbox_core::Error> {
            self.0.release(leases).await
        }
        async fn release_claim(
            &self,
            token: outbox_core::LeaseToken,
        ) -> Result<u64, outbox_core::Error> {
            self.0.release_claim(token).await
        }
        async fn hold(
            &self,
            destination: &str,
            hold: outbox_core::Hold,
        ) -> Result<(), outbox_core::Error> {
            self.0.hold(destination, hold).await
        }
    }
    let relay = relay(
        SlowClaims(Faulty::new(store.clone())),
        Via(|_| async { ok() }),
    )
    .observer(seen.clone())
    .build()
    .unwrap();
    let report = relay.run(pass(ms(50))).await;
    assert_eq!((report.released, report.published), (5, 0));
    assert_eq!(seen.count("attempting"), 0);
    assert_eq!(stats(&store).await.due.value, 5);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_loses_nothing() {
    let store = store();
    put(&store, (0..20).map(|n| event(n).key(n % 3))).await;
    let transport = Via(|delivery: Delivery| async move {
        pass(ms(u64::from(delivery.event().payload[0]))).await;
        ok()
    });
    let relay = relay(store.clone(), transport)
        .lease(secs(31))
        .build()
        .unwrap();
    for cut in [1, 20, 51, 60, 100] {
        let run = relay.run(std::future::pending());
        futures::future::select(Box::pin(run), Box::pin(pass(ms(cut)))).await;
    }
    relay
        .run(until("all delivered", || payloads(&store).len() == 20))
        .await;
    let mut all = payloads(&store);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_never_begins_ends_at_once() {
    let relay = relay(store(), Via(|_| async { ok() })).build().unwrap();
    let report = relay.run(std::future::ready(())).now_or_never().unwrap();
    assert_eq!(report.published, 0);
}
