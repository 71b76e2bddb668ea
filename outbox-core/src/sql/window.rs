//! How many rows a statement with a window looks at.

/// Windows grow to this many rows, or to `WIDEST` times what is asked for if that is more,
const ROWS: usize = 1_000;
const WIDEST: usize = 4;
/// and no further than this.
const MOST: usize = 10_000;
/// By how much they grow and shrink.
const STEP: usize = 4;

/// The width of windows, as a multiple of the rows that are asked for.
///
/// A window locks what it looks at, so it is as wide as the claim while most rows are for claiming.
/// Where it meets rows of closed destinations instead, which it parks, it widens, so that a long
/// backlog of them is parked in a few statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    factor: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { factor: 1 }
    }
}

impl Window {
    /// How wide the window for a claim of `rows` rows is.
    pub(super) fn rows(self, rows: usize) -> usize {
        let widest = ROWS.max(rows.saturating_mul(WIDEST)).min(MOST.max(rows));
        rows.saturating_mul(self.factor).min(widest)
    }

    /// Notes whether the window for `rows` rows was full, and how many of its rows were `free` to
    /// claim.
    pub(super) fn looked(&mut self, rows: usize, full: bool, free: usize) {
        if !full {
            self.factor = 1;
        } else if free.saturating_mul(2) < rows {
            self.factor = self.factor.saturating_mul(STEP).min(ROWS);
        } else if free >= rows.saturating_mul(2) {
            self.factor = (self.factor / STEP).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_of_one_row_has_wide_windows_after_a_few_closed_rows() {
        let mut window = Window::default();
        let mut widths = Vec::new();
        for _ in 0..7 {
            widths.push(window.rows(1));
            window.looked(1, true, 0);
        }
        assert_eq!(widths, [1, 4, 16, 64, 256, 1_000, 1_000]);
    }

    #[test]
    fn a_window_narrows_once_more_is_free_than_is_taken() {
        let mut window = Window { factor: 4 };
        window.looked(100, true, 120);
        assert_eq!(window.rows(100), 400);
        window.looked(100, true, 380);
        assert_eq!(window.rows(100), 100);
    }

    #[test]
    fn a_window_that_is_not_filled_is_wide_enough() {
        let mut window = Window { factor: 64 };
        window.looked(10, false, 0);
        assert_eq!(window, Window::default());
    }

    #[test]
    fn a_large_claim_has_a_window_of_a_few_times_its_size() {
        let window = Window { factor: 64 };
        assert_eq!(window.rows(1_000), 4_000);
        assert_eq!(window.rows(10_000), 10_000);
    }
}
