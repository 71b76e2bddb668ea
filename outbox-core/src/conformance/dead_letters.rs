//! Dead letters: listing, replaying, discarding.

use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, MINUTE, Must, SPELLINGS, assert_near, bury, claim, dead, dead_of, drain, end, event,
    events, in_parallel, letters, name, nothing_is_due, one_of_three_damaged, put, request, stats,
    take, take_one,
};
use crate::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason,
    Destinations, EventId, LeaseStatus, NewEvent, OutboxStore, Page, Replay, Settlement,
};

async fn replay<H: Harness>(h: &H, replay: &Replay) -> u64 {
    h.store().replay(replay).await.must("replay")
}

async fn replay_all<H: Harness>(h: &H) -> u64 {
    replay(h, &Replay::new(DeadLetterFilter::all())).await
}

async fn discard<H: Harness>(h: &H, filter: &DeadLetterFilter) -> u64 {
    h.store()
        .discard(filter, 1_000, "no longer wanted")
        .await
        .must("discard")
}

async fn listed<H: Harness>(h: &H, filter: &DeadLetterFilter, page: &Page) -> Vec<String> {
    let letters = h.store().list(filter, page).await.must("list");
    let payload = |letter: &crate::DeadLetter| letter.event.payload.clone();
    let names = letters.iter().map(payload);
    names
        .map(|name| String::from_utf8_lossy(&name).into_owned())
        .collect()
}

async fn block<H: Harness>(h: &H) {
    let set = h
        .store()
        .set_dead_head_policy("somewhere", DeadHeadPolicy::Block);
    set.await.must("set_dead_head_policy");
}

async fn blocked<H: Harness>(h: &H) -> Vec<BlockedKey> {
    let page = BlockedKeyPage::default();
    h.store().blocked_keys(&page).await.must("blocked_keys")
}

pub async fn keep_the_whole_event<H: Harness>(h: &Arc<H>) {
    let new = event("a")
        .key("k")
        .aggregate("repository", 7)
        .header("traceparent", "00-1")
        .content_type("text/plain")
        .dedup_key("once")
        .expires_in(HOUR)
        .max_attempts(5);
    let claimed = bury(&**h, [new]).await.remove(0);
    let letter = letters(&**h).await.remove(0);
    let mut expected = (*claimed.event).clone();
    expected.last_error = Some("400".to_owned());
    assert_eq!(letter.event, expected);
    let died_after = letter.dead_at.duration_since(expected.created_at);
    assert_near(died_after.unwrap_or_default(), Duration::ZERO);
    let got = h.store().get(expected.seq).await.must("get");
    assert_eq!(got, Some(letter));
}

pub async fn keep_every_reason<H: Harness>(h: &Arc<H>) {
    for reason in DeathReason::ALL {
        put(&**h, [event("a")]).await;
        end(&**h, &take_one(&**h).await, dead_of(reason)).await;
    }
    let kept = letters(&**h).await;
    let kept: Vec<DeathReason> = kept.iter().map(|letter| letter.reason).collect();
    assert_eq!(kept, DeathReason::ALL);
    for reason in DeathReason::ALL {
        let mut filter = DeadLetterFilter::all();
        filter.reason = Some(reason);
        assert_eq!(listed(&**h, &filter, &Page::default()).await.len(), 1);
    }
}

pub async fn that_do_not_exist_are_none<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let open = take_one(&**h).await.lease.seq;
    for seq in [open, open + 1_000, 0, -1, i64::MAX, i64::MIN] {
        assert_eq!(h.store().get(seq).await.must("get"), None);
        let filter = DeadLetterFilter::seq(seq);
        assert_eq!(replay(&**h, &Replay::new(filter.clone())).await, 0);
        assert_eq!(discard(&**h, &filter).await, 0);
    }
    assert_eq!(stats(&**h).await.pending.value, 1);
}

