//! Ending claims.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, LEASE, MINUTE, Must, OVER_LEASE, at_every_poll, bury, cut_short, dead, defer, drain,
    drain_beside_cut_calls, end, event, events, in_parallel, leases, letters, nothing_is_due,
    patient, publish, put, request, retry, settle, stats, take, take_one,
};
use crate::{
    Claimed, DeadLetterFilter, DeadLetters, DeathReason, Lease, LeaseStatus, LeaseToken,
    MAX_ERROR_TEXT, Maintenance, OutboxStore, Outcome, Prune, Replay, Settlement,
};

fn every_outcome() -> [Outcome; 5] {
    [
        Outcome::Published,
        retry(MINUTE),
        defer(MINUTE),
        Outcome::Release,
        dead(),
    ]
}

pub async fn as_published_ends_an_event<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a"), event("b").key("k")]).await;
    publish(&**h, &take(&**h, 2).await).await;
    h.advance(OVER_LEASE).await;
    nothing_is_due(&**h).await;
    let stats = stats(&**h).await;
    assert_eq!((stats.pending.value, stats.dead.value), (0, 0));
}

pub async fn as_retry_keeps_the_attempt_and_waits<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    end(&**h, &take_one(&**h).await, retry(HOUR)).await;
    nothing_is_due(&**h).await;
    h.advance(HOUR - MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(MINUTE + Duration::from_secs(1)).await;
    let again = take_one(&**h).await;
    assert_eq!(again.event.attempts, 2);
    assert_eq!(again.event.last_error.as_deref(), Some("503"));
}

pub async fn as_retry_measures_from_now<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    h.advance(24 * HOUR).await;
    end(&**h, &take_one(&**h).await, retry(MINUTE)).await;
    nothing_is_due(&**h).await;
    h.advance(MINUTE + Duration::from_secs(1)).await;
    take_one(&**h).await;
}

pub async fn as_defer_refunds_the_attempt_and_waits<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    end(&**h, &take_one(&**h).await, defer(HOUR)).await;
    nothing_is_due(&**h).await;
    h.advance(HOUR + Duration::from_secs(1)).await;
    let again = take_one(&**h).await;
    assert_eq!(again.event.attempts, 1);
    assert_eq!(again.event.last_error.as_deref(), Some("busy"));
}

pub async fn as_release_refunds_the_attempt_at_once<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a"), event("b").key("k")]).await;
    for _ in 0..3 {
        for claimed in &take(&**h, 2).await {
            assert_eq!(claimed.event.attempts, 1);
            end(&**h, claimed, Outcome::Release).await;
        }
    }
}

pub async fn as_dead_keeps_the_event_with_its_reason<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let claimed = take_one(&**h).await;
    end(&**h, &claimed, dead()).await;
    h.advance(OVER_LEASE).await;
    nothing_is_due(&**h).await;
    let letter = letters(&**h).await.remove(0);
    assert_eq!(letter.event.id, claimed.event.id);
    assert_eq!(letter.event.attempts, 1);
    assert_eq!(letter.event.last_error.as_deref(), Some("400"));
    assert_eq!(letter.reason, DeathReason::Rejected);
}

pub async fn ignores_a_lost_lease<H: Harness>(h: &Arc<H>) {
    for outcome in every_outcome() {
        put(&**h, [event("a")]).await;
        let stale = take_one(&**h).await;
        h.advance(OVER_LEASE).await;
        let holder = take_one(&**h).await;
        let status = settle(&**h, &stale, outcome.clone()).await;
        assert_eq!(status, LeaseStatus::Lost, "{outcome:?}");
        nothing_is_due(&**h).await;
        assert_eq!(letters(&**h).await, []);
        end(&**h, &holder, Outcome::Published).await;
    }
}

