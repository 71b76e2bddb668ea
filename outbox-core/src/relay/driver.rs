//! The loop: one `poll` over deliveries, store calls, wake-ups and time.
//!
//! Everything that is under way is a sibling here; nothing is awaited inside another. A store call
//! that has begun is polled until it ends or its time is up.

use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::stream::{BoxStream, FuturesUnordered, StreamExt};

use super::Parts;
use super::ahead::Ahead;
use super::alarm::Alarm;
use super::calls::{Call, HoldWish, Orphan};
use super::destinations::Destinations;
use super::health::Health;
use super::keeper::Keeper;
use super::pacing::Pacing;
use super::ready::{Child, Ready};
use super::report::Report;
use super::settings::{Settings, later, sooner};
use super::settles::Settles;
use super::slots::{Slots, State};
use super::stage::{Mode, Stage};
use super::watch::Watch;
use crate::faults::contained;
use crate::{Error, ErrorKind, Lease, Transition, Wake};

/// Rounds before the task gives way to others.
const ROUNDS: usize = 8;
/// How long store calls are awaited when everything else has been given up.
const GRACE: Duration = Duration::from_secs(5);

const CALLS: usize = 0;
const WAKES: usize = 1;
const ALARM: usize = 2;
const FIRST_SLOT: usize = 3;

/// Runs the loop to its end.
pub(super) async fn drive<S, A>(
    parts: &Parts,
    mode: Mode,
    shutdown: S,
    abort: A,
) -> (Report, Option<Error>)
where
    S: Future<Output = ()>,
    A: Future<Output = ()>,
{
    let mut shutdown = pin!(shutdown.fuse());
    let mut abort = pin!(abort.fuse());
    let mut driver = Driver::new(parts, mode);
    poll_fn(|cx| {
        driver.ready.register(cx.waker());
        if shutdown.as_mut().poll(cx).is_ready() {
            driver.shut_down();
        }
        if abort.as_mut().poll(cx).is_ready() {
            driver.abort();
        }
        driver.poll(cx)
    })
    .await;
    driver.end()
}

/// The state of one run of a relay.
pub(super) struct Driver<'a> {
    pub(super) parts: &'a Parts,
    pub(super) mode: Mode,
    pub(super) stage: Stage,
    pub(super) ready: Ready,
    pub(super) calls: FuturesUnordered<Call<'a>>,
    /// A call was added and not polled yet.
    pub(super) fresh_call: bool,
    pub(super) slots: Slots<'a>,
    pub(super) destinations: Destinations,
    pub(super) ahead: Ahead,
    pub(super) settles: Settles,
    pub(super) keeper: Keeper,
    pub(super) health: Health,
    pub(super) pacing: Pacing,
    pub(super) holds: Vec<HoldWish>,
    pub(super) orphans: Vec<Orphan>,
    pub(super) held_bytes: u64,
    /// Of each event of the last claim that brought any.
    pub(super) header_bytes: u64,
    /// Nothing was under way when the last claim was sent.
    pub(super) quiet: bool,
    pub(super) report: Report,
    pub(super) error: Option<Error>,
    /// Lost by what an extension said; their settles will say so again.
    pub(super) lost: HashSet<Lease>,
    /// What the store failed with last, while it does.
    pub(super) failure: Option<Error>,
    pub(super) watch: Watch<'a>,
    started: Instant,
    wakes: Vec<BoxStream<'static, ()>>,
    alarm: Alarm,
    calls_child: Child,
    wakes_child: Child,
    woken: Vec<usize>,
}

