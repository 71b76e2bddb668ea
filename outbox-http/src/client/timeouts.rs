//! Deadlines of one attempt.

use std::time::Duration;

use outbox_core::Error;

/// How long the parts of an attempt may take. All are on by default; none can be switched off.
///
/// The total is cut to the relay's own time-out for the attempt, less a twentieth (half a second at
/// most), so that an attempt tells what it knows before the relay drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Timeouts {
    /// Name lookup, TCP and TLS together. Default: 5 s.
    pub connect: Duration,
    /// From the first byte of the request to the whole head of the answer. Default: 15 s.
    pub head: Duration,
    /// From the head of the answer to the end of what is read of its body. Default: 5 s.
    pub body: Duration,
    /// The whole attempt, waiting for a connection included. Default: 30 s.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            head: Duration::from_secs(15),
            body: Duration::from_secs(5),
            total: Duration::from_secs(30),
        }
    }
}

impl Timeouts {
    /// Sets [`connect`](Self::connect).
    #[must_use]
    pub const fn connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets [`head`](Self::head).
    #[must_use]
    pub const fn head(mut self, limit: Duration) -> Self {
        self.head = limit;
        self
    }

    /// Sets [`body`](Self::body).
    #[must_use]
    pub const fn body(mut self, limit: Duration) -> Self {
        self.body = limit;
        self
    }

    /// Sets [`total`](Self::total).
    #[must_use]
    pub const fn total(mut self, limit: Duration) -> Self {
        self.total = limit;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let parts = [
            ("timeouts.connect", self.connect),
            ("timeouts.head", self.head),
            ("timeouts.body", self.body),
            ("timeouts.total", self.total),
        ];
        for (field, limit) in parts {
            if limit.is_zero() || limit > MAX {
                return Err(Error::invalid_config(
                    field,
                    format_args!("is {limit:?}; more than zero and at most {MAX:?} is allowed"),
                ));
            }
        }
        Ok(())
    }
}

/// Longer than any attempt should take, short enough for every clock's arithmetic.
const MAX: Duration = Duration::from_secs(3_600);