/// The attempts of the stale and the present claim are equal: only the token tells them apart.
pub async fn is_fenced_by_the_token_and_not_by_attempts<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let stale = take_one(&**h).await;
    h.advance(OVER_LEASE).await;
    end(&**h, &take_one(&**h).await, Outcome::Release).await;
    end(&**h, &take_one(&**h).await, Outcome::Release).await;
    let status = settle(&**h, &stale, Outcome::Published).await;
    assert_ne!(status, LeaseStatus::Ours, "nobody holds the event");
    let holder = take_one(&**h).await;
    let status = settle(&**h, &stale, Outcome::Published).await;
    assert_eq!(status, LeaseStatus::Lost);
    end(&**h, &holder, Outcome::Published).await;
}

pub async fn accepts_an_expired_lease_that_nobody_took_over<H: Harness>(h: &Arc<H>) {
    for outcome in every_outcome() {
        put(&**h, [event("a"), event("b").key("k")]).await;
        let taken = take(&**h, 2).await;
        h.advance(OVER_LEASE).await;
        for claimed in &taken {
            end(&**h, claimed, outcome.clone()).await;
        }
        h.advance(HOUR).await;
        drain(&**h, 10).await;
    }
}

pub async fn answers_unknown_for_what_is_gone<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let claimed = take_one(&**h).await;
    end(&**h, &claimed, Outcome::Published).await;
    for outcome in every_outcome() {
        let status = settle(&**h, &claimed, outcome.clone()).await;
        assert_eq!(status, LeaseStatus::Unknown, "{outcome:?}");
    }
    let never = Lease::new(claimed.lease.seq + 1_000, LeaseToken::new());
    let batch = [Settlement::new(never, Outcome::Published)];
    assert_eq!(
        h.store().settle(&batch).await.must("settle"),
        [LeaseStatus::Unknown]
    );
    assert_eq!(stats(&**h).await.pending.value, 0);
    assert_eq!(letters(&**h).await, []);
}

/// As after an answer that was lost on its way.
pub async fn repeated_changes_nothing_and_is_not_called_lost<H: Harness>(h: &Arc<H>) {
    for outcome in every_outcome() {
        put(&**h, [event("a")]).await;
        let claimed = take_one(&**h).await;
        end(&**h, &claimed, outcome.clone()).await;
        let before = stats(&**h).await;
        let status = settle(&**h, &claimed, outcome.clone()).await;
        assert_eq!(status, LeaseStatus::Unknown, "{outcome:?}");
        let after = stats(&**h).await;
        assert_eq!((before.pending, before.dead), (after.pending, after.dead));
        h.advance(HOUR).await;
        if after.pending.value == 1 {
            let again = take_one(&**h).await;
            let counted = if matches!(outcome, Outcome::Retry { .. }) {
                2
            } else {
                1
            };
            assert_eq!(again.event.attempts, counted, "{outcome:?}");
            end(&**h, &again, Outcome::Published).await;
        }
    }
}

pub async fn answers_in_the_order_of_the_batch<H: Harness>(h: &Arc<H>) {
    use LeaseStatus::{Lost, Ours, Unknown};
    put(&**h, events("a", 6)).await;
    let stale = take(&**h, 6).await;
    publish(&**h, &stale[..2]).await;
    h.advance(OVER_LEASE).await;
    let ours = take(&**h, 2).await;
    let is_taken = |old: &Claimed| ours.iter().any(|new| new.lease.seq == old.lease.seq);
    let (lost, expired): (Vec<&Claimed>, Vec<&Claimed>) =
        stale[2..].iter().partition(|old| is_taken(old));
    let batch = [
        Settlement::new(expired[1].lease, dead()),
        Settlement::new(ours[1].lease, Outcome::Published),
        Settlement::new(lost[0].lease, retry(HOUR)),
        Settlement::new(stale[0].lease, Outcome::Published),
        Settlement::new(ours[0].lease, defer(HOUR)),
        Settlement::new(expired[0].lease, Outcome::Release),
        Settlement::new(stale[1].lease, dead()),
    ];
    let answers = h.store().settle(&batch).await.must("settle");
    assert_eq!(answers, [Ours, Ours, Lost, Unknown, Ours, Ours, Unknown]);
}

