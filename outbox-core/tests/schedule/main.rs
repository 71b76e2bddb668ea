//! The scheduler: ticks, overlap, faults, the cluster, ready-made jobs, and two runtimes.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod cluster;
mod ready_made;
#[path = "../sim/mod.rs"]
mod sim;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::{join, join3};
use outbox_core::{
    Error, Job, JobEnd, JobRun, Missed, Observer, Schedule, ScheduledJob, Scheduler,
    SchedulerBuilder, Timer, Transition, async_trait,
};
use sim::Sim;

const SECOND: Duration = Duration::from_secs(1);

/// When things happened, in seconds since the start.
#[derive(Clone)]
struct Times {
    sim: Sim,
    start: std::time::Instant,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Times {
    fn new(sim: &Sim) -> Self {
        Self {
            sim: sim.clone(),
            start: sim.now(),
            seen: Arc::default(),
        }
    }

    fn note(&self) {
        let at = (self.sim.now() - self.start).as_secs();
        self.seen.lock().unwrap().push(at);
    }

    fn all(&self) -> Vec<u64> {
        self.seen.lock().unwrap().clone()
    }
}

/// Notes each run, which takes the next of these times (and none when they are used up).
fn recording(times: &Times, takes: &[u64]) -> impl Job + 'static {
    let times = times.clone();
    let takes = Mutex::new(VecDeque::from(takes.to_vec()));
    move |_: JobRun| {
        let times = times.clone();
        let take = takes.lock().unwrap().pop_front().unwrap_or(0);
        async move {
            times.note();
            times.sim.sleep(Duration::from_secs(take)).await;
        }
    }
}

/// How runs ended, by job.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<(String, JobEnd)>>>);

impl Observer for Ends {
    fn on(&self, transition: &Transition<'_>) {
        if let Transition::JobEnded { name, end, .. } = transition {
            self.0
                .lock()
                .unwrap()
                .push(((*name).to_owned(), (*end).clone()));
        }
    }
}

impl Ends {
    fn of(&self, job: &str) -> Vec<JobEnd> {
        let ends = self.0.lock().unwrap();
        ends.iter()
            .filter(|(name, _)| name == job)
            .map(|(_, end)| end.clone())
            .collect()
    }
}

fn fault(text: &str) {
    panic!("{text}");
}

/// A scheduler whose wall clock goes with the simulated one.
fn scheduler(sim: &Sim) -> SchedulerBuilder {
    let (timer, start) = (sim.clone(), sim.now());
    let epoch = UNIX_EPOCH + 1_700_000_000 * SECOND; // 2023-11-14 22:13:20
    Scheduler::builder(sim.clone()).wall_clock(move || epoch + (timer.now() - start))
}

fn every(seconds: u64) -> Schedule {
    Schedule::every(Duration::from_secs(seconds))
}

fn run_for(sim: &Sim, scheduler: SchedulerBuilder, seconds: u64) -> outbox_core::SchedulerReport {
    let scheduler = scheduler.build().unwrap();
    sim.run(scheduler.run(sim.sleep(Duration::from_secs(seconds))))
}

mod tick {
    use super::*;

    #[test]
    fn by_interval_comes_one_period_after_the_start() {
        let sim = Sim::new();
        let times = Times::new(&sim);
        let job = ScheduledJob::new("j", every(10), recording(&times, &[3]));
        let report = run_for(&sim, scheduler(&sim).job(job), 35);
        assert_eq!(times.all(), [10, 20, 30]);
        assert_eq!(report.jobs[0].finished, 3);
    }

    #[test]
    fn at_the_start_comes_where_asked_for() {
        let sim = Sim::new();
        let times = Times::new(&sim);
        let job = ScheduledJob::new("j", every(10), recording(&times, &[])).at_start();
        run_for(&sim, scheduler(&sim).job(job), 15);
        assert_eq!(times.all(), [0, 10]);
    }

