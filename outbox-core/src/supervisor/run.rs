//! The life of a supervisor: start, watch, stop in order, close.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::future::{FusedFuture, FutureExt};
use futures::{StreamExt, select_biased};

use super::group::Group;
use super::readiness::Readiness;
use super::report::{ShutdownCause, ShutdownReport, TaskEnd, TaskKind, TaskReport};
use super::task::{self, AbortOnDrop, Ended, Task};
use super::{Budgets, OnFailure, Supervisor};
use crate::observe::notify;
use crate::{Observer, Spawn, Timer, Transition};

type Wait<'a, F> = Pin<&'a mut F>;

pub(super) async fn run(
    supervisor: Supervisor,
    shutdown: impl Future<Output = ()> + Send,
    abort: impl Future<Output = ()> + Send,
) -> ShutdownReport {
    let mut shutdown = pin!(shutdown.fuse());
    let mut abort = pin!(abort.fuse());
    let (mut running, hooks) = Running::start(supervisor);

    let cause = running.watch(shutdown.as_mut(), abort.as_mut()).await;
    running.begin(&cause);
    running
        .drain(abort.as_mut(), cause == ShutdownCause::Abort)
        .await;
    let closed = running.close(hooks, abort.as_mut()).await;
    running.report(cause, closed)
}

struct Running {
    spawner: Arc<dyn Spawn>,
    timer: Arc<dyn Timer>,
    budgets: Budgets,
    on_failure: OnFailure,
    observer: Option<Arc<dyn Observer>>,
    readiness: Unready,
    names: Vec<(String, TaskKind)>,
    reports: Vec<Option<TaskReport>>,
    work: Group,
    servers: Group,
    ends: UnboundedReceiver<Ended>,
    begun: Option<Instant>,
    aborted: bool,
}

/// Takes readiness back, also where the supervisor is dropped.
struct Unready(Readiness);

impl Drop for Unready {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Running {
    fn start(supervisor: Supervisor) -> (Self, Vec<Task>) {
        let (sender, ends) = mpsc::unbounded();
        let mut running = Self {
            spawner: supervisor.spawner,
            timer: supervisor.timer,
            budgets: supervisor.budgets,
            on_failure: supervisor.on_failure,
            observer: supervisor.observer,
            readiness: Unready(supervisor.readiness),
            names: Vec::new(),
            reports: Vec::new(),
            work: Group::new(),
            servers: Group::new(),
            ends,
            begun: None,
            aborted: false,
        };
        for (index, task) in supervisor.tasks.into_iter().enumerate() {
            running.names.push((task.name, task.kind));
            running.reports.push(None);
            let group = running.group(task.kind);
            let stop = group.signal();
            let (spawner, timer) = (&*running.spawner, &running.timer);
            let handle = task::spawn(spawner, timer, sender.clone(), index, task.start, stop);
            running.group(task.kind).add(index, handle);
        }
        running.readiness.0.set(true);
        (running, supervisor.hooks)
    }

    const fn group(&mut self, kind: TaskKind) -> &mut Group {
        match kind {
            TaskKind::Server => &mut self.servers,
            TaskKind::Work | TaskKind::Close => &mut self.work,
        }
    }

    /// Until something asks for the shutdown.
    async fn watch<S, A>(
        &mut self,
        mut shutdown: Wait<'_, S>,
        mut abort: Wait<'_, A>,
    ) -> ShutdownCause
    where
        S: FusedFuture<Output = ()> + Send,
        A: FusedFuture<Output = ()> + Send,
    {
        loop {
            let ended = select_biased! {
                () = abort.as_mut() => return ShutdownCause::Abort,
                () = shutdown.as_mut() => return ShutdownCause::Signal,
                ended = self.ends.select_next_some() => ended,
            };
            let index = ended.index;
            let failed = self.record(ended);
            match self.on_failure {
                OnFailure::Shutdown if failed => {
                    return ShutdownCause::Task(self.names[index].0.clone());
                }
                OnFailure::Unready if failed => self.readiness.0.set(false),
                _ => {}
            }
        }
    }

    fn begin(&mut self, cause: &ShutdownCause) {
        self.begun = Some(self.timer.now());
        self.readiness.0.set(false);
        tracing::info!(target: "outbox::supervisor", ?cause, "shutdown begins");
        self.tell(&Transition::ShutdownBegan);
    }