/// Tokens are proved pair by pair: a token of the batch counts for its own event alone.
pub async fn publishes_events_of_several_claims_at_once<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 6)).await;
    let first = take(&**h, 3).await;
    let second = take(&**h, 3).await;
    let published = |lease| Settlement::new(lease, Outcome::Published);
    let crossed = Lease::new(first[0].lease.seq, second[0].lease.token);
    let mut batch = vec![published(crossed)];
    for (one, other) in first[1..].iter().zip(&second) {
        batch.extend([published(other.lease), published(one.lease)]);
    }
    let answers = h.store().settle(&batch).await.must("settle");
    assert_eq!(answers[0], LeaseStatus::Lost);
    assert_eq!(answers[1..], [LeaseStatus::Ours; 4]);
    assert_eq!(stats(&**h).await.pending.value, 2);
    publish(&**h, &[first[0].clone(), second[2].clone()]).await;
}

pub async fn of_nothing_answers_nothing<H: Harness>(h: &Arc<H>) {
    assert_eq!(h.store().settle(&[]).await.must("settle"), []);
    assert_eq!(h.store().extend(&[], MINUTE).await.must("extend"), []);
    assert_eq!(h.store().release(&[]).await.must("release"), []);
}

pub async fn takes_thousands_at_once<H: Harness>(h: &Arc<H>) {
    put(&**h, events("", 2_000)).await;
    let taken = take(&**h, 2_000).await;
    let outcome = |n: usize| every_outcome()[n % 5].clone();
    let batch = taken.iter().enumerate();
    let batch: Vec<_> = batch
        .map(|(n, claimed)| Settlement::new(claimed.lease, outcome(n)))
        .collect();
    let answers = h.store().settle(&batch).await.must("settle");
    assert_eq!(answers, vec![LeaseStatus::Ours; 2_000]);
    let stats = stats(&**h).await;
    assert_eq!((stats.pending.value, stats.dead.value), (1_200, 400));
}

pub async fn cannot_fail_on_text<H: Harness>(h: &Arc<H>) {
    let texts = ["", "a\0b", "\u{fffd}\u{1f4a5}'\"\\;--", "\u{1b}[31m"].map(str::to_owned);
    let long = ["x".repeat(1 << 20), "é€\u{1f4a5}".repeat(10_000)];
    for text in texts.into_iter().chain(long) {
        put(&**h, [event("a")]).await;
        let error = text.clone();
        let outcome = Outcome::Retry {
            after: Duration::ZERO,
            error,
        };
        end(&**h, &take_one(&**h).await, outcome).await;
        let again = take_one(&**h).await;
        let kept = again.event.last_error.clone().unwrap_or_default();
        assert!(kept.len() <= MAX_ERROR_TEXT && !kept.contains('\0'));
        assert_eq!(kept, crate::error_text(&text));
        let outcome = Outcome::Dead {
            reason: DeathReason::Other,
            error: text,
        };
        end(&**h, &again, outcome).await;
    }
}

pub async fn bears_any_delay<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 2)).await;
    let taken = take(&**h, 2).await;
    end(&**h, &taken[0], retry(Duration::MAX)).await;
    end(&**h, &taken[1], defer(Duration::MAX)).await;
    h.advance(24 * HOUR).await;
    nothing_is_due(&**h).await;
    assert_eq!(stats(&**h).await.pending.value, 2);
}

/// As when the answer to a commit is lost: the event is delivered, or comes again.
pub async fn cut_short_loses_nothing<H: Harness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        put(&**h, [event("a"), event("b").key("k")]).await;
        let taken = take(&**h, 2).await;
        let batch: Vec<Settlement> = leases(&taken)
            .into_iter()
            .map(|lease| Settlement::new(lease, dead()))
            .collect();
        let ended = cut_short(polls, store.settle(&batch)).await.is_some();
        let again = drain_beside_cut_calls(&**h, 10).await.len();
        let dead = letters(&**h).await.len();
        assert_eq!(again + dead, 2, "after {polls} polls");
        let all = DeadLetterFilter::all();
        patient(|| h.store().discard(&all, 10, "done")).await;
        ended
    })
    .await;
}