impl<'a> Driver<'a> {
    fn new(parts: &'a Parts, mode: Mode) -> Self {
        let settings = &parts.settings;
        let ready = Ready::default();
        let [calls_child, wakes_child, alarm_child] =
            [CALLS, WAKES, ALARM].map(|index| ready.child(index));
        wakes_child.waker.wake_by_ref();
        let patience = (mode != Mode::Forever).then_some(settings.drain_budget);
        Self {
            parts,
            mode,
            stage: Stage::Running,
            calls: FuturesUnordered::new(),
            fresh_call: false,
            slots: Slots::new(FIRST_SLOT),
            destinations: Destinations::new(settings.places()),
            ahead: Ahead::new(settings.concurrency),
            settles: Settles::new(settings.settle_after, settings.settle_batch),
            keeper: Keeper::new(settings.lease),
            health: Health::new(settings.store_retry.clone(), patience),
            pacing: Pacing::new(settings.poll_interval, settings.store_retry.spread.clone()),
            holds: Vec::new(),
            orphans: Vec::new(),
            held_bytes: 0,
            header_bytes: 0,
            quiet: true,
            report: Report::default(),
            error: None,
            lost: HashSet::new(),
            failure: None,
            watch: Watch::new(&parts.observers),
            started: parts.timer.now(),
            wakes: wakes(parts),
            alarm: Alarm::new(alarm_child),
            calls_child,
            wakes_child,
            woken: Vec::new(),
            ready,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.parts.timer.now()
    }

    pub(super) const fn settings(&self) -> &'a Settings {
        &self.parts.settings
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS {
            self.poll_woken();
            let now = self.now();
            self.on_time(now);
            self.send_due(now);
            if self.over(now) {
                return Poll::Ready(());
            }
            if !self.fresh_call && self.ready.is_empty() {
                let due = self.due(now);
                self.alarm.arm(&*self.parts.timer, due, now);
                if self.ready.is_empty() {
                    return Poll::Pending;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_woken(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        self.ready.take(&mut woken);
        if std::mem::take(&mut self.fresh_call) && !woken.contains(&CALLS) {
            woken.push(CALLS);
        }
        for index in &woken {
            match *index {
                CALLS => self.poll_calls(),
                WAKES => self.poll_wakes(),
                ALARM => self.alarm.poll(),
                slot => self.advance(slot - FIRST_SLOT),
            }
        }
        self.woken = woken;
    }

    fn poll_calls(&mut self) {
        self.calls_child.about_to_poll();
        let waker = self.calls_child.waker.clone();
        let mut cx = Context::from_waker(&waker);
        while let Poll::Ready(Some(answer)) = self.calls.poll_next_unpin(&mut cx) {
            self.answer(answer);
        }
    }

    fn poll_wakes(&mut self) {
        self.wakes_child.about_to_poll();
        let mut cx = Context::from_waker(&self.wakes_child.waker);
        let pacing = &mut self.pacing;
        self.wakes.retain_mut(|stream| {
            loop {
                match contained(|| stream.poll_next_unpin(&mut cx)) {
                    Ok(Poll::Pending) => return true,
                    Ok(Poll::Ready(Some(()))) => pacing.nudge(),
                    Ok(Poll::Ready(None)) => return false,
                    Err(panic) => {
                        tracing::error!(panic, "a wake source panicked; the relay polls on");
                        return false;
                    }
                }
            }
        });
    }

    fn on_time(&mut self, now: Instant) {
        for index in self.slots.overdue(now) {
            self.time_out(index, now);
            self.advance(index);
        }
        match self.stage {
            Stage::Draining { until } if now >= until => self.close(now),
            Stage::Finishing if self.slots.busy() == 0 && self.destinations.waiting() == 0 => {
                let until = later(now, self.settings().drain_budget);
                self.stage = Stage::Draining { until };
            }
            _ => {}
        }
    }

    /// When there is something to do although nothing wakes the loop.
    fn due(&self, now: Instant) -> Option<Instant> {
        let calls = self.calls_due(now);
        let time = sooner(self.slots.next_deadline(), self.stage.until());
        sooner(calls, time)
    }

    /// The store has failed for too long for a run that ends by itself.
    pub(super) fn give_up(&mut self, now: Instant) {
        let failure = self.failure.take();
        self.error = self.error.take().or(failure);
        self.shut_down();
        if self.slots.busy() == 0 {
            self.close(now);
        }
    }

    fn over(&self, now: Instant) -> bool {
        let idle = self.calls.is_empty();
        match self.stage {
            Stage::Running | Stage::Finishing => false,
            Stage::Draining { .. } => {
                // An outage is not waited out for what the end of a lease does as well.
                let extras = self.holds.is_empty() && self.orphans.is_empty();
                let done = self.slots.busy() == 0 && self.settles.unsettled() == 0;
                idle && done && (extras || self.health.troubled())
            }
            Stage::Closing { until } => {
                now >= until || (idle && !self.settles.pending() && self.orphans.is_empty())
            }
            Stage::Aborted { until } => now >= until || idle,
        }
    }

    fn shut_down(&mut self) {
        if !self.stage.starts() {
            return;
        }
        let now = self.now();
        let until = later(now, self.settings().drain_budget);
        self.stage = Stage::Draining { until };
        for run in self.destinations.drain_waiting(|_, _| true) {
            self.release(run, now);
        }
        for index in self.slots.indices() {
            if self
                .slots
                .work(index)
                .is_some_and(|work| !work.state.live())
                && let Some(work) = self.slots.clear(index)
            {
                self.destinations.leave(work.destination);
                self.release(work.run, now);
            }
        }
    }

    /// The budget is used up: attempts end here, what is finished is settled.
    fn close(&mut self, now: Instant) {
        self.stage = Stage::Closing {
            until: later(now, GRACE),
        };
        self.abandon(true, now);
        self.settles.hurry();
    }

    fn abort(&mut self) {
        if matches!(self.stage, Stage::Aborted { .. }) {
            return;
        }
        let now = self.now();
        self.stage = Stage::Aborted {
            until: later(now, GRACE),
        };
        for run in self.destinations.drain_waiting(|_, _| true) {
            self.report.abandoned += run.len() as u64;
        }
        self.abandon(false, now);
    }

    fn abandon(&mut self, release: bool, now: Instant) {
        for index in self.slots.indices() {
            let Some(work) = self.slots.clear(index) else {
                continue;
            };
            if let State::Live(attempt) = work.state {
                attempt.end();
            }
            self.report.abandoned += 1;
            for held in work.run.tail {
                if release {
                    self.give_back(&held, now);
                } else {
                    self.report.abandoned += 1;
                }
            }
        }
    }

    fn end(mut self) -> (Report, Option<Error>) {
        let unsettled = self.settles.unsettled();
        self.report.abandoned += unsettled as u64;
        if self.report.abandoned > 0 {
            let events = usize::try_from(self.report.abandoned).unwrap_or(usize::MAX);
            self.watch.tell(&Transition::Abandoned { events });
        }
        if unsettled > 0 && self.error.is_none() {
            let failure = self.failure.take().filter(Error::is_retryable);
            let mute = || Error::new(ErrorKind::Unavailable, "the store did not answer in time");
            self.error = failure.or_else(|| (!self.calls.is_empty()).then(mute));
        }
        self.report.took = self.now().saturating_duration_since(self.started);
        (self.report, self.error.take())
    }
}

fn wakes(parts: &Parts) -> Vec<BoxStream<'static, ()>> {
    let own = parts.poke.wakes();
    let others = parts.wakes.iter().filter_map(|wake| {
        contained(|| wake.wakes())
            .inspect_err(|panic| tracing::error!(panic, "a wake source panicked"))
            .ok()
    });
    std::iter::once(own).chain(others).collect()
}
