//! What a keyed layer keys by.

use std::borrow::Cow;

use crate::Attempt;

/// Reads the key of a request: each key has its own limit, rate or circuit.
///
/// Functions from `&R` to `String` implement it: `|d: &Delivery| d.event().event_type.clone()`.
/// Use keys of bounded length; idle ones are forgotten by themselves.
pub trait KeyOf<R>: Clone {
    /// The key.
    fn key<'a>(&self, request: &'a R) -> Cow<'a, str>;
}

/// Keys by the event's destination. Requests that know no event share one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct ByDestination;

impl<R: Attempt> KeyOf<R> for ByDestination {
    fn key<'a>(&self, request: &'a R) -> Cow<'a, str> {
        let event = request.delivery().map(outbox_core::Delivery::event);
        Cow::Borrowed(event.map_or("", |event| &event.destination))
    }
}

/// Keys by the event's type. Requests that know no event share one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct ByEventType;

impl<R: Attempt> KeyOf<R> for ByEventType {
    fn key<'a>(&self, request: &'a R) -> Cow<'a, str> {
        let event = request.delivery().map(outbox_core::Delivery::event);
        Cow::Borrowed(event.map_or("", |event| &event.event_type))
    }
}

impl<R, F> KeyOf<R> for F
where
    F: Fn(&R) -> String + Clone,
{
    fn key<'a>(&self, request: &'a R) -> Cow<'a, str> {
        Cow::Owned(self(request))
    }
}