pub async fn are_listed_by_pages<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("", 7)).await;
    let all = DeadLetterFilter::all();
    let mut seen = Vec::new();
    let mut page = Page {
        rows: 3,
        ..Page::default()
    };
    loop {
        let letters = h.store().list(&all, &page).await.must("list");
        let Some(last) = letters.last() else { break };
        assert!(letters.len() <= 3);
        seen.extend(letters.iter().map(|letter| letter.event.seq));
        page = Page::after(last.event.seq, 3);
        // A letter that goes in the meantime hides no other.
        discard(&**h, &DeadLetterFilter::seq(seen[0])).await;
    }
    assert_eq!(seen.len(), 7);
    assert!(seen.is_sorted_by(|a, b| a < b));
}

pub async fn are_found_by_each_filter<H: Harness>(h: &Arc<H>) {
    let of = |kind: &str, to: &str, name: &str| NewEvent::bytes(kind, name.to_owned()).to(to);
    bury(&**h, [of("A", "x", "a").key("k")]).await;
    h.advance(HOUR).await;
    let list = [
        of("B", "x", "b"),
        of("A", "y", "c").key("l"),
        of("B", "y", "d").key("k"),
    ];
    let b = bury(&**h, list).await[0].event.clone();

    let filter = |set: &dyn Fn(&mut DeadLetterFilter)| {
        let mut filter = DeadLetterFilter::all();
        set(&mut filter);
        filter
    };
    let text = |text: &str| Some(text.to_owned());
    let cases: [(DeadLetterFilter, &[&str]); 11] = [
        (DeadLetterFilter::all(), &["a", "b", "c", "d"]),
        (DeadLetterFilter::seq(b.seq), &["b"]),
        (DeadLetterFilter::id(b.id), &["b"]),
        (DeadLetterFilter::destination("y"), &["c", "d"]),
        (filter(&|f| f.event_type = text("A")), &["a", "c"]),
        (filter(&|f| f.key = text("k")), &["a", "d"]),
        (filter(&|f| f.dead_for = Some(MINUTE)), &["a"]),
        (filter(&|f| f.reason = Some(DeathReason::Gone)), &[]),
        (filter(&|f| f.seqs = Some(Vec::new())), &[]),
        (
            filter(&|f| (f.event_type, f.destination) = (text("B"), text("y"))),
            &["d"],
        ),
        (filter(&|f| f.destination = text("' OR 1=1 --")), &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(
            listed(&**h, &filter, &Page::default()).await,
            expected,
            "{filter:?}"
        );
    }
}

pub async fn are_found_byte_for_byte<H: Harness>(h: &Arc<H>) {
    let of = |name: &str| NewEvent::bytes(name, name.to_owned()).to(name).key(name);
    bury(&**h, SPELLINGS.map(of).to_vec()).await;
    let d = || Some("d".to_owned());
    let mut filters = [(); 3].map(|()| DeadLetterFilter::all());
    filters[0].event_type = d();
    filters[1].destination = d();
    filters[2].key = d();
    for filter in filters {
        let found = h.store().list(&filter, &Page::default()).await.must("list");
        assert_eq!(found.len(), 1, "{filter:?}");
        assert_eq!(found[0].event.payload, "d");
    }
    let one = Replay::new(DeadLetterFilter::destination("d"));
    assert_eq!(replay(&**h, &one).await, 1);
    assert_eq!(discard(&**h, &DeadLetterFilter::destination("D")).await, 1);
    assert_eq!(letters(&**h).await.len(), SPELLINGS.len() - 2);
}

pub async fn replayed_keep_their_identity<H: Harness>(h: &Arc<H>) {
    let new = event("a")
        .key("k")
        .header("a", "b")
        .max_attempts(2)
        .expires_in(HOUR);
    let old = bury(&**h, [new]).await.remove(0).event;
    h.advance(2 * HOUR).await;
    assert_eq!(replay_all(&**h).await, 1);
    assert_eq!(letters(&**h).await, []);
    h.advance(MINUTE).await;
    let claimed = take_one(&**h).await;
    let event = &claimed.event;
    assert_eq!((event.id, event.seq), (old.id, old.seq));
    assert_eq!(
        (&event.destination, &event.key),
        (&old.destination, &old.key)
    );
    assert_eq!(
        (&event.headers, event.max_attempts),
        (&old.headers, Some(2))
    );
    assert_eq!((event.attempts, event.replays), (1, 1));
    assert_eq!((event.expires_at, claimed.expired), (None, false));
    assert_near(claimed.age, MINUTE);
}

pub async fn replayed_may_get_a_new_lifetime<H: Harness>(h: &Arc<H>) {
    bury(&**h, [event("a"), event("b")]).await;
    let mut paced = Replay::new(DeadLetterFilter::all());
    paced.expires_in = Some(HOUR);
    assert_eq!(replay(&**h, &paced).await, 2);
    assert!(!take_one(&**h).await.expired);
    h.advance(HOUR + MINUTE).await;
    assert!(take(&**h, 2).await.iter().all(|claimed| claimed.expired));
}

pub async fn replayed_at_a_pace_fall_due_one_after_another<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("", 4)).await;
    let mut paced = Replay::new(DeadLetterFilter::all());
    paced.pace = 2 * MINUTE;
    assert_eq!(replay(&**h, &paced).await, 4);
    for expected in ["0", "1", "2", "3"] {
        assert_eq!(name(&take_one(&**h).await), expected);
        nothing_is_due(&**h).await;
        h.advance(2 * MINUTE).await;
    }
}

