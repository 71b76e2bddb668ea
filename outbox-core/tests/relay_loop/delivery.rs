//! What becomes of an event: order, retries, death, pauses, limits of concurrency.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outbox_core::{
    Backoff, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason, Delivery, DeliveryError,
    DestinationFilter, Destinations, Jitter, MemoryStore, NewEvent, Page, RetryPolicy, RetryRoutes,
};

use super::support::{
    Faulty, Seen, Via, event, ms, no, ok, pass, payloads, put, relay, secs, stats, store, text,
    until,
};

fn steady() -> Backoff {
    Backoff::exponential().jitter(Jitter::None)
}

async fn deaths(store: &MemoryStore) -> Vec<(DeathReason, u32, String)> {
    let letters = store
        .list(&DeadLetterFilter::all(), &Page::default())
        .await
        .unwrap();
    let describe = |l: outbox_core::DeadLetter| {
        (
            l.reason,
            l.event.attempts,
            l.event.last_error.unwrap_or_default(),
        )
    };
    letters.into_iter().map(describe).collect()
}

#[tokio::test(start_paused = true)]
async fn events_of_a_key_go_in_order_and_one_at_a_time() {
    let store = store();
    put(&store, (0..50).map(|n| event(n).key("k"))).await;
    let (live, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, live2, most2) = (Arc::new(Mutex::new(Vec::new())), live, Arc::clone(&most));
    let log = Arc::clone(&seen);
    let transport = Via(move |delivery: Delivery| {
        most2.fetch_max(live2.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        log.lock().unwrap().push(text(&delivery));
        let live = Arc::clone(&live2);
        async move {
            pass(ms(3)).await;
            live.fetch_sub(1, Ordering::SeqCst);
            ok()
        }
    });
    let report = relay(store.clone(), transport)
        .build()
        .unwrap()
        .run_until_idle()
        .await
        .unwrap();
    assert_eq!(report.published, 50);
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let expected: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_tail_goes_back_uncharged_when_the_head_fails() {
    let store = store();
    put(&store, (0..5).map(|n| event(n).key("k"))).await;
    let faulty = Faulty::new(store.clone());
    let failing = Via(|_| async { no(DeliveryError::transient("503")) });
    let report = relay(faulty.clone(), failing)
        .build()
        .unwrap()
        .run_once()
        .await
        .unwrap();
    assert_eq!((report.retried, report.released), (1, 4));
    assert_eq!(
        faulty.calls("settle"),
        1,
        "head and tail are settled together"
    );

    let attempts = Arc::new(Mutex::new(HashMap::new()));
    let log = Arc::clone(&attempts);
    let transport = Via(move |delivery: Delivery| {
        log.lock()
            .unwrap()
            .insert(text(&delivery), delivery.attempt());
        async { ok() }
    });
    let relay = relay(store.clone(), transport).build().unwrap();
    relay
        .run(until("all delivered", || payloads(&store).len() == 5))
        .await;
    let attempts = attempts.lock().unwrap().clone();
    assert_eq!((attempts["0"], attempts["1"], attempts["4"]), (2, 1, 1));
    assert_eq!(payloads(&store), ["0", "1", "2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_event_is_tried_again_when_its_delay_is_over() {
    let store = store();
    put(&store, [event(0)]).await;
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&times);
    let start = tokio::time::Instant::now();
    let transport = Via(move |delivery: Delivery| {
        log.lock().unwrap().push(start.elapsed().as_millis());
        async move {
            if delivery.attempt() < 4 {
                no(DeliveryError::transient("503"))
            } else {
                ok()
            }
        }
    });
    let relay = relay(store.clone(), transport)
        .retry(steady())
        .poll_interval(secs(60));
    let relay = relay.build().unwrap();
    let report = relay
        .run(until("delivered", || !payloads(&store).is_empty()))
        .await;
    assert_eq!((report.published, report.retried), (1, 3));
    // 0, then 1, 2 and 4 seconds apart, exactly: the poll interval is a minute.
    let times = times.lock().unwrap();
    let expected = [0, 1_000, 3_000, 7_000];
    for (time, expected) in times.iter().zip(expected) {
        assert!(time.abs_diff(expected) <= 20, "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_ends_as_a_dead_letter() {
    let store = store();
    put(&store, [event(0), event(1).max_attempts(1)]).await;
    let failing = Via(|_| async { no(DeliveryError::transient("503")) });
    let seen = Seen::default();
    let relay = relay(store.clone(), failing)
        .retry(steady().max_attempts(3))
        .observer(seen.clone())
        .build()
        .unwrap();
    relay
        .run(until("both dead", || seen.count("dead") == 2))
        .await;
    let exhausted = |n| (DeathReason::AttemptsExhausted, n, "503".to_owned());
    assert_eq!(deaths(&store).await, [exhausted(3), exhausted(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_a_destination_or_a_type_decides_for_its_events() {
    let store = store();
    let there = |n: usize, destination: &str| event(n).to(destination);
    let other = |to: &str| NewEvent::bytes("Other", "x").to(to);
    put(
        &store,
        [
            there(0, "rest"),
            there(1, "named"),
            other("rest"),
            other("named"),
        ],
    )
    .await;
    let failing = Via(|_| async { no(DeliveryError::transient("503")) });
    let seen = Seen::default();
    let policy = RetryRoutes::new(steady().max_attempts(4))
        .destination("named", steady().max_attempts(1))
        .event_type("Other", steady().max_attempts(2));
    let relay = relay(store.clone(), failing)
        .retry(policy)
        .observer(seen.clone())
        .build()
        .unwrap();
    relay
        .run(until("all dead", || seen.count("dead") == 4))
        .await;
    let mut attempts: Vec<u32> = deaths(&store).await.into_iter().map(|d| d.1).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 2, 4]);
    let broken = RetryRoutes::new(steady()).event_type("Other", steady().max_attempts(0));
    assert!(broken.validate().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_dead_at_once_with_its_reason() {
    let store = store();
    put(&store, [event(0), event(1), event(2)]).await;
    let transport = Via(|delivery: Delivery| async move {
        no(match text(&delivery).as_str() {
            "0" => DeliveryError::gone("410"),
            "1" => DeliveryError::rejected("400"),
            _ => DeliveryError::unroutable("no such scheme"),
        })
    });
    let report = relay(store.clone(), transport)
        .build()
        .unwrap()
        .run_once()
        .await
        .unwrap();
    assert_eq!(report.dead, 3);
    let reasons: Vec<_> = deaths(&store)
        .await
        .into_iter()
        .map(|(reason, ..)| reason)
        .collect();
    assert_eq!(
        reasons,
        [
            DeathReason::Gone,
            DeathReason::Rejected,
            DeathReason::Unroutable
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_dies_undelivered_and_its_key_goes_on() {
    let store = store();
    put(
        &store,
        [event(0).key("k").expires_in(ms(5)), event(1).key("k")],
    )
    .await;
    pass(ms(10)).await;
    let report = relay(store.clone(), Via(|_| async { ok() }))
        .build()
        .unwrap()
        .run_once()
        .await;
    let report = report.unwrap();
    assert_eq!((report.dead, report.published), (1, 1));
    assert_eq!(payloads(&store), ["1"]);
    assert_eq!(deaths(&store).await[0].0, DeathReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn nothing_overtakes_a_head_whose_death_is_not_settled() {
    let store = store();
    put(&store, (0..3).map(|n| event(n).key("k"))).await;
    let faulty = Faulty::new(store.clone());
    faulty.fail_before(&["settle"]);
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    let transport = Via(move |delivery: Delivery| {
        let text = text(&delivery);
        seen.lock().unwrap().push(text.clone());
        async move {
            if text == "0" {
                no(DeliveryError::gone("410"))
            } else {
                ok()
            }
        }
    });
    let relay = relay(faulty.clone(), transport).build().unwrap();
    relay
        .run(async {
            until("the settle failed", || faulty.failures() > 2).await;
            assert_eq!(*log.lock().unwrap(), ["0"]);
            faulty.up();
            until("the others", || payloads(&store).len() == 2).await;
        })
        .await;
    assert_eq!(*log.lock().unwrap(), ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_head_holds_its_key_where_the_policy_says_so() {
    let store = store();
    store
        .set_dead_head_policy("somewhere", DeadHeadPolicy::Block)
        .await
        .unwrap();
    put(&store, (0..3).map(|n| event(n).key("k"))).await;
    let transport = Via(|_| async { no(DeliveryError::gone("410")) });
    let relay = relay(store.clone(), transport).build().unwrap();
    let report = relay.run_until_idle().await.unwrap();
    assert_eq!((report.dead, report.released, report.published), (1, 2, 0));
    assert_eq!(stats(&store).await.blocked_keys.value, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_killed_its_relays_dies_undelivered() {
    let store = store();
    put(&store, [event(0).max_attempts(2)]).await;
    let never = relay(store.clone(), Via(|_| std::future::pending()))
        .build()
        .unwrap();
    for _ in 0..2 {
        // The relay is dropped in the middle of the delivery, as if the process had died.
        let run = never.run(std::future::pending());
        futures::future::select(Box::pin(run), Box::pin(pass(ms(50)))).await;
        pass(secs(61)).await;
    }
    let report = relay(store.clone(), Via(|_| async { ok() }))
        .build()
        .unwrap()
        .run_once()
        .await;
    assert_eq!(report.unwrap().dead, 1);
    let (reason, attempts, error) = deaths(&store).await.remove(0);
    assert_eq!((reason, attempts), (DeathReason::AttemptsExhausted, 3));
    assert!(
        error.contains("claimed 3 times, at most 2 allowed"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_throttled_destination_is_held_for_every_relay() {
    let store = store();
    put(&store, (0..20).map(event)).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let transport = Via(move |_| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                no(DeliveryError::throttled("429").with_retry_after(secs(30)))
            } else {
                pass(ms(1)).await;
                ok()
            }
        }
    });
    let faulty = Faulty::new(store.clone());
    let relay = relay(faulty.clone(), transport)
        .per_destination(1)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    relay.run(until("held", || faulty.calls("hold") == 1)).await;
    assert_eq!(
        calls.load(Ordering::SeqCst),
        1,
        "nothing goes to a throttled destination"
    );
    let stats = stats(&store).await;
    assert_eq!((stats.parked.value, stats.claimed.value), (20, 0));
    relay
        .run(until("delivered", || payloads(&store).len() == 20))
        .await;
    assert!(
        start.elapsed() >= secs(30) && start.elapsed() < secs(35),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_not_made_charges_nothing_and_pauses_its_destination() {
    let store = store();
    put(&store, [event(0).to("open"), event(1).to("open"), event(2)]).await;
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&attempts);
    let start = tokio::time::Instant::now();
    let transport = Via(move |delivery: Delivery| {
        let closed = delivery.event().destination == "open" && start.elapsed() < secs(5);
        log.lock()
            .unwrap()
            .push((text(&delivery), delivery.attempt()));
        async move {
            if closed {
                no(DeliveryError::not_attempted("circuit open").with_retry_after(secs(5)))
            } else {
                ok()
            }
        }
    });
    let relay = relay(store.clone(), transport)
        .per_destination(1)
        .build()
        .unwrap();
    let report = relay
        .run(until("delivered", || payloads(&store).len() == 3))
        .await;
    assert_eq!((report.published, report.retried, report.dead), (3, 0, 0));
    let mut attempts = attempts.lock().unwrap().clone();
    attempts.sort();
    let first = |n: &str| (n.to_owned(), 1);
    assert_eq!(attempts, [first("0"), first("0"), first("1"), first("2")]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_destination_holds_up_no_other() {
    let store = store();
    put(&store, (0..200).map(|n| event(n).to("slow"))).await;
    put(&store, (200..400).map(event)).await;
    let (live, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let most2 = Arc::clone(&most);
    let transport = Via(move |delivery: Delivery| {
        let slow = delivery.event().destination == "slow";
        if slow {
            most2.fetch_max(live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
        async move {
            if slow {
                std::future::pending::<()>().await;
            }
            pass(ms(1)).await;
            ok()
        }
    });
    let relay = relay(store.clone(), transport)
        .concurrency(16)
        .per_destination(4)
        .drain_budget(ms(1))
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let report = relay
        .run(until("the others are done", || {
            payloads(&store).len() == 200
        }))
        .await;
    // Fifty rounds of four, each of a millisecond, with claims in between.
    assert!(start.elapsed() < ms(400), "{:?}", start.elapsed());
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert_eq!(report.abandoned, 4);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_a_place_at_its_destination_and_holds_no_slot() {
    let store = store();
    put(&store, (0..6).map(event)).await;
    let start = tokio::time::Instant::now();
    let relay = relay(
        store.clone(),
        Via(|_| async {
            pass(ms(100)).await;
            ok()
        }),
    )
    .concurrency(6)
    .per_destination(2)
    .build()
    .unwrap();
    let report = relay.run_once().await.unwrap();
    assert_eq!(report.published, 6, "one claim, three rounds");
    assert!(start.elapsed() < ms(320), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_relay_can_be_limited_to_types_and_destinations() {
    let store = store();
    let typed = |name: &str, to: &str| NewEvent::bytes(name, name.to_owned()).to(to);
    put(
        &store,
        [
            typed("A", "x"),
            typed("B", "x"),
            typed("A", "y"),
            typed("A", "z"),
        ],
    )
    .await;
    let limited = relay(store.clone(), Via(|_| async { ok() }))
        .event_types(["A"])
        .destinations(DestinationFilter::Only(vec!["x".into(), "y".into()]))
        .build()
        .unwrap();
    assert_eq!(limited.run_until_idle().await.unwrap().published, 2);
    let rest = relay(store.clone(), Via(|_| async { ok() }))
        .destinations(DestinationFilter::Except(vec!["z".into()]))
        .build()
        .unwrap();
    assert_eq!(rest.run_until_idle().await.unwrap().published, 1);
}

/// How many are delivered at once with a budget of 2,000 bytes, at most, once the relay knows them.
async fn live(event: impl Fn() -> NewEvent) -> usize {
    let store = store();
    let (live, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let most2 = Arc::clone(&most);
    let transport = Via(move |_| {
        most2.fetch_max(live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let live = Arc::clone(&live);
        async move {
            pass(ms(10)).await;
            live.fetch_sub(1, Ordering::SeqCst);
            ok()
        }
    });
    let relay = relay(store.clone(), transport).claim_bytes(2_000);
    let relay = relay.build().unwrap();
    put(&store, [event()]).await;
    let first = async {
        until("the first is delivered", || store.published().len() == 1).await;
        put(&store, (0..8).map(|_| event())).await;
    };
    let all = until("delivered", || store.published().len() == 9);
    tokio::join!(relay.run(all), first);
    most.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn no_more_bytes_are_held_than_the_budget_allows() {
    let heavy = || NewEvent::bytes("T", vec![0; 1_000]).to("somewhere");
    assert_eq!(live(heavy).await, 2);
}

#[tokio::test(start_paused = true)]
async fn bytes_of_headers_count_as_well() {
    let value = "v".repeat(899);
    let heavy = || NewEvent::bytes("T", vec![0; 100]).header("h", &value);
    assert_eq!(live(|| heavy().to("somewhere")).await, 2);
}

#[tokio::test(start_paused = true)]
async fn clones_that_run_at_once_share_the_work_and_each_ends_with_what_it_did() {
    let store = store();
    put(&store, (0..400).map(|n| event(n).key(n % 20))).await;
    let seen = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let counts = Arc::clone(&seen);
    let transport = Via(move |delivery: Delivery| {
        *counts.lock().unwrap().entry(text(&delivery)).or_default() += 1_usize;
        async {
            pass(ms(1)).await;
            ok()
        }
    });
    let relay = relay(store.clone(), transport).concurrency(8).batch_size(8);
    let relay = relay.build().unwrap();
    let all = || until("all are delivered", || payloads(&store).len() == 400);
    let (one, other) = tokio::join!(relay.clone().run(all()), relay.run(all()));
    assert_eq!(one.published + other.published, 400);
    assert!(
        one.published > 0 && other.published > 0,
        "{one:?} {other:?}"
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 400);
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
}
