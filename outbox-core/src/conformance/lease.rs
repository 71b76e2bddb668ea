//! Extending leases, and giving them back.

use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{
    HOUR, LEASE, MINUTE, Must, OVER_LEASE, claim, drain, end, event, events, leases,
    nothing_is_due, publish, put, request, stats, take, take_one,
};
use crate::{Lease, LeaseStatus, LeaseToken, OutboxStore, Outcome};

use LeaseStatus::{Lost, Ours, Unknown};

pub async fn extended_keeps_the_event<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a"), event("b").key("k")]).await;
    let taken = take(&**h, 2).await;
    for _ in 0..3 {
        h.advance(LEASE - MINUTE).await;
        let answers = h
            .store()
            .extend(&leases(&taken), LEASE)
            .await
            .must("extend");
        assert_eq!(answers, [Ours, Ours]);
        nothing_is_due(&**h).await;
    }
    h.advance(OVER_LEASE).await;
    let again = take(&**h, 2).await;
    assert!(again.iter().all(|claimed| claimed.event.attempts == 2));
}

pub async fn extended_counts_from_now<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let taken = take(&**h, 1).await;
    let answers = h.store().extend(&leases(&taken), HOUR).await.must("extend");
    assert_eq!(answers, [Ours]);
    h.advance(HOUR - MINUTE).await;
    nothing_is_due(&**h).await;
    h.advance(2 * MINUTE).await;
    take_one(&**h).await;
}

pub async fn extension_ignores_a_lost_lease<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 2)).await;
    let stale = take(&**h, 2).await;
    publish(&**h, &stale[1..]).await;
    h.advance(OVER_LEASE).await;
    let holder = take_one(&**h).await;
    let answers = h
        .store()
        .extend(&leases(&stale), 24 * HOUR)
        .await
        .must("extend");
    assert_eq!(answers, [Lost, Unknown]);
    h.advance(OVER_LEASE).await;
    assert_eq!(take_one(&**h).await.event.id, holder.event.id);
}

pub async fn extension_revives_an_ended_lease_of_an_event_without_a_key<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 2)).await;
    let taken = take(&**h, 2).await;
    h.advance(OVER_LEASE).await;
    let answers = h
        .store()
        .extend(&leases(&taken), LEASE)
        .await
        .must("extend");
    assert_eq!(answers, [Ours, Ours]);
    nothing_is_due(&**h).await;
    publish(&**h, &taken).await;
}

/// Another event of the key may have been claimed meanwhile.
pub async fn extension_of_an_ended_lease_of_a_key_is_refused<H: Harness>(h: &Arc<H>) {
    put(&**h, ["a", "b"].map(|name| event(name).key("k")).to_vec()).await;
    put(&**h, [event("c")]).await;
    let stale = take(&**h, 3).await;
    h.advance(OVER_LEASE).await;
    let extend = || async { h.store().extend(&leases(&stale), LEASE).await };
    assert_eq!(extend().await.must("extend"), [Lost, Lost, Ours]);
    let again = take(&**h, 2).await;
    assert_eq!(super::kit::names(&again), ["a", "b"]);
    assert!(again.iter().all(|claimed| claimed.event.attempts == 2));
    assert_eq!(extend().await.must("extend"), [Lost, Lost, Ours]);
    publish(&**h, &again).await;
}

pub async fn extension_bears_any_period<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let taken = take(&**h, 1).await;
    let answers = h
        .store()
        .extend(&leases(&taken), Duration::MAX)
        .await
        .must("extend");
    assert_eq!(answers, [Ours]);
    h.advance(24 * HOUR).await;
    nothing_is_due(&**h).await;
    publish(&**h, &taken).await;
}

pub async fn released_is_due_at_once_and_uncharged<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [event("a"), event("b").key("k"), event("c").delay(MINUTE)],
    )
    .await;
    h.advance(2 * MINUTE).await;
    for _ in 0..3 {
        let taken = take(&**h, 3).await;
        assert!(taken.iter().all(|claimed| claimed.event.attempts == 1));
        let answers = h.store().release(&leases(&taken)).await.must("release");
        assert_eq!(answers, [Ours, Ours, Ours]);
    }
}