pub async fn replayed_by_batches_all_come_back<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("", 5)).await;
    let mut batch = Replay::new(DeadLetterFilter::all());
    batch.rows = 2;
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(replay(&**h, &batch).await);
    }
    assert_eq!(counts, [2, 2, 1, 0]);
    let mut all = drain(&**h, 10).await;
    all.sort_unstable();
    assert_eq!(all, ["0", "1", "2", "3", "4"]);
}

pub async fn replayed_by_batches_pass_over_ids_that_are_open<H: Harness>(h: &Arc<H>) {
    let id = EventId::from_bytes([7; 16]);
    bury(&**h, [event("a").id(id), event("b"), event("c")]).await;
    put(&**h, [event("anew").id(id)]).await;
    let one = Replay {
        rows: 1,
        ..Replay::new(DeadLetterFilter::all())
    };
    assert_eq!(replay(&**h, &one).await, 1);
    assert_eq!(replay(&**h, &one).await, 1);
    assert_eq!(replay(&**h, &one).await, 0);
    let mut back = drain(&**h, 10).await;
    back.sort_unstable();
    assert_eq!(back, ["anew", "b", "c"]);
    assert_eq!(replay(&**h, &one).await, 1);
    assert_eq!(drain(&**h, 10).await, ["a"]);
}

pub async fn replayed_are_not_swallowed_by_their_dedup_key<H: Harness>(h: &Arc<H>) {
    bury(&**h, [event("a").dedup_key("once")]).await;
    assert!(put(&**h, [event("b").dedup_key("once")]).await[0].duplicate);
    assert_eq!(replay_all(&**h).await, 1);
    assert_eq!(drain(&**h, 10).await, ["a"]);
}

pub async fn replayed_twice_at_once_come_back_once<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("", 40)).await;
    let workers = h.capabilities().workers;
    let counts = in_parallel(h, workers, |h, _| async move {
        let store = h.open().await;
        let mut count = 0;
        for _ in 0..50 {
            match store.replay(&Replay::new(DeadLetterFilter::all())).await {
                Ok(0) => break,
                Ok(replayed) => count += replayed,
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("replay failed: {error:?}"),
            }
        }
        count
    })
    .await;
    assert_eq!(counts.iter().sum::<u64>(), 40, "{counts:?}");
    let taken = take(&**h, 40).await;
    assert!(taken.iter().all(|claimed| claimed.event.replays == 1));
    nothing_is_due(&**h).await;
}

