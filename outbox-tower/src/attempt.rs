//! What the layers need to know of a request.

use outbox_core::{Delivery, Phase};

/// A request that belongs to an attempt to deliver an event.
///
/// The layers of this crate take any request that implements it: they read the event from it, and
/// mark the attempt as waiting while they wait.
pub trait Attempt {
    /// The attempt, where the request knows it.
    fn delivery(&self) -> Option<&Delivery>;
}

impl Attempt for Delivery {
    fn delivery(&self) -> Option<&Delivery> {
        Some(self)
    }
}

/// The attempt is in the request's extensions: the HTTP mapping of this crate puts it there.
#[cfg(feature = "http")]
impl<B> Attempt for ::http::Request<B> {
    fn delivery(&self) -> Option<&Delivery> {
        self.extensions().get()
    }
}

/// Nothing is sent from here until [`calling`].
pub(crate) fn waiting<R: Attempt + ?Sized>(request: &R) {
    if let Some(delivery) = request.delivery() {
        delivery.advance(Phase::Waiting);
    }
}

/// The next service gets the request now, and may say nothing.
pub(crate) fn calling<R: Attempt + ?Sized>(request: &R) {
    if let Some(delivery) = request.delivery() {
        delivery.hand_over();
    }
}
