//! Deleting what is old enough.

use async_trait::async_trait;

use crate::{Error, IdempotencyKeys, Job, JobRun, Maintenance, Prune};

/// Deletes old published events, dead letters and de-duplication keys, as [`Prune`] says: batch
/// after batch until one is not full, each in its own short transaction.
///
/// Hourly is often enough for most; a run ends early at a shutdown.
///
/// # Example
///
/// ```
/// # use std::time::Duration;
/// use outbox_core::{Prune, Schedule, ScheduledJob, jobs::PruneStore};
/// # fn job(store: impl outbox_core::Maintenance + 'static) {
///
/// let hourly = Schedule::every(Duration::from_secs(60 * 60));
/// let job = ScheduledJob::new("prune", hourly, PruneStore::new(store, Prune::default()));
/// # }
/// ```
#[derive(Debug)]
pub struct PruneStore<M> {
    store: M,
    prune: Prune,
}

impl<M: Maintenance> PruneStore<M> {
    /// Prunes `store`.
    pub const fn new(store: M, prune: Prune) -> Self {
        Self { store, prune }
    }
}

#[async_trait]
impl<M: Maintenance> Job for PruneStore<M> {
    async fn run(&self, run: JobRun) -> Result<(), Error> {
        let full = u64::from(self.prune.rows.max(1));
        while !run.is_stopping() {
            let pruned = self.store.prune(&self.prune).await?;
            if [pruned.published, pruned.dead, pruned.dedup]
                .iter()
                .all(|rows| *rows < full)
            {
                break;
            }
        }
        Ok(())
    }
}

/// Deletes idempotency keys and inbox ids whose retention has passed, batch after batch.
#[derive(Debug)]
pub struct PruneIdempotencyKeys<K> {
    keys: K,
    rows: u32,
}

impl<K: IdempotencyKeys> PruneIdempotencyKeys<K> {
    /// Prunes `keys`, up to 1,000 rows in one call.
    pub const fn new(keys: K) -> Self {
        Self { keys, rows: 1_000 }
    }
}

#[async_trait]
impl<K: IdempotencyKeys> Job for PruneIdempotencyKeys<K> {
    async fn run(&self, run: JobRun) -> Result<(), Error> {
        while !run.is_stopping() {
            if self.keys.prune_keys(self.rows).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}