pub async fn replayed_and_discarded_at_once_go_one_way<H: Harness>(h: &Arc<H>) {
    bury(&**h, events("", 40)).await;
    let counts = in_parallel(h, 2, |h, worker| async move {
        let store = h.open().await;
        let all = DeadLetterFilter::all();
        let mut count = 0;
        for _ in 0..50 {
            let mut some = Replay::new(all.clone());
            some.rows = 5;
            let done = match worker {
                0 => store.replay(&some).await,
                _ => store.discard(&all, 5, "no").await,
            };
            match done {
                Ok(done) => count += done,
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("failed: {error:?}"),
            }
        }
        count
    })
    .await;
    let stats = stats(&**h).await;
    assert_eq!(
        counts[0] + counts[1] + stats.dead.value,
        40,
        "{counts:?} {stats:?}"
    );
    assert_eq!(stats.pending.value, counts[0]);
}

pub async fn replayed_that_fail_again_are_dead_again<H: Harness>(h: &Arc<H>) {
    bury(&**h, [event("a")]).await;
    for replays in 1..4 {
        assert_eq!(replay_all(&**h).await, 1);
        end(&**h, &take_one(&**h).await, dead()).await;
        let letter = letters(&**h).await.remove(0);
        assert_eq!((letter.event.replays, letter.event.attempts), (replays, 1));
    }
}

pub async fn replayed_leave_other_open_events_alone<H: Harness>(h: &Arc<H>) {
    let old = bury(&**h, [event("a")]).await.remove(0);
    put(&**h, [event("b").id(old.event.id)]).await;
    // The id is open again: the letter has to wait, and the call does not fail.
    assert_eq!(replay_all(&**h).await, 0);
    assert_eq!(drain(&**h, 10).await, ["b"]);
    assert_eq!(replay_all(&**h).await, 1);
    assert_eq!(drain(&**h, 10).await, ["a"]);
}

pub async fn discarded_are_gone<H: Harness>(h: &Arc<H>) {
    let taken = bury(&**h, events("", 4)).await;
    put(&**h, [event("open")]).await;
    assert_eq!(
        discard(&**h, &DeadLetterFilter::seq(taken[0].lease.seq)).await,
        1
    );
    assert_eq!(
        discard(&**h, &DeadLetterFilter::seq(taken[0].lease.seq)).await,
        0
    );
    let all = DeadLetterFilter::all();
    let some = h.store().discard(&all, 2, "a\0b").await.must("discard");
    assert_eq!(some, 2);
    assert_eq!(letters(&**h).await.len(), 1);
    assert_eq!(discard(&**h, &all).await, 1);
    assert_eq!(replay_all(&**h).await, 0);
    assert_eq!(drain(&**h, 10).await, ["open"]);
}

/// Where the harness can damage a row: it is listed as far as it can be read, and comes back, damaged as it
/// is, beside the others.
pub async fn that_make_no_event_go_the_way_of_others<H: Harness>(h: &Arc<H>) {
    let Some(broken) = one_of_three_damaged(&**h).await else {
        return;
    };
    for replays in 0..2 {
        let mut leases = Vec::new();
        for _ in 0..20 {
            let claim = claim(h.store(), &request(10)).await;
            leases.extend(claim.events.iter().map(|claimed| claimed.lease));
            leases.extend(claim.undecodable.iter().map(|row| row.lease));
        }
        let batch: Vec<_> = leases
            .into_iter()
            .map(|lease| Settlement::new(lease, dead()))
            .collect();
        let ours = h.store().settle(&batch).await.must("settle");
        assert_eq!(ours, [LeaseStatus::Ours; 3]);
        let listed: Vec<i64> = letters(&**h)
            .await
            .iter()
            .map(|one| one.event.seq)
            .collect();
        assert!(listed.contains(&broken), "{listed:?}");
        assert_eq!(listed.len(), 3);
        let one = h.store().get(broken).await.must("get");
        assert_eq!(one.map(|letter| letter.event.seq), Some(broken));
        if replays == 0 {
            assert_eq!(
                replay(&**h, &Replay::new(DeadLetterFilter::seq(broken))).await,
                1
            );
            assert_eq!(replay_all(&**h).await, 2);
        }
    }
    assert_eq!(discard(&**h, &DeadLetterFilter::seq(broken)).await, 1);
    assert_eq!(discard(&**h, &DeadLetterFilter::all()).await, 2);
}

