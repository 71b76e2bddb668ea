//! Statistics and pruning.

use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, MINUTE, Must, assert_near, bury, dead, drain, end, event, events, in_parallel, letters,
    nothing_is_due, publish, put, request, retry, stats, take, take_one,
};
use crate::{
    Count, DeadHeadPolicy, DeadLetterFilter, DeadLetters, Destinations, Hold, LeaseStatus,
    Maintenance, OutboxStore, Outcome, Prune, Pruned, Settlement,
};

async fn prune<H: Harness>(h: &H, prune: &Prune) -> Pruned {
    h.store().prune(prune).await.must("prune")
}

/// Prunes only what `set` says, by age zero or otherwise.
fn only(set: impl Fn(&mut Prune)) -> Prune {
    let mut prune = Prune::default();
    (prune.published_after, prune.dead_after, prune.dedup_after) = (None, None, None);
    set(&mut prune);
    prune
}

fn everything() -> Prune {
    only(|prune| {
        let now = Some(Duration::ZERO);
        (prune.published_after, prune.dead_after, prune.dedup_after) = (now, now, now);
    })
}

pub async fn counts_what_is_there<H: Harness>(h: &Arc<H>) {
    let empty = stats(&**h).await;
    assert_eq!(
        (empty.pending.value, empty.due.value, empty.oldest_due),
        (0, 0, None)
    );

    bury(&**h, events("dead", 2)).await;
    put(&**h, events("published", 2)).await;
    publish(&**h, &take(&**h, 2).await).await;
    put(&**h, events("claimed", 3)).await;
    take(&**h, 3).await;
    put(&**h, events("due", 4)).await;
    put(
        &**h,
        [event("later").delay(HOUR), event("parked").to("held")],
    )
    .await;
    let reason = "429".to_owned();
    let hold = Hold::For {
        period: HOUR,
        reason,
    };
    h.store().hold("held", hold).await.must("hold");

    let stats = stats(&**h).await;
    let counts = [
        stats.pending,
        stats.claimed,
        stats.due,
        stats.parked,
        stats.dead,
    ];
    assert!(counts.iter().all(|count| !count.capped));
    assert_eq!(counts.map(|count| count.value), [9, 3, 4, 1, 2]);
    assert_eq!(stats.blocked_keys, Count::default());
}

pub async fn counts_up_to_a_limit<H: Harness>(h: &Arc<H>) {
    put(&**h, events("", 20)).await;
    let few = h.store().stats(5).await.must("stats");
    assert_eq!((few.pending.value, few.pending.capped), (5, true));
    assert_eq!((few.due.value, few.due.capped), (5, true));
    let all = h.store().stats(1_000).await.must("stats");
    assert_eq!((all.pending.value, all.pending.capped), (20, false));
}

pub async fn tells_how_long_the_oldest_due_event_waits<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a"), event("far").delay(24 * HOUR)]).await;
    h.advance(HOUR).await;
    put(&**h, [event("b")]).await;
    assert_near(stats(&**h).await.oldest_due.unwrap_or_default(), HOUR);
    let claimed = take(&**h, 2).await;
    assert_eq!(stats(&**h).await.oldest_due, None, "nothing is due");
    end(&**h, &claimed[0], retry(MINUTE)).await;
    h.advance(3 * MINUTE).await;
    assert_near(stats(&**h).await.oldest_due.unwrap_or_default(), 2 * MINUTE);
}

pub async fn prunes_what_was_published_long_ago<H: Harness>(h: &Arc<H>) {
    put(&**h, events("old", 3)).await;
    drain(&**h, 10).await;
    h.advance(2 * HOUR).await;
    put(&**h, events("new", 2)).await;
    drain(&**h, 10).await;
    let old = only(|prune| prune.published_after = Some(HOUR));
    let expected = if h.capabilities().keeps_published {
        3
    } else {
        0
    };
    assert_eq!(prune(&**h, &old).await.published, expected);
    assert_eq!(prune(&**h, &old).await, Pruned::default());
}

