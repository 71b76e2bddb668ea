//! Counts as a store reports them.

use std::time::Duration;

use super::Row;
use crate::{Count, Stats};

/// Of the first open rows, up to `limit`: how many there are, how many of them are claimed, due and
/// parked; (the oldest one's place); dead letters and blocked keys, each up to `limit`.
pub(super) fn first_rows(row: &Row, limit: u32, oldest_due: Option<Duration>) -> Stats {
    let limit = u64::from(limit);
    let number = |at: usize| u64::try_from(row.int(at)).unwrap_or(0);
    let open = Count::new(number(0), limit);
    // Where these rows are not all, there may be more of each kind.
    let part = |at: usize| {
        let mut count = Count::new(number(at), u64::MAX);
        count.capped = open.capped;
        count
    };
    Stats {
        pending: open,
        claimed: part(1),
        due: part(2),
        parked: part(3),
        oldest_due,
        dead: Count::new(number(5), limit),
        blocked_keys: Count::new(number(6), limit),
    }
}

/// The numbers of pending, claimed, due and parked events, each up to `limit`; how many µs the oldest
/// due one has been due; dead letters and blocked keys, each up to `limit`.
pub(super) fn each_up_to(row: &Row, limit: u32) -> Stats {
    let count = |at| Count::new(u64::try_from(row.int(at)).unwrap_or(0), limit.into());
    Stats {
        pending: count(0),
        claimed: count(1),
        due: count(2),
        parked: count(3),
        oldest_due: row.maybe(4).map(age),
        dead: count(5),
        blocked_keys: count(6),
    }
}

/// So many µs.
pub(super) fn age(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
