//! How far claims run ahead of the free slots.

use std::time::Duration;

/// So many times what ends while a claim is under way is claimed ahead: the slots are then busy until
/// the next claim's answer as well.
const FLIGHTS: usize = 3;
/// So many rounds of the slots are claimed ahead at most. With one, quick attempts are done with it before
/// a claim has answered.
pub(super) const ROUNDS: usize = 2;
/// How much the last claim and the last attempt count beside those before them.
const CLAIMS: u32 = 4;
const ATTEMPTS: u32 = 16;

/// How many events to claim beyond the free slots: what is about to be wanted, and no more.
///
/// A claim takes its time. Where attempts are quicker than that, slots would stand empty until its
/// answer; so it also asks for what they could deliver meanwhile, twice as many events as there are
/// slots at most. Where attempts are slow, that is none: the relay claims what it can start, and leaves
/// the rest to others.
#[derive(Debug)]
pub(super) struct Ahead {
    slots: usize,
    /// What a claim takes, and an attempt.
    claim: Option<Duration>,
    attempt: Option<Duration>,
    events: usize,
}

impl Ahead {
    pub(super) const fn new(slots: usize) -> Self {
        Self {
            slots,
            claim: None,
            attempt: None,
            events: 0,
        }
    }

    /// An attempt has ended.
    pub(super) fn ended(&mut self, took: Duration) {
        self.attempt = Some(mean(self.attempt, took, ATTEMPTS));
    }

    /// What was claimed ahead had no slot for so long: attempts take as long, until they show
    /// otherwise.
    pub(super) const fn stalled(&mut self, waited: Duration) {
        (self.attempt, self.events) = (Some(waited), 0);
    }

    /// A claim was answered.
    pub(super) fn answered(&mut self, took: Duration) {
        let claim = mean(self.claim, took, CLAIMS);
        self.claim = Some(claim);
        let Some(attempt) = self.attempt else { return };
        let rounds = claim.as_micros() * 1_000 / attempt.as_micros().max(1);
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
        let during = self.slots.saturating_mul(rounds) / 1_000;
        let most = self.slots.saturating_mul(ROUNDS);
        self.events = during.saturating_mul(FLIGHTS).min(most);
    }

    /// How many events may wait for a slot.
    pub(super) const fn events(&self) -> usize {
        self.events
    }

    /// How many a claim should bring at least: of the slots, no more than a quarter stands empty
    /// while it is under way.
    pub(super) fn worth_a_claim(&self) -> usize {
        let round = self.events.min(self.slots);
        self.slots.div_ceil(4) + round - round / FLIGHTS
    }
}

/// The mean with one more, that counts as one in `many`.
fn mean(before: Option<Duration>, next: Duration, many: u32) -> Duration {
    before.map_or(next, |before| {
        before.saturating_mul(many - 1).saturating_add(next) / many
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(attempts: Duration, claims: Duration) -> Ahead {
        let mut ahead = Ahead::new(64);
        (0..100).for_each(|_| ahead.ended(attempts));
        ahead.answered(claims);
        ahead
    }

    #[test]
    fn slow_attempts_are_claimed_one_for_each_free_slot() {
        assert_eq!(Ahead::new(64).worth_a_claim(), 16);
        let ahead = after(1_000 * MS, 5 * MS);
        assert_eq!((ahead.events(), ahead.worth_a_claim()), (0, 16));
    }

    #[test]
    fn fast_attempts_are_claimed_ahead_up_to_twice_as_many_as_there_are_slots() {
        assert_eq!(after(10 * MS, MS).events(), 18);
        let ahead = after(MS, MS);
        assert_eq!((ahead.events(), ahead.worth_a_claim()), (128, 59));
        assert_eq!(after(Duration::ZERO, Duration::MAX).events(), 128);
        assert_eq!(after(Duration::ZERO, Duration::ZERO).events(), 0);
    }

    #[test]
    fn one_attempt_that_ran_out_of_time_ends_claims_ahead_for_a_while() {
        let mut ahead = after(MS, MS);
        ahead.ended(30_000 * MS);
        ahead.answered(MS);
        assert_eq!(ahead.events(), 0);
        (0..200).for_each(|_| ahead.ended(MS));
        ahead.answered(MS);
        assert_eq!(ahead.events(), 128);
    }
}
