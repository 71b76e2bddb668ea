//! Destinations that are held back.

use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, MINUTE, Must, claim, drain, end, event, events, in_parallel, name, names, nothing_is_due,
    publish, put, request, retry, stats, take, take_one,
};
use crate::{DeadHeadPolicy, DestinationPage, DestinationState, Destinations, Hold, OutboxStore};

async fn hold<H: Harness>(h: &H, destination: &str, hold: Hold) {
    h.store().hold(destination, hold).await.must("hold");
}

async fn hold_for<H: Harness>(h: &H, destination: &str, period: Duration) {
    let reason = "429".to_owned();
    hold(h, destination, Hold::For { period, reason }).await;
}

async fn disable<H: Harness>(h: &H, destination: &str) {
    let reason = "410".to_owned();
    hold(h, destination, Hold::Disabled { reason }).await;
}

async fn states<H: Harness>(h: &H) -> Vec<DestinationState> {
    let page = DestinationPage::default();
    h.store().destinations(&page).await.must("destinations")
}

pub async fn keep_events_back_uncharged<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [event("a"), event("b").key("k"), event("c").to("elsewhere")],
    )
    .await;
    hold_for(&**h, "somewhere", HOUR).await;
    assert_eq!(name(&take_one(&**h).await), "c");
    nothing_is_due(&**h).await;
    put(&**h, [event("d"), event("e").key("l")]).await;
    nothing_is_due(&**h).await;
    hold(&**h, "somewhere", Hold::Free).await;
    let taken = take(&**h, 4).await;
    assert_eq!(names(&taken), ["a", "b", "d", "e"]);
    assert!(taken.iter().all(|claimed| claimed.event.attempts == 1));
}

pub async fn end_by_themselves<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a"), event("b").key("k")]).await;
    hold_for(&**h, "somewhere", HOUR).await;
    h.advance(HOUR - MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(MINUTE + Duration::from_secs(1)).await;
    assert_eq!(names(&take(&**h, 2).await), ["a", "b"]);
    assert_eq!(states(&**h).await, []);
}

pub async fn keep_the_later_end<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    hold_for(&**h, "somewhere", HOUR).await;
    hold_for(&**h, "somewhere", MINUTE).await;
    h.advance(2 * MINUTE).await;
    nothing_is_due(&**h).await;
    hold_for(&**h, "somewhere", 2 * HOUR).await;
    h.advance(HOUR + MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(HOUR).await;
    take_one(&**h).await;
}

pub async fn set_in_parallel_keep_the_latest_end<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let workers = u32::try_from(h.capabilities().workers).unwrap_or(8);
    in_parallel(h, h.capabilities().workers, |h, n| async move {
        let store = h.open().await;
        let minutes = u32::try_from(n + 1).unwrap_or(1);
        for _ in 0..100 {
            let period = 10 * minutes * MINUTE;
            let reason = "429".to_owned();
            match store.hold("somewhere", Hold::For { period, reason }).await {
                Ok(()) => return,
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("hold failed: {error:?}"),
            }
        }
    })
    .await;
    h.advance(10 * workers * MINUTE - MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(2 * MINUTE).await;
    take_one(&**h).await;
}

pub async fn of_the_disabling_kind_last_until_freed<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    disable(&**h, "somewhere").await;
    hold_for(&**h, "somewhere", MINUTE).await;
    h.advance(24 * HOUR).await;
    nothing_is_due(&**h).await;
    assert_eq!(stats(&**h).await.pending.value, 1, "nothing is dropped");
    let state = states(&**h).await.remove(0);
    assert!(state.disabled);
    assert_eq!(state.reason.as_deref(), Some("410"));
    hold(&**h, "somewhere", Hold::Free).await;
    take_one(&**h).await;
}

pub async fn of_the_disabling_kind_replace_a_timed_one<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    hold_for(&**h, "somewhere", HOUR).await;
    disable(&**h, "somewhere").await;
    h.advance(2 * HOUR).await;
    nothing_is_due(&**h).await;
    hold(&**h, "somewhere", Hold::Free).await;
    take_one(&**h).await;
}

pub async fn are_lifted_by_free<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    hold(&**h, "somewhere", Hold::Free).await;
    hold_for(&**h, "somewhere", HOUR).await;
    hold(&**h, "somewhere", Hold::Free).await;
    take_one(&**h).await;
    assert_eq!(states(&**h).await, []);
}

pub async fn let_what_is_in_flight_end<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 3)).await;
    let taken = take(&**h, 3).await;
    hold_for(&**h, "somewhere", HOUR).await;
    publish(&**h, &taken[..1]).await;
    end(&**h, &taken[1], retry(MINUTE)).await;
    end(&**h, &taken[2], crate::Outcome::Release).await;
    h.advance(10 * MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(HOUR).await;
    assert_eq!(names(&take(&**h, 2).await), ["a1", "a2"]);
}

