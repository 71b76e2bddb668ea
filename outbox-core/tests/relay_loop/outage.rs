//! A store that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_core::{
    Claim, ClaimRequest, Delivery, DeliveryError, Error, ErrorKind, Hold, Lease, LeaseStatus,
    LeaseToken, MemoryStore, OutboxStore, Settlement, async_trait,
};

use super::support::{
    Faulty, Seen, Via, event, highest_attempt, ms, no, ok, pass, payloads, put, relay, secs, stats,
    store, until,
};

#[tokio::test(start_paused = true)]
async fn an_outage_of_minutes_loses_nothing_and_is_said_once() {
    let store = store();
    let faulty = Faulty::new(store.clone());
    put(&store, (0..100).map(event)).await;
    let seen = Seen::default();
    let transport = Via(|_: Delivery| async {
        pass(ms(20)).await;
        ok()
    });
    let relay = relay(faulty.clone(), transport)
        .observer(seen.clone())
        .build()
        .unwrap();
    let report = relay
        .run(async {
            pass(ms(50)).await;
            faulty.down();
            pass(secs(180)).await;
            faulty.up();
            until("delivered", || payloads(&store).len() == 100).await;
        })
        .await;
    assert_eq!(report.published, 100);
    assert_eq!((seen.count("down"), seen.count("up")), (1, 1));
    assert!(
        faulty.failures() < 80,
        "{} failures in three minutes",
        faulty.failures()
    );
    assert_eq!(stats(&store).await.pending.value, 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_is_lost_is_given_back_when_the_store_is() {
    let store = store();
    put(&store, (0..5).map(event)).await;
    let faulty = Faulty::new(store.clone());
    let (attempts, transport) = highest_attempt();
    faulty.fail_after(&["claim"]);
    let relay = relay(faulty.clone(), transport).build().unwrap();
    let start = tokio::time::Instant::now();
    relay
        .run(async {
            until("the claim failed", || faulty.failures() == 1).await;
            assert_eq!(stats(&store).await.claimed.value, 5);
            faulty.up();
            until("delivered", || payloads(&store).len() == 5).await;
        })
        .await;
    assert!(
        start.elapsed() < secs(1),
        "not the lease of a minute: {:?}",
        start.elapsed()
    );
    assert_eq!(
        attempts.load(Ordering::SeqCst),
        1,
        "the lost claim is not charged"
    );
}

#[tokio::test(start_paused = true)]
async fn a_settle_is_repeated_until_it_is_answered_and_goes_before_claims() {
    for after in [false, true] {
        let store = store();
        put(&store, (0..5).map(|n| event(n).key(n))).await;
        let faulty = Faulty::new(store.clone());
        if after {
            faulty.fail_after(&["settle"]);
        } else {
            faulty.fail_before(&["settle"]);
        }
        let count = Arc::new(AtomicUsize::new(0));
        let deliveries = Arc::clone(&count);
        let transport = Via(move |_| {
            deliveries.fetch_add(1, Ordering::SeqCst);
            async { ok() }
        });
        let relay = relay(faulty.clone(), transport).build().unwrap();
        let report = relay
            .run(async {
                until("the settle failed", || faulty.failures() > 0).await;
                let before = faulty.calls("claim");
                until("and again", || faulty.failures() > 4).await;
                // One claim may have been under way beside the first settle.
                assert!(
                    faulty.calls("claim") <= before + 1,
                    "{:?}",
                    faulty.all_calls()
                );
                faulty.up();
                until("claims go on", || faulty.calls("claim") > before + 1).await;
            })
            .await;
        assert_eq!(report.published, 5, "after: {after}");
        assert_eq!(count.load(Ordering::SeqCst), 5, "each once");
        assert_eq!(payloads(&store).len(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn one_event_that_cannot_be_settled_holds_up_no_other() {
    let store = store();
    put(&store, (0..50).map(|n| event(n).to(format!("d{n}")))).await;
    let faulty = Faulty::new(store.clone());
    faulty.refuse(Some(17));
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .build()
        .unwrap();
    let report = relay
        .run(async {
            until("all but one", || payloads(&store).len() == 49).await;
            faulty.refuse(None);
            until("that one too", || payloads(&store).len() == 50).await;
        })
        .await;
    assert_eq!(report.published, 50);
    assert!(faulty.calls("settle") < 40, "{}", faulty.calls("settle"));
}

#[tokio::test(start_paused = true)]
async fn events_that_come_during_an_outage_are_delivered_after_it() {
    let store = store();
    let faulty = Faulty::new(store.clone());
    faulty.down();
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .build()
        .unwrap();
    relay
        .run(async {
            pass(secs(300)).await;
            put(&store, [event(0)]).await;
            faulty.up();
            let back = tokio::time::Instant::now();
            until("delivered", || !payloads(&store).is_empty()).await;
            assert!(
                back.elapsed() <= secs(31),
                "the longest delay is thirty seconds"
            );
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_single_run_reports_a_store_that_fails() {
    let faulty = Faulty::new(store());
    faulty.down();
    let relay = relay(faulty, Via(|_| async { ok() })).build().unwrap();
    assert_eq!(
        relay.run_once().await.unwrap_err().to_string(),
        "connection lost"
    );
    assert_eq!(
        relay.run_until_idle().await.unwrap_err().to_string(),
        "connection lost"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_answers_is_an_outage_and_the_relay_goes_on() {
    for call in ["claim", "settle", "extend", "hold", "release_claim"] {
        let store = store();
        put(&store, (0..50).map(|n| event(n).to(format!("d{}", n % 10)))).await;
        let faulty = Faulty::new(store.clone());
        let seen = Seen::default();
        let throttled = Arc::new(AtomicUsize::new(0));
        let transport = Via(move |_| {
            let first = throttled.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    return no(DeliveryError::throttled("429").with_retry_after(secs(40)));
                }
                pass(secs(25)).await;
                ok()
            }
        });
        let relay = relay(faulty.clone(), transport)
            .store_timeout(secs(10))
            .observer(seen.clone())
            .build()
            .unwrap();
        faulty.mute(&[call]);
        if call == "release_claim" {
            faulty.fail_after(&["claim"]);
        }
        relay
            .run(async {
                pass(secs(35)).await;
                // By the time that an extension failed, there is nothing left to extend.
                let least = if call == "extend" { 1 } else { 2 };
                assert!(faulty.calls(call) >= least, "{call} is tried again");
                faulty.up();
                until("delivered", || payloads(&store).len() == 50).await;
            })
            .await;
        if call != "release_claim" {
            assert!(
                seen.has("down the store has not answered within 10s"),
                "{call}: {:?}",
                seen.lines()
            );
        }
        assert_eq!(seen.count("down"), seen.count("up"), "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_run_reports_a_store_that_fails_after_the_claim() {
    for (mute, slow) in [(false, 0), (false, 20), (true, 0)] {
        for once in [false, true] {
            let store = store();
            put(&store, (0..5).map(event)).await;
            let faulty = Faulty::new(store.clone());
            let breaks = faulty.clone();
            let transport = Via(move |_| {
                if mute {
                    breaks.hang();
                } else {
                    breaks.down();
                }
                async move {
                    pass(secs(slow)).await;
                    ok()
                }
            });
            let relay = relay(faulty, transport)
                .drain_budget(secs(15))
                .build()
                .unwrap();
            let start = tokio::time::Instant::now();
            let error = if once {
                relay.run_once().await.unwrap_err()
            } else {
                relay.run_until_idle().await.unwrap_err()
            };
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            let took = start.elapsed();
            assert!(took >= secs(15) && took < secs(61), "{took:?}");
            pass(secs(90)).await;
            assert_eq!(stats(&store).await.due.value, 5, "the leases have expired");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_run_goes_on_after_a_short_outage() {
    let store = store();
    put(&store, (0..200).map(event)).await;
    let faulty = Faulty::new(store.clone());
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .drain_budget(secs(15))
        .build()
        .unwrap();
    faulty.fail_before(&["settle"]);
    let (report, ()) = futures::join!(relay.run_until_idle(), async {
        pass(secs(10)).await;
        faulty.up();
    });
    assert_eq!(report.unwrap().published, 200);
}

/// A store whose one connection serves one call at a time; the transport uses it as well.
#[derive(Clone)]
struct OneConnection {
    inner: MemoryStore,
    connection: Arc<tokio::sync::Mutex<()>>,
}

impl OneConnection {
    async fn query(&self) {
        let _connection = self.connection.lock().await;
        pass(ms(1)).await;
    }
}

#[async_trait]
impl OutboxStore for OneConnection {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.query().await;
        self.inner.claim(request).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.query().await;
        self.inner.settle(batch).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        self.query().await;
        self.inner.extend(leases, by).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.query().await;
        self.inner.release(leases).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.query().await;
        self.inner.release_claim(token).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.query().await;
        self.inner.hold(destination, hold).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_needs_the_only_connection_is_no_deadlock() {
    let store = store();
    put(&store, (0..200).map(|n| event(n).key(n % 7))).await;
    let one = OneConnection {
        inner: store.clone(),
        connection: Arc::default(),
    };
    let inside = one.clone();
    let transport = Via(move |_| {
        let one = inside.clone();
        async move {
            one.query().await;
            ok()
        }
    });
    let relay = relay(one, transport).concurrency(16).build().unwrap();
    relay
        .run(until("delivered", || store.published().len() == 200))
        .await;
    for key in 0..7 {
        let of_key = payloads(&store)
            .into_iter()
            .map(|p| p.parse::<usize>().unwrap());
        let of_key: Vec<_> = of_key.filter(|n| n % 7 == key).collect();
        assert!(of_key.is_sorted(), "{of_key:?}");
    }
}