pub async fn replayed_under_block_head_their_key<H: Harness>(h: &Arc<H>) {
    block(&**h).await;
    let list = ["a", "b"].map(|name| event(name).key("k"));
    put(&**h, list.to_vec()).await;
    let head = take_one(&**h).await;
    end(&**h, &head, dead()).await;
    nothing_is_due(&**h).await;
    let keys = blocked(&**h).await;
    assert_eq!(keys.len(), 1);
    assert_eq!(
        (keys[0].destination.as_str(), keys[0].key.as_str()),
        ("somewhere", "k")
    );
    assert_eq!(keys[0].seq, head.lease.seq);
    assert_eq!(replay_all(&**h).await, 1);
    assert_eq!(blocked(&**h).await, []);
    assert_eq!(drain(&**h, 1).await, ["a", "b"]);
}

pub async fn discarded_free_their_key<H: Harness>(h: &Arc<H>) {
    block(&**h).await;
    put(&**h, ["a", "b"].map(|name| event(name).key("k")).to_vec()).await;
    end(&**h, &take_one(&**h).await, dead()).await;
    nothing_is_due(&**h).await;
    assert_eq!(discard(&**h, &DeadLetterFilter::all()).await, 1);
    assert_eq!(blocked(&**h).await, []);
    assert_eq!(drain(&**h, 10).await, ["b"]);
}

pub async fn block_their_key_until_the_last_is_gone<H: Harness>(h: &Arc<H>) {
    block(&**h).await;
    put(
        &**h,
        ["a", "b", "c"].map(|name| event(name).key("k")).to_vec(),
    )
    .await;
    let run = take(&**h, 2).await;
    for claimed in &run {
        end(&**h, claimed, dead()).await;
    }
    assert_eq!(blocked(&**h).await.len(), 1);
    assert_eq!(
        discard(&**h, &DeadLetterFilter::seq(run[0].lease.seq)).await,
        1
    );
    nothing_is_due(&**h).await;
    assert_eq!(blocked(&**h).await.len(), 1);
    let replayed = Replay::new(DeadLetterFilter::seq(run[1].lease.seq));
    assert_eq!(replay(&**h, &replayed).await, 1);
    assert_eq!(drain(&**h, 10).await, ["b", "c"]);
}

pub async fn block_no_key_for_events_without_one<H: Harness>(h: &Arc<H>) {
    block(&**h).await;
    bury(&**h, [event("a")]).await;
    assert_eq!(blocked(&**h).await, []);
    put(&**h, [event("b"), event("c").key("k")]).await;
    assert_eq!(drain(&**h, 10).await.len(), 2);
}

pub async fn block_keys_that_are_listed_by_pages<H: Harness>(h: &Arc<H>) {
    block(&**h).await;
    let keys = ["k3", "k1", "K2", "k 5", "k4"];
    bury(&**h, keys.map(|key| event(key).key(key)).to_vec()).await;
    let mut seen = Vec::new();
    let mut page = BlockedKeyPage {
        rows: 2,
        ..BlockedKeyPage::default()
    };
    loop {
        let keys = h.store().blocked_keys(&page).await.must("blocked_keys");
        let Some(last) = keys.last() else { break };
        page = BlockedKeyPage::after(last, 2);
        seen.extend(keys.into_iter().map(|key| key.key));
    }
    assert_eq!(seen, ["K2", "k 5", "k1", "k3", "k4"]);
}

pub async fn no_longer_block_once_the_policy_is_skip<H: Harness>(h: &Arc<H>) {
    block(&**h).await;
    put(&**h, ["a", "b"].map(|name| event(name).key("k")).to_vec()).await;
    end(&**h, &take_one(&**h).await, dead()).await;
    nothing_is_due(&**h).await;
    let set = h
        .store()
        .set_dead_head_policy("somewhere", DeadHeadPolicy::Skip);
    set.await.must("set_dead_head_policy");
    assert_eq!(blocked(&**h).await, []);
    assert_eq!(drain(&**h, 10).await, ["b"]);
    assert_eq!(letters(&**h).await.len(), 1);
}
