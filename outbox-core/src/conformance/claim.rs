//! Taking due events.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, LEASE, MINUTE, Must, OVER_LEASE, SPELLINGS, assert_near, at_every_poll, claim, cut_short,
    dead, drain, drain_beside_cut_calls, end, event, events, in_parallel, name, names,
    nothing_is_due, nothing_is_due_for, one_of_three_damaged, patient, publish, put, request,
    retry, settle, sorted_names, stats, take, take_as, take_one,
};
use crate::{
    ClaimRequest, Claimed, DeadHeadPolicy, DestinationFilter, Destinations, LeaseStatus, NewEvent,
    OutboxStore, Outcome, Settlement,
};

pub async fn gives_events_by_ascending_number<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [
            event("a"),
            event("b").key("k"),
            event("c"),
            event("d").key("k"),
        ],
    )
    .await;
    put(&**h, events("e", 20)).await;
    let claim = claim(h.store(), &request(50)).await;
    let seqs: Vec<i64> = claim
        .events
        .iter()
        .map(|claimed| claimed.lease.seq)
        .collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    assert!(
        claim
            .events
            .iter()
            .all(|claimed| claimed.event.seq == claimed.lease.seq)
    );
}

pub async fn gives_no_more_than_asked_for<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 30)).await;
    put(
        &**h,
        (0..30).map(|n| event("k").key(n % 3)).collect::<Vec<_>>(),
    )
    .await;
    for rows in [1, 7, 16, 20] {
        let claim = claim(h.store(), &request(rows)).await;
        assert!(
            claim.events.len() <= rows,
            "{} of {rows}",
            claim.events.len()
        );
    }
}

pub async fn never_hands_one_event_to_two_relays<H: Harness>(h: &Arc<H>) {
    let (backlog, workers) = (h.capabilities().backlog, h.capabilities().workers);
    put(&**h, events("", backlog)).await;
    let rows = backlog.div_ceil(workers).max(2) / 2;
    let taken = in_parallel(h, workers, move |h, _| async move {
        let store = h.open().await;
        let mut mine: Vec<Claimed> = Vec::new();
        for _ in 0..10 {
            mine.extend(patient_claim(&store, &request(rows)).await);
        }
        mine
    })
    .await;
    let all: Vec<i64> = taken
        .iter()
        .flatten()
        .map(|claimed| claimed.lease.seq)
        .collect();
    let distinct: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(all.len(), distinct.len(), "an event was handed out twice");
    assert!(
        taken
            .iter()
            .flatten()
            .all(|claimed| claimed.event.attempts == 1)
    );
    assert!(!all.is_empty());
}

/// A claim that may meet a conflict.
async fn patient_claim(store: &impl OutboxStore, request: &ClaimRequest) -> Vec<Claimed> {
    match store.claim(request).await {
        Ok(claim) => {
            let rows = usize::try_from(request.rows.get()).unwrap_or(usize::MAX);
            assert!(claim.events.len() <= rows, "more than asked for");
            claim.events
        }
        Err(error) if error.is_retryable() => Vec::new(),
        Err(error) => panic!("claim failed: {error:?}"),
    }
}

pub async fn and_settle_deliver_all_once_under_contention<H: Harness>(h: &Arc<H>) {
    let (backlog, workers) = (h.capabilities().backlog, h.capabilities().workers);
    put(&**h, events("", backlog)).await;
    let delivered = in_parallel(h, workers, move |h, worker| async move {
        let store = h.open().await;
        let mut mine = Vec::new();
        let mut idle = 0;
        while idle < 20 {
            let events = patient_claim(&store, &request(1 + worker * 3)).await;
            idle = if events.is_empty() { idle + 1 } else { 0 };
            let settle = |claimed: &Claimed| Settlement::new(claimed.lease, Outcome::Published);
            let batch: Vec<Settlement> = events.iter().map(settle).collect();
            let answers = loop {
                match store.settle(&batch).await {
                    Ok(answers) => break answers,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => panic!("settle failed: {error:?}"),
                }
            };
            assert_eq!(answers, vec![LeaseStatus::Ours; batch.len()]);
            mine.extend(names(&events));
        }
        mine
    })
    .await;
    let mut all: Vec<String> = delivered.into_iter().flatten().collect();
    all.extend(drain(&**h, 50).await);
    let distinct: BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (backlog, backlog));
}

