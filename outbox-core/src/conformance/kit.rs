//! What the cases are written with. Every helper fails the case where the store fails.

use std::future::{Future, poll_fn};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::future::join_all;

use super::Harness;
use crate::{
    Claim, ClaimRequest, Claimed, DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, Enqueued,
    Error, Lease, LeaseStatus, Maintenance, NewEvent, OutboxStore, Outcome, Page, Settlement,
    Stats,
};

/// Far longer than any case runs.
pub(super) const LEASE: Duration = Duration::from_secs(600);
/// A little more.
pub(super) const OVER_LEASE: Duration = Duration::from_secs(601);
/// Far longer than any case runs; shorter than a lease.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// Names that some collations take for one.
pub(super) const SPELLINGS: [&str; 6] = ["D", "d", "d ", "dé", "de\u{301}", "d/"];

/// A store may give less than it has: this often it is asked again.
const TRIES: usize = 50;

/// Unwraps what must not fail.
pub(super) trait Must<T> {
    fn must(self, what: &str) -> T;
}

impl<T> Must<T> for Result<T, Error> {
    #[track_caller]
    fn must(self, what: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("{what} failed: {error:?}"),
        }
    }
}

/// An event whose payload is its name.
pub(super) fn event(name: &str) -> NewEvent {
    NewEvent::bytes("Tested", name.to_owned()).to("somewhere")
}

/// `count` events named `prefix` and a number.
pub(super) fn events(prefix: &str, count: usize) -> Vec<NewEvent> {
    (0..count).map(|n| event(&format!("{prefix}{n}"))).collect()
}

pub(super) fn name(claimed: &Claimed) -> String {
    String::from_utf8_lossy(&claimed.event.payload).into_owned()
}

pub(super) fn names(claimed: &[Claimed]) -> Vec<String> {
    claimed.iter().map(name).collect()
}

pub(super) fn sorted_names(claimed: &[Claimed]) -> Vec<String> {
    let mut names = names(claimed);
    names.sort_unstable();
    names
}

pub(super) fn leases(claimed: &[Claimed]) -> Vec<Lease> {
    claimed.iter().map(|claimed| claimed.lease).collect()
}

pub(super) fn request(rows: usize) -> ClaimRequest {
    let rows = u32::try_from(rows).ok().and_then(NonZeroU32::new);
    ClaimRequest::new(rows.unwrap_or(NonZeroU32::MIN), LEASE)
}

/// Enqueues and commits.
pub(super) async fn put<H: Harness>(h: &H, events: impl Into<Vec<NewEvent>>) -> Vec<Enqueued> {
    let mut tx = h.begin().await;
    let answers = h.enqueue_all(&mut tx, events.into()).await.must("enqueue");
    h.commit(tx).await;
    answers
}

pub(super) async fn claim(store: &impl OutboxStore, request: &ClaimRequest) -> Claim {
    store.claim(request).await.must("claim")
}

/// Claims with new tokens until `count` events are there.
pub(super) async fn take<H: Harness>(h: &H, count: usize) -> Vec<Claimed> {
    take_as(h, count, &request(count)).await
}

/// As [`take`], with the filters and limits of `request`.
pub(super) async fn take_as<H: Harness>(h: &H, count: usize, like: &ClaimRequest) -> Vec<Claimed> {
    let mut taken: Vec<Claimed> = Vec::new();
    for _ in 0..TRIES {
        if taken.len() >= count {
            break;
        }
        let mut next = like.clone();
        next.token = request(1).token;
        next.rows = like.rows.min(request(count - taken.len()).rows);
        taken.extend(claim(h.store(), &next).await.events);
    }
    let names = names(&taken);
    assert_eq!(
        taken.len(),
        count,
        "{count} events are due; claims brought {names:?}"
    );
    taken.sort_by_key(|claimed| claimed.lease.seq);
    taken
}

/// Claims the one event that is due.
pub(super) async fn take_one<H: Harness>(h: &H) -> Claimed {
    take(h, 1).await.remove(0)
}

