//! Walks through keys, which go on from claim to claim.

/// The destination and the hash of a key.
type Key = (String, i64);

/// The first and the last stripe of a walk. The stripe of a key is the top four bits of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stripes(pub(super) i64, pub(super) i64);

impl Stripes {
    /// All stripes.
    pub(super) const ALL: Self = Self(-8, 7);
}

/// A walk through the keys of some stripes.
#[derive(Debug)]
pub(super) struct Walk {
    /// The key after which it goes on.
    pub(super) after: Key,
    /// Where it began, since it last found a run, and whether it has come to the end of the keys since.
    round: Option<(Key, bool)>,
}

impl Walk {
    /// One that begins before the first key.
    pub(super) const fn through(stripes: Stripes) -> Self {
        Self {
            after: (String::new(), stripes.0 << 60),
            round: None,
        }
    }

    /// Notes that a claim found no run up to `to` and did not come round by itself. Whether those before
    /// it, all in all, did.
    pub(super) fn found_none(&mut self, to: Key) -> bool {
        let from = std::mem::replace(&mut self.after, to);
        let (begun, mut passed_end) = self.round.take().unwrap_or_else(|| (from.clone(), false));
        passed_end |= place(&self.after) < place(&from);
        let is_round = passed_end && place(&self.after) >= place(&begun);
        self.round = (!is_round).then_some((begun, passed_end));
        is_round
    }

    /// Notes that a claim found a run, or came round by itself.
    pub(super) fn found(&mut self, to: Key) {
        self.after = to;
        self.round = None;
    }
}

/// The order of keys in a walk.
const fn place(key: &Key) -> (i64, &String, i64) {
    (key.1 >> 60, &key.0, key.1)
}
