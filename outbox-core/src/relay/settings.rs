//! A relay's settings, checked where it is built.

use std::time::{Duration, Instant};

use super::ahead::ROUNDS;
use crate::spread::Spread;
use crate::{DestinationFilter, Error, RetryPolicy};

/// After a store failure: the first delay, and the longest.
#[derive(Debug, Clone)]
pub(super) struct StoreRetry {
    pub(super) base: Duration,
    pub(super) cap: Duration,
    pub(super) spread: Spread,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) concurrency: usize,
    pub(super) per_destination: usize,
    pub(super) batch_size: usize,
    pub(super) claim_bytes: u64,
    pub(super) lease: Duration,
    pub(super) delivery_timeout: Duration,
    pub(super) poll_interval: Duration,
    pub(super) drain_budget: Duration,
    pub(super) settle_after: Duration,
    pub(super) settle_batch: usize,
    pub(super) store_timeout: Duration,
    pub(super) store_retry: StoreRetry,
    pub(super) event_types: Option<Vec<String>>,
    pub(super) destinations: DestinationFilter,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 64,
            per_destination: 8,
            batch_size: 1_000,
            claim_bytes: 16 << 20,
            lease: Duration::from_secs(60),
            delivery_timeout: Duration::from_secs(30),
            poll_interval: Duration::from_secs(1),
            drain_budget: Duration::from_secs(15),
            settle_after: Duration::from_millis(2),
            settle_batch: 100,
            store_timeout: Duration::from_secs(30),
            store_retry: StoreRetry {
                base: Duration::from_millis(100),
                cap: Duration::from_secs(30),
                spread: Spread::random(),
            },
            event_types: None,
            destinations: DestinationFilter::All,
        }
    }
}

impl Settings {
    /// The places at each destination. One with as many as there are slots is never full: what it
    /// waits for is a slot, so that claims go on for it.
    pub(super) const fn places(&self) -> usize {
        if self.per_destination < self.concurrency {
            self.per_destination
        } else {
            usize::MAX
        }
    }

    /// The most events that may wait for a slot or a place: what each of two claims may bring ahead.
    pub(super) const fn waiting(&self) -> usize {
        self.concurrency.saturating_mul(2 * ROUNDS)
    }

    pub(super) fn check(&self, policy: &dyn RetryPolicy) -> Result<(), Error> {
        at_least_one("concurrency", self.concurrency)?;
        at_least_one("per_destination", self.per_destination)?;
        at_least_one("batch_size", self.batch_size)?;
        at_least_one("settle_batch", self.settle_batch)?;
        if self.claim_bytes == 0 {
            return refuse("claim_bytes", "is 0; it must be at least 1");
        }
        above_zero("delivery_timeout", self.delivery_timeout)?;
        above_zero("poll_interval", self.poll_interval)?;
        above_zero("store_timeout", self.store_timeout)?;
        above_zero("store_backoff", self.store_retry.base)?;
        if self.delivery_timeout >= self.lease {
            let problem = format!(
                "is {:?}; it must be shorter than the lease ({:?}), or an attempt could outlive it",
                self.delivery_timeout, self.lease
            );
            return refuse("delivery_timeout", &problem);
        }
        if self.settle_after >= self.lease / 3 {
            let problem = format!(
                "is {:?}; it must be shorter than a third of the lease ({:?})",
                self.settle_after, self.lease
            );
            return refuse("settle_after", &problem);
        }
        if self.store_retry.cap < self.store_retry.base {
            let problem = format!(
                "has the cap {:?}; it must be at least the base ({:?})",
                self.store_retry.cap, self.store_retry.base
            );
            return refuse("store_backoff", &problem);
        }
        if self.event_types.as_ref().is_some_and(Vec::is_empty) {
            return refuse(
                "event_types",
                "is empty; name at least one, or leave it out",
            );
        }
        if self.destinations == DestinationFilter::Only(Vec::new()) {
            return refuse(
                "destinations",
                "is empty; name at least one, or leave it out",
            );
        }
        policy.validate()
    }
}

fn refuse(field: &str, problem: &str) -> Result<(), Error> {
    Err(Error::invalid_config(field, problem))
}

fn at_least_one(field: &str, value: usize) -> Result<(), Error> {
    if value == 0 {
        return refuse(field, "is 0; it must be at least 1");
    }
    if u32::try_from(value).is_err() {
        let problem = format!("is {value}; at most {} are allowed", u32::MAX);
        return refuse(field, &problem);
    }
    Ok(())
}

fn above_zero(field: &str, value: Duration) -> Result<(), Error> {
    if value.is_zero() {
        return refuse(field, "is 0; it must be above zero");
    }
    Ok(())
}

/// A year: longer than a run waits for anything, and added to an instant never an overflow.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// `at + by`, for any `by`: at most a year, which no run outlives unasked.
pub(super) fn later(at: Instant, by: Duration) -> Instant {
    at + by.min(LONGEST)
}

/// The earlier of two moments, each of which may never come.
pub(super) fn sooner(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
