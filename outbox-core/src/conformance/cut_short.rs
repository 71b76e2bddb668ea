//! Calls that are dropped at any of their await points, and then repeated.
//!
//! What a dropped call did is unknown, and the database may still be at work on it. The repeat leaves
//! what it should, exactly.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, LEASE, MINUTE, at_every_poll, bury, cut_short, dead, drain, end, event, events, leases,
    letters, name, names, nothing_is_due, nothing_is_due_for, patient, publish, put, request,
    retry, sorted_names, stats, take, take_as, take_one, until,
};
use crate::{
    BlockedKeyPage, ClaimRequest, Claimed, DeadHeadPolicy, DeadLetter, DeadLetterFilter,
    DeadLetters, DestinationFilter, DestinationPage, Destinations, EventId, Hold, LeaseStatus,
    Maintenance, NewEvent, OutboxStore, Page, Prune, Replay,
};

async fn set_policy<H: Harness>(h: &H, destination: &str, policy: DeadHeadPolicy) {
    patient(|| h.store().set_dead_head_policy(destination, policy)).await;
}

/// Three dead letters, of which the first blocks its key, and an open event behind it. They are for a
/// destination of their own, so that a dropped call for another one may come late.
async fn dead_and_blocked<H: Harness>(h: &H) -> String {
    let to = EventId::new().to_string();
    set_policy(h, &to, DeadHeadPolicy::Block).await;
    let dead = [event("a").key("k"), event("b"), event("c")];
    bury(h, dead.map(|event| event.to(&to))).await;
    put(h, [event("d").key("k").to(&to)]).await;
    nothing_is_due(h).await;
    to
}

/// Nowhere else, and nothing twice.
async fn are_open_or_dead<H: Harness>(h: &H, expected: u64) {
    until(async || {
        let stats = stats(h).await;
        stats.pending.value + stats.dead.value == expected
    })
    .await;
}

pub async fn replays_bring_each_letter_back_once<H: Harness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        let all = Replay::new(DeadLetterFilter::destination(dead_and_blocked(&**h).await));
        let ended = cut_short(polls, store.replay(&all)).await.is_some();
        are_open_or_dead(&**h, 4).await;
        until(async || {
            patient(|| h.store().replay(&all)).await;
            letters(&**h).await.is_empty()
        })
        .await;
        let stats = stats(&**h).await;
        assert_eq!((stats.pending.value, stats.blocked_keys.value), (4, 0));
        let taken = take(&**h, 4).await;
        let told =
            |claimed: &Claimed| (name(claimed), claimed.event.replays, claimed.event.attempts);
        let expected = [("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("d", 0, 1)];
        let expected =
            expected.map(|(name, replays, attempts)| (name.to_owned(), replays, attempts));
        assert_eq!(taken.iter().map(told).collect::<Vec<_>>(), expected);
        publish(&**h, &taken).await;
        nothing_is_left(&**h).await;
        ended
    })
    .await;
}

async fn nothing_is_left<H: Harness>(h: &H) {
    let stats = stats(h).await;
    let counts = [stats.pending, stats.dead, stats.blocked_keys];
    assert_eq!(counts.map(|count| count.value), [0; 3]);
}

pub async fn discards_take_each_letter_and_free_its_key<H: Harness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        let all = DeadLetterFilter::destination(dead_and_blocked(&**h).await);
        let discard = store.discard(&all, 100, "no longer wanted");
        let ended = cut_short(polls, discard).await.is_some();
        until(async || {
            patient(|| h.store().discard(&all, 100, "no longer wanted")).await;
            letters(&**h).await.is_empty()
        })
        .await;
        let stats = stats(&**h).await;
        assert_eq!((stats.pending.value, stats.blocked_keys.value), (1, 0));
        assert_eq!(drain(&**h, 10).await, ["d"]);
        nothing_is_left(&**h).await;
        ended
    })
    .await;
}

pub async fn prunes_take_what_is_old_alone<H: Harness>(h: &Arc<H>) {
    // Nothing of a later round, should a dropped call come late.
    let old = Some(MINUTE);
    let everything = Prune {
        published_after: old,
        dead_after: old,
        dedup_after: old,
        ..Prune::default()
    };
    at_every_poll(h, async |store, polls| {
        let [done, open] = [(); 2].map(|()| EventId::new().to_string());
        put(&**h, [event("done").dedup_key(&*done)]).await;
        publish(&**h, &[take_one(&**h).await]).await;
        dead_and_blocked(&**h).await;
        put(&**h, [event("open").dedup_key(&*open)]).await;
        h.advance(HOUR).await;

        let ended = cut_short(polls, store.prune(&everything)).await.is_some();
        until(async || {
            patient(|| h.store().prune(&everything)).await;
            letters(&**h).await.is_empty() && !is_known(&**h, "anew", &done).await
        })
        .await;
        let stats = stats(&**h).await;
        assert_eq!((stats.pending.value, stats.blocked_keys.value), (3, 0));
        assert!(is_known(&**h, "again", &open).await, "an open event's key");
        let left = drain(&**h, 10).await.into_iter().collect::<BTreeSet<_>>();
        assert_eq!(left, ["anew", "d", "open"].map(str::to_owned).into());
        nothing_is_left(&**h).await;
        ended
    })
    .await;
}