/// No claim brings anything.
pub(super) async fn nothing_is_due<H: Harness>(h: &H) {
    nothing_is_due_for(h, &request(100)).await;
}

pub(super) async fn nothing_is_due_for<H: Harness>(h: &H, like: &ClaimRequest) {
    for _ in 0..3 {
        let mut next = like.clone();
        next.token = request(1).token;
        let names = names(&claim(h.store(), &next).await.events);
        assert_eq!(names, [""; 0], "nothing should be due");
    }
}

pub(super) async fn settle<H: Harness>(h: &H, claimed: &Claimed, outcome: Outcome) -> LeaseStatus {
    let batch = [Settlement::new(claimed.lease, outcome)];
    let answers = h.store().settle(&batch).await.must("settle");
    assert_eq!(answers.len(), 1, "one answer for one settlement");
    answers[0]
}

/// Settles with a lease that is the caller's.
pub(super) async fn end<H: Harness>(h: &H, claimed: &Claimed, outcome: Outcome) {
    let status = settle(h, claimed, outcome).await;
    assert_eq!(status, LeaseStatus::Ours, "settling {:?}", name(claimed));
}

pub(super) async fn publish<H: Harness>(h: &H, claimed: &[Claimed]) {
    let settle = |lease| Settlement::new(lease, Outcome::Published);
    let batch: Vec<_> = leases(claimed).into_iter().map(settle).collect();
    let answers = h.store().settle(&batch).await.must("settle");
    assert_eq!(answers, vec![LeaseStatus::Ours; batch.len()]);
}

pub(super) fn retry(after: Duration) -> Outcome {
    Outcome::Retry {
        after,
        error: "503".to_owned(),
    }
}

pub(super) fn defer(after: Duration) -> Outcome {
    Outcome::Defer {
        after,
        reason: "busy".to_owned(),
    }
}

pub(super) fn dead() -> Outcome {
    dead_of(DeathReason::Rejected)
}

pub(super) fn dead_of(reason: DeathReason) -> Outcome {
    Outcome::Dead {
        reason,
        error: "400".to_owned(),
    }
}

/// Enqueues these and lets each die.
pub(super) async fn bury<H: Harness>(h: &H, events: impl Into<Vec<NewEvent>>) -> Vec<Claimed> {
    let events = events.into();
    let count = events.len();
    put(h, events).await;
    let taken = take(h, count).await;
    for claimed in &taken {
        end(h, claimed, dead()).await;
    }
    taken
}

/// Three open events, of which the middle one's row makes no event; its `seq`. None where the harness can't
/// damage one.
pub(super) async fn one_of_three_damaged<H: Harness>(h: &H) -> Option<i64> {
    put(h, events("a", 3)).await;
    let taken = take(h, 3).await;
    for claimed in &taken {
        end(h, claimed, Outcome::Release).await;
    }
    let seq = taken[1].lease.seq;
    h.damage(seq).await.then_some(seq)
}

pub(super) async fn letters<H: Harness>(h: &H) -> Vec<DeadLetter> {
    let all = DeadLetterFilter::all();
    h.store().list(&all, &Page::default()).await.must("list")
}

pub(super) async fn stats<H: Harness>(h: &H) -> Stats {
    h.store().stats(100_000).await.must("stats")
}

/// Claims and publishes, `rows` at a time, until nothing is open; returns the names in order.
pub(super) async fn drain<H: Harness>(h: &H, rows: usize) -> Vec<String> {
    let mut order = Vec::new();
    let mut idle = 0;
    while idle < TRIES {
        let claim = claim(h.store(), &request(rows)).await;
        order.extend(names(&claim.events));
        publish(h, &claim.events).await;
        if !claim.events.is_empty() {
            idle = 0;
        } else if stats(h).await.pending.value == 0 {
            return order;
        } else {
            idle += 1;
        }
    }
    let open = stats(h).await;
    panic!(
        "some events are never claimed: {open:?} after {} were",
        order.len()
    );
}

