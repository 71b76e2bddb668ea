//! Runs scheduled jobs until it is told to stop.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::{Either, join_all, select};

use super::cluster::under_lock;
use super::execute::execute;
use super::job::{JobEnd, JobRun};
use super::scheduled::{Missed, ScheduledJob};
use super::streak::News;
use super::ticks::{Due, Now, Ticks};
use super::when::When;
use crate::faults::{contained, contained_future};
use crate::observe::notify;
use crate::{Error, Observer, Signal, Spawn, Timer, Transition, Trigger};

/// Until a schedule is looked at again whose wall clock or time zone panicked.
const AFTER_PANIC: Duration = Duration::from_secs(10);

type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Builds a [`Scheduler`].
#[must_use = "a builder does nothing until `build`"]
pub struct SchedulerBuilder {
    timer: Arc<dyn Timer>,
    spawner: Option<Arc<dyn Spawn>>,
    wall: WallClock,
    observer: Option<Arc<dyn Observer>>,
    jobs: Vec<ScheduledJob>,
}

impl SchedulerBuilder {
    /// Adds a job.
    pub fn job(mut self, job: ScheduledJob) -> Self {
        self.jobs.push(job);
        self
    }

    /// Starts each run as a task of its own, so that one that blocks its thread delays no other
    /// job. Default: runs share the scheduler's task.
    pub fn spawner(mut self, spawner: impl Spawn + 'static) -> Self {
        self.spawner = Some(Arc::new(spawner));
        self
    }

    /// The clock that cron expressions go by. Default: the system's.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall = Arc::new(clock);
        self
    }

    /// Sees the end of every run. Default: none; the log tells it in any case.
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
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where two jobs have the same name or a
    /// job's settings are refused.
    pub fn build(self) -> Result<Scheduler, Error> {
        let mut seen = BTreeSet::new();
        for job in &self.jobs {
            job.check()?;
            if !seen.insert(&job.name) {
                let problem = format!("is {:?} twice; names must be unique", job.name);
                return Err(Error::invalid_config("name", problem));
            }
        }
        Ok(Scheduler {
            timer: self.timer,
            spawner: self.spawner,
            wall: self.wall,
            observer: self.observer,
            jobs: self.jobs,
        })
    }
}

impl fmt::Debug for SchedulerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerBuilder")
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

/// What the runs of one job came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobReport {
    /// Its name.
    pub name: String,
    /// Runs that finished.
    pub finished: u64,
    /// Runs that failed, panicked, timed out or lost their lock.
    pub failed: u64,
    /// Ticks at which it did not run because it ran somewhere already.
    pub skipped: u64,
}

/// What a scheduler did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerReport {
    /// Every job, in the order in which it was added.
    pub jobs: Vec<JobReport>,
}

/// Runs named jobs by interval or cron expression.
///
/// A run that panics or fails is told and counted, and its schedule goes on; so it does where the
/// locks, the wall clock or a time zone's offset panic. The log tells the first failure of a job at
/// `ERROR` and its recovery at `INFO`, failures in between at `DEBUG`; the observer sees each. Runs of
/// one job never overlap in a process; with [`ScheduledJob::cluster`], nor among processes.
///
/// # Example
///
/// ```
/// # use std::time::Duration;
/// use outbox_core::{JobRun, Schedule, ScheduledJob, Scheduler, TokioTimer};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), outbox_core::Error> {
/// let scheduler = Scheduler::builder(TokioTimer)
///     .job(ScheduledJob::new("tidy", Schedule::every(Duration::from_secs(60)), |_: JobRun| async {
///         // …
///     }))
///     .build()?;
/// let report = scheduler.run(async { tokio::time::sleep(Duration::from_secs(150)).await }).await;
/// assert_eq!(report.jobs[0].finished, 2);
/// # Ok(()) }
/// ```
#[must_use = "a scheduler does nothing until `run`"]
pub struct Scheduler {
    timer: Arc<dyn Timer>,
    spawner: Option<Arc<dyn Spawn>>,
    wall: WallClock,
    observer: Option<Arc<dyn Observer>>,
    jobs: Vec<ScheduledJob>,
}

