//! Order by destination and key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, LEASE, MINUTE, Must, OVER_LEASE, claim, dead, defer, drain, end, event, events,
    in_parallel, leases, name, names, nothing_is_due, nothing_is_due_for, publish, put, request,
    retry, settle, sorted_names, stats, take, take_as, take_one,
};
use crate::{
    Claimed, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DestinationFilter, Destinations,
    LeaseStatus, NewEvent, OutboxStore, Outcome, Replay, Settlement,
};

fn keyed(names: &[&str]) -> Vec<NewEvent> {
    names.iter().map(|name| event(name).key("k")).collect()
}

pub async fn is_that_of_the_enqueues<H: Harness>(h: &Arc<H>) {
    let all: Vec<NewEvent> = events("", 40)
        .into_iter()
        .map(|event| event.key("k"))
        .collect();
    for part in all.chunks(9) {
        put(&**h, part).await;
    }
    let expected: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    assert_eq!(drain(&**h, 7).await, expected);
}

pub async fn gives_a_key_by_runs<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b", "c", "d", "e"])).await;
    put(&**h, [event("x"), event("y").key("other")]).await;
    let events = claim(h.store(), &request(100)).await.events;
    let run: Vec<String> = events
        .iter()
        .filter(|claimed| claimed.event.key.as_deref() == Some("k"))
        .map(name)
        .collect();
    assert!(
        run.len() > 1,
        "one row of a key for each claim is too slow: {run:?}"
    );
    assert_eq!(run, ["a", "b", "c", "d", "e"][..run.len()]);
}

pub async fn lets_one_run_of_a_key_be_in_flight<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b", "c"])).await;
    let head = take_one(&**h).await;
    nothing_is_due(&**h).await;
    h.advance(LEASE - MINUTE).await;
    let extended = h.store().extend(&[head.lease], LEASE).await.must("extend");
    assert_eq!(extended, [LeaseStatus::Ours]);
    h.advance(2 * MINUTE).await;
    nothing_is_due(&**h).await;
    publish(&**h, &[head]).await;
    assert_eq!(name(&take_one(&**h).await), "b");
}

pub async fn is_held_while_the_tail_of_a_run_is_in_flight<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b"])).await;
    let run = take(&**h, 2).await;
    end(&**h, &run[0], retry(Duration::ZERO)).await;
    nothing_is_due(&**h).await;
    end(&**h, &run[1], Outcome::Release).await;
    assert_eq!(names(&take(&**h, 2).await), ["a", "b"]);
}

pub async fn is_held_by_a_head_that_waits_for_its_retry<H: Harness>(h: &Arc<H>) {
    for outcome in [retry(MINUTE), defer(MINUTE)] {
        put(&**h, keyed(&["a", "b"])).await;
        let head = take_one(&**h).await;
        end(&**h, &head, outcome).await;
        put(&**h, keyed(&["c"])).await;
        nothing_is_due(&**h).await;
        h.advance(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(drain(&**h, 2).await, ["a", "b", "c"]);
    }
}

pub async fn is_held_by_a_delayed_head<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a").key("k").delay(MINUTE)]).await;
    put(&**h, keyed(&["b"])).await;
    nothing_is_due(&**h).await;
    h.advance(MINUTE + Duration::from_secs(1)).await;
    assert_eq!(drain(&**h, 2).await, ["a", "b"]);
}

pub async fn is_kept_where_a_delayed_event_cuts_a_run<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a"])).await;
    put(&**h, [event("b").key("k").delay(HOUR)]).await;
    put(&**h, keyed(&["c"])).await;
    let head = take_one(&**h).await;
    assert_eq!(name(&head), "a");
    nothing_is_due(&**h).await;
    publish(&**h, &[head]).await;
    nothing_is_due(&**h).await;
    h.advance(HOUR + Duration::from_secs(1)).await;
    assert_eq!(drain(&**h, 3).await, ["b", "c"]);
}

