//! The producer's trace, as W3C Trace Context writes it.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Event};

/// The name of the header that carries it.
pub const TRACEPARENT: &str = "traceparent";

/// The span in which an event was made.
///
/// Read strictly by W3C Trace Context (Recommendation of 23 November 2021, section 3.2): lower-case
/// hex, no zero ids, no version `ff`; of a version that is not known, the part that version `00`
/// defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

impl TraceParent {
    /// The trace's id.
    #[must_use]
    pub const fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// The span's id.
    #[must_use]
    pub const fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Whether the producer recorded the trace.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// The one in an event's headers; `None` where there is none or it can't be read. Header names
    /// are compared without regard to case.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        let mut headers = event.headers.iter();
        let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT))?;
        value.parse().ok()
    }

    fn read(text: &str) -> Option<Self> {
        if !text.is_ascii() || text.len() < 55 {
            return None;
        }
        let (known, rest) = text.split_at(55);
        let mut parts = known.split('-');
        let version = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        let trace_id = hex(parts.next()?, 32).filter(|id| *id != 0)?;
        let span_id = u64::try_from(hex(parts.next()?, 16)?)
            .ok()
            .filter(|id| *id != 0)?;
        let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        let complete = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        complete.then_some(Self {
            trace_id,
            span_id,
            flags,
        })
    }
}

/// Exactly so many lower-case hex digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let valid = text.len() == digits && text.bytes().all(lower);
    valid.then(|| u128::from_str_radix(text, 16).ok())?
}

impl FromStr for TraceParent {
    type Err = Error;

    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent).
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| {
            Error::invalid_event(
                "headers",
                "has a `traceparent` that W3C Trace Context doesn't allow",
            )
        })
    }
}

/// As a header of version `00`.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id,
            span_id,
            flags,
        } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn reads_the_example_of_the_recommendation() {
        let parent: TraceParent = VALID.parse().unwrap();
        assert_eq!(parent.trace_id(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parent.span_id(), 0x00f0_67aa_0ba9_02b7);
        assert!(parent.is_sampled());
        assert_eq!(parent.to_string(), VALID);
    }

    #[test]
    fn reads_what_it_knows_of_later_versions() {
        for text in [
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more",
        ] {
            assert!(!text.parse::<TraceParent>().unwrap().is_sampled());
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00.more",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        ] {
            assert!(text.parse::<TraceParent>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,70}") {
            let _ = text.parse::<TraceParent>();
        }

        #[test]
        fn what_is_written_is_read_back(trace_id in 1_u128.., span_id in 1_u64.., flags: u8) {
            let parent = TraceParent { trace_id, span_id, flags };
            prop_assert_eq!(parent.to_string().parse::<TraceParent>().unwrap(), parent);
        }
    }
}