impl Scheduler {
    /// A scheduler that waits by `timer`.
    pub fn builder(timer: impl Timer + 'static) -> SchedulerBuilder {
        #[expect(
            clippy::disallowed_methods,
            reason = "the seam: cron expressions are civil time"
        )]
        fn system() -> SystemTime {
            SystemTime::now()
        }
        SchedulerBuilder {
            timer: Arc::new(timer),
            spawner: None,
            wall: Arc::new(system),
            observer: None,
            jobs: Vec::new(),
        }
    }

    /// Runs jobs until `shutdown`, then starts no more, waits for those that run, and reports.
    ///
    /// A run ends by itself or by its [time-out](ScheduledJob::timeout); calls to locks are limited too
    /// ([`ScheduledJob::cluster`]).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the runs that are under way; a lock of the cluster is free when its
    /// lease ends.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) -> SchedulerReport {
        let (trigger, stop) = Trigger::new();
        let jobs = join_all(self.jobs.iter().map(|job| self.follow(job, stop.clone())));
        let (shutdown, jobs) = (pin!(shutdown), pin!(jobs));
        let jobs = match select(shutdown, jobs).await {
            Either::Left(((), rest)) => {
                trigger.raise();
                rest.await
            }
            // There are no jobs, or none that comes again.
            Either::Right((jobs, shutdown)) => {
                shutdown.await;
                jobs
            }
        };
        SchedulerReport { jobs }
    }

    /// Runs one job now, outside its schedule but under the same guards; `None` where no job has
    /// this name.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_now(&self, name: &str) -> Option<JobEnd> {
        let job = self.jobs.iter().find(|job| job.name == name)?;
        let ticks = contained(|| Ticks::new(&job.schedule, self.now())).ok();
        let (_trigger, stop) = Trigger::new();
        Some(self.once(job, ticks.as_ref(), None, &stop).await)
    }

    /// One job's life.
    async fn follow(&self, job: &ScheduledJob, stop: Signal) -> JobReport {
        let mut report = JobReport {
            name: job.name.clone(),
            finished: 0,
            failed: 0,
            skipped: 0,
        };
        // A panic here comes again at the first look, and is told there.
        let mut ticks = contained(|| Ticks::new(&job.schedule, self.now())).ok();
        let mut due = Vec::new();
        let mut waited = true;
        if job.at_start {
            due.push(None);
        }
        loop {
            for tick in std::mem::take(&mut due) {
                if stop.is_raised() {
                    break;
                }
                let end = self.once(job, ticks.as_ref(), tick, &stop).await;
                report.count(&end);
                waited = false;
            }
            if stop.is_raised() {
                return report;
            }
            let most = match job.missed {
                Missed::Skip => usize::from(waited),
                Missed::RunOnce => 1,
                Missed::RunAll { most } => most,
            };
            waited = true;
            let look = contained(|| {
                let ticks = ticks.get_or_insert_with(|| Ticks::new(&job.schedule, self.now()));
                ticks.look(self.now(), most)
            });
            let wait = match look {
                Ok(Due::Now(now)) => {
                    due = now;
                    continue;
                }
                Ok(Due::In(wait)) => wait,
                Err(panic) => {
                    let end = JobEnd::Panicked(format!("in its schedule: {panic}"));
                    self.tell(job, &end, Duration::ZERO);
                    report.count(&end);
                    AFTER_PANIC
                }
            };
            drop(select(stop.clone(), self.timer.sleep(wait)).await);
        }
    }

    /// One run under all guards.
    async fn once(
        &self,
        job: &ScheduledJob,
        ticks: Option<&Ticks>,
        tick: Option<SystemTime>,
        stop: &Signal,
    ) -> JobEnd {
        let started = self.timer.now();
        let end = match job.enter() {
            None => JobEnd::Busy,
            Some(_flight) => {
                let run = JobRun::new(tick, stop.clone());
                // What is not contained further inside: a spawner, say.
                contained_future(self.run_job(job, ticks, run))
                    .await
                    .unwrap_or_else(JobEnd::Panicked)
            }
        };
        let took = if end.is_skipped() {
            Duration::ZERO
        } else {
            self.timer.now().saturating_duration_since(started)
        };
        self.tell(job, &end, took);
        end
    }

    async fn run_job(&self, job: &ScheduledJob, ticks: Option<&Ticks>, run: JobRun) -> JobEnd {
        let (spawner, timer) = (self.spawner.as_deref(), &*self.timer);
        let work = execute(&job.job, run, job.timeout, spawner, timer);
        match &job.cluster {
            None => work.await,
            Some(cluster) => {
                let cooldown = || ticks.map_or(Duration::ZERO, |ticks| self.cooldown(job, ticks));
                under_lock(cluster, timer, work, cooldown).await
            }
        }
    }

    /// How long the lock stays closed after a run.
    fn cooldown(&self, job: &ScheduledJob, ticks: &Ticks) -> Duration {
        let most = match job.schedule.0 {
            When::Every(_) => Duration::MAX,
            #[cfg(feature = "cron")]
            When::Cron(_) => Duration::from_secs(60),
        };
        let until_next = ticks.until_next(self.now());
        (until_next - until_next / 10).min(most)
    }

    fn tell(&self, job: &ScheduledJob, end: &JobEnd, took: Duration) {
        let name = &*job.name;
        match job.streak.note(end) {
            News::Fails => {
                tracing::error!(target: "outbox::scheduler", name, %end, ?took, "job failed");
            }
            News::WorksAgain(failures) => {
                tracing::info!(target: "outbox::scheduler", name, %end, ?took, failures, "job works again");
            }
            News::None => {
                tracing::debug!(target: "outbox::scheduler", name, %end, ?took, "job ended");
            }
        }
        if let Some(observer) = &self.observer {
            notify(&**observer, &Transition::JobEnded { name, end, took });
        }
    }

    fn now(&self) -> Now {
        Now {
            steady: self.timer.now(),
            wall: (self.wall)(),
        }
    }
}

impl JobReport {
    const fn count(&mut self, end: &JobEnd) {
        if end.is_skipped() {
            self.skipped += 1;
        } else if end.is_failure() {
            self.failed += 1;
        } else {
            self.finished += 1;
        }
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