pub async fn bear_any_period_and_text<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let reason = "a\0b".repeat(10_000);
    let period = Duration::MAX;
    hold(
        &**h,
        "somewhere",
        Hold::For {
            period,
            reason: reason.clone(),
        },
    )
    .await;
    h.advance(24 * HOUR).await;
    nothing_is_due(&**h).await;
    hold(&**h, "somewhere", Hold::Disabled { reason }).await;
    hold(&**h, "somewhere", Hold::Free).await;
    hold_for(&**h, "somewhere", Duration::ZERO).await;
    take_one(&**h).await;
}

pub async fn hide_no_other_destination<H: Harness>(h: &Arc<H>) {
    let backlog = h.capabilities().backlog;
    put(&**h, events("x", backlog)).await;
    let keyed = events("y", 30).into_iter().enumerate();
    put(
        &**h,
        keyed.map(|(n, event)| event.key(n)).collect::<Vec<_>>(),
    )
    .await;
    disable(&**h, "somewhere").await;
    put(&**h, [event("a").to("A"), event("b").to("B").key("k")]).await;
    assert_eq!(names(&take(&**h, 2).await), ["a", "b"]);
    nothing_is_due(&**h).await;
    let parked = u64::try_from(backlog + 30).unwrap_or(u64::MAX);
    assert_eq!(stats(&**h).await.parked.value, parked);
    hold(&**h, "somewhere", Hold::Free).await;
    assert_eq!(take(&**h, backlog + 30).await.len(), backlog + 30);
}

pub async fn of_many_keys_shorten_no_run_of_others<H: Harness>(h: &Arc<H>) {
    disable(&**h, "somewhere").await;
    let held = (0..200).map(|n| event("x").key(n));
    put(&**h, held.collect::<Vec<_>>()).await;
    nothing_is_due(&**h).await;
    let open = (0..200).map(|_| event("y").to("elsewhere").key("k"));
    put(&**h, open.collect::<Vec<_>>()).await;
    let mut left = 200;
    for _ in 0..40 {
        let claim = claim(h.store(), &request(100)).await;
        left -= claim.events.len();
        publish(&**h, &claim.events).await;
        if left == 0 {
            return;
        }
    }
    panic!("{left} of 200 are left after forty claims of a hundred");
}

pub async fn that_end_let_no_backlog_starve_others<H: Harness>(h: &Arc<H>) {
    disable(&**h, "somewhere").await;
    put(&**h, events("x", h.capabilities().backlog)).await;
    nothing_is_due(&**h).await;
    hold(&**h, "somewhere", Hold::Free).await;
    put(&**h, [event("wanted").to("elsewhere")]).await;
    for _ in 0..20 {
        let claim = claim(h.store(), &request(5)).await;
        if names(&claim.events).contains(&"wanted".to_owned()) {
            return;
        }
        publish(&**h, &claim.events).await;
    }
    panic!("the event of another destination was not claimed in 20 rounds");
}

pub async fn and_policies_are_listed<H: Harness>(h: &Arc<H>) {
    assert_eq!(states(&**h).await, []);
    hold_for(&**h, "b", HOUR).await;
    disable(&**h, "C").await;
    for (to, policy) in [("a", DeadHeadPolicy::Block), ("d", DeadHeadPolicy::Skip)] {
        let set = h.store().set_dead_head_policy(to, policy);
        set.await.must("set_dead_head_policy");
    }
    put(&**h, [event("e").to("e")]).await;
    let mut seen = Vec::new();
    let mut page = DestinationPage {
        rows: 2,
        ..DestinationPage::default()
    };
    loop {
        let states = h.store().destinations(&page).await.must("destinations");
        let Some(last) = states.last() else { break };
        page.after = Some(last.destination.clone());
        seen.extend(states);
    }
    let seen: Vec<_> = seen
        .iter()
        .map(|state| {
            let name = state.destination.as_str();
            (
                name,
                state.disabled,
                state.held_until.is_some(),
                state.dead_head_policy,
            )
        })
        .collect();
    use DeadHeadPolicy::{Block, Skip};
    assert_eq!(
        seen,
        [
            ("C", true, false, Skip),
            ("a", false, false, Block),
            ("b", false, true, Skip)
        ]
    );
}

pub async fn that_ended_leave_no_reason<H: Harness>(h: &Arc<H>) {
    let set = h
        .store()
        .set_dead_head_policy("somewhere", DeadHeadPolicy::Block);
    set.await.must("set_dead_head_policy");
    hold_for(&**h, "somewhere", MINUTE).await;
    let held = states(&**h).await.remove(0);
    assert_eq!(held.reason.as_deref(), Some("429"));
    h.advance(2 * MINUTE).await;
    let ended = states(&**h).await.remove(0);
    assert_eq!((ended.held_until, ended.reason), (None, None));
}

pub async fn are_told_to_an_idle_relay<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    hold_for(&**h, "somewhere", 10 * MINUTE).await;
    if let Some(next_due) = claim(h.store(), &request(1)).await.next_due {
        assert!(
            next_due <= 10 * MINUTE + Duration::from_secs(1),
            "{next_due:?}"
        );
    }
    h.advance(11 * MINUTE).await;
    assert_eq!(drain(&**h, 1).await, ["a"]);
}