pub async fn release_ignores_a_lost_lease<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 2)).await;
    let stale = take(&**h, 2).await;
    publish(&**h, &stale[1..]).await;
    h.advance(OVER_LEASE).await;
    let holder = take_one(&**h).await;
    let answers = h.store().release(&leases(&stale)).await.must("release");
    assert_eq!(answers, [Lost, Unknown]);
    nothing_is_due(&**h).await;
    assert_eq!(holder.event.attempts, 2);
    publish(&**h, &[holder]).await;
}

pub async fn released_twice_is_refunded_once<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    end(
        &**h,
        &take_one(&**h).await,
        super::kit::retry(Duration::ZERO),
    )
    .await;
    let taken = take(&**h, 1).await;
    assert_eq!(taken[0].event.attempts, 2);
    let lease = [taken[0].lease];
    let release = || h.store().release(&lease);
    assert_eq!(release().await.must("release"), [Ours]);
    assert_eq!(release().await.must("release"), [Unknown]);
    assert_eq!(take_one(&**h).await.event.attempts, 2);
}

/// As when the answer to a claim was lost on its way.
pub async fn of_a_whole_claim_is_released_by_its_token<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 5)).await;
    put(
        &**h,
        ["b", "c", "d"].map(|name| event(name).key("k")).to_vec(),
    )
    .await;
    let asked = request(8);
    let taken = claim(h.store(), &asked).await.events.len();
    let released = h
        .store()
        .release_claim(asked.token)
        .await
        .must("release_claim");
    assert_eq!(released, u64::try_from(taken).unwrap_or(u64::MAX));
    let again = take(&**h, 8).await;
    assert!(again.iter().all(|claimed| claimed.event.attempts == 1));
}

pub async fn of_other_claims_is_left_alone<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 2)).await;
    let taken = take(&**h, 1).await;
    let unknown = LeaseToken::new();
    assert_eq!(
        h.store().release_claim(unknown).await.must("release_claim"),
        0
    );
    let other = take(&**h, 1).await;
    let released = h
        .store()
        .release_claim(other[0].lease.token)
        .await
        .must("release_claim");
    assert_eq!(released, 1);
    publish(&**h, &taken).await;
    assert_eq!(stats(&**h).await.pending.value, 1);
}

pub async fn of_a_stale_token_is_not_released<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let stale = take_one(&**h).await;
    h.advance(OVER_LEASE).await;
    let holder = take_one(&**h).await;
    let released = h
        .store()
        .release_claim(stale.lease.token)
        .await
        .must("release_claim");
    assert_eq!(released, 0);
    nothing_is_due(&**h).await;
    publish(&**h, &[holder]).await;
}

pub async fn answers_in_the_order_of_the_leases<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 3)).await;
    let taken = take(&**h, 3).await;
    publish(&**h, &taken[1..2]).await;
    let never = Lease::new(taken[2].lease.seq, LeaseToken::new());
    let asked = [taken[2].lease, never, taken[1].lease, taken[0].lease];
    let answers = h.store().extend(&asked, LEASE).await.must("extend");
    assert_eq!(answers, [Ours, Lost, Unknown, Ours]);
    let asked = [never, taken[0].lease, taken[1].lease, taken[2].lease];
    let answers = h.store().release(&asked).await.must("release");
    assert_eq!(answers, [Lost, Ours, Unknown, Ours]);
    assert_eq!(drain(&**h, 10).await, ["a0", "a2"]);
}

pub async fn shorter_than_the_work_hands_the_event_over<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("a")]).await;
    let mut asked = request(1);
    asked.lease = MINUTE;
    let slow = super::kit::take_as(&**h, 1, &asked).await;
    h.advance(2 * MINUTE).await;
    let next = take_one(&**h).await;
    assert_eq!(
        super::kit::settle(&**h, &slow[0], Outcome::Published).await,
        Lost
    );
    publish(&**h, &[next]).await;
}
