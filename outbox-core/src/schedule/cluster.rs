//! Single flight among processes, by a leased lock.

use std::future::Future;
use std::time::Duration;

use futures::future::{Either, select};

use super::job::JobEnd;
use super::scheduled::Cluster;
use crate::faults::error_chain;
use crate::{LeaseStatus, LeaseToken, LockRequest, LockStatus, Timer};

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
    match cluster.locks.try_lock(&request).await {
        Ok(LockStatus::Acquired) => {}
        Ok(LockStatus::Held { .. }) => return JobEnd::Elsewhere,
        Err(error) => {
            // The answer may have been lost on its way: free what may have been taken.
            release(cluster, token, Duration::ZERO).await;
            return JobEnd::LockFailed(error_chain(&error));
        }
    }
    // Both are polled as siblings: neither waits for the other's connection.
    let keeper = keep(cluster, timer, token, asked);
    let end = match select(Box::pin(work), Box::pin(keeper)).await {
        Either::Left((end, _)) => end,
        Either::Right(((), _)) => return JobEnd::LockLost,
    };
    release(cluster, token, cooldown()).await;
    end
}

/// Extends the lease at each third of it; ends when it is lost.
async fn keep(cluster: &Cluster, timer: &dyn Timer, token: LeaseToken, asked: std::time::Instant) {
    // Counted from before the question, so never longer than the store counts.
    let mut held_since = asked;
    loop {
        timer.sleep(cluster.lease / 3).await;
        let now = timer.now();
        let extended = cluster
            .locks
            .extend_lock(&cluster.lock, token, cluster.lease);
        match extended.await {
            Ok(LeaseStatus::Ours) => held_since = now,
            Ok(LeaseStatus::Lost | LeaseStatus::Unknown) => return,
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(target: "outbox::scheduler", lock = cluster.lock, error, "lock not extended");
                if timer.now().saturating_duration_since(held_since) >= cluster.lease {
                    return;
                }
            }
        }
    }
}

async fn release(cluster: &Cluster, token: LeaseToken, cooldown: Duration) {
    if let Err(error) = cluster.locks.unlock(&cluster.lock, token, cooldown).await {
        let error = error_chain(&error);
        tracing::warn!(target: "outbox::scheduler", lock = cluster.lock, error, "lock not released; its lease will end");
    }
}
