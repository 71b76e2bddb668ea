//! Row limits as literals, of which there are few, so that prepared statements stay few.

/// The limits that statements exist for.
pub const LADDER: [u32; 13] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000,
];

/// The place in [`LADDER`] of the greatest limit that is not above `rows`; the first for zero.
#[must_use]
pub fn rung(rows: usize) -> usize {
    let fits = |limit: &u32| usize::try_from(*limit).is_ok_and(|limit| limit <= rows);
    LADDER
        .iter()
        .take_while(|limit| fits(limit))
        .count()
        .saturating_sub(1)
}

/// How many rows a statement that looks at a window of rows looks at, for this limit.
#[must_use]
pub const fn window(rows: u32) -> u32 {
    let window = rows.saturating_mul(4);
    if window < 1_000 { 1_000 } else { window }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_down_to_a_rung() {
        for (rows, limit) in [
            (0, 1),
            (1, 1),
            (4, 2),
            (5, 5),
            (999, 500),
            (1 << 40, 10_000),
        ] {
            assert_eq!(LADDER[rung(rows)], limit);
        }
    }
}
