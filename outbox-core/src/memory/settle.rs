//! Ending, extending and giving back leases.

use std::sync::Arc;
use std::time::Duration;

use super::Retention;
use super::state::{Finished, Place, Row, State};
use crate::clock::duration_micros;
use crate::{Lease, LeaseStatus, LeaseToken, Outcome, Settlement, error_text};

impl State {
    pub(super) fn status(&self, lease: Lease) -> LeaseStatus {
        match self.rows.get(&lease.seq).and_then(|row| row.token) {
            None => LeaseStatus::Unknown,
            Some(token) if token == lease.token => LeaseStatus::Ours,
            Some(_) => LeaseStatus::Lost,
        }
    }

    pub(super) fn settle(&mut self, settlement: &Settlement, retention: Retention) -> LeaseStatus {
        let status = self.status(settlement.lease);
        if status != LeaseStatus::Ours {
            return status;
        }
        let seq = settlement.lease.seq;
        match &settlement.outcome {
            Outcome::Published => {
                if let Some(row) = self.close(seq)
                    && retention == Retention::Keep
                {
                    self.history.push_back(Finished {
                        event: row.event,
                        at: self.now,
                    });
                }
            }
            Outcome::Retry { after, error } => self.put_off(seq, *after, error),
            Outcome::Defer { after, reason } => {
                self.refund(seq);
                self.put_off(seq, *after, reason);
            }
            Outcome::Release => {
                self.refund(seq);
                self.requeue(seq, None);
            }
            Outcome::Dead { reason, error } => {
                self.note(seq, error);
                if let Some(row) = self.close(seq) {
                    self.bury(row, *reason);
                }
            }
        }
        status
    }

    pub(super) fn extend(&mut self, lease: Lease, by: Duration) -> LeaseStatus {
        let status = self.status(lease);
        let has_ended = |row: &Row| !matches!(row.place, Place::Leased(until) if until > self.now);
        if status == LeaseStatus::Ours
            && let Some(row) = self.rows.get(&lease.seq)
            && row.lane.is_some()
            && has_ended(row)
        {
            return LeaseStatus::Lost;
        }
        if status == LeaseStatus::Ours {
            let until = self.now.saturating_add(duration_micros(by));
            self.lease(lease.seq, lease.token, until);
        }
        status
    }

    pub(super) fn release(&mut self, lease: Lease) -> LeaseStatus {
        let status = self.status(lease);
        if status == LeaseStatus::Ours {
            self.refund(lease.seq);
            self.requeue(lease.seq, None);
        }
        status
    }

    pub(super) fn release_claim(&mut self, token: LeaseToken) -> u64 {
        let held = |seq: &i64| {
            let row = self.rows.get(seq);
            row.is_some_and(|row| row.token == Some(token) && matches!(row.place, Place::Leased(_)))
        };
        let seqs: Vec<i64> = self
            .leases
            .iter()
            .map(|&(_, seq)| seq)
            .filter(held)
            .collect();
        let mut released = 0;
        for seq in seqs {
            self.refund(seq);
            self.requeue(seq, None);
            released += 1;
        }
        released
    }

    fn put_off(&mut self, seq: i64, after: Duration, why: &str) {
        self.note(seq, why);
        let at = self.now.saturating_add(duration_micros(after));
        self.requeue(seq, Some(at));
    }

    fn note(&mut self, seq: i64, why: &str) {
        if let Some(row) = self.rows.get_mut(&seq) {
            Arc::make_mut(&mut row.event).last_error = Some(error_text(why));
        }
    }

    fn refund(&mut self, seq: i64) {
        if let Some(row) = self.rows.get_mut(&seq) {
            let event = Arc::make_mut(&mut row.event);
            event.attempts = event.attempts.saturating_sub(1);
        }
    }
}