    #[cfg(feature = "cron")]
    #[test]
    fn by_cron_expression_comes_at_its_second_and_tells_it() {
        let sim = Sim::new();
        let (times, ticks) = (Times::new(&sim), Arc::new(Mutex::new(Vec::new())));
        let (noted, seen) = (times.clone(), Arc::clone(&ticks));
        let work = move |run: JobRun| {
            noted.note();
            seen.lock().unwrap().extend(run.tick);
            async {}
        };
        let five = Schedule::cron("*/5 * * * * *").unwrap();
        let minute = Schedule::cron("0 * * * * *").unwrap();
        let minutes = Times::new(&sim);
        let jobs = scheduler(&sim)
            .job(ScheduledJob::new("five", five, work))
            .job(ScheduledJob::new(
                "minute",
                minute,
                recording(&minutes, &[]),
            ));
        run_for(&sim, jobs, 121);
        assert_eq!(times.all(), (1..=24).map(|n| n * 5).collect::<Vec<_>>());
        assert_eq!(minutes.all(), [40, 100]);
        let first: SystemTime = UNIX_EPOCH + 1_700_000_005 * SECOND;
        assert_eq!(ticks.lock().unwrap()[0], first);
    }
}

mod missed {
    use super::*;

    fn with(missed: Missed) -> Vec<u64> {
        let sim = Sim::new();
        let times = Times::new(&sim);
        let job = ScheduledJob::new("j", every(10), recording(&times, &[35])).missed(missed);
        run_for(&sim, scheduler(&sim).job(job), 65);
        times.all()
    }

    // The run of second 10 lasts until 45: the ticks of 20, 30 and 40 pass in it.

    #[test]
    fn ticks_are_left_out_by_skip() {
        assert_eq!(with(Missed::Skip), [10, 50, 60]);
    }

    #[test]
    fn ticks_become_one_run_by_run_once() {
        assert_eq!(with(Missed::RunOnce), [10, 45, 50, 60]);
    }

    #[test]
    fn ticks_are_all_made_up_for_by_run_all_within_its_bound() {
        let most = |most| with(Missed::RunAll { most });
        assert_eq!(most(9), [10, 45, 45, 45, 50, 60]);
        assert_eq!(most(2), [10, 45, 45, 50, 60]);
    }
}

mod guard {
    use super::*;

    #[test]
    fn keeps_runs_of_one_job_apart_also_those_by_hand_and_of_another_scheduler() {
        let (sim, ends) = (Sim::new(), Ends::default());
        let times = Times::new(&sim);
        let job = ScheduledJob::new("j", every(10), recording(&times, &[5, 5]));
        let build = || {
            scheduler(&sim)
                .job(job.clone())
                .observer(ends.clone())
                .build()
                .unwrap()
        };
        let (one, other) = (build(), build());
        let by_hand = async {
            sim.sleep(12 * SECOND).await;
            assert_eq!(one.run_now("j").await, Some(JobEnd::Busy));
            assert_eq!(one.run_now("unknown").await, None);
            sim.sleep(5 * SECOND).await;
            assert_eq!(one.run_now("j").await, Some(JobEnd::Finished));
        };
        let runs = join3(
            one.run(sim.sleep(13 * SECOND)),
            other.run(sim.sleep(13 * SECOND)),
            by_hand,
        );
        let (first, second, ()) = sim.run(runs);
        assert_eq!(times.all(), [10, 17]);
        let report = [&first.jobs[0], &second.jobs[0]].map(|job| (job.finished, job.skipped));
        assert_eq!(report, [(1, 0), (0, 1)]);
        assert_eq!(
            ends.of("j")
                .iter()
                .filter(|end| **end == JobEnd::Busy)
                .count(),
            2
        );
    }

    #[test]
    fn lets_a_slow_job_delay_no_other() {
        let sim = Sim::new();
        let (slow, quick) = (Times::new(&sim), Times::new(&sim));
        let jobs = scheduler(&sim)
            .job(ScheduledJob::new(
                "slow",
                every(10),
                recording(&slow, &[100]),
            ))
            .job(ScheduledJob::new(
                "quick",
                every(10),
                recording(&quick, &[]),
            ));
        run_for(&sim, jobs, 35);
        assert_eq!((slow.all(), quick.all()), (vec![10], vec![10, 20, 30]));
    }

