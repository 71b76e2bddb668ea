//! Runs in slots: begin, poll, finish, go on.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::attempt::{Attempt, Delivered};
use super::calls::HoldWish;
use super::decide::{failed, undeliverable};
use super::driver::Driver;
use super::runs::{Held, Run};
use super::settings::later;
use super::slots::{State, Work};
use crate::{DeathReason, Event, Lease, Outcome, Phase, Settlement, Transition};

impl Driver<'_> {
    /// Starts a run, or lets it wait for a slot and a place at its destination, or gives it back.
    pub(super) fn place(&mut self, run: Run, now: Instant) {
        if !self.stage.starts() {
            return self.release(run, now);
        }
        let id = self.destinations.id(&run.head.claimed.event.destination);
        if let Some(until) = self.destinations.paused(id, now) {
            self.put_off(run, until, now);
        } else if self.slots.busy() < self.settings().concurrency && self.destinations.enter(id) {
            let slot = self.slots.take(&self.ready, run, id);
            self.advance(slot);
        } else if self.destinations.waiting() + run.len() <= self.settings().waiting() {
            self.destinations.wait(id, run);
        } else {
            self.release(run, now);
        }
    }

    /// Takes what is in the slot as far as it goes.
    pub(super) fn advance(&mut self, index: usize) {
        while let Some(slot) = self.slots.slot(index) {
            let Some(work) = &mut slot.work else { return };
            match &mut work.state {
                State::Stale => return,
                State::Live(attempt) => {
                    slot.child.about_to_poll();
                    match attempt.poll(&mut Context::from_waker(&slot.child.waker)) {
                        Poll::Pending => return,
                        Poll::Ready(result) => {
                            let now = self.now();
                            self.finish(index, result, now);
                        }
                    }
                }
                State::Idle | State::Fresh => {
                    let now = self.parts.timer.now();
                    let head = &work.run.head;
                    if head.lost {
                        self.next_of_run(index);
                    } else if let Some((reason, error)) =
                        undeliverable(&*self.parts.retry, &head.claimed, head.expired(now))
                    {
                        self.die_undelivered(index, reason, error, now);
                    } else if !self.begin(index, now) {
                        return;
                    }
                }
            }
        }
    }

    /// Begins the head's attempt, unless its lease is too old for one.
    fn begin(&mut self, index: usize, now: Instant) -> bool {
        let timeout = self.settings().delivery_timeout;
        let Some(work) = self.slots.work(index) else {
            return false;
        };
        let head = &work.run.head;
        let fresh = matches!(work.state, State::Fresh);
        if !fresh && !self.keeper.covers(head.since, now, timeout) {
            work.state = State::Stale;
            self.keeper.hurry();
            return false;
        }
        self.watch.tell(&Transition::Attempting {
            event: &head.claimed.event,
        });
        let spawn = self.parts.spawn.as_deref();
        let attempt = Attempt::begin(&self.parts.transport, spawn, &head.claimed, timeout, now);
        let deadline = attempt.deadline;
        work.state = State::Live(attempt);
        self.slots.began(deadline);
        true
    }

    /// The attempt in the slot has run out of time.
    pub(super) fn time_out(&mut self, index: usize, now: Instant) {
        if let Some(Work {
            state: State::Live(attempt),
            ..
        }) = self.slots.work(index)
        {
            let error = attempt.timed_out();
            self.finish(index, Err(error), now);
        }
    }

    fn finish(&mut self, index: usize, result: Delivered, now: Instant) {
        let Some(work) = self.slots.work(index) else {
            return;
        };
        let State::Live(attempt) = mem::replace(&mut work.state, State::Idle) else {
            return;
        };
        let (head, id) = (&work.run.head, work.destination);
        let took = now.saturating_duration_since(attempt.started);
        self.ahead.ended(took);
        let age = head.age(now);
        let outcome = match result {
            Ok(receipt) => {
                self.watch.tell(&Transition::Delivered {
                    event: &head.claimed.event,
                    took,
                    age,
                    detail: receipt.detail.as_deref(),
                });
                attempt.end();
                Outcome::Published
            }
            Err(error) => {
                let phase = attempt.phase(&error);
                attempt.end();
                let verdict = failed(&*self.parts.retry, &head.claimed, age, &error);
                let (event, lease) = (&head.claimed.event, head.claimed.lease);
                let seen = Seen {
                    event,
                    lease,
                    took: Some(took),
                    phase,
                };
                if let Some(transition) = seen.transition(&verdict.outcome) {
                    self.watch.tell(&transition);
                }
                if let Some(pause) = verdict.pause {
                    let reason = verdict.shared.then(|| error.to_string());
                    self.pause(id, pause, reason, now);
                }
                verdict.outcome
            }
        };
        let goes_on = outcome == Outcome::Published;
        self.end_head(index, outcome, goes_on, now);
    }

    fn die_undelivered(&mut self, index: usize, reason: DeathReason, error: String, now: Instant) {
        let mut goes_on = false;
        if let Some(work) = self.slots.work(index) {
            let claimed = &work.run.head.claimed;
            goes_on = !claimed.death_blocks;
            self.watch.tell(&Transition::Dead {
                event: Some(&claimed.event),
                lease: claimed.lease,
                took: None,
                reason,
                error: &error,
            });
        }
        self.end_head(index, Outcome::Dead { reason, error }, goes_on, now);
    }

    /// Settles the head; the run goes on, or goes back in the same settle.
    ///
    /// It goes back after a death that an attempt led to, whatever the policy for dead heads: if the
    /// relay died before that was settled, the head would be delivered after what had overtaken it.
    /// An event that died undelivered (expired, too many claims) dies so again.
    fn end_head(&mut self, index: usize, outcome: Outcome, goes_on: bool, now: Instant) {
        let starts = self.stage.starts();
        let Some(work) = self.slots.work(index) else {
            return;
        };
        let open = starts && self.destinations.paused(work.destination, now).is_none();
        let claimed = &work.run.head.claimed;
        let tail = if goes_on && open {
            VecDeque::new()
        } else {
            mem::take(&mut work.run.tail)
        };
        let keyed = claimed.event.key.is_some();
        let settlement = Settlement::new(claimed.lease, outcome);
        self.settles.push(settlement, keyed, now);
        for held in tail {
            self.give_back(&held, now);
        }
        self.next_of_run(index);
    }

    /// The head is done with: the next event of the run, or a run that waits, takes its place.
    fn next_of_run(&mut self, index: usize) {
        let Some(work) = self.slots.work(index) else {
            return;
        };
        self.held_bytes = self.held_bytes.saturating_sub(work.run.head.bytes());
        if let Some(next) = work.run.tail.pop_front() {
            work.run.head = next;
            work.state = State::Idle;
            return;
        }
        let id = work.destination;
        self.slots.clear(index);
        let was_full = self.destinations.leave(id);
        let next = self.stage.starts().then(|| self.destinations.next_turn());
        let next = next.flatten();
        if was_full && next.as_ref().is_none_or(|(other, _)| *other != id) {
            self.pacing.nudge();
        }
        if let Some((id, run)) = next {
            // The slot that was freed last is taken first: this one.
            self.slots.take(&self.ready, run, id);
        }
    }

    /// Leaves a destination alone, and tells every relay where there is a reason to.
    fn pause(&mut self, id: usize, period: Duration, reason: Option<String>, now: Instant) {
        let until = later(now, period);
        self.destinations.pause(id, until);
        self.pacing.no_later_than(until);
        for run in self.destinations.drain_waiting(|other, _| other == id) {
            self.release(run, now);
        }
        let (Some(reason), Some(destination)) = (reason, self.destinations.get(id)) else {
            return;
        };
        let destination = Arc::clone(&destination.name);
        self.holds.retain(|wish| wish.destination != destination);
        self.holds.push(HoldWish {
            destination,
            reason,
            until,
        });
    }

    /// Gives a run back that came for a destination which is left alone.
    fn put_off(&mut self, run: Run, until: Instant, now: Instant) {
        let after = until.saturating_duration_since(now);
        let claimed = &run.head.claimed;
        let reason = "the destination is paused";
        self.watch.tell(&Transition::Deferred {
            event: &claimed.event,
            after,
            reason,
        });
        let reason = reason.to_owned();
        let outcome = Outcome::Defer { after, reason };
        self.held_bytes = self.held_bytes.saturating_sub(run.head.bytes());
        let keyed = claimed.event.key.is_some();
        let settlement = Settlement::new(claimed.lease, outcome);
        self.settles.push(settlement, keyed, now);
        for held in run.tail {
            self.give_back(&held, now);
        }
    }

    /// Gives a whole run back, uncharged.
    pub(super) fn release(&mut self, run: Run, now: Instant) {
        for held in run.into_held() {
            self.give_back(&held, now);
        }
    }

    pub(super) fn give_back(&mut self, held: &Held, now: Instant) {
        self.held_bytes = self.held_bytes.saturating_sub(held.bytes());
        if !held.lost {
            let settlement = Settlement::new(held.claimed.lease, Outcome::Release);
            // Not keyed: what goes back was claimable before, and nothing is learnt from it.
            self.settles.push(settlement, false, now);
        }
    }
}

/// A failed attempt, for the observers.
struct Seen<'e> {
    event: &'e Arc<Event>,
    lease: Lease,
    took: Option<Duration>,
    phase: Phase,
}

impl<'e> Seen<'e> {
    fn transition(&self, outcome: &'e Outcome) -> Option<Transition<'e>> {
        let event = self.event;
        match outcome {
            Outcome::Retry { after, error } => Some(Transition::Retrying {
                event,
                took: self.took.unwrap_or_default(),
                after: *after,
                phase: self.phase,
                error,
            }),
            Outcome::Defer { after, reason } => Some(Transition::Deferred {
                event,
                after: *after,
                reason,
            }),
            Outcome::Dead { reason, error } => Some(Transition::Dead {
                event: Some(event),
                lease: self.lease,
                took: self.took,
                reason: *reason,
                error,
            }),
            Outcome::Published | Outcome::Release => None,
        }
    }
}