pub async fn counts_the_attempt<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    for attempt in 1..4 {
        let claimed = take_one(&**h).await;
        assert_eq!(claimed.event.attempts, attempt);
        end(&**h, &claimed, retry(Duration::ZERO)).await;
    }
}

pub async fn counts_attempts_that_kill_the_relay<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a"), event("b").key("k")]).await;
    for attempt in 1..4 {
        let taken = take(&**h, 2).await;
        assert!(
            taken
                .iter()
                .all(|claimed| claimed.event.attempts == attempt)
        );
        h.advance(OVER_LEASE).await;
    }
}

pub async fn leaves_leased_events_alone_until_the_lease_ends<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let first = take_one(&**h).await;
    nothing_is_due(&**h).await;
    h.advance(LEASE - MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(2 * MINUTE).await;
    let second = take_one(&**h).await;
    assert_eq!(second.event.id, first.event.id);
    assert_eq!(second.event.attempts, 2);
    assert_ne!(second.lease.token, first.lease.token);
}

pub async fn gives_one_event_however_large<H: Harness>(h: &Arc<H>) {
    let large = || NewEvent::bytes("T", vec![b'x'; 100_000]).to("d");
    put(&**h, [large(), large().key("k"), large()]).await;
    let mut asked = request(10);
    asked.bytes = 1;
    for _ in 0..3 {
        let taken = take_as(&**h, 1, &asked).await;
        publish(&**h, &taken).await;
    }
    nothing_is_due(&**h).await;
}

pub async fn stops_at_the_limit_of_bytes<H: Harness>(h: &Arc<H>) {
    let list = |n: u8| NewEvent::bytes("T", vec![n; 1_000]).to("d");
    put(&**h, (0..20).map(list).collect::<Vec<_>>()).await;
    let mut asked = request(20);
    asked.bytes = 5_500;
    let claim = claim(h.store(), &asked).await;
    assert!(
        (1..=5).contains(&claim.events.len()),
        "{} events",
        claim.events.len()
    );
    publish(&**h, &claim.events).await;
    assert_eq!(drain(&**h, 20).await.len(), 20 - claim.events.len());
}

pub async fn takes_only_the_types_asked_for<H: Harness>(h: &Arc<H>) {
    let of = |kind: &str, name: &str| NewEvent::bytes(kind, name.to_owned()).to("d");
    let other = (0..h.capabilities().backlog).map(|_| of("Other", "x"));
    put(&**h, other.collect::<Vec<_>>()).await;
    put(
        &**h,
        [
            of("A", "a"),
            of("B", "b"),
            of("A", "c").key("k"),
            of("C", "d"),
        ],
    )
    .await;
    let mut asked = request(2);
    asked.event_types = Some(vec!["A".to_owned(), "B".to_owned()]);
    assert_eq!(names(&take_as(&**h, 3, &asked).await), ["a", "b", "c"]);
    nothing_is_due_for(&**h, &asked).await;
    asked.event_types = Some(Vec::new());
    nothing_is_due_for(&**h, &asked).await;
}

pub async fn takes_only_the_destinations_asked_for<H: Harness>(h: &Arc<H>) {
    put(&**h, events("x", h.capabilities().backlog)).await;
    put(
        &**h,
        [
            event("a").to("A"),
            event("b").to("B"),
            event("c").to("A").key("k"),
        ],
    )
    .await;
    let mut asked = request(2);
    asked.destinations = DestinationFilter::Only(vec!["A".to_owned(), "nowhere".to_owned()]);
    assert_eq!(names(&take_as(&**h, 2, &asked).await), ["a", "c"]);
    nothing_is_due_for(&**h, &asked).await;
    asked.destinations = DestinationFilter::Only(Vec::new());
    nothing_is_due_for(&**h, &asked).await;
}