/// Enqueues an event with this de-duplication key, unless it is taken.
async fn is_known<H: Harness>(h: &H, name: &str, dedup_key: &str) -> bool {
    for _ in 0..200 {
        let mut tx = h.begin().await;
        match h.enqueue(&mut tx, event(name).dedup_key(dedup_key)).await {
            Ok(answer) => {
                h.commit(tx).await;
                return answer.duplicate;
            }
            Err(error) if error.is_retryable() => h.rollback(tx).await,
            Err(error) => panic!("enqueue failed: {error:?}"),
        }
    }
    panic!("two hundred conflicts in a row")
}

pub async fn extensions_are_as_the_repeat_says<H: Harness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        put(&**h, [event("a"), event("b").key("k")]).await;
        let taken = take(&**h, 2).await;
        let leases = leases(&taken);
        let ended = cut_short(polls, store.extend(&leases, HOUR))
            .await
            .is_some();
        let answers = patient(|| h.store().extend(&leases, HOUR)).await;
        assert_eq!(answers, [LeaseStatus::Ours; 2]);
        h.advance(LEASE + MINUTE).await;
        nothing_is_due(&**h).await;
        publish(&**h, &taken).await;
        ended
    })
    .await;
}

/// Claimed for the second time.
async fn taken_twice<H: Harness>(h: &H, events: &[NewEvent]) -> Vec<Claimed> {
    put(h, events).await;
    for claimed in &take(h, events.len()).await {
        end(h, claimed, retry(Duration::ZERO)).await;
    }
    take(h, events.len()).await
}

/// None is under a lease, and each is charged with one attempt before this claim.
async fn are_released_once<H: Harness>(h: &H, count: usize) {
    until(async || stats(h).await.claimed.value == 0).await;
    let taken = take(h, count).await;
    let attempts: Vec<u32> = taken.iter().map(|claimed| claimed.event.attempts).collect();
    assert_eq!(attempts, vec![2; count]);
    publish(h, &taken).await;
}

pub async fn releases_refund_an_attempt_once<H: Harness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        let leases = leases(&taken_twice(&**h, &[event("a"), event("b").key("k")]).await);
        let ended = cut_short(polls, store.release(&leases)).await.is_some();
        let answers = patient(|| h.store().release(&leases)).await;
        assert!(!answers.contains(&LeaseStatus::Lost), "{answers:?}");
        are_released_once(&**h, 2).await;
        ended
    })
    .await;
    at_every_poll(h, async |store, polls| {
        let token = taken_twice(&**h, &[event("a").key("k")]).await[0]
            .lease
            .token;
        let ended = cut_short(polls, store.release_claim(token)).await.is_some();
        patient(|| h.store().release_claim(token)).await;
        are_released_once(&**h, 1).await;
        ended
    })
    .await;
}

fn claim_for(destination: &str) -> ClaimRequest {
    let mut asked = request(1);
    asked.destinations = DestinationFilter::Only(vec![destination.to_owned()]);
    asked
}

/// Each call has a destination of its own: one that was dropped may come late.
pub async fn holds_are_as_the_repeat_says<H: Harness>(h: &Arc<H>) {
    let reason = "429".to_owned();
    let disabled = Hold::Disabled {
        reason: reason.clone(),
    };
    let timed = Hold::For {
        period: HOUR,
        reason,
    };
    let holds = [&timed, &disabled];
    at_every_poll(h, async |store, polls| {
        let mut ended = true;
        for hold in holds {
            let to = EventId::new().to_string();
            put(&**h, [event("a").to(&*to)]).await;
            ended &= cut_short(polls, store.hold(&to, hold.clone()))
                .await
                .is_some();
            patient(|| h.store().hold(&to, hold.clone())).await;
            nothing_is_due_for(&**h, &claim_for(&to)).await;
            assert_eq!(stats(&**h).await.due.value, 0);
        }
        let to = EventId::new().to_string();
        patient(|| h.store().hold(&to, timed.clone())).await;
        put(&**h, [event("freed").to(&*to)]).await;
        ended &= cut_short(polls, store.hold(&to, Hold::Free))
            .await
            .is_some();
        patient(|| h.store().hold(&to, Hold::Free)).await;
        let freed = take_as(&**h, 1, &claim_for(&to)).await;
        assert_eq!(names(&freed), ["freed"]);
        publish(&**h, &freed).await;
        ended
    })
    .await;
}