    #[test]
    fn refuses_settings_that_make_no_schedule() {
        let refused = |job: ScheduledJob| {
            scheduler(&Sim::new())
                .job(job)
                .build()
                .unwrap_err()
                .to_string()
        };
        let job = |schedule| ScheduledJob::new("j", schedule, |_: JobRun| async {});
        assert!(refused(job(every(0))).starts_with("setting `schedule` of \"j\" is every 0 s"));
        let none = Missed::RunAll { most: 0 };
        assert!(refused(job(every(1)).missed(none)).starts_with("setting `missed`"));
        assert!(refused(job(every(1)).timeout(Duration::ZERO)).starts_with("setting `timeout`"));
        let unnamed = ScheduledJob::new("", every(1), |_: JobRun| async {});
        assert!(refused(unnamed).starts_with("setting `name`"));
        let nul = ScheduledJob::new("a\0b", every(1), |_: JobRun| async {});
        assert!(refused(nul).contains("leave out the NUL character"));
        let short = refused(job(every(1)).lock_lease(Duration::from_nanos(1)));
        assert_eq!(
            short,
            "setting `lock_lease` of \"j\" is 1ns; use at least 1s"
        );
        let twice = scheduler(&Sim::new()).job(job(every(1))).job(job(every(2)));
        assert!(twice.build().unwrap_err().to_string().contains("unique"));
    }
}

mod fault {
    use super::*;

    #[test]
    fn of_a_job_is_told_and_its_schedule_goes_on() {
        let (sim, ends) = (Sim::new(), Ends::default());
        let count = AtomicU32::new(0);
        let faults = move |_: JobRun| {
            let run = count.fetch_add(1, Ordering::Relaxed);
            assert!(run != 0, "at the call");
            async move {
                match run {
                    1 => panic!("in the future"),
                    2 => Err("no such table"),
                    3 => pending().await,
                    _ => Ok(()),
                }
            }
        };
        let job = ScheduledJob::new("j", every(10), faults).timeout(5 * SECOND);
        let report = run_for(&sim, scheduler(&sim).job(job).observer(ends.clone()), 55);
        let expected = [
            JobEnd::Panicked("at the call".into()),
            JobEnd::Panicked("in the future".into()),
            JobEnd::Failed("no such table".into()),
            JobEnd::TimedOut,
            JobEnd::Finished,
        ];
        assert_eq!(ends.of("j"), expected);
        let job = &report.jobs[0];
        assert_eq!((job.finished, job.failed, job.skipped), (1, 4, 0));
    }

    #[cfg(feature = "cron")]
    #[test]
    fn of_a_time_zone_is_told_and_stops_no_job() {
        let (sim, ends) = (Sim::new(), Ends::default());
        let good = Times::new(&sim);
        let gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let look = Arc::clone(&gone);
        let zone = move |_| {
            assert!(!look.load(Ordering::Relaxed), "no time zones");
            3_600
        };
        let cron = Schedule::cron_in("*/5 * * * * *", zone).unwrap();
        let scheduler = scheduler(&sim)
            .job(ScheduledJob::new("zone", cron, |_: JobRun| async {}))
            .job(ScheduledJob::new("good", every(10), recording(&good, &[])))
            .observer(ends.clone())
            .build()
            .unwrap();
        let outage = async {
            sim.sleep(12 * SECOND).await;
            gone.store(true, Ordering::Relaxed);
            sim.sleep(20 * SECOND).await;
            gone.store(false, Ordering::Relaxed);
        };
        sim.run(join(scheduler.run(sim.sleep(51 * SECOND)), outage));
        assert_eq!(good.all(), [10, 20, 30, 40, 50]);
        let panicked = JobEnd::Panicked("in its schedule: no time zones".into());
        let ends = ends.of("zone");
        assert_eq!(ends[..2], [JobEnd::Finished, JobEnd::Finished]);
        assert_eq!(ends[2], panicked);
        assert_eq!(ends.last(), Some(&JobEnd::Finished));
    }

    #[cfg(feature = "cron")]
    #[test]
    fn of_a_time_zone_at_the_build_is_an_error() {
        let zone = |_| panic!("no time zones");
        let error = Schedule::cron_in("0 0 0 * * *", zone).unwrap_err();
        assert!(error.to_string().contains("no time zones"), "{error}");
    }

