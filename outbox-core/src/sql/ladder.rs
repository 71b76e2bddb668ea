//! Row limits as literals, of which there are few, so that prepared statements stay few.

/// The limits that statements exist for. Rounding down loses less than a third.
pub const LADDER: [u32; 28] = [
    1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 400, 500, 700, 1_000, 1_500,
    2_000, 3_000, 4_000, 5_000, 7_000, 10_000,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_down_to_a_rung() {
        for (rows, limit) in [
            (0, 1),
            (1, 1),
            (4, 4),
            (6, 5),
            (999, 700),
            (1 << 40, 10_000),
        ] {
            assert_eq!(LADDER[rung(rows)], limit);
        }
    }

    #[test]
    fn rounding_loses_less_than_a_third() {
        for rows in 1..10_000 {
            let limit = usize::try_from(LADDER[rung(rows)]).unwrap();
            assert!(3 * (rows - limit) < rows, "{rows}");
        }
    }
}
