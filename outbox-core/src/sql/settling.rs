//! A batch of settlements as columns, and what the store answers.

use std::collections::{HashMap, HashSet};

use crate::{Lease, LeaseStatus, Outcome, Settlement, error_text};

use super::micros;

/// What a settle does with a row; stored numbers of the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Moved to the history, or deleted.
    Published = 0,
    /// Open again later, the attempt counted.
    Retry = 1,
    /// Open again later, the attempt refunded.
    Defer = 2,
    /// Open again at once, the attempt refunded.
    Release = 3,
    /// Moved to the dead letters.
    Dead = 4,
}

/// A batch as columns of equal length: what statements bind. A lease that is named twice counts
/// once, by its first settlement.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Settling<'a> {
    /// The leases; the statements tell the changed ones by their place, from 1 on.
    pub leases: Vec<Lease>,
    /// The events.
    pub seqs: Vec<i64>,
    /// The [`Kind`]s.
    pub kinds: Vec<i16>,
    /// After how many microseconds a row is due again.
    pub after: Vec<i64>,
    /// The text for `last_error`, cleaned.
    pub notes: Vec<Option<String>>,
    /// The stored names of death reasons.
    pub reasons: Vec<Option<&'a str>>,
}

impl Settling<'_> {
    /// The columns of `batch`, by ascending `seq`.
    #[must_use]
    pub fn new(batch: &[Settlement]) -> Self {
        let mut rows: Vec<&Settlement> = batch.iter().collect();
        rows.sort_by_key(|settlement| (settlement.lease.seq, *settlement.lease.token.as_bytes()));
        rows.dedup_by_key(|settlement| settlement.lease);
        let mut columns = Self::default();
        for settlement in rows {
            columns.push(settlement);
        }
        columns
    }

    fn push(&mut self, settlement: &Settlement) {
        let (kind, after, note, reason) = match &settlement.outcome {
            Outcome::Published => (Kind::Published, 0, None, None),
            Outcome::Retry { after, error } => (Kind::Retry, micros(*after), Some(error), None),
            Outcome::Defer { after, reason } => (Kind::Defer, micros(*after), Some(reason), None),
            Outcome::Release => (Kind::Release, 0, None, None),
            Outcome::Dead { reason, error } => (Kind::Dead, 0, Some(error), Some(reason.as_str())),
        };
        self.leases.push(settlement.lease);
        self.seqs.push(settlement.lease.seq);
        self.kinds.push(kind as i16);
        self.after.push(after);
        self.notes.push(note.map(|text| error_text(text)));
        self.reasons.push(reason);
    }

    /// Whether the batch only publishes, each event once: there is a quicker statement for it.
    #[must_use]
    pub fn all_published(&self) -> bool {
        let published = Kind::Published as i16;
        self.kinds.iter().all(|kind| *kind == published)
            && self.seqs.windows(2).all(|two| two[0] != two[1])
    }

    /// The tokens: one for all where they are the same, else one for each event.
    #[must_use]
    pub fn tokens(&self) -> &[Lease] {
        let same = |two: &[Lease]| two[0].token == two[1].token;
        let one = self.leases.windows(2).all(same);
        &self.leases[..if one {
            self.leases.len().min(1)
        } else {
            self.leases.len()
        }]
    }

    /// Whether a statement that told this changed all of the batch of `asked` settlements.
    #[must_use]
    pub fn all_changed(&self, told: &[i64], asked: usize) -> bool {
        let left = if self.all_published() {
            told.len()
        } else {
            self.leases.len() - told.len()
        };
        left == 0 && self.leases.len() == asked
    }

    /// The leases that a statement changed. One for published events tells the numbers of those that it
    /// left alone, one for any the places of those that it changed.
    #[must_use]
    pub fn changed(&self, told: &[i64]) -> HashSet<Lease> {
        if !self.all_published() {
            return at_places(&self.leases, told);
        }
        let left: HashSet<i64> = told.iter().copied().collect();
        let leases = self.leases.iter();
        leases
            .filter(|lease| !left.contains(&lease.seq))
            .copied()
            .collect()
    }

    /// Whether rows go back among the due ones.
    #[must_use]
    pub fn gives_back(&self) -> bool {
        let ends = [Kind::Published as i16, Kind::Dead as i16];
        self.kinds.iter().any(|kind| !ends.contains(kind))
    }
}

/// A release as a batch.
#[must_use]
pub fn releases(leases: &[Lease]) -> Vec<Settlement> {
    leases
        .iter()
        .map(|lease| Settlement::new(*lease, Outcome::Release))
        .collect()
}

/// The leases at these places, from 1 on.
#[must_use]
pub fn at_places(leases: &[Lease], places: &[i64]) -> HashSet<Lease> {
    places
        .iter()
        .filter_map(|place| usize::try_from(*place).ok()?.checked_sub(1))
        .filter_map(|place| leases.get(place).copied())
        .collect()
}

/// The answers in the order of `leases`: `ours` are those that a statement changed (and ended, or
/// not); `held` tells of the other events that are open whether a token is on them.
#[must_use]
pub fn answer(
    leases: impl Iterator<Item = Lease>,
    ours: &HashSet<Lease>,
    ended: bool,
    held: &HashMap<i64, bool>,
) -> Vec<LeaseStatus> {
    let mut told = HashSet::with_capacity(ours.len());
    // Where the holder is in the same call, its token was on the row.
    let holders: HashSet<i64> = ours.iter().map(|lease| lease.seq).collect();
    leases
        .map(|lease| {
            let is_held = || held.get(&lease.seq) == Some(&true) || holders.contains(&lease.seq);
            match ours.contains(&lease) {
                true if told.insert(lease) || !ended => LeaseStatus::Ours,
                false if is_held() => LeaseStatus::Lost,
                _ => LeaseStatus::Unknown,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeaseToken;

    #[test]
    fn a_lease_named_twice_is_settled_once() {
        let token = LeaseToken::new();
        let published = |seq| Settlement::new(Lease::new(seq, token), Outcome::Published);
        let batch = [published(2), published(1), published(2)];
        let columns = Settling::new(&batch);
        assert_eq!(columns.seqs, [1, 2]);
        assert!(columns.all_published());
        assert_eq!(columns.tokens(), [Lease::new(1, token)]);
        assert!(columns.all_changed(&[], 2));
        assert!(!columns.all_changed(&[], batch.len()));
        let statuses = answer(
            batch.iter().map(|settlement| settlement.lease),
            &columns.changed(&[]),
            true,
            &HashMap::new(),
        );
        assert_eq!(
            statuses,
            [LeaseStatus::Ours, LeaseStatus::Ours, LeaseStatus::Unknown]
        );
    }

    #[test]
    fn an_event_under_two_leases_is_told_by_its_place() {
        let leases = [
            (7, LeaseToken::new()),
            (7, LeaseToken::new()),
            (8, LeaseToken::new()),
        ]
        .map(|(seq, token)| Lease::new(seq, token));
        let batch = leases.map(|lease| Settlement::new(lease, Outcome::Published));
        let columns = Settling::new(&batch);
        assert!(!columns.all_published());
        assert_eq!(columns.changed(&[3]), HashSet::from([leases[2]]));
        assert!(!columns.all_changed(&[3], 3));
        assert!(columns.all_changed(&[1, 2, 3], 3));
        let columns = Settling::new(&batch[1..]);
        assert_eq!(columns.changed(&[7]), HashSet::from([leases[2]]));
        assert!(!columns.all_changed(&[7], 2));
        assert_eq!(columns.tokens(), &leases[1..]);
    }
}
