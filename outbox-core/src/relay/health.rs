//! Whether the store answers, and when to ask again.

use std::time::{Duration, Instant};

use super::settings::{StoreRetry, later};
use crate::{Error, ErrorKind};

/// This many conflicts in a row count as an outage; fewer are everyday life.
const CONFLICTS: u32 = 5;

/// One store's health as a relay sees it.
#[derive(Debug)]
pub(super) struct Health {
    retry: StoreRetry,
    /// For a run that ends by itself: how long it waits for a store that fails.
    patience: Option<Duration>,
    trouble: Option<Trouble>,
}

#[derive(Debug)]
struct Trouble {
    since: Instant,
    last: Instant,
    until: Instant,
    failures: u32,
    said: bool,
}

impl Health {
    pub(super) const fn new(retry: StoreRetry, patience: Option<Duration>) -> Self {
        Self {
            retry,
            patience,
            trouble: None,
        }
    }

    /// Whether calls may be made now.
    pub(super) fn open(&self, now: Instant) -> bool {
        self.trouble.as_ref().is_none_or(|t| now >= t.until)
    }

    /// When calls may be made again, where they may not now.
    pub(super) fn until(&self) -> Option<Instant> {
        self.trouble.as_ref().map(|t| t.until)
    }

    /// Whether the store failed once more after all patience.
    pub(super) fn hopeless(&self) -> bool {
        let ends = self.trouble.as_ref().zip(self.patience);
        ends.is_some_and(|(trouble, patience)| trouble.last >= later(trouble.since, patience))
    }

    /// Whether the last answers were failures.
    pub(super) const fn troubled(&self) -> bool {
        self.trouble.is_some()
    }

    /// A call that was sent at `sent` failed. True where an outage begins: say so, once.
    pub(super) fn failed(&mut self, error: &Error, sent: Instant, now: Instant) -> bool {
        let trouble = self.trouble.get_or_insert(Trouble {
            since: now,
            last: now,
            until: now,
            failures: 0,
            said: false,
        });
        // Calls that were under way together fail together.
        if trouble.failures == 0 || sent >= trouble.last {
            trouble.failures = trouble.failures.saturating_add(1);
            trouble.last = now;
            trouble.until = later(now, self.retry.delay(error, trouble.failures));
            let end = self.patience.map(|patience| later(trouble.since, patience));
            // One last try when patience ends, whatever the backoff.
            if let Some(end) = end.filter(|end| now < *end) {
                trouble.until = trouble.until.min(end);
            }
        }
        let outage = error.kind() != ErrorKind::Conflict || trouble.failures >= CONFLICTS;
        outage && !std::mem::replace(&mut trouble.said, true)
    }

    /// A call that was sent at `sent` was answered. The outage's length where one ends.
    pub(super) fn answered(&mut self, sent: Instant, now: Instant) -> Option<Duration> {
        self.trouble.as_ref().filter(|t| sent >= t.last)?;
        let trouble = self.trouble.take()?;
        trouble.said.then(|| now - trouble.since)
    }
}

impl StoreRetry {
    fn delay(&self, error: &Error, failures: u32) -> Duration {
        let base = match error.kind() {
            ErrorKind::Conflict => self.base / 10,
            _ => self.base,
        };
        self.capped(base, failures)
    }

    /// The delay before the next try of one call that failed by itself.
    pub(super) fn capped(&self, base: Duration, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = base.saturating_mul(1 << doublings).min(self.cap);
        whole / 2 + self.spread.draw(whole / 2)
    }
}
