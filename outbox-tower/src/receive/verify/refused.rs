use std::borrow::Cow;
use std::fmt;

/// Why a request is refused. For the log: the sender learns nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    reason: Cow<'static, str>,
    unavailable: bool,
}

impl Refused {
    /// It is not what it claims to be: 401.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason: reason.into(),
            unavailable: false,
        }
    }

    /// It can't be told now (the keys can't be looked up, say): 503, so that the sender tries again.
    pub fn unavailable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason: reason.into(),
            unavailable: true,
        }
    }

    /// True where it can't be told now.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        self.unavailable
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}
