//! Telling the observers.

use std::sync::Arc;

use crate::observe::notify_all;
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
        notify_all(self.observers, transition);
    }
}
