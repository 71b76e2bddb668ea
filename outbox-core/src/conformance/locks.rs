//! Leased locks.

use std::sync::Arc;
use std::time::Duration;

use super::ReceivingHarness;
use super::kit::{HOUR, MINUTE, Must, assert_left, at_every_poll, cut_short, in_parallel, patient};
use crate::{ErrorKind, EventId, LeaseStatus, LockRequest, LockStatus, Locks};

/// A request with a lease of ten minutes.
fn request() -> LockRequest {
    LockRequest::new("job").lease(10 * MINUTE)
}

async fn try_lock<H: ReceivingHarness>(h: &H, request: &LockRequest) -> LockStatus {
    h.store().try_lock(request).await.must("try_lock")
}

async fn extend<H: ReceivingHarness>(h: &H, lock: &LockRequest, by: Duration) -> LeaseStatus {
    let extended = h.store().extend_lock(&lock.name, lock.token, by).await;
    extended.must("extend_lock")
}

async fn unlock<H: ReceivingHarness>(h: &H, lock: &LockRequest, cool: Duration) -> LeaseStatus {
    let unlocked = h.store().unlock(&lock.name, lock.token, cool).await;
    unlocked.must("unlock")
}

/// It is closed, for about this long.
async fn is_closed<H: ReceivingHarness>(h: &H, expected: Duration) {
    is_closed_to(h, &request(), expected).await;
}

async fn is_closed_to<H: ReceivingHarness>(h: &H, other: &LockRequest, expected: Duration) {
    match try_lock(h, other).await {
        LockStatus::Held { retry_after } => assert_left(retry_after, expected),
        LockStatus::Acquired => panic!("the lock is open"),
    }
}

pub async fn are_held_by_one_of_many<H: ReceivingHarness>(h: &Arc<H>) {
    let acquired = in_parallel(h, h.capabilities().workers, |h, _| async move {
        let (store, request) = (h.open().await, request());
        for _ in 0..200 {
            match store.try_lock(&request).await {
                Ok(status) => return status == LockStatus::Acquired,
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("try_lock failed: {error:?}"),
            }
        }
        panic!("two hundred conflicts in a row")
    })
    .await;
    assert_eq!(acquired.iter().filter(|acquired| **acquired).count(), 1);
}

pub async fn are_held_until_their_lease_ends<H: ReceivingHarness>(h: &Arc<H>) {
    let (one, other) = (request(), request());
    assert_eq!(try_lock(&**h, &one).await, LockStatus::Acquired);
    h.advance(3 * MINUTE).await;
    is_closed(&**h, 7 * MINUTE).await;
    assert_eq!(
        try_lock(&**h, &one).await,
        LockStatus::Acquired,
        "a repeat renews"
    );
    h.advance(8 * MINUTE).await;
    is_closed(&**h, 2 * MINUTE).await;
    h.advance(3 * MINUTE).await;
    assert_eq!(extend(&**h, &one, 5 * MINUTE).await, LeaseStatus::Ours);
    is_closed(&**h, 5 * MINUTE).await;
    h.advance(6 * MINUTE).await;
    assert_eq!(try_lock(&**h, &other).await, LockStatus::Acquired);
    assert_eq!(extend(&**h, &one, HOUR).await, LeaseStatus::Lost);
    assert_eq!(unlock(&**h, &one, HOUR).await, LeaseStatus::Lost);
    is_closed(&**h, 10 * MINUTE).await;
}

pub async fn are_open_once_given_back<H: ReceivingHarness>(h: &Arc<H>) {
    let one = request();
    assert_eq!(unlock(&**h, &one, HOUR).await, LeaseStatus::Unknown);
    assert_eq!(try_lock(&**h, &one).await, LockStatus::Acquired);
    assert_eq!(unlock(&**h, &one, Duration::ZERO).await, LeaseStatus::Ours);
    assert_eq!(unlock(&**h, &one, HOUR).await, LeaseStatus::Unknown);
    assert_eq!(extend(&**h, &one, HOUR).await, LeaseStatus::Unknown);
    assert_eq!(try_lock(&**h, &request()).await, LockStatus::Acquired);
}

pub async fn stay_closed_while_they_cool_down<H: ReceivingHarness>(h: &Arc<H>) {
    let one = request();
    assert_eq!(try_lock(&**h, &one).await, LockStatus::Acquired);
    assert_eq!(unlock(&**h, &one, 5 * MINUTE).await, LeaseStatus::Ours);
    assert_eq!(unlock(&**h, &one, HOUR).await, LeaseStatus::Unknown);
    is_closed(&**h, 5 * MINUTE).await;
    let again = try_lock(&**h, &one).await;
    assert!(matches!(again, LockStatus::Held { .. }), "{again:?}");
    h.advance(6 * MINUTE).await;
    assert_eq!(try_lock(&**h, &request()).await, LockStatus::Acquired);
}

pub async fn are_apart_byte_for_byte<H: ReceivingHarness>(h: &Arc<H>) {
    for name in ["job", "Job", "job ", "jób"] {
        let status = try_lock(&**h, &LockRequest::new(name)).await;
        assert_eq!(status, LockStatus::Acquired, "{name:?}");
    }
}

pub async fn refuse_names_that_stores_cannot_keep<H: ReceivingHarness>(h: &Arc<H>) {
    for name in [String::new(), "n".repeat(256)] {
        let refused = h.store().try_lock(&LockRequest::new(name)).await;
        let kind = refused.err().map(|error| error.kind());
        assert_eq!(kind, Some(ErrorKind::InvalidConfig));
    }
}

pub async fn are_as_the_repeat_says_where_a_call_was_cut_short<H: ReceivingHarness>(h: &Arc<H>) {
    /// Two requests for a lock that no other call has.
    fn rivals() -> (LockRequest, LockRequest) {
        let name = EventId::new().to_string();
        let request = || LockRequest::new(&*name).lease(10 * MINUTE);
        (request(), request())
    }
    at_every_poll(h, async |store, polls| {
        let (one, other) = rivals();
        let mut ended = cut_short(polls, store.try_lock(&one)).await.is_some();
        let status = patient(|| h.store().try_lock(&one)).await;
        assert_eq!(status, LockStatus::Acquired);
        is_closed_to(&**h, &other, 10 * MINUTE).await;

        let (one, other) = rivals();
        assert_eq!(try_lock(&**h, &one).await, LockStatus::Acquired);
        let extend = async |store: &H::Store| store.extend_lock(&one.name, one.token, HOUR).await;
        ended &= cut_short(polls, extend(store)).await.is_some();
        assert_eq!(patient(|| extend(h.store())).await, LeaseStatus::Ours);
        is_closed_to(&**h, &other, HOUR).await;

        for cooldown in [Duration::ZERO, 5 * MINUTE] {
            let (one, other) = rivals();
            assert_eq!(try_lock(&**h, &one).await, LockStatus::Acquired);
            let unlock =
                async |store: &H::Store| store.unlock(&one.name, one.token, cooldown).await;
            ended &= cut_short(polls, unlock(store)).await.is_some();
            assert_ne!(patient(|| unlock(h.store())).await, LeaseStatus::Lost);
            if cooldown == Duration::ZERO {
                assert_eq!(try_lock(&**h, &other).await, LockStatus::Acquired);
            } else {
                is_closed_to(&**h, &other, cooldown).await;
            }
        }
        ended
    })
    .await;
}
