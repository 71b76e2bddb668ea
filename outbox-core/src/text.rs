//! Text that is stored for people: cleaned and capped, so that no content can make a settle fail.

use std::collections::BTreeMap;
use std::fmt;

/// The most bytes of error text that are kept with an event.
pub const MAX_ERROR_TEXT: usize = 2_048;

/// `text` without NUL and with at most [`MAX_ERROR_TEXT`] bytes, cut at a character.
#[must_use]
pub fn error_text(text: &str) -> String {
    let mut out: String = text
        .chars()
        .filter(|c| *c != '\0')
        .take(MAX_ERROR_TEXT)
        .collect();
    if out.len() > MAX_ERROR_TEXT {
        out.truncate(out.floor_char_boundary(MAX_ERROR_TEXT));
    }
    out
}

/// Shows a length in place of bytes.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

/// Shows the names of headers without their values.
pub(crate) struct Names<'a>(pub(crate) &'a BTreeMap<String, String>);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_nul_and_cuts_at_a_character() {
        assert_eq!(error_text("a\0b"), "ab");
        assert_eq!(error_text(&"é".repeat(5_000)).len(), MAX_ERROR_TEXT);
        assert_eq!(
            error_text(&"€".repeat(5_000)).len(),
            MAX_ERROR_TEXT - MAX_ERROR_TEXT % 3
        );
    }
}