pub async fn starts_over_where_a_lease_expired<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b", "c"])).await;
    let run = take(&**h, 2).await;
    publish(&**h, &run[..1]).await;
    h.advance(OVER_LEASE).await;
    let again = take(&**h, 2).await;
    assert_eq!(names(&again), ["b", "c"]);
    assert_eq!(again[0].event.attempts, 2);
    assert_eq!(again[1].event.attempts, 1);
}

pub async fn goes_on_past_a_dead_head_under_skip<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b"])).await;
    end(&**h, &take_one(&**h).await, dead()).await;
    assert_eq!(drain(&**h, 2).await, ["b"]);
}

pub async fn stops_at_a_dead_head_under_block<H: Harness>(h: &Arc<H>) {
    let set = h
        .store()
        .set_dead_head_policy("somewhere", DeadHeadPolicy::Block);
    set.await.must("set_dead_head_policy");
    put(&**h, keyed(&["a", "b"])).await;
    put(
        &**h,
        [
            event("x").key("other"),
            event("y"),
            event("z").to("elsewhere").key("k"),
        ],
    )
    .await;
    let mut asked = request(1);
    asked.destinations = DestinationFilter::Only(vec!["somewhere".to_owned()]);
    loop {
        let taken = take_as(&**h, 1, &asked).await;
        if name(&taken[0]) == "a" {
            end(&**h, &taken[0], dead()).await;
            break;
        }
        publish(&**h, &taken).await;
    }
    put(&**h, keyed(&["c"])).await;
    while let Some(next) = claim(h.store(), &request(1)).await.events.first() {
        assert_ne!(
            next.event
                .key
                .as_deref()
                .filter(|_| next.event.destination == "somewhere"),
            Some("k")
        );
        publish(&**h, std::slice::from_ref(next)).await;
    }
    nothing_is_due(&**h).await;
    assert_eq!(stats(&**h).await.pending.value, 2);
    assert_eq!(stats(&**h).await.blocked_keys.value, 1);
}

/// The relay settles a run at once: the head failed, the rest never started.
pub async fn is_kept_where_the_tail_of_a_run_goes_back<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b", "c"])).await;
    let run = take(&**h, 3).await;
    let batch = [
        Settlement::new(run[0].lease, retry(MINUTE)),
        Settlement::new(run[1].lease, Outcome::Release),
        Settlement::new(run[2].lease, Outcome::Release),
    ];
    let answers = h.store().settle(&batch).await.must("settle");
    assert_eq!(answers, [LeaseStatus::Ours; 3]);
    nothing_is_due(&**h).await;
    h.advance(MINUTE + Duration::from_secs(1)).await;
    let again = take(&**h, 3).await;
    let attempts: Vec<u32> = again.iter().map(|claimed| claimed.event.attempts).collect();
    assert_eq!(names(&again), ["a", "b", "c"]);
    assert_eq!(attempts, [2, 1, 1]);
}

pub async fn is_of_each_destination_alone<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [event("a").key("k"), event("b").to("elsewhere").key("k")],
    )
    .await;
    let taken = take(&**h, 2).await;
    end(&**h, &taken[0], retry(HOUR)).await;
    publish(&**h, &taken[1..]).await;
    put(
        &**h,
        [event("c").key("k"), event("d").to("elsewhere").key("k")],
    )
    .await;
    assert_eq!(name(&take_one(&**h).await), "d");
    nothing_is_due(&**h).await;
}

pub async fn of_one_key_holds_no_other<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a").key("k"), event("b").key("l"), event("c")]).await;
    for claimed in &take(&**h, 3).await {
        end(&**h, claimed, retry(HOUR)).await;
    }
    put(&**h, [event("d").key("k"), event("e").key("m"), event("f")]).await;
    assert_eq!(names(&take(&**h, 2).await), ["e", "f"]);
    nothing_is_due(&**h).await;
}

