//! Telling the state of a store to an observer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::observe::notify;
use crate::{Error, Job, JobRun, Maintenance, Observer, Transition};

/// Asks a store for its [`Stats`](crate::Stats) and tells them to an observer, such as one that
/// keeps gauges or raises alerts.
///
/// Every process may do it, as the numbers are those of the whole store; one is enough. Once in 15
/// seconds to a minute costs next to nothing.
pub struct ExportStats<M> {
    store: M,
    observer: Arc<dyn Observer>,
    count_limit: u32,
}

impl<M: Maintenance> ExportStats<M> {
    /// Tells `observer` the state of `store`. Counts stop at 100,000.
    pub fn new(store: M, observer: impl Observer + 'static) -> Self {
        Self {
            store,
            observer: Arc::new(observer),
            count_limit: 100_000,
        }
    }

    /// Where counts stop: a greater backlog is told as this.
    #[must_use]
    pub const fn count_limit(mut self, rows: u32) -> Self {
        self.count_limit = rows;
        self
    }
}

#[async_trait]
impl<M: Maintenance> Job for ExportStats<M> {
    async fn run(&self, _: JobRun) -> Result<(), Error> {
        let stats = self.store.stats(self.count_limit).await?;
        notify(&*self.observer, &Transition::Stats { stats: &stats });
        Ok(())
    }
}

impl<M> fmt::Debug for ExportStats<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportStats")
            .field("count_limit", &self.count_limit)
            .finish_non_exhaustive()
    }
}