/// Each call has a destination of its own: one that was dropped may come late.
pub async fn policies_are_as_the_repeat_says<H: Harness>(h: &Arc<H>) {
    use DeadHeadPolicy::{Block, Skip};
    at_every_poll(h, async |store, polls| {
        let mut ended = true;
        for (policy, before) in [(Block, Skip), (Skip, Block)] {
            let to = EventId::new().to_string();
            set_policy(&**h, &to, before).await;
            let list = ["a", "b"].map(|name| event(name).to(&*to).key("k"));
            put(&**h, list).await;
            let set = store.set_dead_head_policy(&to, policy);
            ended &= cut_short(polls, set).await.is_some();
            set_policy(&**h, &to, policy).await;
            let asked = claim_for(&to);
            end(&**h, &take_as(&**h, 1, &asked).await[0], dead()).await;
            if policy == Block {
                nothing_is_due_for(&**h, &asked).await;
                let letters = DeadLetterFilter::destination(&*to);
                patient(|| h.store().discard(&letters, 10, "seen")).await;
            }
            let next = take_as(&**h, 1, &asked).await;
            assert_eq!(sorted_names(&next), ["b"]);
            publish(&**h, &next).await;
        }
        ended
    })
    .await;
}

/// Each call asks for something else than the dropped one before it, whose answer may still be on its way
/// on the connection.
pub async fn stats_are_those_of_the_call_that_asks<H: Harness>(h: &Arc<H>) {
    dead_and_blocked(&**h).await;
    put(&**h, events("open", 4)).await;
    at_every_poll(h, async |store, polls| {
        let ended = cut_short(polls, store.stats(2)).await.is_some();
        let stats = patient(|| store.stats(100)).await;
        let counts = [stats.pending, stats.due, stats.dead, stats.blocked_keys];
        assert!(counts.iter().all(|count| !count.capped), "{stats:?}");
        assert_eq!(counts.map(|count| count.value), [5, 4, 3, 1]);
        ended
    })
    .await;
    all_can_be_ended(&**h, &["d", "open0", "open1", "open2", "open3"]).await;
}

/// As with stats. The dropped call asks for the first ones, the next for others or for more.
pub async fn lists_are_those_of_the_call_that_asks<H: Harness>(h: &Arc<H>) {
    let to = dead_and_blocked(&**h).await;
    bury(&**h, [event("e").key("l").to(&*to)]).await;
    let reason = "410".to_owned();
    let disabled = Hold::Disabled { reason };
    patient(|| h.store().hold("held", disabled.clone())).await;
    let seqs = |letters: &[DeadLetter]| letters.iter().map(|one| one.event.seq).collect();
    let dead: Vec<i64> = seqs(&letters(&**h).await);

    let all = DeadLetterFilter::all();
    let two = Page {
        rows: 2,
        ..Page::default()
    };
    let next = Page::after(dead[1], 2);
    let (keys, destinations) = (BlockedKeyPage::default(), DestinationPage::default());
    let (mut one_key, mut one_destination) = (keys.clone(), destinations.clone());
    (one_key.rows, one_destination.rows) = (1, 1);
    at_every_poll(h, async |store, polls| {
        let mut ended = cut_short(polls, store.list(&all, &two)).await.is_some();
        let listed: Vec<i64> = seqs(&patient(|| store.list(&all, &next)).await);
        assert_eq!(listed, dead[2..]);

        ended &= cut_short(polls, store.get(dead[0])).await.is_some();
        let letter = patient(|| store.get(dead[3])).await;
        assert_eq!(letter.map(|one| one.event.seq), Some(dead[3]));

        ended &= cut_short(polls, store.blocked_keys(&one_key))
            .await
            .is_some();
        let blocked = patient(|| store.blocked_keys(&keys)).await;
        let blocked: Vec<&str> = blocked.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(blocked, ["k", "l"]);

        ended &= cut_short(polls, store.destinations(&one_destination))
            .await
            .is_some();
        let known = patient(|| store.destinations(&destinations)).await;
        let known: Vec<&str> = known.iter().map(|one| one.destination.as_str()).collect();
        assert_eq!(known, [to.as_str(), "held"]);
        ended
    })
    .await;
    all_can_be_ended(&**h, &["d"]).await;
}

/// Nothing holds a letter or an open event back.
async fn all_can_be_ended<H: Harness>(h: &H, open: &[&str]) {
    let all = DeadLetterFilter::all();
    patient(|| h.store().discard(&all, 100, "seen")).await;
    let mut ended = drain(h, 10).await;
    ended.sort_unstable();
    assert_eq!(ended, open);
    nothing_is_left(h).await;
}
