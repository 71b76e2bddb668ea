//! What claims saw of stripes.

use std::collections::HashSet;
use std::time::Duration;

use crate::Claimed;

/// A stripe's first rows are of few keys where there are so many for each key. Others would have to wait
/// behind a long backlog of these. A claim of less than twice as many rows does not tell.
const HOT: usize = 8;

/// What a claim at fronts tells of the stripes that it was given; each set has a bit for each stripe.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::sql) struct FrontNote {
    pub(super) looked: u16,
    pub(super) deep: u16,
    pub(super) jammed: u16,
    pub(super) gave: u16,
}

impl FrontNote {
    /// Reads the note's `seq`: the stripes that were looked at, those that have more rows than were read,
    /// those that are jammed, those that gave rows.
    pub(in crate::sql) const fn new(sets: i64) -> Self {
        let bytes = sets.to_le_bytes();
        Self {
            looked: u16::from_le_bytes([bytes[0], bytes[1]]),
            deep: u16::from_le_bytes([bytes[2], bytes[3]]),
            jammed: u16::from_le_bytes([bytes[4], bytes[5]]),
            gave: u16::from_le_bytes([bytes[6], bytes[7]]),
        }
    }
}

/// A claim at the fronts of stripes.
#[derive(Debug, Clone, Copy)]
pub(in crate::sql) struct Look {
    pub(in crate::sql) note: FrontNote,
    /// Whether it asked all of them at once.
    pub(in crate::sql) together: bool,
    /// Whether it brought all that it asked for.
    pub(in crate::sql) full: bool,
    /// Whether its rows found no room beside those of other shapes.
    pub(in crate::sql) crowded: bool,
    pub(in crate::sql) took: Duration,
}

/// What a walk brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sql) enum Brought {
    /// Fewer rows than it was asked for.
    Little,
    /// All that it was asked for.
    All,
    /// All that it was asked for, of one key, since it found no other that had anything.
    OneKey,
}

impl Brought {
    /// Of so many that were asked for. `unfinished`: the walk did not get round.
    pub(in crate::sql) fn new(events: &[Claimed], full: bool, unfinished: bool) -> Self {
        if !full {
            Self::Little
        } else if !unfinished && events.len() >= 2 * HOT && keys(events) == 1 {
            Self::OneKey
        } else {
            Self::All
        }
    }
}

/// Whether these events of one stripe are of few keys.
pub(super) fn is_hot(events: &[Claimed]) -> bool {
    events.len() < 2 * HOT || keys(events) * HOT <= events.len()
}

fn keys(events: &[Claimed]) -> usize {
    let keys: HashSet<_> = events
        .iter()
        .map(|claimed| (&claimed.event.destination, &claimed.event.key))
        .collect();
    keys.len()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::LeaseToken;
    use crate::sql::EventRow;

    pub(in crate::sql::front) fn events(keys: &[&str]) -> Vec<Claimed> {
        let claimed = |key: &&str| {
            let mut row = EventRow::unreadable(1);
            row.event_type = "T".to_owned();
            row.destination = "d".to_owned();
            row.key = Some((*key).to_owned());
            let now = std::time::SystemTime::UNIX_EPOCH;
            row.claimed(LeaseToken::new(), now, false)
                .expect("an event")
        };
        keys.iter().map(claimed).collect()
    }

    #[test]
    fn a_note_tells_of_four_sets() {
        let note = FrontNote::new(i64::MIN | 4 << 32 | 2 << 16 | 0x8001);
        let sets = (note.looked, note.deep, note.jammed, note.gave);
        assert_eq!(sets, (0x8001, 2, 4, 0x8000));
    }

    #[test]
    fn a_walk_that_got_round_and_brought_one_key_found_no_other() {
        let brought = |key: &[&str], full, unfinished| Brought::new(&events(key), full, unfinished);
        assert_eq!(brought(&["a"; 16], true, false), Brought::OneKey);
        assert_eq!(brought(&["a"; 16], true, true), Brought::All);
        assert_eq!(brought(&["a"; 16], false, false), Brought::Little);
        assert_eq!(brought(&["a"; 15], true, false), Brought::All);
        let mut two = vec!["a"; 99];
        two.push("b");
        assert_eq!(brought(&two, true, false), Brought::All);
    }
}
