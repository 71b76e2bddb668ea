//! Telling the observers.

use std::sync::Arc;

use super::contain::contained;
use crate::{Observer, Transition};

/// The observers of one relay.
pub(super) struct Watch<'a> {
    observers: &'a [Arc<dyn Observer>],
}

impl<'a> Watch<'a> {
    pub(super) const fn new(observers: &'a [Arc<dyn Observer>]) -> Self {
        Self { observers }
    }

    pub(super) fn tell(&self, transition: &Transition<'_>) {
        for observer in self.observers {
            if let Err(panic) = contained(|| observer.on(transition)) {
                tracing::error!(panic, "an observer panicked; the relay goes on");
            }
        }
    }
}