/// As [`drain`], beside calls that were cut short: a store may still be at work on them, and they
/// lease rows, or lock them, after this began.
#[expect(
    clippy::disallowed_methods,
    reason = "ends a case that would never end"
)]
pub(super) async fn drain_beside_cut_calls<H: Harness>(h: &H, rows: usize) -> Vec<String> {
    let begun = Instant::now();
    let mut order = Vec::new();
    while stats(h).await.pending.value > 0 {
        assert!(
            begun.elapsed() < MINUTE,
            "some events are never claimed; {} were",
            order.len()
        );
        let claim = claim(h.store(), &request(rows)).await;
        order.extend(names(&claim.events));
        publish(h, &claim.events).await;
        if claim.events.is_empty() {
            h.advance(OVER_LEASE).await;
        }
    }
    order
}

/// A measured period: not shorter than expected, and longer only by what the case took.
#[track_caller]
pub(super) fn assert_near(measured: Duration, expected: Duration) {
    let slack = Duration::from_secs(50);
    assert!(
        measured + Duration::from_secs(1) >= expected && measured <= expected + slack,
        "{measured:?} is not about {expected:?}"
    );
}

/// What is left of a period: not longer than expected, and shorter only by what the case took.
#[track_caller]
pub(super) fn assert_left(measured: Duration, expected: Duration) {
    assert_near(expected, measured);
}

/// Runs `count` workers, in parallel where the harness can, and returns what they return.
pub(super) async fn in_parallel<H, T, W, F>(h: &Arc<H>, count: usize, work: W) -> Vec<T>
where
    H: Harness,
    W: Fn(Arc<H>, usize) -> F,
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let work = (0..count).map(|n| work(Arc::clone(h), n));
    let Some(spawner) = h.spawner() else {
        return join_all(work).await;
    };
    let mut answers = Vec::new();
    for task in work {
        let (tell, answer) = oneshot::channel();
        spawner.spawn(Box::pin(async move {
            let _ = tell.send(task.await);
        }));
        answers.push(answer);
    }
    let answers = join_all(answers).await.into_iter();
    answers
        .map(|answer| match answer {
            Ok(answer) => answer,
            Err(oneshot::Canceled) => panic!("a worker failed; its own message stands above"),
        })
        .collect()
}

/// Calls until it is no conflict.
pub(super) async fn patient<F, T>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 0..200 {
        match call().await {
            Ok(answer) => return answer,
            Err(error) if error.is_retryable() => {}
            Err(error) => panic!("a call failed: {error:?}"),
        }
    }
    panic!("two hundred conflicts in a row")
}

/// Asks until it is so. A database may still be at work on calls that were cut short.
#[expect(
    clippy::disallowed_methods,
    reason = "ends a case that would never end"
)]
pub(super) async fn until(so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(
            begun.elapsed() < MINUTE,
            "a minute went by, and it is not so"
        );
    }
}

/// More often than any call of a case is polled.
pub(super) const POLLS: usize = 200;

/// Polls a future this often, each time when it asks for that, and drops it, as a time-out would.
pub(super) async fn cut_short<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(|cx| {
        while left > 0 {
            left -= 1;
            if let Poll::Ready(answer) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            if left > 0 {
                return Poll::Pending;
            }
        }
        Poll::Ready(None)
    })
    .await
}

/// Lets `cut` make a call and cut it short, each time one poll later, until it says that the call came
/// to its end. On the store itself, whose next call may come by the same connection; and on another
/// handle, whose calls go on at the database beside the next one of the store.
pub(super) async fn at_every_poll<H: Harness>(
    h: &Arc<H>,
    cut: impl AsyncFn(&H::Store, usize) -> bool,
) {
    let other = h.open().await;
    for store in [h.store(), &other] {
        let mut polls = 0;
        while !cut(store, polls).await {
            polls += 1;
            assert!(polls < POLLS, "a call does not come to its end");
        }
    }
}