pub async fn leaves_out_destinations_however_much_waits_for_them<H: Harness>(h: &Arc<H>) {
    put(&**h, events("x", h.capabilities().backlog)).await;
    put(
        &**h,
        [
            event("a").to("A"),
            event("y").key("k"),
            event("b").to("B").key("k"),
        ],
    )
    .await;
    let mut asked = request(2);
    asked.destinations = DestinationFilter::Except(vec!["somewhere".to_owned()]);
    let taken = take_as(&**h, 2, &asked).await;
    assert_eq!(names(&taken), ["a", "b"]);
    nothing_is_due_for(&**h, &asked).await;
    publish(&**h, &taken).await;
    assert_eq!(drain(&**h, 50).await.len(), h.capabilities().backlog + 1);
}

pub async fn tells_destinations_apart_byte_for_byte<H: Harness>(h: &Arc<H>) {
    put(&**h, SPELLINGS.map(|to| event(to).to(to)).to_vec()).await;
    let mut asked = request(10);
    asked.destinations = DestinationFilter::Only(vec!["d".to_owned()]);
    assert_eq!(names(&take_as(&**h, 1, &asked).await), ["d"]);
    nothing_is_due_for(&**h, &asked).await;
}

pub async fn tells_types_apart_byte_for_byte<H: Harness>(h: &Arc<H>) {
    let of = |kind: &str| NewEvent::bytes(kind, kind.to_owned()).to("d");
    let list: Vec<_> = SPELLINGS.iter().map(|kind| of(kind).key("k")).collect();
    put(&**h, list).await;
    put(&**h, SPELLINGS.map(of).to_vec()).await;
    let mut asked = request(10);
    asked.event_types = Some(vec!["d".to_owned()]);
    // Of those with the key, another type is ahead.
    assert_eq!(names(&take_as(&**h, 1, &asked).await), ["d"]);
    nothing_is_due_for(&**h, &asked).await;
}

pub async fn tells_what_has_expired<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [
            event("a").expires_in(MINUTE),
            event("b").expires_in(HOUR),
            event("c"),
        ],
    )
    .await;
    h.advance(2 * MINUTE).await;
    let taken = take(&**h, 3).await;
    let expired: Vec<bool> = taken.iter().map(|claimed| claimed.expired).collect();
    assert_eq!(expired, [true, false, false]);
}

pub async fn tells_the_age<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    h.advance(HOUR).await;
    put(&**h, [event("b")]).await;
    h.advance(MINUTE).await;
    let taken = take(&**h, 2).await;
    assert_near(taken[0].age, HOUR + MINUTE);
    assert_near(taken[1].age, MINUTE);
}

pub async fn tells_when_the_next_event_falls_due<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [event("b").delay(HOUR), event("a").delay(10 * MINUTE)],
    )
    .await;
    h.advance(MINUTE).await;
    if let Some(next_due) = claim(h.store(), &request(10)).await.next_due {
        // Never later than the truth; a little earlier by what the case took.
        assert!(
            next_due <= 9 * MINUTE + Duration::from_secs(1),
            "{next_due:?}"
        );
        assert!(next_due >= 8 * MINUTE, "{next_due:?}");
    }
}

pub async fn tells_that_nothing_will_fall_due<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    publish(&**h, &take(&**h, 1).await).await;
    for _ in 0..3 {
        assert_eq!(claim(h.store(), &request(10)).await.next_due, None);
    }
}