/// Batches that overlap and come in any order, beside claims, extensions, replays, prunes and counts.
pub async fn in_parallel_ends_each_event_once<H: Harness>(h: &Arc<H>) {
    let workers = h.capabilities().workers;
    bury(&**h, events("dead", 10)).await;
    let old = (0..10).map(|n: usize| event("old").dedup_key(n.to_string()));
    put(&**h, old.collect::<Vec<_>>()).await;
    publish(&**h, &take(&**h, 10).await).await;
    h.advance(HOUR).await;
    put(&**h, events("", 60)).await;
    let taken = Arc::new(take(&**h, 60).await);
    let did = in_parallel(h, workers, {
        let taken = Arc::clone(&taken);
        move |h, worker| {
            let taken = Arc::clone(&taken);
            async move {
                let mut order: Vec<Lease> = leases(&taken);
                if worker % 2 == 1 {
                    order.reverse();
                }
                order.rotate_left(worker * 7 % 60);
                let store = h.open().await;
                patient(|| store.extend(&order, LEASE)).await;
                let mut replayed = prune_and_replay(&store).await;
                let asked = request(10);
                patient(|| store.claim(&asked)).await;
                let batch: Vec<Settlement> = order
                    .iter()
                    .map(|lease| Settlement::new(*lease, Outcome::Published))
                    .collect();
                let answers = patient(|| store.settle(&batch)).await;
                replayed += prune_and_replay(&store).await;
                patient(|| store.stats(1_000)).await;
                (answers, replayed)
            }
        }
    })
    .await;
    let ours = did
        .iter()
        .flat_map(|(answers, _)| answers)
        .filter(|status| **status == LeaseStatus::Ours);
    assert_eq!(ours.count(), 60, "each event is settled by one worker");
    h.advance(OVER_LEASE).await;
    let back = drain(&**h, 20).await;
    let replayed: u64 = did.iter().map(|(_, replayed)| replayed).sum();
    assert_eq!(u64::try_from(back.len()).ok(), Some(replayed));
    let distinct: BTreeSet<&String> = back.iter().collect();
    assert_eq!(distinct.len(), back.len(), "a letter came back twice");
    assert!(back.iter().all(|name| name.starts_with("dead")), "{back:?}");
}

/// Some of the dead letters go, and some come back; returns how many came.
async fn prune_and_replay(store: &(impl Maintenance + DeadLetters)) -> u64 {
    let now = Some(Duration::ZERO);
    let prune = Prune {
        published_after: now,
        dead_after: now,
        dedup_after: now,
        rows: 3,
    };
    patient(|| store.prune(&prune)).await;
    let replay = Replay {
        rows: 2,
        ..Replay::new(DeadLetterFilter::all())
    };
    patient(|| store.replay(&replay)).await
}

/// An attempt that outlived its lease, beside the next claim of the same event.
pub async fn races_with_a_takeover_and_one_wins<H: Harness>(h: &Arc<H>) {
    for _ in 0..10 {
        put(&**h, [event("a")]).await;
        let first = take_one(&**h).await;
        h.advance(OVER_LEASE).await;
        let won = in_parallel(h, 2, move |h, worker| {
            let lease = first.lease;
            async move {
                let store = h.open().await;
                if worker == 0 {
                    let batch = [Settlement::new(lease, Outcome::Published)];
                    patient(|| store.settle(&batch)).await == [LeaseStatus::Ours]
                } else {
                    let claimed: Vec<Claimed> =
                        patient(|| async { store.claim(&request(1)).await.map(|c| c.events) })
                            .await;
                    !claimed.is_empty()
                }
            }
        })
        .await;
        let open = stats(&**h).await.pending.value;
        assert!(!(won[0] && won[1]), "settled and taken over");
        assert_eq!(open == 0, won[0]);
        h.advance(OVER_LEASE).await;
        drain(&**h, 10).await;
    }
}