pub async fn prunes_by_batches<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("", 5)).await;
    h.advance(HOUR).await;
    let some = only(|prune| {
        prune.dead_after = Some(MINUTE);
        prune.rows = 2;
    });
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(prune(&**h, &some).await.dead);
    }
    assert_eq!(counts, [2, 2, 1, 0]);
}

pub async fn prunes_published_events_and_dedup_keys_by_batches<H: Harness>(h: &Arc<H>) {
    let keyed = events("", 5).into_iter().enumerate();
    let keyed = keyed.map(|(n, event)| event.dedup_key(n.to_string()));
    put(&**h, keyed.collect::<Vec<_>>()).await;
    drain(&**h, 10).await;
    h.advance(HOUR).await;
    let some = only(|prune| {
        (prune.published_after, prune.dedup_after) = (Some(MINUTE), Some(MINUTE));
        prune.rows = 2;
    });
    let mut counts = Vec::new();
    for _ in 0..4 {
        let pruned = prune(&**h, &some).await;
        counts.push((pruned.published, pruned.dedup));
    }
    let kept = h.capabilities().keeps_published;
    let expected = [2, 2, 1, 0].map(|count| (if kept { count } else { 0 }, count));
    assert_eq!(counts, expected);
}

/// Records of discarded letters go with published events; they are no events, and take no event's place
/// in a batch.
pub async fn prunes_count_no_discarded_letters<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("dead", 5)).await;
    let all = DeadLetterFilter::all();
    let discarded = h.store().discard(&all, 10, "seen").await;
    assert_eq!(discarded.must("discard"), 5);
    put(&**h, events("", 3)).await;
    drain(&**h, 10).await;
    h.advance(HOUR).await;
    let some = only(|prune| {
        prune.published_after = Some(MINUTE);
        prune.rows = 2;
    });
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(prune(&**h, &some).await.published);
    }
    let kept = h.capabilities().keeps_published;
    assert_eq!(
        counts,
        [2, 1, 0, 0].map(|count| if kept { count } else { 0 })
    );
}

pub async fn prunes_no_open_event<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [
            event("fresh"),
            event("keyed").key("k"),
            event("held").to("held"),
        ],
    )
    .await;
    put(
        &**h,
        [
            event("delayed").delay(30 * 24 * HOUR),
            event("retried").to("r"),
        ],
    )
    .await;
    put(&**h, [event("expired").expires_in(MINUTE)]).await;
    let reason = "410".to_owned();
    h.store()
        .hold("held", Hold::Disabled { reason })
        .await
        .must("hold");
    for claimed in &take(&**h, 4).await {
        end(&**h, claimed, retry(60 * 24 * HOUR)).await;
    }
    h.advance(50 * 24 * HOUR).await;
    take_one(&**h).await;
    assert_eq!(prune(&**h, &everything()).await, Pruned::default());
    assert_eq!(stats(&**h).await.pending.value, 6);
}

pub async fn prunes_dead_letters_only_when_asked<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("old", 2)).await;
    h.advance(2 * HOUR).await;
    bury(&**h, [event("new")]).await;
    h.advance(MINUTE).await;
    assert_eq!(prune(&**h, &Prune::default()).await.dead, 0);
    assert_eq!(letters(&**h).await.len(), 3);
    let old = only(|prune| prune.dead_after = Some(HOUR));
    assert_eq!(prune(&**h, &old).await.dead, 2);
    assert_eq!(letters(&**h).await.len(), 1);
}

pub async fn prunes_a_dead_letter_and_frees_its_key<H: Harness>(h: &Arc<H>) {
    let set = h
        .store()
        .set_dead_head_policy("somewhere", DeadHeadPolicy::Block);
    set.await.must("set_dead_head_policy");
    put(&**h, ["a", "b"].map(|name| event(name).key("k")).to_vec()).await;
    end(&**h, &take_one(&**h).await, dead()).await;
    nothing_is_due(&**h).await;
    let all = only(|prune| prune.dead_after = Some(Duration::ZERO));
    h.advance(MINUTE).await;
    assert_eq!(prune(&**h, &all).await.dead, 1);
    assert_eq!(stats(&**h).await.blocked_keys.value, 0);
    assert_eq!(drain(&**h, 10).await, ["b"]);
}

