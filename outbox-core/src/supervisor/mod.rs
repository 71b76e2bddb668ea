//! Runs relays, jobs and servers under one shutdown.

mod builder;
mod group;
mod readiness;
mod report;
mod run;
mod signal;
mod task;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub use builder::{Budgets, SupervisorBuilder};
pub use readiness::Readiness;
pub use report::{ShutdownCause, ShutdownReport, TaskEnd, TaskKind, TaskReport};
pub use signal::{Signal, Stop, Trigger};
pub use task::TaskOutput;

use crate::{Observer, Spawn, Timer};

/// What follows when a task fails or panics before the shutdown.
///
/// None restarts it: a relay and a scheduler contain what can fail in them, so a task that ends is
/// a fault that a second start would hide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// It is logged and observed; the others go on.
    #[default]
    Report,
    /// [`Readiness`] goes false too, for good; the others go on.
    Unready,
    /// The shutdown begins, so that the platform starts the process anew.
    Shutdown,
}

/// Runs tasks until it is told to stop, then stops them in order, each step within its budget:
///
/// 1. [`Readiness`] goes false; after [`Budgets::notice`],
/// 2. work (relays, jobs) is told to stop,
/// 3. servers are told to stop and drain hooks are called,
/// 4. all of them are waited for; what is late gets its abort signal and is then dropped,
/// 5. close hooks run one by one (broker clients, then pools).
///
/// A task that panics takes nothing else down.
///
/// # Example
///
/// ```
/// # use std::time::Duration;
/// use outbox_core::jobs::PruneStore;
/// use outbox_core::{
///     MemoryStore, Prune, Relay, Schedule, ScheduledJob, Scheduler, Supervisor, TokioSpawn, TokioTimer,
/// };
/// # struct Print;
/// # #[outbox_core::async_trait]
/// # impl outbox_core::Transport for Print {
/// #     async fn deliver(&self, _: outbox_core::Delivery) -> Result<outbox_core::Receipt, outbox_core::DeliveryError> {
/// #         Ok(outbox_core::Receipt::new())
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), outbox_core::Error> {
/// let store = MemoryStore::new();
/// let relay = Relay::builder(store.clone(), Print, TokioTimer).build()?;
/// let hourly = Schedule::every(Duration::from_secs(60 * 60));
/// let prune = PruneStore::new(store, Prune::default());
/// let jobs = Scheduler::builder(TokioTimer).job(ScheduledJob::new("prune", hourly, prune)).build()?;
///
/// let supervisor = Supervisor::builder(TokioSpawn, TokioTimer)
///     .relay("relay", relay)
///     .scheduler("jobs", jobs)
///     .drain("http", || async { /* handle.graceful_shutdown() */ })
///     .close("pool", || async { /* pool.close().await */ })
///     .build()?;
/// let readiness = supervisor.readiness(); // for the probe
///
/// let report = supervisor.run(async { /* the first SIGTERM */ }).await;
/// assert!(report.is_clean());
/// assert!(!readiness.is_ready());
/// # Ok(()) }
/// ```
#[must_use = "a supervisor does nothing until `run`"]
pub struct Supervisor {
    spawner: Arc<dyn Spawn>,
    timer: Arc<dyn Timer>,
    tasks: Vec<task::Task>,
    hooks: Vec<task::Task>,
    budgets: Budgets,
    on_failure: OnFailure,
    observer: Option<Arc<dyn Observer>>,
    readiness: Readiness,
}

impl Supervisor {
    /// A supervisor that starts its tasks with `spawner` and keeps its budgets by `timer`.
    pub fn builder(
        spawner: impl Spawn + 'static,
        timer: impl Timer + 'static,
    ) -> SupervisorBuilder {
        SupervisorBuilder::new(Arc::new(spawner), Arc::new(timer))
    }

    /// The flag behind a readiness probe.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Starts everything, waits for `shutdown`, and stops everything in order.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends every task its stop and abort signals and drops it at its next
    /// await point; readiness goes false, close hooks do not run. Nothing is lost: leases expire.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> ShutdownReport {
        self.run_until(shutdown, futures::future::pending()).await
    }

    /// The same, with a second signal that ends the patience: every task gets its abort signal, is
    /// dropped [`Budgets::abort`] later, and close hooks that have not run are left out.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_until(
        self,
        shutdown: impl Future<Output = ()> + Send,
        abort: impl Future<Output = ()> + Send,
    ) -> ShutdownReport {
        run::run(self, shutdown, abort).await
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tasks.iter().map(|task| &task.name);
        f.debug_struct("Supervisor")
            .field("tasks", &names.collect::<Vec<_>>())
            .field("budgets", &self.budgets)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}
