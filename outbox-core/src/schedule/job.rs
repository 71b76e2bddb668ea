//! The work of a scheduled job.

use std::fmt;
use std::future::Future;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::{Error, ErrorKind, Signal, TaskOutput};

/// Work that is done again and again.
///
/// Closures are jobs: `|run: JobRun| async { … }`, returning nothing or a `Result`.
///
/// # Contract
///
/// A run may be dropped at any await point (a time-out, a lost lock, an abort): what it does must
/// bear being done again. Runs of one job never overlap in a process.
///
/// # Errors
///
/// They are logged, observed and counted; the schedule goes on.
///
/// # Example
///
/// ```
/// use outbox_core::{async_trait, Error, Job, JobRun};
///
/// struct Heartbeat;
///
/// #[async_trait]
/// impl Job for Heartbeat {
///     async fn run(&self, run: JobRun) -> Result<(), Error> {
///         if run.is_stopping() { return Ok(()); }
///         // …
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Job: Send + Sync {
    /// Does it once.
    async fn run(&self, run: JobRun) -> Result<(), Error>;
}

#[async_trait]
impl<F, Fut> Job for F
where
    F: Fn(JobRun) -> Fut + Send + Sync,
    Fut: Future + Send,
    Fut::Output: TaskOutput,
{
    async fn run(&self, run: JobRun) -> Result<(), Error> {
        // The output need not be `Send`, so it must not live across an await.
        let error = { self(run).await.into_error() };
        error.map_or(Ok(()), |text| Err(Error::new(ErrorKind::Other, text)))
    }
}

/// One run of a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobRun {
    /// The tick of the cron expression that it is for; `None` for intervals and runs by hand.
    pub tick: Option<SystemTime>,
    stop: Signal,
}

impl JobRun {
    /// A run for a tick, under a stop signal.
    #[must_use]
    pub const fn new(tick: Option<SystemTime>, stop: Signal) -> Self {
        Self { tick, stop }
    }

    /// Whether the scheduler is asked to stop: finish what is begun, begin no more.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_raised()
    }

    /// Ends when the scheduler is asked to stop.
    pub fn stop(&self) -> Signal {
        self.stop.clone()
    }
}

/// How a run of a job ended, or why there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobEnd {
    /// It returned.
    Finished,
    /// It returned an error: this one with its causes.
    Failed(String),
    /// It panicked with this message.
    Panicked(String),
    /// It was dropped at its time-out.
    TimedOut,
    /// It was dropped because its lock in the cluster was lost.
    LockLost,
    /// It was dropped with the runtime.
    Abandoned,
    /// It did not run: another run of it is under way in this process.
    Busy,
    /// It did not run: another process runs it, or has just done so.
    Elsewhere,
    /// It did not run: whether another process runs it can't be told, for this reason.
    LockFailed(String),
}

impl JobEnd {
    /// The name of the outcome, for labels.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::TimedOut => "timed_out",
            Self::LockLost => "lock_lost",
            Self::Abandoned => "abandoned",
            Self::Busy => "busy",
            Self::Elsewhere => "elsewhere",
            Self::LockFailed(_) => "lock_failed",
        }
    }

    /// True where the job was not run.
    #[must_use]
    pub const fn is_skipped(&self) -> bool {
        matches!(self, Self::Busy | Self::Elsewhere)
    }

    /// True where the job was run, or should have been, and did not finish.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::Finished | Self::Busy | Self::Elsewhere)
    }
}

impl fmt::Display for JobEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::Panicked(why) | Self::LockFailed(why) => {
                write!(f, "{}: {why}", self.as_str())
            }
            _ => f.write_str(self.as_str()),
        }
    }
}