pub async fn tells_keys_apart_byte_for_byte<H: Harness>(h: &Arc<H>) {
    let keys = ["k", "K", "k ", "ḱ", "k\t"];
    put(&**h, keys.map(|key| event(key).key(key)).to_vec()).await;
    for claimed in &take(&**h, 1).await {
        end(&**h, claimed, retry(HOUR)).await;
    }
    assert_eq!(take(&**h, 4).await.len(), 4);
}

pub async fn is_not_overtaken_by_a_filter_of_types<H: Harness>(h: &Arc<H>) {
    let of = |kind: &str, name: &str| NewEvent::bytes(kind, name.to_owned()).to("d").key("k");
    put(&**h, [of("A", "a"), of("B", "b"), of("A", "c")]).await;
    let only = |kind: &str| {
        let mut asked = request(10);
        asked.event_types = Some(vec![kind.to_owned()]);
        asked
    };
    nothing_is_due_for(&**h, &only("B")).await;
    let a = take_as(&**h, 1, &only("A")).await;
    assert_eq!(names(&a), ["a"]);
    nothing_is_due_for(&**h, &only("A")).await;
    nothing_is_due_for(&**h, &only("B")).await;
    publish(&**h, &a).await;
    nothing_is_due_for(&**h, &only("A")).await;
    let b = take_as(&**h, 1, &only("B")).await;
    publish(&**h, &b).await;
    assert_eq!(names(&take_as(&**h, 1, &only("A")).await), ["c"]);
}

pub async fn is_kept_where_the_limit_of_bytes_cuts_a_run<H: Harness>(h: &Arc<H>) {
    let sized = |n: u8, size| NewEvent::bytes("T", vec![n; size]).to("d").key("k");
    put(
        &**h,
        [sized(0, 10), sized(1, 5_000), sized(2, 10), sized(3, 10)],
    )
    .await;
    let mut asked = request(10);
    asked.bytes = 1_000;
    let mut order = Vec::new();
    for _ in 0..10 {
        asked.token = request(1).token;
        let events = claim(h.store(), &asked).await.events;
        order.extend(events.iter().map(|claimed| claimed.event.payload[0]));
        publish(&**h, &events).await;
    }
    assert_eq!(order, [0, 1, 2, 3]);
}

pub async fn takes_in_a_late_commit_by_its_number<H: Harness>(h: &Arc<H>) {
    if !h.capabilities().concurrent_transactions {
        return;
    }
    let mut late = h.begin().await;
    h.enqueue(&mut late, event("late").key("k"))
        .await
        .must("enqueue");
    put(&**h, keyed(&["a", "b"])).await;
    let head = take_one(&**h).await;
    assert_eq!(name(&head), "a");
    h.commit(late).await;
    // The run of the key is in flight: the late row must not open a second one.
    nothing_is_due(&**h).await;
    end(&**h, &head, retry(Duration::ZERO)).await;
    assert_eq!(drain(&**h, 3).await, ["late", "a", "b"]);
}

/// More than a claim reads of a key.
const MANY: usize = 60;

async fn no_second_run_begins<H: Harness>(h: &Arc<H>) {
    for rows in [1, 2, 100] {
        nothing_is_due_for(&**h, &request(rows)).await;
    }
}

