//! One run per tick among processes.

use super::*;
use outbox_core::{ErrorKind, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks};

/// One lock in memory, by the simulated clock, that can be made to fail.
#[derive(Clone)]
struct OneLock {
    sim: Sim,
    held: Arc<Mutex<Option<(LeaseToken, std::time::Instant)>>>,
    broken: Arc<Mutex<bool>>,
}

impl OneLock {
    fn new(sim: &Sim) -> Self {
        Self {
            sim: sim.clone(),
            held: Arc::default(),
            broken: Arc::default(),
        }
    }

    fn change(&self, token: LeaseToken, by: Duration) -> Result<LeaseStatus, Error> {
        self.fail()?;
        let mut held = self.held.lock().unwrap();
        Ok(match &mut *held {
            Some((holder, until)) if *holder == token => {
                *until = self.sim.now() + by;
                LeaseStatus::Ours
            }
            Some(_) => LeaseStatus::Lost,
            None => LeaseStatus::Unknown,
        })
    }

    fn fail(&self) -> Result<(), Error> {
        let down = Error::new(ErrorKind::Unavailable, "down");
        if *self.broken.lock().unwrap() {
            Err(down)
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl Locks for OneLock {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        assert_eq!(request.name, "outbox-job/j");
        self.fail()?;
        let now = self.sim.now();
        let mut held = self.held.lock().unwrap();
        if let Some((_, until)) = held.as_ref().filter(|(_, until)| *until > now) {
            let retry_after = *until - now;
            return Ok(LockStatus::Held { retry_after });
        }
        *held = Some((request.token, now + request.lease));
        Ok(LockStatus::Acquired)
    }

    async fn extend_lock(
        &self,
        _: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        self.change(token, by)
    }

    async fn unlock(
        &self,
        _: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        let status = self.change(token, cooldown)?;
        // What is released under one token is taken anew under another.
        if let Some((holder, _)) = &mut *self.held.lock().unwrap() {
            *holder = LeaseToken::new();
        }
        Ok(status)
    }
}

fn process(
    sim: &Sim,
    locks: &OneLock,
    schedule: Schedule,
    times: &Times,
    takes: &[u64],
    ends: &Ends,
) -> Scheduler {
    let job = ScheduledJob::new("j", schedule, recording(times, takes)).cluster(locks.clone());
    scheduler(sim)
        .job(job)
        .observer(ends.clone())
        .build()
        .unwrap()
}

#[test]
fn runs_each_tick_in_one_process_also_where_another_looks_later() {
    let (sim, ends) = (Sim::new(), Ends::default());
    let (locks, times) = (OneLock::new(&sim), Times::new(&sim));
    let one = process(&sim, &locks, every(10), &times, &[2], &ends);
    let other = process(&sim, &locks, every(10), &times, &[], &ends);
    let late = async {
        sim.sleep(4 * SECOND).await;
        other.run(sim.sleep(41 * SECOND)).await
    };
    sim.run(join(one.run(sim.sleep(45 * SECOND)), late));
    assert_eq!(times.all(), [10, 20, 30, 40]);
    assert_eq!(
        ends.of("j")
            .iter()
            .filter(|end| **end == JobEnd::Elsewhere)
            .count(),
        4
    );
}

#[cfg(feature = "cron")]
#[test]
fn runs_each_cron_tick_once_though_the_clocks_differ() {
    let (sim, ends) = (Sim::new(), Ends::default());
    let (locks, times) = (OneLock::new(&sim), Times::new(&sim));
    let hourly = || Schedule::cron("0 0 * * * *").unwrap();
    let one = process(&sim, &locks, hourly(), &times, &[], &ends);
    let other = process(&sim, &locks, hourly(), &times, &[], &ends);
    let stop = || sim.sleep(2 * 3_600 * SECOND);
    // The other's wall clock counts from its build; it starts 30 s behind.
    let late = async {
        sim.sleep(30 * SECOND).await;
        other.run(stop()).await
    };
    sim.run(join(one.run(stop()), late));
    assert_eq!(times.all().len(), 2);
}

#[test]
fn keeps_the_lock_of_a_run_that_outlives_its_lease() {
    let (sim, ends) = (Sim::new(), Ends::default());
    let (locks, times) = (OneLock::new(&sim), Times::new(&sim));
    let one = process(&sim, &locks, every(100), &times, &[500], &ends);
    let other = process(&sim, &locks, every(100), &times, &[], &ends);
    sim.run(join(
        one.run(sim.sleep(350 * SECOND)),
        other.run(sim.sleep(350 * SECOND)),
    ));
    assert_eq!(times.all(), [100]);
    assert_eq!(ends.of("j").len(), 4);
}

#[test]
fn drops_the_run_whose_lock_is_lost_and_goes_on() {
    let (sim, ends) = (Sim::new(), Ends::default());
    let (locks, times) = (OneLock::new(&sim), Times::new(&sim));
    let one = process(&sim, &locks, every(100), &times, &[500], &ends);
    let thief = async {
        sim.sleep(110 * SECOND).await;
        *locks.held.lock().unwrap() = Some((LeaseToken::new(), sim.now() + 30 * SECOND));
    };
    sim.run(join(one.run(sim.sleep(250 * SECOND)), thief));
    assert_eq!(ends.of("j"), [JobEnd::LockLost, JobEnd::Finished]);
}

#[test]
fn drops_the_run_when_its_lease_must_have_ended_in_an_outage() {
    let (sim, ends) = (Sim::new(), Ends::default());
    let (locks, times) = (OneLock::new(&sim), Times::new(&sim));
    let one = process(&sim, &locks, every(100), &times, &[500], &ends);
    let outage = async {
        sim.sleep(110 * SECOND).await;
        *locks.broken.lock().unwrap() = true;
    };
    sim.run(join(one.run(sim.sleep(250 * SECOND)), outage));
    let failed = JobEnd::LockFailed("down".into());
    assert_eq!(ends.of("j"), [JobEnd::LockLost, failed]);
    assert_eq!(times.all(), [100]);
}

/// Locks that panic or never answer.
struct BadLocks {
    hang: bool,
}

impl BadLocks {
    async fn answer<T>(&self) -> Result<T, Error> {
        assert!(self.hang, "a bug");
        pending().await
    }
}

#[async_trait]
impl Locks for BadLocks {
    async fn try_lock(&self, _: &LockRequest) -> Result<LockStatus, Error> {
        self.answer().await
    }
    async fn extend_lock(&self, _: &str, _: LeaseToken, _: Duration) -> Result<LeaseStatus, Error> {
        self.answer().await
    }
    async fn unlock(&self, _: &str, _: LeaseToken, _: Duration) -> Result<LeaseStatus, Error> {
        self.answer().await
    }
}

/// How a job with these locks ended beside a good one, and when the scheduler did.
fn beside_a_good_one(hang: bool) -> (Vec<JobEnd>, Vec<u64>, Duration) {
    let (sim, ends) = (Sim::new(), Ends::default());
    let good = Times::new(&sim);
    let bad = ScheduledJob::new("bad", every(10), |_: JobRun| async {});
    let jobs = scheduler(&sim)
        .job(bad.cluster(BadLocks { hang }))
        .job(ScheduledJob::new("good", every(10), recording(&good, &[])))
        .observer(ends.clone());
    let start = sim.now();
    run_for(&sim, jobs, 35);
    (ends.of("bad"), good.all(), sim.now() - start)
}

#[test]
fn locks_that_panic_fail_the_run_and_stop_no_job() {
    let (bad, good, _) = beside_a_good_one(false);
    let failed = JobEnd::LockFailed("the locks panicked: a bug".into());
    assert_eq!(bad, [failed.clone(), failed.clone(), failed]);
    assert_eq!(good, [10, 20, 30]);
}

#[test]
fn locks_that_never_answer_fail_the_run_and_hold_up_no_shutdown() {
    let (bad, good, took) = beside_a_good_one(true);
    let failed = JobEnd::LockFailed("the locks did not answer within 10s".into());
    // Asked at 10 and 30; each time 10 s for the question and 10 s for the release.
    assert_eq!(bad, [failed.clone(), failed]);
    assert_eq!(good, [10, 20, 30]);
    assert_eq!(took, 50 * SECOND);
}

#[test]
fn the_lease_may_be_named_before_the_locks() {
    let lease_of = |name: fn(ScheduledJob, OneLock) -> ScheduledJob| {
        let sim = Sim::new();
        let locks = OneLock::new(&sim);
        let job = ScheduledJob::new("j", every(10), |_: JobRun| pending::<()>());
        let scheduler = scheduler(&sim)
            .job(name(job, locks.clone()))
            .build()
            .unwrap();
        let start = sim.now();
        let look = async {
            sim.sleep(15 * SECOND).await;
            let until = locks.held.lock().unwrap().as_ref().unwrap().1;
            until - start
        };
        let run = Box::pin(scheduler.run(pending()));
        match sim.run(futures::future::select(run, Box::pin(look))) {
            futures::future::Either::Right((lease, _)) => lease,
            futures::future::Either::Left(_) => panic!("ended"),
        }
    };
    let before = lease_of(|job, locks| job.lock_lease(300 * SECOND).cluster(locks));
    let after = lease_of(|job, locks| job.cluster(locks).lock_lease(300 * SECOND));
    assert_eq!((before, after), (310 * SECOND, 310 * SECOND));
}
