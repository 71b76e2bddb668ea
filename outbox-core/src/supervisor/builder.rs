//! Settings of a supervisor.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::readiness::Readiness;
use super::report::TaskKind;
use super::signal::Stop;
use super::task::{self, Task, TaskOutput};
use super::{OnFailure, Supervisor};
use crate::{Error, Observer, Relay, Scheduler, Spawn, Timer};

/// How long each step of a shutdown may take. All but `close` count from its begin.
///
/// The defaults fit a platform that kills a process a minute after it asked it to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budgets {
    /// The whole shutdown; the other budgets end with it. Default: 60 s.
    pub total: Duration,
    /// Between readiness false and the first stop signal, for load balancers to notice. Default: 0.
    pub notice: Duration,
    /// Relays, jobs and other work, from their stop signal. Default: 20 s.
    pub work: Duration,
    /// Servers and drain hooks, from their stop signal. Default: 25 s.
    pub servers: Duration,
    /// Between a task's abort signal and dropping it. Default: 5 s, which is how long a relay waits
    /// for calls to its store.
    pub abort: Duration,
    /// Each close hook. Default: 5 s.
    pub close: Duration,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(60),
            notice: Duration::ZERO,
            work: Duration::from_secs(20),
            servers: Duration::from_secs(25),
            abort: Duration::from_secs(5),
            close: Duration::from_secs(5),
        }
    }
}

/// Builds a [`Supervisor`].
#[must_use = "a builder does nothing until `build`"]
pub struct SupervisorBuilder {
    spawner: Arc<dyn Spawn>,
    timer: Arc<dyn Timer>,
    tasks: Vec<Task>,
    hooks: Vec<Task>,
    budgets: Budgets,
    on_failure: OnFailure,
    observer: Option<Arc<dyn Observer>>,
    readiness: Readiness,
}

impl fmt::Debug for SupervisorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorBuilder")
            .field("tasks", &self.tasks.len())
            .field("hooks", &self.hooks.len())
            .field("budgets", &self.budgets)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

impl SupervisorBuilder {
    pub(super) fn new(spawner: Arc<dyn Spawn>, timer: Arc<dyn Timer>) -> Self {
        Self {
            spawner,
            timer,
            tasks: Vec::new(),
            hooks: Vec::new(),
            budgets: Budgets::default(),
            on_failure: OnFailure::Report,
            observer: None,
            readiness: Readiness::default(),
        }
    }

    /// Background work of any kind: consumers, watchers. Told to stop first.
    ///
    /// `run` is called when the supervisor starts.
    pub fn task<F, Fut>(self, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(Stop) -> Fut + Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: TaskOutput,
    {
        self.add(name.into(), TaskKind::Work, task::start(run))
    }

    /// A relay, as work: told to stop, it drains; at the end of the budget it is aborted. Add clones
    /// of it under other names to use more cores.
    pub fn relay(self, name: impl Into<String>, relay: Relay) -> Self {
        self.task(name, move |stop| async move {
            let aborted = stop.aborted();
            let report = relay.run_until(stop, aborted).await;
            tracing::info!(target: "outbox::supervisor", ?report, "relay stopped");
        })
    }

    /// A scheduler, as work: told to stop, it waits for the jobs that run.
    pub fn scheduler(self, name: impl Into<String>, scheduler: Scheduler) -> Self {
        self.task(name, move |stop| async move {
            let report = scheduler.run(stop).await;
            tracing::info!(target: "outbox::supervisor", ?report, "scheduler stopped");
        })
    }

    /// Something that serves callers, such as an HTTP server with a graceful shutdown: told to stop
    /// when relays and jobs were. Its requests may still enqueue events while it drains.
    pub fn server<F, Fut>(self, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(Stop) -> Fut + Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: TaskOutput,
    {
        self.add(name.into(), TaskKind::Server, task::start(run))
    }

    /// A hook that drains a server which runs elsewhere: called when a
    /// [`server`](Self::server) would be told to stop, and given the same time.
    pub fn drain<F, Fut>(self, name: impl Into<String>, hook: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: TaskOutput,
    {
        self.server(name, |stop| async move {
            stop.await;
            hook().await
        })
    }

    /// A hook that closes something when every task has ended; hooks run one by one in the order in
    /// which they were added: broker clients first, then the pools that tasks used.
    ///
    /// Each runs as a task of its own. It must not block its thread: one that does can't be dropped
    /// at the end of its budget, is reported as abandoned and left behind, and where the runtime has
    /// one thread it holds up the whole shutdown. Put such work on a thread of its own
    /// (`tokio::task::spawn_blocking`).
    pub fn close<F, Fut>(mut self, name: impl Into<String>, hook: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: TaskOutput,
    {
        self.hooks.push(Task {
            name: name.into(),
            kind: TaskKind::Close,
            start: task::start(move |_| hook()),
        });
        self
    }

    /// The flag behind a readiness probe, for a server that is one of the tasks; the same as
    /// [`Supervisor::readiness`].
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// How long each step may take.
    pub const fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// What follows when a task fails or panics before the shutdown. Default:
    /// [`OnFailure::Report`].
    pub const fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sees every task's end and the shutdown. Default: none; the log tells them in any case.
    ///
    /// There is one, the last that is named; several go into a [`FanOut`](crate::FanOut).
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where two tasks or hooks have the same
    /// name, or the budgets can't be kept.
    pub fn build(self) -> Result<Supervisor, Error> {
        let names = self.tasks.iter().chain(&self.hooks).map(|task| &task.name);
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            if name.is_empty() || !seen.insert(name) {
                let problem = format!("is {name:?}; names must be unique and not empty");
                return Err(Error::invalid_config("name", problem));
            }
        }
        let Budgets { total, notice, .. } = self.budgets;
        for (field, value) in [
            ("budgets.notice", notice),
            ("budgets.work", notice.saturating_add(self.budgets.work)),
            (
                "budgets.servers",
                notice.saturating_add(self.budgets.servers),
            ),
        ] {
            if value > total {
                let problem = format!("ends {value:?} after the begin; the total is {total:?}");
                return Err(Error::invalid_config(field, problem));
            }
        }
        let close = self.budgets.close;
        if close > total {
            let problem = format!("is {close:?}; use at most the total, which is {total:?}");
            return Err(Error::invalid_config("budgets.close", problem));
        }
        Ok(Supervisor {
            spawner: self.spawner,
            timer: self.timer,
            tasks: self.tasks,
            hooks: self.hooks,
            budgets: self.budgets,
            on_failure: self.on_failure,
            observer: self.observer,
            readiness: self.readiness,
        })
    }

    fn add(mut self, name: String, kind: TaskKind, start: task::Start) -> Self {
        self.tasks.push(Task { name, kind, start });
        self
    }
}
