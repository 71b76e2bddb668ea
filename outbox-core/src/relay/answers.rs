//! What the store's answers lead to.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::calls::{Answer, Orphan, What};
use super::driver::Driver;
use super::pacing::Asked;
use super::runs::{Held, Run, header_bytes};
use super::settings::later;
use super::settles::Batch;
use super::slots::State;
use super::stage::{Mode, Stage};
use crate::faults::error_chain;
use crate::{
    Claim, Claimed, DeathReason, Error, ErrorKind, Lease, LeaseStatus, Outcome, Settlement,
    Transition, Undecodable, error_text,
};

impl Driver<'_> {
    pub(super) fn answer(&mut self, answer: Answer) {
        let Answer { sent, what } = answer;
        let now = self.now();
        match what {
            What::Claim {
                token,
                asked,
                result,
            } => match result {
                Ok(claim) => {
                    self.store_answered(sent, now);
                    self.claimed(claim, asked, sent, now);
                }
                Err(error) => {
                    let until = later(sent, self.settings().lease);
                    self.claim_failed(Orphan { token, until }, asked, error, sent, now);
                }
            },
            What::Settle { batch, result } => match result {
                Ok(statuses) => {
                    self.store_answered(sent, now);
                    self.settled(&batch, &statuses, sent, now);
                }
                Err(error) => self.settle_failed(batch, error, sent, now),
            },
            What::Extend { leases, result } => {
                self.keeper.answered();
                match result {
                    Ok(statuses) => {
                        self.store_answered(sent, now);
                        self.extended(&leases, &statuses, sent);
                    }
                    Err(error) => {
                        self.keeper.hurry();
                        self.store_failed("extend", error, sent, now);
                    }
                }
            }
            What::ReleaseClaim { orphan, result } => match result {
                Ok(events) => {
                    self.store_answered(sent, now);
                    if events > 0 {
                        self.pacing.nudge();
                    }
                }
                Err(error) => {
                    if error.is_retryable() && orphan.until > now && self.stage.tries_again() {
                        self.orphans.push(orphan);
                    }
                    self.store_failed("release_claim", error, sent, now);
                }
            },
            What::Hold { wish, result } => match result {
                Ok(()) => self.store_answered(sent, now),
                Err(error) if error.is_retryable() => {
                    let newer = |w: &&super::calls::HoldWish| w.destination == wish.destination;
                    let superseded = self.holds.iter().find(newer).is_some();
                    if wish.until > now && !superseded && self.stage.tries_again() {
                        self.holds.push(wish);
                    }
                    self.store_failed("hold", error, sent, now);
                }
                Err(error) => {
                    tracing::warn!(error = %error_chain(&error), "a hold was refused; only this relay pauses");
                }
            },
        }
    }

    fn claimed(&mut self, claim: Claim, asked: Asked, sent: Instant, now: Instant) {
        let events = claim.events.len() + claim.undecodable.len();
        self.pacing.answered(asked, events, claim.next_due, now);
        let took = now.saturating_duration_since(sent);
        self.ahead.answered(took);
        self.watch.tell(&Transition::Claimed { events, took });
        if events > 0 {
            self.keeper.holds(sent);
        }
        for row in claim.undecodable {
            self.undecodable(&row, now);
        }
        let headers = claim.events.iter().map(header_bytes).sum::<u64>();
        let each = headers.checked_div(claim.events.len() as u64);
        self.header_bytes = each.unwrap_or(self.header_bytes);
        for run in runs(claim.events, sent, now) {
            self.held_bytes += run.held().map(Held::bytes).sum::<u64>();
            self.place(run, now);
        }
        let idle = events == 0 && self.quiet && self.pacing.is_idle();
        let enough = match self.mode {
            Mode::Forever => false,
            Mode::Once => true,
            Mode::UntilIdle => idle,
        };
        if enough && self.stage.claims() {
            self.stage = Stage::Finishing;
        }
    }

    fn undecodable(&mut self, row: &Undecodable, now: Instant) {
        let (lease, reason) = (row.lease, DeathReason::Undecodable);
        let error = error_text(&row.problem);
        self.watch.tell(&Transition::Dead {
            event: None,
            lease,
            took: None,
            reason,
            error: &error,
        });
        let dead = Outcome::Dead { reason, error };
        self.settles.push(Settlement::new(lease, dead), true, now);
    }

    fn claim_failed(
        &mut self,
        orphan: Orphan,
        asked: Asked,
        error: Error,
        sent: Instant,
        now: Instant,
    ) {
        self.pacing.failed(asked);
        let certain = [
            ErrorKind::Schema,
            ErrorKind::Unsupported,
            ErrorKind::InvalidConfig,
        ];
        if !certain.contains(&error.kind()) {
            self.orphans.push(orphan);
        }
        self.store_failed("claim", error, sent, now);
        if self.mode != Mode::Forever && self.stage.claims() {
            self.stage = Stage::Finishing;
            self.error = self.failure.take();
        }
    }

    fn settled(&mut self, batch: &Batch, statuses: &[LeaseStatus], sent: Instant, now: Instant) {
        let events = batch.entries.len();
        self.settles.answered(events);
        let mut released = 0;
        for (index, settlement) in batch.entries.iter().enumerate() {
            let outcome = &settlement.outcome;
            let status = statuses.get(index).unwrap_or(&LeaseStatus::Unknown);
            if *status != LeaseStatus::Lost {
                self.lost.remove(&settlement.lease);
            }
            match status {
                LeaseStatus::Ours => {
                    released += usize::from(*outcome == Outcome::Release);
                    self.report.count(outcome);
                    if let Outcome::Retry { after, .. } | Outcome::Defer { after, .. } = outcome {
                        self.pacing.no_later_than(later(now, *after));
                    }
                }
                LeaseStatus::Lost => self.lost(settlement.lease),
                // Most likely settled by this very call, whose first answer was lost.
                LeaseStatus::Unknown => {
                    if matches!(outcome, Outcome::Published | Outcome::Dead { .. }) {
                        self.report.count(outcome);
                    }
                }
            }
        }
        if batch.keyed {
            self.pacing.nudge();
        }
        let took = now.saturating_duration_since(sent);
        self.watch.tell(&Transition::Settled { events, took });
        if released > 0 {
            self.watch.tell(&Transition::Released { events: released });
        }
    }

    /// Counts a lost lease and tells of it, once.
    fn lost(&mut self, lease: Lease) {
        if self.lost.remove(&lease) {
            return;
        }
        self.report.lost += 1;
        self.watch.tell(&Transition::LeaseLost { lease });
    }

    fn settle_failed(&mut self, batch: Batch, error: Error, sent: Instant, now: Instant) {
        if !self.stage.tries_again() {
            self.settles.give_up();
            self.store_failed("settle", error, sent, now);
        } else if error.is_retryable() {
            self.settles.again(batch);
            self.store_failed("settle", error, sent, now);
        } else {
            let seq = batch.entries.first().map(|entry| entry.lease.seq);
            if self
                .settles
                .refused(batch, &self.settings().store_retry, now)
            {
                let error = error_chain(&error);
                tracing::error!(seq, error, "the store refuses to settle an event");
            }
        }
    }

    fn extended(&mut self, leases: &[Lease], statuses: &[LeaseStatus], sent: Instant) {
        let unknown = std::iter::repeat(&LeaseStatus::Unknown);
        let statuses: HashMap<_, _> = leases.iter().zip(statuses.iter().chain(unknown)).collect();
        let mut lost = Vec::new();
        let mut settled_later = Vec::new();
        let mut ready = Vec::new();
        let mut tails = VecDeque::new();
        for (index, work) in self.slots.works_mut() {
            let lost_before = lost.len();
            for held in work.run.held_mut() {
                match statuses.get(&held.claimed.lease) {
                    Some(LeaseStatus::Ours) => held.since = sent,
                    Some(_) if !held.lost => {
                        held.lost = true;
                        lost.push(held.claimed.lease);
                    }
                    _ => {}
                }
            }
            if lost.len() > lost_before {
                let head = &work.run.head;
                if work.state.live() && lost[lost_before..].contains(&head.claimed.lease) {
                    settled_later.push(head.claimed.lease);
                }
                // A run is lost whole: what is still ours would overtake what another has.
                tails.append(&mut work.run.tail);
            }
            if matches!(work.state, State::Stale)
                && statuses.contains_key(&work.run.head.claimed.lease)
            {
                work.state = State::Fresh;
                ready.push(index);
            }
        }
        self.keeper.holds(sent);
        for lease in lost {
            self.lost(lease);
        }
        self.lost.extend(settled_later);
        let now = self.now();
        for held in tails {
            self.give_back(&held, now);
        }
        for index in ready {
            self.advance(index);
        }
    }

    pub(super) fn store_answered(&mut self, sent: Instant, now: Instant) {
        if let Some(outage) = self.health.answered(sent, now) {
            tracing::info!(?outage, "the store answers again");
            self.watch.tell(&Transition::StoreUp { outage });
        }
        if !self.health.troubled() {
            self.failure = None;
        }
    }

    fn store_failed(&mut self, call: &str, error: Error, sent: Instant, now: Instant) {
        if self.health.failed(&error, sent, now) {
            let text = error_chain(&error);
            tracing::error!(call, error = text, "the store fails; the relay tries on");
            self.watch.tell(&Transition::StoreDown { error: &error });
        }
        self.failure = Some(error);
        if self.stage.starts() && self.health.hopeless() {
            self.give_up(now);
        }
    }
}

/// The events as runs, in the order of their heads.
fn runs(events: Vec<Claimed>, sent: Instant, now: Instant) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::with_capacity(events.len());
    let mut keys: HashMap<(String, String), usize> = HashMap::new();
    for claimed in events {
        if let Some(last) = runs.last_mut().filter(|run| run.takes(&claimed)) {
            last.tail.push_back(Held::new(claimed, sent, now));
            continue;
        }
        if let Some(key) = &claimed.event.key {
            let name = (claimed.event.destination.clone(), key.clone());
            if let Some(index) = keys.get(&name) {
                runs[*index].tail.push_back(Held::new(claimed, sent, now));
                continue;
            }
            keys.insert(name, runs.len());
        }
        runs.push(Run::of(Held::new(claimed, sent, now)));
    }
    runs
}
