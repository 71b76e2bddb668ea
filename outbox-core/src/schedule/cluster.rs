//! Single flight among processes, by a leased lock.

use std::future::Future;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use super::job::JobEnd;
use super::scheduled::Cluster;
use crate::faults::{contained, contained_future, error_chain};
use crate::{Error, ErrorKind, LeaseStatus, LeaseToken, LockRequest, LockStatus, Timer};

/// The longest that a call to the locks may take; with a short lease, a third of it.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// Runs `work` under the lock, and keeps it closed for `cooldown` after.
pub(super) async fn under_lock(
    cluster: &Cluster,
    timer: &dyn Timer,
    work: impl Future<Output = JobEnd>,
    cooldown: impl FnOnce() -> Duration,
) -> JobEnd {
    let request = LockRequest::new(&cluster.lock).lease(cluster.lease);
    let token = request.token;
    let asked = timer.now();
    let taken = async { cluster.locks.try_lock(&request).await };
    match call(cluster, timer, taken).await {
        Ok(LockStatus::Acquired) => {}
        Ok(LockStatus::Held { .. }) => return JobEnd::Elsewhere,
        Err(error) => {
            // The answer may have been lost on its way: free what may have been taken.
            release(cluster, timer, token, Duration::ZERO).await;
            return JobEnd::LockFailed(error_chain(&error));
        }
    }
    // Both are polled as siblings: neither waits for the other's connection.
    let keeper = keep(cluster, timer, token, asked);
    let end = match select(Box::pin(work), Box::pin(keeper)).await {
        Either::Left((end, _)) => end,
        Either::Right(((), _)) => return JobEnd::LockLost,
    };
    let cooldown = contained(cooldown).unwrap_or_else(|panic| {
        tracing::warn!(target: "outbox::scheduler", lock = cluster.lock, panic, "the schedule panicked; no cool-down");
        Duration::ZERO
    });
    release(cluster, timer, token, cooldown).await;
    end
}

/// Extends the lease at each third of it; ends when it is lost.
async fn keep(cluster: &Cluster, timer: &dyn Timer, token: LeaseToken, asked: Instant) {
    // Counted from before the question, so never longer than the store counts.
    let mut held_since = asked;
    loop {
        let left = |now: Instant| {
            let held = now.saturating_duration_since(held_since);
            cluster.lease.saturating_sub(held)
        };
        timer
            .sleep((cluster.lease / 3).min(left(timer.now())))
            .await;
        let now = timer.now();
        if left(now).is_zero() {
            return;
        }
        let by = cluster.lease;
        let extended = async { cluster.locks.extend_lock(&cluster.lock, token, by).await };
        match call(cluster, timer, extended).await {
            Ok(LeaseStatus::Ours) => held_since = now,
            Ok(LeaseStatus::Lost | LeaseStatus::Unknown) => return,
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(target: "outbox::scheduler", lock = cluster.lock, error, "lock not extended");
            }
        }
    }
}

async fn release(cluster: &Cluster, timer: &dyn Timer, token: LeaseToken, cooldown: Duration) {
    let released = async { cluster.locks.unlock(&cluster.lock, token, cooldown).await };
    if let Err(error) = call(cluster, timer, released).await {
        let error = error_chain(&error);
        tracing::warn!(target: "outbox::scheduler", lock = cluster.lock, error, "lock not released; its lease will end");
    }
}

/// One call to the locks: one that panics or hangs has failed.
async fn call<T>(
    cluster: &Cluster,
    timer: &dyn Timer,
    code: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let limit = (cluster.lease / 3).min(LONGEST_CALL);
    match select(Box::pin(contained_future(code)), timer.sleep(limit)).await {
        Either::Left((Ok(answer), _)) => answer,
        Either::Left((Err(panic), _)) => {
            let message = format!("the locks panicked: {panic}");
            Err(Error::new(ErrorKind::Other, message))
        }
        Either::Right(_) => {
            let message = format!("the locks did not answer within {limit:?}");
            Err(Error::new(ErrorKind::Unavailable, message))
        }
    }
}