    /// Stops both groups and waits for them, each within its budget.
    async fn drain<A>(&mut self, mut abort: Wait<'_, A>, at_once: bool)
    where
        A: FusedFuture<Output = ()> + Send,
    {
        if at_once {
            self.abort();
        }
        let mut stopped = at_once;
        loop {
            let now = self.timer.now();
            if !stopped && self.since_begin(now) >= self.budgets.notice {
                stopped = true;
                let (work, servers) = (self.budgets.work, self.budgets.servers);
                self.work.stop(self.capped(now, work));
                self.servers.stop(self.capped(now, servers));
            }
            let abort_until = self.capped(now, self.budgets.abort);
            self.work.advance(now, abort_until);
            self.servers.advance(now, abort_until);
            if stopped && self.work.is_done() && self.servers.is_done() {
                return;
            }
            let wait = self.next_step(stopped, now);
            let mut sleep = self.timer.sleep(wait).fuse();
            select_biased! {
                () = abort.as_mut() => {
                    stopped = true;
                    self.abort();
                }
                ended = self.ends.select_next_some() => {
                    self.record(ended);
                }
                () = sleep => {}
            }
        }
    }

    fn abort(&mut self) {
        self.aborted = true;
        tracing::warn!(target: "outbox::supervisor", "shutdown is cut short");
        let until = self.capped(self.timer.now(), self.budgets.abort);
        self.work.abort(until);
        self.servers.abort(until);
    }

    /// Until a budget ends.
    fn next_step(&self, stopped: bool, now: Instant) -> Duration {
        if !stopped {
            return self.budgets.notice.saturating_sub(self.since_begin(now));
        }
        [&self.work, &self.servers]
            .into_iter()
            .filter(|group| !group.is_done())
            .filter_map(Group::deadline)
            .min()
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// Runs the close hooks, in order.
    async fn close<A>(&mut self, hooks: Vec<Task>, mut abort: Wait<'_, A>) -> Vec<TaskReport>
    where
        A: FusedFuture<Output = ()> + Send,
    {
        let mut closed = Vec::new();
        for hook in hooks {
            let start = self.timer.now();
            let end = if self.aborted {
                TaskEnd::Abandoned
            } else {
                let stop = self.work.signal();
                // A task of its own, so that a hook that blocks its thread breaks no budget.
                let (sender, mut ends) = mpsc::unbounded();
                let start_hook = task::giving_way(hook.start);
                let handle = task::spawn(&*self.spawner, &self.timer, sender, 0, start_hook, stop);
                let _guard = AbortOnDrop(handle);
                let until = self.capped(start, self.budgets.close);
                let mut late = self.timer.sleep(until - start).fuse();
                select_biased! {
                    ended = ends.select_next_some() => ended.end,
                    () = abort.as_mut() => {
                        self.aborted = true;
                        TaskEnd::Abandoned
                    }
                    () = late => TaskEnd::Abandoned,
                }
            };
            self.tell_end(&hook.name, &end);
            closed.push(TaskReport {
                name: hook.name,
                kind: TaskKind::Close,
                end,
                took: self.timer.now().saturating_duration_since(start),
            });
        }
        closed
    }

    fn report(mut self, cause: ShutdownCause, closed: Vec<TaskReport>) -> ShutdownReport {
        let took = self.since_begin(self.timer.now());
        let reports = std::mem::take(&mut self.reports);
        let mut tasks: Vec<_> = reports
            .into_iter()
            .enumerate()
            .map(|(index, report)| report.unwrap_or_else(|| self.dropped(index, took)))
            .collect();
        tasks.extend(closed);
        let report = ShutdownReport {
            cause,
            aborted: self.aborted,
            took,
            tasks,
        };
        let abandoned = report.abandoned();
        tracing::info!(target: "outbox::supervisor", ?took, abandoned, "shutdown is complete");
        self.tell(&Transition::ShutdownFinished { took, abandoned });
        report
    }

    /// Notes a task's end; true where it failed.
    fn record(&mut self, ended: Ended) -> bool {
        let (name, kind) = self.names[ended.index].clone();
        let group = self.group(kind);
        group.ended(ended.index);
        let end = match ended.end {
            // It left because it had to.
            TaskEnd::Finished if group.signal().aborted.is_raised() => TaskEnd::Abandoned,
            end => end,
        };
        let took = self.begun.map_or(Duration::ZERO, |begun| {
            ended.at.saturating_duration_since(begun)
        });
        self.tell_end(&name, &end);
        let failed = end != TaskEnd::Finished;
        self.reports[ended.index] = Some(TaskReport {
            name,
            kind,
            end,
            took,
        });
        failed
    }

    /// The report of a task that never said how it ended.
    fn dropped(&self, index: usize, took: Duration) -> TaskReport {
        let (name, kind) = self.names[index].clone();
        let end = TaskEnd::Abandoned;
        self.tell_end(&name, &end);
        TaskReport {
            name,
            kind,
            end,
            took,
        }
    }

    fn since_begin(&self, now: Instant) -> Duration {
        self.begun
            .map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun))
    }

    /// `budget` from `now`, or the end of the whole shutdown.
    fn capped(&self, now: Instant, budget: Duration) -> Instant {
        // What the clock can't count to is as good as never.
        const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let left = self.budgets.total.saturating_sub(self.since_begin(now));
        now + budget.min(left).min(NEVER)
    }

    fn tell_end(&self, name: &str, end: &TaskEnd) {
        match end {
            TaskEnd::Finished => tracing::debug!(target: "outbox::supervisor", name, "task ended"),
            _ => tracing::error!(target: "outbox::supervisor", name, %end, "task ended"),
        }
        self.tell(&Transition::TaskEnded { name, end });
    }

    fn tell(&self, transition: &Transition<'_>) {
        if let Some(observer) = &self.observer {
            notify(&**observer, transition);
        }
    }
}