pub async fn tells_whether_a_death_would_block_the_key<H: Harness>(h: &Arc<H>) {
    let set = h
        .store()
        .set_dead_head_policy("strict", DeadHeadPolicy::Block);
    set.await.must("set_dead_head_policy");
    put(
        &**h,
        [event("a").key("k"), event("b").to("strict").key("k")],
    )
    .await;
    let taken = take(&**h, 2).await;
    let blocks: Vec<bool> = taken.iter().map(|claimed| claimed.death_blocks).collect();
    assert_eq!(blocks, [false, true]);
}

pub async fn finds_what_commits_late<H: Harness>(h: &Arc<H>) {
    if !h.capabilities().concurrent_transactions {
        return;
    }
    let mut late = h.begin().await;
    h.enqueue(&mut late, event("late")).await.must("enqueue");
    put(&**h, events("early", 5)).await;
    let early = take(&**h, 5).await;
    publish(&**h, &early).await;
    h.commit(late).await;
    let late = take_one(&**h).await;
    assert_eq!(name(&late), "late");
    assert!(
        late.lease.seq < early[0].lease.seq,
        "the number is given at the enqueue"
    );
}

pub async fn finds_what_came_back_behind_the_front<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 10)).await;
    let taken = take(&**h, 10).await;
    publish(&**h, &taken[1..]).await;
    settle(&**h, &taken[0], Outcome::Release).await;
    put(&**h, events("b", 10)).await;
    assert_eq!(take(&**h, 11).await.len(), 11);
}

pub async fn finds_due_events_among_far_future_ones<H: Harness>(h: &Arc<H>) {
    let far = events("far", h.capabilities().backlog).into_iter();
    put(
        &**h,
        far.map(|event| event.delay(24 * HOUR)).collect::<Vec<_>>(),
    )
    .await;
    put(&**h, [event("a"), event("b").key("k")]).await;
    assert_eq!(names(&take(&**h, 2).await), ["a", "b"]);
    nothing_is_due(&**h).await;
}

pub async fn takes_every_open_event_in_the_end<H: Harness>(h: &Arc<H>) {
    let mut list = Vec::new();
    for n in 0..60 {
        let new = event(&n.to_string()).to(format!("d{}", n % 7));
        list.push(match n % 4 {
            0 => new.key(n % 3),
            1 => new.delay(MINUTE),
            2 => new.key("hot").delay(MINUTE),
            _ => new,
        });
    }
    put(&**h, list).await;
    for outcome in [retry(MINUTE), Outcome::Release, super::kit::defer(MINUTE)] {
        for claimed in &claim(h.store(), &request(10)).await.events {
            settle(&**h, claimed, outcome.clone()).await;
        }
    }
    claim(h.store(), &request(5)).await; // By a relay that dies.
    h.advance(OVER_LEASE).await;
    assert_eq!(drain(&**h, 10).await.len(), 60);
}

/// Claims five at a time while `refill` keeps what should not starve it ahead, until the event is
/// there.
async fn is_not_starved<H: Harness>(h: &Arc<H>, wanted: &str, refill: impl Fn() -> Vec<NewEvent>) {
    for _ in 0..20 {
        put(&**h, refill()).await;
        let claim = claim(h.store(), &request(5)).await;
        if names(&claim.events).iter().any(|name| name == wanted) {
            return;
        }
        publish(&**h, &claim.events).await;
    }
    panic!("{wanted} was not claimed in 20 rounds");
}

pub async fn starves_no_retry_behind_fresh_events<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("wanted")]).await;
    let claimed = take_one(&**h).await;
    end(&**h, &claimed, retry(MINUTE)).await;
    put(&**h, events("x", h.capabilities().backlog)).await;
    h.advance(2 * MINUTE).await;
    is_not_starved(h, "wanted", || events("x", 10)).await;
}

pub async fn starves_no_fresh_event_behind_retries<H: Harness>(h: &Arc<H>) {
    let backlog = h.capabilities().backlog;
    put(&**h, events("x", backlog)).await;
    for claimed in &take(&**h, backlog).await {
        end(&**h, claimed, retry(Duration::ZERO)).await;
    }
    put(&**h, [event("wanted")]).await;
    is_not_starved(h, "wanted", Vec::new).await;
}

