//! A job with its name, its schedule and its policies.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::job::Job;
use super::streak::Streak;
use super::when::{Schedule, When};
use crate::{Error, Locks, MAX_NAME};

/// Calls to the locks get a third of the lease: with less they could not be answered.
const LEAST_LEASE: Duration = Duration::from_secs(1);

/// What becomes of ticks that passed while the job ran, or while the process slept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// They are left out: the next run is at the next tick.
    Skip,
    /// One run at once stands for all of them.
    #[default]
    RunOnce,
    /// One run for each, one after another; of more than `most`, the newest.
    RunAll {
        /// The most runs at a time. At least 1.
        most: usize,
    },
}

/// A job with its name, its schedule and its policies. Clones share the guard against overlap.
#[derive(Clone)]
#[must_use = "a scheduled job does nothing until a scheduler runs it"]
pub struct ScheduledJob {
    pub(super) name: String,
    pub(super) schedule: Schedule,
    pub(super) job: Arc<dyn Job>,
    pub(super) missed: Missed,
    pub(super) timeout: Option<Duration>,
    pub(super) at_start: bool,
    pub(super) cluster: Option<Cluster>,
    lock_lease: Duration,
    pub(super) streak: Arc<Streak>,
    flight: Arc<AtomicBool>,
}

#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) locks: Arc<dyn Locks>,
    pub(super) lock: String,
    pub(super) lease: Duration,
}

impl ScheduledJob {
    /// `job` under a name and a schedule.
    ///
    /// The name is unique in a scheduler, and a label of metrics. One process runs it at most once
    /// at a time; for one process of many see [`cluster`](Self::cluster).
    pub fn new(name: impl Into<String>, schedule: Schedule, job: impl Job + 'static) -> Self {
        Self {
            name: name.into(),
            schedule,
            job: Arc::new(job),
            missed: Missed::default(),
            timeout: None,
            at_start: false,
            cluster: None,
            lock_lease: Duration::from_secs(60),
            streak: Arc::default(),
            flight: Arc::default(),
        }
    }

    /// What becomes of missed ticks. Default: [`Missed::RunOnce`].
    pub const fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// The time after which a run is dropped. Default: none.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Also when the scheduler starts. Default: at ticks only.
    pub const fn at_start(mut self) -> Self {
        self.at_start = true;
        self
    }

    /// One run at a time, and one run per tick, among all processes that share `locks` and this
    /// job's name.
    ///
    /// The lock is kept alive while the job runs and stays closed for a while after it: nine tenths
    /// of the time to the next tick (a cron job: a minute at most), so that a process whose clock
    /// is late does not run the tick again. Intervals count from each process's start; processes
    /// whose clocks differ by more than that run a cron tick twice.
    ///
    /// A call to `locks` may take a third of the [lease](Self::lock_lease), at most 10 s: then, or where
    /// it panics, the run has failed ([`JobEnd::LockFailed`](crate::JobEnd::LockFailed)) and is not made.
    pub fn cluster(mut self, locks: impl Locks + 'static) -> Self {
        self.cluster = Some(Cluster {
            locks: Arc::new(locks),
            lock: format!("outbox-job/{}", self.name),
            lease: self.lock_lease,
        });
        self
    }

    /// How long after a crash another process may run it. The lock is extended at a third of it.
    /// Default: one minute; at least 1 s. Without [`cluster`](Self::cluster), named before or after, it
    /// means nothing.
    pub const fn lock_lease(mut self, lease: Duration) -> Self {
        self.lock_lease = lease;
        if let Some(cluster) = &mut self.cluster {
            cluster.lease = lease;
        }
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |field: &str, problem: String| Err(Error::invalid_config(field, problem));
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_NAME - 16 {
            return refuse(
                "name",
                format!("is {name:?}; use 1 to {} bytes", MAX_NAME - 16),
            );
        }
        if name.contains('\0') {
            let problem =
                format!("is {name:?}; leave out the NUL character, which databases refuse");
            return refuse("name", problem);
        }
        if matches!(self.schedule.0, When::Every(period) if period.is_zero()) {
            return refuse("schedule", format!("of {name:?} is every 0 s; use more"));
        }
        if self.missed == (Missed::RunAll { most: 0 }) {
            return refuse(
                "missed",
                format!("of {name:?} runs at most 0; use 1 or more"),
            );
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return refuse("timeout", format!("of {name:?} is 0 s; use more"));
        }
        if self.lock_lease < LEAST_LEASE {
            let lease = self.lock_lease;
            let problem = format!("of {name:?} is {lease:?}; use at least {LEAST_LEASE:?}");
            return refuse("lock_lease", problem);
        }
        Ok(())
    }

    /// Whether this process may run it now.
    pub(super) fn enter(&self) -> Option<Flight> {
        let entered = !self.flight.swap(true, Ordering::AcqRel);
        entered.then(|| Flight(Arc::clone(&self.flight)))
    }
}

impl fmt::Debug for ScheduledJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduledJob")
            .field("name", &self.name)
            .field("schedule", &self.schedule)
            .field("missed", &self.missed)
            .field("timeout", &self.timeout)
            .field("at_start", &self.at_start)
            .field("cluster", &self.cluster.is_some())
            .finish_non_exhaustive()
    }
}

/// Held while the job runs.
pub(super) struct Flight(Arc<AtomicBool>);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
