//! Lists for databases that have no arrays: bound as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::Settling;

/// The items as a JSON array. (Strings and numbers always make one.)
#[must_use]
pub fn json<T: Serialize>(items: &[T]) -> String {
    serde_json::to_string(items).unwrap_or_default()
}

/// Bytes as upper-case hex, as SQL's `hex()` gives it.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        })
}

impl Settling<'_> {
    /// The batch as a JSON array of `[seq, token in hex, kind, microseconds, text, reason]`.
    #[must_use]
    pub fn json(&self) -> String {
        let rows: Vec<_> = (0..self.seqs.len())
            .map(|row| {
                let token = hex(self.leases[row].token.as_bytes());
                let (note, reason) = (self.notes[row].as_deref(), self.reasons[row]);
                (
                    self.seqs[row],
                    token,
                    self.kinds[row],
                    self.after[row],
                    note,
                    reason,
                )
            })
            .collect();
        json(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeathReason, Lease, LeaseToken, Outcome, Settlement};

    #[test]
    fn a_batch_is_an_array_of_arrays() {
        let lease = Lease::new(7, LeaseToken::from_bytes([0xAB; 16]));
        let error = "\"gone\"".to_owned();
        let reason = DeathReason::Gone;
        let batch = [Settlement::new(lease, Outcome::Dead { reason, error })];
        let token = "AB".repeat(16);
        assert_eq!(
            Settling::new(&batch).json(),
            format!(r#"[[7,"{token}",4,0,"\"gone\"","gone"]]"#)
        );
    }
}