pub async fn starves_no_event_without_a_key_behind_a_hot_key<H: Harness>(h: &Arc<H>) {
    let hot = || {
        events("x", 10)
            .into_iter()
            .map(|event| event.key("hot"))
            .collect()
    };
    for _ in 0..h.capabilities().backlog.div_ceil(10) {
        let hot: Vec<NewEvent> = hot();
        put(&**h, hot).await;
    }
    put(&**h, [event("wanted")]).await;
    is_not_starved(h, "wanted", hot).await;
}

pub async fn starves_no_key_behind_a_hot_key<H: Harness>(h: &Arc<H>) {
    let hot = || {
        events("x", 10)
            .into_iter()
            .map(|event| event.key("hot"))
            .collect()
    };
    for _ in 0..h.capabilities().backlog.div_ceil(10) {
        let hot: Vec<NewEvent> = hot();
        put(&**h, hot).await;
    }
    put(&**h, [event("wanted").key("other")]).await;
    is_not_starved(h, "wanted", hot).await;
}

pub async fn starves_no_key_behind_events_without_one<H: Harness>(h: &Arc<H>) {
    put(&**h, events("x", h.capabilities().backlog)).await;
    put(&**h, [event("wanted").key("k")]).await;
    is_not_starved(h, "wanted", || events("x", 10)).await;
}

/// As by a relay with one free slot.
pub async fn starves_nothing_when_it_takes_one_event_at_a_time<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("retried")]).await;
    end(&**h, &take_one(&**h).await, retry(MINUTE)).await;
    put(&**h, events("x", 30)).await;
    let hot = events("y", 30).into_iter().map(|event| event.key("hot"));
    put(&**h, hot.collect::<Vec<_>>()).await;
    put(&**h, [event("keyed").key("k")]).await;
    h.advance(2 * MINUTE).await;
    let mut missing = BTreeSet::from(["retried", "keyed"]);
    for _ in 0..50 {
        put(&**h, [event("x"), event("x").key("hot")]).await;
        let claim = claim(h.store(), &request(1)).await;
        for name in names(&claim.events) {
            missing.remove(name.as_str());
        }
        publish(&**h, &claim.events).await;
    }
    assert!(missing.is_empty(), "50 claims did not bring {missing:?}");
}

pub async fn cut_short_loses_nothing<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 20)).await;
    let keyed = events("b", 20).into_iter().enumerate();
    let keyed = keyed.map(|(n, event)| event.key(n % 3));
    put(&**h, keyed.collect::<Vec<_>>()).await;
    at_every_poll(h, async |store, polls| {
        let asked = request(5);
        let ended = cut_short(polls, store.claim(&asked)).await.is_some();
        patient(|| h.store().release_claim(asked.token)).await;
        ended
    })
    .await;
    assert_eq!(drain_beside_cut_calls(&**h, 20).await.len(), 40);
}

pub async fn reports_a_row_that_makes_no_event_and_goes_on<H: Harness>(h: &Arc<H>) {
    let Some(broken) = one_of_three_damaged(&**h).await else {
        return;
    };
    let mut events = Vec::new();
    let mut undecodable = Vec::new();
    for _ in 0..20 {
        let claim = claim(h.store(), &request(10)).await;
        events.extend(claim.events);
        undecodable.extend(claim.undecodable);
    }
    assert_eq!(sorted_names(&events), ["a0", "a2"]);
    assert_eq!(undecodable.len(), 1, "{undecodable:?}");
    assert_eq!(undecodable[0].lease.seq, broken);
    let batch = [Settlement::new(undecodable[0].lease, dead())];
    assert_eq!(
        h.store().settle(&batch).await.must("settle"),
        [LeaseStatus::Ours]
    );
    assert_eq!(stats(&**h).await.dead.value, 1);
}