    #[test]
    fn of_a_spawned_job_is_told_too_and_a_timed_out_one_is_dropped() {
        struct OnDrop(Times);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.note();
            }
        }
        let (sim, ends) = (Sim::new(), Ends::default());
        let dropped = Times::new(&sim);
        let note = dropped.clone();
        let hangs = move |_: JobRun| {
            let guard = OnDrop(note.clone());
            async move {
                let _guard = guard;
                pending::<()>().await;
            }
        };
        let panics = |_: JobRun| async { fault("spawned") };
        let jobs = scheduler(&sim)
            .job(ScheduledJob::new("hangs", every(10), hangs).timeout(3 * SECOND))
            .job(ScheduledJob::new("panics", every(10), panics))
            .spawner(sim.clone())
            .observer(ends.clone());
        run_for(&sim, jobs, 15);
        assert_eq!(ends.of("hangs"), [JobEnd::TimedOut]);
        assert_eq!(ends.of("panics"), [JobEnd::Panicked("spawned".into())]);
        assert_eq!(dropped.all(), [13]);
    }
}

mod shutdown {
    use super::*;

    #[test]
    fn waits_for_the_run_under_way_and_begins_no_other() {
        let sim = Sim::new();
        let times = Times::new(&sim);
        let missed = Missed::RunAll { most: 9 };
        let job = ScheduledJob::new("j", every(10), recording(&times, &[25])).missed(missed);
        let scheduler = scheduler(&sim).job(job).build().unwrap();
        let start = sim.now();
        let report = sim.run(scheduler.run(sim.sleep(20 * SECOND)));
        assert_eq!(sim.now() - start, 35 * SECOND);
        assert_eq!((times.all(), report.jobs[0].finished), (vec![10], 1));
    }

    #[test]
    fn tells_the_run_so_that_it_can_leave_early() {
        let sim = Sim::new();
        let polite = |run: JobRun| async move {
            assert!(!run.is_stopping());
            run.stop().await;
            assert!(run.is_stopping());
        };
        let jobs = scheduler(&sim).job(ScheduledJob::new("j", every(10), polite));
        let report = run_for(&sim, jobs, 20);
        assert_eq!(report.jobs[0].finished, 1);
    }

    #[test]
    fn comes_at_once_where_nothing_runs_or_there_is_no_job() {
        let sim = Sim::new();
        let job = ScheduledJob::new("j", every(1_000), |_: JobRun| async {});
        let start = sim.now();
        run_for(&sim, scheduler(&sim).job(job), 20);
        run_for(&sim, scheduler(&sim), 20);
        assert_eq!(sim.now() - start, 40 * SECOND);
    }
}

mod runtime {
    use super::*;
    use outbox_core::TokioTimer;

    fn counting(count: &Arc<AtomicU32>) -> impl Job + 'static {
        let count = Arc::clone(count);
        move |_: JobRun| {
            count.fetch_add(1, Ordering::Relaxed);
            async {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_keeps_the_interval_by_its_own_clock() {
        let count = Arc::default();
        let job = ScheduledJob::new("j", every(60), counting(&count));
        let builder = Scheduler::builder(TokioTimer)
            .spawner(outbox_core::TokioSpawn)
            .job(job);
        let scheduler = builder.build().unwrap();
        scheduler.run(TokioTimer.sleep(150 * SECOND)).await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn smol_runs_it() {
        struct SmolTimer;
        impl Timer for SmolTimer {
            #[expect(clippy::disallowed_methods, reason = "a timer is the seam")]
            fn now(&self) -> std::time::Instant {
                std::time::Instant::now()
            }
            fn sleep(&self, d: Duration) -> futures::future::BoxFuture<'static, ()> {
                smol::Timer::after(d).map(drop).boxed()
            }
        }
        let (sender, receiver) = futures::channel::oneshot::channel::<()>();
        let sender = Mutex::new(Some(sender));
        let once = move |_: JobRun| {
            drop(sender.lock().unwrap().take());
            async {}
        };
        let soon = Schedule::every(Duration::from_millis(1));
        let builder = Scheduler::builder(SmolTimer).job(ScheduledJob::new("j", soon, once));
        let scheduler = builder.build().unwrap();
        // Ends when the job has run.
        let report = smol::block_on(scheduler.run(receiver.map(drop)));
        assert!(report.jobs[0].finished >= 1);
    }
}