/// The dead letters of a key are replayed while a run of it is in flight.
pub async fn lets_one_run_be_in_flight_however_many_events_come_back_before_it<H: Harness>(
    h: &Arc<H>,
) {
    let key = |name: String| event(&name).key("k");
    for waiting in [0, 2 * MANY] {
        let dead_ones: Vec<NewEvent> = (0..MANY).map(|n| key(format!("{n:03}"))).collect();
        put(&**h, dead_ones).await;
        let mut buried = 0;
        while buried < MANY {
            for claimed in &take(&**h, 1).await {
                end(&**h, claimed, dead()).await;
                buried += 1;
            }
        }
        put(&**h, keyed(&["a", "b"])).await;
        let behind: Vec<NewEvent> = (0..waiting).map(|n| key(format!("c{n:03}"))).collect();
        put(&**h, behind).await;
        let run = take(&**h, 2).await;
        assert_eq!(names(&run), ["a", "b"]);
        let all = Replay::new(DeadLetterFilter::all());
        let replayed = h.store().replay(&all).await;
        assert_eq!(replayed.must("replay"), 60, "all come back");

        no_second_run_begins(h).await;
        let extended = h.store().extend(&leases(&run), 2 * LEASE).await;
        assert_eq!(extended.must("extend"), [LeaseStatus::Ours; 2]);
        h.advance(OVER_LEASE).await;
        no_second_run_begins(h).await;
        end(&**h, &run[0], retry(Duration::ZERO)).await;
        no_second_run_begins(h).await;
        if waiting == 0 {
            end(&**h, &run[1], Outcome::Release).await;
        } else {
            h.advance(OVER_LEASE).await;
        }
        let order = drain(&**h, 7).await;
        assert_eq!(order.len(), MANY + 2 + waiting);
        assert!(
            order[..MANY].is_sorted() && order[MANY..].is_sorted() && order[MANY] == "a",
            "{order:?}"
        );
    }
}

/// A transaction that began to enqueue before a run was claimed commits while it is in flight.
pub async fn lets_one_run_be_in_flight_however_many_late_commits_come_before_it<H: Harness>(
    h: &Arc<H>,
) {
    if !h.capabilities().concurrent_transactions {
        return;
    }
    let mut late = h.begin().await;
    let events: Vec<NewEvent> = (0..MANY)
        .map(|n| event(&format!("{n:03}")).key("k"))
        .collect();
    h.enqueue_all(&mut late, events).await.must("enqueue");
    put(&**h, keyed(&["a", "b"])).await;
    let run = take(&**h, 2).await;
    h.commit(late).await;
    no_second_run_begins(h).await;
    publish(&**h, &run[..1]).await;
    no_second_run_begins(h).await;
    publish(&**h, &run[1..]).await;
    let order = drain(&**h, 7).await;
    assert_eq!(order.len(), MANY);
    assert!(order.is_sorted(), "{order:?}");
}