pub async fn prunes_dedup_keys_once_nothing_needs_them<H: Harness>(h: &Arc<H>) {
    let keys = ["open", "dead", "done"];
    put(&**h, keys.map(|key| event(key).dedup_key(key)).to_vec()).await;
    let taken = take(&**h, 3).await;
    end(&**h, &taken[0], retry(Duration::ZERO)).await;
    end(&**h, &taken[1], dead()).await;
    end(&**h, &taken[2], Outcome::Published).await;
    let old = only(|prune| prune.dedup_after = Some(HOUR));
    assert_eq!(prune(&**h, &old).await.dedup, 0, "too young");
    h.advance(2 * HOUR).await;
    assert_eq!(prune(&**h, &old).await.dedup, 1);
    let again = keys.map(|key| event(&format!("{key} again")).dedup_key(key));
    let answers = put(&**h, again.to_vec()).await;
    let duplicates: Vec<bool> = answers.iter().map(|answer| answer.duplicate).collect();
    assert_eq!(duplicates, [true, true, false]);
}

/// The oldest ones belong to events that are open or dead: more of them than a batch has.
pub async fn prunes_dedup_keys_behind_batches_that_must_stay<H: Harness>(h: &Arc<H>) {
    let keyed = |name: String| event(&name).dedup_key(name);
    let list = |prefix: &str, count: usize| {
        let names = (0..count).map(|n| format!("{prefix}{n}"));
        names.map(keyed).collect::<Vec<_>>()
    };
    bury(&**h, list("dead", 7)).await;
    h.advance(MINUTE).await;
    put(&**h, list("open", 7)).await;
    for claimed in &take(&**h, 7).await {
        end(&**h, claimed, retry(24 * HOUR)).await;
    }
    h.advance(MINUTE).await;
    put(&**h, list("done", 5)).await;
    publish(&**h, &take(&**h, 5).await).await;
    h.advance(HOUR).await;
    let some = only(|prune| {
        prune.dedup_after = Some(MINUTE);
        prune.rows = 3;
    });
    let mut counts = Vec::new();
    for _ in 0..3 {
        counts.push(prune(&**h, &some).await.dedup);
    }
    assert_eq!(counts, [3, 2, 0]);
    let again = ["dead", "open", "done"].map(|prefix| keyed(format!("{prefix}0")));
    let answers = put(&**h, again).await;
    let duplicates: Vec<bool> = answers.iter().map(|answer| answer.duplicate).collect();
    assert_eq!(duplicates, [true, true, false]);
}

pub async fn goes_on_beside_the_relay<H: Harness>(h: &Arc<H>) {
    let (backlog, workers) = (h.capabilities().backlog, h.capabilities().workers);
    put(&**h, events("", backlog)).await;
    let counts = in_parallel(h, workers, |h, worker| async move {
        let store = h.open().await;
        let mut published = 0;
        for step in 0..40 {
            let done = match worker % 4 {
                0 => {
                    let mut some = everything();
                    some.rows = 7;
                    store.prune(&some).await.map(drop)
                }
                1 => store.stats(10 + step).await.map(drop),
                _ => match store.claim(&request(10)).await {
                    Err(error) => Err(error),
                    Ok(claim) => {
                        let leases = claim.events.iter().map(|claimed| claimed.lease);
                        let batch: Vec<_> = leases
                            .map(|lease| Settlement::new(lease, Outcome::Published))
                            .collect();
                        store.settle(&batch).await.map(|answers| {
                            published +=
                                answers.iter().filter(|a| **a == LeaseStatus::Ours).count();
                        })
                    }
                },
            };
            match done {
                Ok(()) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("a parallel call failed: {error:?}"),
            }
        }
        published
    })
    .await;
    h.advance(HOUR).await;
    let rest = drain(&**h, 50).await.len();
    assert_eq!(counts.iter().sum::<usize>() + rest, backlog);
}
