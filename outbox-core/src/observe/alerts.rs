//! Calls for a human.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Observer, Transition};
use crate::{Count, DeathReason, Error, Event, JobEnd, Lease, TaskEnd};

/// Something that a human should know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Alert<'a> {
    /// An event became a dead letter.
    DeadLetter {
        /// The event; `None` where its row could not be read.
        event: Option<&'a Arc<Event>>,
        /// Its lease, with its number.
        lease: Lease,
        /// Why.
        reason: DeathReason,
        /// What went wrong, cleaned and capped.
        error: &'a str,
    },
    /// There are more dead letters than the threshold. Told once until it is
    /// [cleared](Self::DeadLettersCleared).
    DeadLetters {
        /// How many.
        count: Count,
        /// The threshold.
        threshold: u64,
    },
    /// There are no more dead letters than the threshold again.
    DeadLettersCleared,
    /// The oldest due event has waited for longer than the threshold. Told once until it is
    /// [cleared](Self::OldestDueCleared).
    OldestDue {
        /// How long it has been due.
        age: Duration,
        /// The threshold.
        threshold: Duration,
    },
    /// No due event has waited for longer than the threshold any more.
    OldestDueCleared,
    /// A lease was lost: an attempt outlived it, and its event may be delivered twice.
    LeaseLost {
        /// Which.
        lease: Lease,
    },
    /// The store fails.
    StoreDown {
        /// What it said.
        error: &'a Error,
    },
    /// The store works again.
    StoreUp {
        /// How long it was down.
        outage: Duration,
    },
    /// A scheduled job failed.
    JobFailed {
        /// Its name.
        name: &'a str,
        /// How it ended.
        end: &'a JobEnd,
    },
    /// A supervised task failed, panicked or was abandoned.
    TaskFailed {
        /// Its name.
        name: &'a str,
        /// How it ended.
        end: &'a TaskEnd,
    },
}

/// Calls back with [`Alert`]s. Thresholds are looked at when the stats job
/// ([`jobs::ExportStats`](crate::jobs::ExportStats)) tells the state of the store.
///
/// The callback runs in the task of whoever makes the transition: hand the alert over, to a channel
/// say, and don't block.
pub struct Alerts<F> {
    call: F,
    dead_letters: u64,
    oldest_due: Duration,
    too_many_dead: AtomicBool,
    too_old: AtomicBool,
}

impl<F: Fn(&Alert<'_>) + Send + Sync> Alerts<F> {
    /// Alerts at more than 100 dead letters and at a due event that has waited for more than five
    /// minutes.
    pub const fn new(call: F) -> Self {
        Self {
            call,
            dead_letters: 100,
            oldest_due: Duration::from_secs(5 * 60),
            too_many_dead: AtomicBool::new(false),
            too_old: AtomicBool::new(false),
        }
    }

    /// More dead letters than this are too many. Default: 100. Keep it below the limit at which the
    /// stats job stops to count.
    #[must_use]
    pub const fn dead_letters(mut self, threshold: u64) -> Self {
        self.dead_letters = threshold;
        self
    }

    /// A due event that has waited for longer than this is too old. Default: five minutes.
    #[must_use]
    pub const fn oldest_due(mut self, threshold: Duration) -> Self {
        self.oldest_due = threshold;
        self
    }

    fn look(&self, stats: &crate::Stats) {
        let too_many = stats.dead.value > self.dead_letters;
        if self.too_many_dead.swap(too_many, Ordering::AcqRel) != too_many {
            (self.call)(&if too_many {
                Alert::DeadLetters {
                    count: stats.dead,
                    threshold: self.dead_letters,
                }
            } else {
                Alert::DeadLettersCleared
            });
        }
        let age = stats.oldest_due.unwrap_or_default();
        let too_old = age > self.oldest_due;
        if self.too_old.swap(too_old, Ordering::AcqRel) != too_old {
            (self.call)(&if too_old {
                Alert::OldestDue {
                    age,
                    threshold: self.oldest_due,
                }
            } else {
                Alert::OldestDueCleared
            });
        }
    }
}

impl<F: Fn(&Alert<'_>) + Send + Sync> Observer for Alerts<F> {
    fn on(&self, transition: &Transition<'_>) {
        let alert = match *transition {
            Transition::Stats { stats } => return self.look(stats),
            Transition::Dead {
                event,
                lease,
                reason,
                error,
                ..
            } => Alert::DeadLetter {
                event,
                lease,
                reason,
                error,
            },
            Transition::LeaseLost { lease } => Alert::LeaseLost { lease },
            Transition::StoreDown { error } => Alert::StoreDown { error },
            Transition::StoreUp { outage } => Alert::StoreUp { outage },
            Transition::JobEnded { name, end, .. } if end.is_failure() => {
                Alert::JobFailed { name, end }
            }
            Transition::TaskEnded { name, end } if *end != TaskEnd::Finished => {
                Alert::TaskFailed { name, end }
            }
            _ => return,
        };
        (self.call)(&alert);
    }
}

impl<F> fmt::Debug for Alerts<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts")
            .field("dead_letters", &self.dead_letters)
            .field("oldest_due", &self.oldest_due)
            .finish_non_exhaustive()
    }
}