/// Workers claim, deliver, retry, give back and crash; no two of them ever hold one key, and each
/// key is delivered in order.
pub async fn is_kept_under_contention<H: Harness>(h: &Arc<H>) {
    const KEYS: usize = 5;
    let (backlog, workers) = (h.capabilities().backlog, h.capabilities().workers);
    let list = (0..backlog).map(|n| event(&format!("{n:06}")).key(n % KEYS));
    put(&**h, list.collect::<Vec<_>>()).await;

    #[derive(Default)]
    struct Seen {
        in_flight: BTreeSet<String>,
        delivered: BTreeMap<String, Vec<String>>,
    }
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let key_of = |claimed: &Claimed| claimed.event.key.clone().unwrap_or_default();
    in_parallel(h, workers, {
        let seen = Arc::clone(&seen);
        move |h, worker| {
            let seen = Arc::clone(&seen);
            async move {
                let store = h.open().await;
                let mut idle = 0;
                let mut step = worker;
                while idle < 30 {
                    step += 1;
                    let events = match store.claim(&request(1 + step % 9)).await {
                        Ok(claim) => claim.events,
                        Err(error) if error.is_retryable() => continue,
                        Err(error) => panic!("claim failed: {error:?}"),
                    };
                    idle = if events.is_empty() { idle + 1 } else { 0 };
                    let mut runs: BTreeMap<String, Vec<Claimed>> = BTreeMap::new();
                    for claimed in events {
                        runs.entry(key_of(&claimed)).or_default().push(claimed);
                    }
                    for key in runs.keys() {
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        assert!(seen.in_flight.insert(key.clone()), "two runs of {key}");
                    }
                    for (key, run) in runs {
                        // Delivers all, or the first half; what is left goes back.
                        let delivered = if step.is_multiple_of(3) {
                            run.len() / 2
                        } else {
                            run.len()
                        };
                        let batch: Vec<Settlement> = run
                            .iter()
                            .enumerate()
                            .map(|(at, claimed)| {
                                let outcome = match at.cmp(&delivered) {
                                    std::cmp::Ordering::Less => Outcome::Published,
                                    std::cmp::Ordering::Equal => retry(Duration::ZERO),
                                    std::cmp::Ordering::Greater => Outcome::Release,
                                };
                                Settlement::new(claimed.lease, outcome)
                            })
                            .collect();
                        {
                            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                            let order = seen.delivered.entry(key.clone()).or_default();
                            order.extend(names(&run[..delivered]));
                            seen.in_flight.remove(&key);
                        }
                        loop {
                            match store.settle(&batch).await {
                                Ok(answers) => {
                                    assert_eq!(answers, vec![LeaseStatus::Ours; batch.len()]);
                                    break;
                                }
                                Err(error) if error.is_retryable() => {}
                                Err(error) => panic!("settle failed: {error:?}"),
                            }
                        }
                    }
                }
            }
        }
    })
    .await;
    let mut rest: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while stats(&**h).await.pending.value > 0 {
        let events = claim(h.store(), &request(50)).await.events;
        publish(&**h, &events).await;
        for claimed in &events {
            rest.entry(key_of(claimed)).or_default().push(name(claimed));
        }
    }
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    for (key, names) in rest {
        seen.delivered.entry(key).or_default().extend(names);
    }
    assert_eq!(
        seen.delivered.values().map(Vec::len).sum::<usize>(),
        backlog
    );
    for (key, order) in &seen.delivered {
        assert!(order.is_sorted(), "key {key} was delivered as {order:?}");
    }
}

pub async fn survives_a_stale_relay<H: Harness>(h: &Arc<H>) {
    put(&**h, keyed(&["a", "b"])).await;
    let stale = take(&**h, 2).await;
    h.advance(OVER_LEASE).await;
    let run = take(&**h, 2).await;
    for claimed in &stale {
        assert_eq!(settle(&**h, claimed, retry(HOUR)).await, LeaseStatus::Lost);
    }
    let released = h.store().release(&leases(&stale)).await.must("release");
    assert_eq!(released, [LeaseStatus::Lost; 2]);
    nothing_is_due(&**h).await;
    publish(&**h, &run).await;
    assert_eq!(sorted_names(&run), ["a", "b"]);
}

/// An event comes back before a run whose lease has ended, and is claimed: the run's holder is late.
pub async fn lets_no_run_come_back_beside_one_that_began_when_its_lease_had_ended<H: Harness>(
    h: &Arc<H>,
) {
    for waiting in [0, MANY, 4 * MANY] {
        put(&**h, keyed(&["a", "b"])).await;
        end(&**h, &take_one(&**h).await, dead()).await;
        let late = take_one(&**h).await;
        let behind = (0..waiting).map(|n| event(&format!("c{n:03}")).key("k"));
        put(&**h, behind.collect::<Vec<NewEvent>>()).await;
        let all = Replay::new(DeadLetterFilter::all());
        assert_eq!(h.store().replay(&all).await.must("replay"), 1);
        nothing_is_due(&**h).await;

        h.advance(OVER_LEASE).await;
        let head = take_one(&**h).await;
        assert_eq!(name(&head), "a");
        let extended = h.store().extend(&[late.lease], LEASE).await;
        assert_eq!(extended.must("extend"), [LeaseStatus::Lost]);
        no_second_run_begins(h).await;
        publish(&**h, &[head]).await;
        assert_eq!(name(&take_one(&**h).await), "b");
        h.advance(OVER_LEASE).await;
        assert_eq!(drain(&**h, 20).await.len(), 1 + waiting);
    }
}
