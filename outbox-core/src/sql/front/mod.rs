//! Which keys a claim asks next, and how.
//!
//! Keyed rows lie in stripes, by the top bits of their key's hash. A claim reads a stripe from its first row
//! on, in the order of `seq`, which is cheap as long as most of these rows are free. Where rows of a few
//! keys that have to wait fill the front of a stripe, it is *jammed*: for a while, its keys are walked
//! through one by one instead.

mod seen;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(super) use seen::{Brought, FrontNote, Look};

use super::walk::Stripes;
use crate::Claimed;
use seen::is_hot;

/// How many stripes there are, and the number of the first.
const STRIPES: usize = 16;
const FIRST: i64 = -8;
/// So many claims in a row ask the same stripe first (the last one that gave rows), while they are filled.
/// Claims at the same time then mostly are in different stripes: they do not keep each other off, and meet few
/// rows of each other.
const STAY: u32 = 8;
/// How long a jammed stripe is walked through before its front is looked at again: at first, and in the
/// end, as that doubles each time.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(250);
/// A claim that takes longer than this, and this for each row, walks over what was deleted and can't be
/// vacuumed yet. Its stripes are left alone for so many times as long; of several, one that has more rows for
/// so many times its part.
const SLOW: Duration = Duration::from_millis(25);
const SLOW_ROW: Duration = Duration::from_micros(200);
const RATION: u32 = 20;
const LONGEST_RATION: Duration = Duration::from_secs(5);
/// How long stripes that had nothing are asked after those that are jammed.
const EMPTY: Duration = Duration::from_millis(10);
/// Where more than this many stripes are jammed, one walk goes through all.
const MANY: usize = 4;
/// How long a stripe of which a walk found one key alone is read from its front, as if it were not hot. That
/// costs less, the more so the more deleted rows there are before it.
const ALONE: Duration = Duration::from_millis(100);

/// A statement that a claim of keyed rows makes, where those before it found less than half of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// At the fronts of these stripes, all at once or one by one.
    Front { stripes: Vec<i64>, together: bool },
    /// By a walk through these stripes.
    Walk(Stripes),
}

impl FrontNote {
    /// What a claim does next that found less than half: looks further into stripes, or walks through those
    /// that are jammed.
    pub(super) fn next(self, together: bool) -> Vec<Turn> {
        let all = |set| (0..STRIPES).filter(move |stripe| has(set, *stripe));
        if !together {
            return walks(&all(self.jammed).collect::<Vec<_>>());
        }
        let stripes: Vec<i64> = all(self.deep).map(number).collect();
        let front = |stripes| Turn::Front {
            stripes,
            together: false,
        };
        let deep = (!stripes.is_empty()).then_some(stripes);
        deep.map(front).into_iter().collect()
    }
}

/// What is known of the fronts of all stripes.
#[derive(Debug, Default)]
pub(super) struct Fronts {
    /// The stripe that is asked first, and how many claims in a row it was.
    at: usize,
    stayed: u32,
    /// Those that had more rows than were read.
    deep: u16,
    rests: [Rest; STRIPES],
    /// Until when it counts as having one key alone.
    alone: [Option<Instant>; STRIPES],
    /// Those that are not jammed had nothing just now: they are asked after the others until then.
    empty: Option<Instant>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    until: Option<Instant>,
    length: Duration,
    /// Whether it rests only because its rows are of few keys.
    hot: bool,
}

impl Fronts {
    /// What a claim does that begins now.
    pub(super) fn turns(&self, now: Instant) -> VecDeque<Turn> {
        let order = (0..STRIPES).map(|n| (self.at + n) % STRIPES);
        let (jammed, open): (Vec<usize>, Vec<usize>) =
            order.partition(|stripe| self.rests[*stripe].lasts(now));
        let mut turns = VecDeque::from(walks(&jammed));
        if open.is_empty() {
            return turns;
        }
        let together = !open.iter().any(|stripe| has(self.deep, *stripe));
        let stripes = open.iter().map(|stripe| number(*stripe)).collect();
        let front = Turn::Front { stripes, together };
        let before = if self.empty.is_some_and(|until| now < until) {
            turns.len()
        } else {
            usize::from(jammed.first() == Some(&self.at))
        };
        turns.insert(before, front);
        turns
    }

    /// Notes what a claim at the fronts of `stripes` brought.
    pub(super) fn looked(&mut self, stripes: &[i64], look: Look, events: &[Claimed], now: Instant) {
        let Look {
            note,
            together,
            full,
            crowded,
            took,
        } = look;
        let rows = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let slow = took > SLOW.saturating_add(SLOW_ROW.saturating_mul(rows));
        let alone = self.alone(now);
        let hot = if full && note.gave.count_ones() == 1 && is_hot(events) {
            note.gave & !alone
        } else {
            0
        };
        for stripe in (0..STRIPES).filter(|stripe| has(note.looked, *stripe)) {
            self.deep = (self.deep & !(1 << stripe)) | (note.deep & (1 << stripe));
            if slow {
                // One of several that has more rows is asked alone the next time, which costs its part.
                let parts = if together && has(note.deep, stripe) {
                    note.looked.count_ones()
                } else {
                    1
                };
                let rest = (took / parts).saturating_mul(RATION).min(LONGEST_RATION);
                self.rests[stripe].rest(rest, false, now);
            } else if has(note.jammed | hot, stripe) {
                let twice = self.rests[stripe].length.saturating_mul(2);
                let hot = !has(note.jammed, stripe);
                self.rests[stripe].rest(twice.clamp(SHORTEST, LONGEST), hot, now);
            } else if !has(alone, stripe) {
                self.rests[stripe] = Rest::default();
            }
        }
        if together {
            let nothing = events.is_empty() && !full && note.deep == 0;
            self.empty = now.checked_add(EMPTY).filter(|_| nothing);
            // Those that are jammed get their turn too.
            self.at = (self.at + usize::from(full)) % STRIPES;
            return;
        }
        let mut asked = stripes.iter().map(|stripe| index(*stripe));
        if full {
            let last = asked.rfind(|stripe| has(note.gave, *stripe));
            self.stays(
                last.map_or(self.at, |last| self.next_up_to(last, now)),
                true,
            );
        } else if let Some(first) = asked.find(|stripe| has(note.looked, *stripe)) {
            if crowded {
                // The next claim begins with what found no room.
                (self.at, self.stayed) = (first, 0);
            } else {
                self.stays(first, false);
            }
        }
    }

    /// This one, unless one before it rests, whose turn would be passed over.
    fn next_up_to(&self, last: usize, now: Instant) -> usize {
        let round = (0..STRIPES).map(|n| (self.at + n) % STRIPES);
        let mut before = round.take_while(|stripe| *stripe != last);
        before
            .find(|stripe| self.rests[*stripe].lasts(now))
            .unwrap_or(last)
    }

    fn alone(&self, now: Instant) -> u16 {
        let alone = |stripe: &usize| self.alone[*stripe].is_some_and(|until| now < until);
        let stripes = (0..STRIPES).filter(alone);
        stripes.fold(0, |set, stripe| set | 1 << stripe)
    }

    /// Notes what a walk through a jammed stripe brought. The next claim asks others first, unless these have
    /// as much: what comes seldom must not wait for one busy key.
    pub(super) fn walked(&mut self, walk: Stripes, brought: Brought, now: Instant) {
        let all = walk == Stripes::ALL;
        let stripe = if all { self.at } else { index(walk.0) };
        let others_are_deep = self.deep & !(1 << stripe) != 0;
        self.stays(stripe, brought != Brought::Little && others_are_deep);
        if all {
            return;
        }
        let rest = &mut self.rests[stripe];
        if brought == Brought::OneKey && rest.hot {
            rest.until = None;
            self.alone[stripe] = now.checked_add(ALONE);
            if !others_are_deep {
                (self.at, self.stayed) = (stripe, 0);
            }
        }
    }

    fn stays(&mut self, stripe: usize, worthwhile: bool) {
        self.stayed = if self.at == stripe {
            self.stayed + 1
        } else {
            1
        };
        self.at = stripe;
        if !worthwhile || self.stayed >= STAY {
            self.at = (stripe + 1) % STRIPES;
            self.stayed = 0;
        }
    }
}

impl Rest {
    fn rest(&mut self, length: Duration, hot: bool, now: Instant) {
        self.length = length;
        self.hot = hot;
        self.until = now.checked_add(length);
    }

    fn lasts(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

const fn has(set: u16, stripe: usize) -> bool {
    set >> stripe & 1 > 0
}

fn number(stripe: usize) -> i64 {
    i64::try_from(stripe).unwrap_or(0) + FIRST
}

fn index(stripe: i64) -> usize {
    usize::try_from(stripe - FIRST).unwrap_or(0) % STRIPES
}

/// Walks through these stripes: through all where many are jammed.
fn walks(jammed: &[usize]) -> Vec<Turn> {
    if jammed.len() > MANY {
        return vec![Turn::Walk(Stripes::ALL)];
    }
    let walk = |stripe: &usize| Turn::Walk(only(*stripe));
    jammed.iter().map(walk).collect()
}

fn only(stripe: usize) -> Stripes {
    Stripes(number(stripe), number(stripe))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "instants for a pure function")]
mod tests {
    use super::seen::tests::events;
    use super::*;

    const ALL_SET: u16 = u16::MAX;
    const ALL: [i64; STRIPES] = [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7];

    fn sets(looked: u16, deep: u16, jammed: u16) -> FrontNote {
        let gave = if looked.count_ones() == 1 { looked } else { 0 };
        FrontNote {
            looked,
            deep,
            jammed,
            gave,
        }
    }

    fn look(note: FrontNote, together: bool, full: bool) -> Look {
        Look {
            note,
            together,
            full,
            crowded: false,
            took: Duration::from_millis(1),
        }
    }

    #[test]
    fn stripes_are_asked_together_until_one_has_more_than_was_read() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let together = Turn::Front {
            stripes: ALL.to_vec(),
            together: true,
        };
        assert_eq!(fronts.turns(now), std::slice::from_ref(&together));
        fronts.looked(&ALL, look(sets(ALL_SET, 0, 0), true, false), &[], now);
        assert_eq!(fronts.turns(now), std::slice::from_ref(&together));
        fronts.looked(&ALL, look(sets(ALL_SET, 8, 0), true, false), &[], now);
        let one_by_one = Turn::Front {
            stripes: ALL.to_vec(),
            together: false,
        };
        assert_eq!(fronts.turns(now), [one_by_one]);
        let further = Turn::Front {
            stripes: vec![-5],
            together: false,
        };
        assert_eq!(sets(ALL_SET, 8, 0).next(true), [further]);
        assert_eq!(sets(ALL_SET, 0, 0).next(true), []);
    }

    #[test]
    fn claims_stay_with_a_stripe_that_fills_them_for_a_while() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        fronts.looked(&ALL, look(sets(ALL_SET, ALL_SET, 0), true, false), &[], now);
        let many = events(&[
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
        ]);
        let mut first = Vec::new();
        for _ in 0..10 {
            let Some(Turn::Front { stripes, .. }) = fronts.turns(now).pop_front() else {
                panic!("no front");
            };
            first.push(stripes[0]);
            let looked = 1 << index(stripes[0]);
            fronts.looked(
                &stripes,
                look(sets(looked, looked, 0), false, true),
                &many,
                now,
            );
        }
        assert_eq!(first, [-8, -8, -8, -8, -8, -8, -8, -8, -7, -7]);
        // Another claim has the stripe: this one found the next, and stays there.
        fronts.looked(&[-7, -6], look(sets(4, 4, 0), false, true), &many, now);
        let Some(Turn::Front { stripes, .. }) = fronts.turns(now).pop_front() else {
            panic!("no front");
        };
        assert_eq!(stripes[..3], [-6, -5, -4]);
        fronts.looked(&stripes, look(sets(4, 0, 0), false, false), &[], now);
        assert_eq!(fronts.at, index(-5));
    }

    #[test]
    fn a_jammed_stripe_is_walked_through_for_longer_each_time() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let mut rests = Vec::new();
        let mut then = now;
        for _ in 0..7 {
            fronts.looked(&ALL, look(sets(ALL_SET, 4, 4), true, false), &[], then);
            let turns = fronts.turns(then);
            assert_eq!(turns.len(), 2);
            assert_eq!(turns[1], Turn::Walk(Stripes(-6, -6)));
            let begun = then;
            while fronts.turns(then).len() > 1 {
                then += Duration::from_millis(1);
            }
            rests.push((then - begun).as_millis());
        }
        assert_eq!(rests, [10, 20, 40, 80, 160, 250, 250]);
        fronts.looked(&ALL, look(sets(ALL_SET, 0, 0), true, false), &[], then);
        fronts.looked(&ALL, look(sets(ALL_SET, 0, 4), true, false), &[], then);
        let later = then + Duration::from_millis(10);
        assert_eq!(fronts.turns(later).len(), 1, "it was free in between");
    }

    #[test]
    fn a_stripe_whose_turn_it_is_is_walked_through_first_and_then_others_are_asked() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        fronts.looked(&ALL, look(sets(ALL_SET, 1, 1), true, false), &[], now);
        let turns = fronts.turns(now);
        assert_eq!(turns[0], Turn::Walk(Stripes(-8, -8)));
        fronts.walked(Stripes(-8, -8), Brought::All, now);
        // Until it comes round, however much the others have.
        for _ in 1..STRIPES {
            let turns = fronts.turns(now);
            let Turn::Front { stripes, together } = &turns[0] else {
                panic!("{turns:?}");
            };
            fronts.looked(
                stripes,
                look(sets(ALL_SET - 1, 0, 0), *together, true),
                &[],
                now,
            );
        }
        let turns = fronts.turns(now);
        assert_eq!(turns[0], Turn::Walk(Stripes(-8, -8)));
    }

    #[test]
    fn a_stripe_of_one_key_is_read_at_its_front_for_a_while() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let hot = look(sets(1, 1, 0), false, true);
        let one_key = events(&["a"; 100]);
        fronts.looked(&ALL, hot, &one_key, now);
        assert_eq!(fronts.turns(now)[0], Turn::Walk(Stripes(-8, -8)));
        for other in [Brought::Little, Brought::All] {
            fronts.walked(Stripes(-8, -8), other, now);
            assert_eq!(fronts.turns(now).len(), 2);
        }
        fronts.walked(Stripes(-8, -8), Brought::OneKey, now);
        for after in [Duration::ZERO, ALONE - Duration::from_millis(1)] {
            let turns = fronts.turns(now + after);
            let Turn::Front { stripes, .. } = &turns[0] else {
                panic!("{turns:?}");
            };
            assert_eq!((stripes[0], turns.len()), (-8, 1));
            fronts.looked(&ALL, hot, &one_key, now + after);
        }
        // Afterwards, it rests for longer each time, so that a claim comes in which looks for others.
        let mut then = now;
        for rest in [20, 40, 80, 160, 250, 250] {
            then += ALONE;
            fronts.looked(&ALL, hot, &one_key, then);
            let end = then + Duration::from_millis(rest);
            assert_eq!(fronts.turns(end - Duration::from_millis(1)).len(), 2);
            assert_eq!(fronts.turns(end).len(), 1);
            fronts.walked(Stripes(-8, -8), Brought::OneKey, then);
        }
    }

    #[test]
    fn a_stripe_whose_rows_wait_is_walked_through_even_if_it_has_one_key() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        fronts.looked(&ALL, look(sets(ALL_SET, 1, 1), true, false), &[], now);
        fronts.walked(Stripes(-8, -8), Brought::OneKey, now);
        let walk = Turn::Walk(Stripes(-8, -8));
        assert!(fronts.turns(now).contains(&walk));
    }

    /// However much the stripes behind it give.
    #[test]
    fn a_stripe_that_rests_gets_its_turn_while_others_fill_the_claims() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let many = events(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
        let mut jammed = look(sets(0b11, 0b11, 0b01), false, true);
        jammed.note.gave = 0b10;
        fronts.looked(&ALL, jammed, &many, now);
        assert_eq!(fronts.turns(now)[0], Turn::Walk(Stripes(-8, -8)));
        // Also where the turn comes from one before it that has nothing.
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        fronts.looked(
            &ALL[1..],
            look(sets(0b10, 0b10, 0b10), false, false),
            &[],
            now,
        );
        fronts.at = 0;
        let mut behind = look(sets(0b101, 0b100, 0), false, true);
        behind.note.gave = 0b100;
        fronts.looked(&[-8, -6], behind, &many, now);
        assert_eq!(fronts.turns(now)[0], Turn::Walk(Stripes(-7, -7)));
    }

    #[test]
    fn claims_stay_with_the_last_stripe_that_gave_something() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let mut two = look(sets(0b1111, 0b1000, 0), false, true);
        two.note.gave = 0b1010;
        fronts.looked(&ALL, two, &events(&["a", "b"]), now);
        let turns = fronts.turns(now);
        let Turn::Front { stripes, .. } = &turns[0] else {
            panic!("{turns:?}");
        };
        assert_eq!(stripes[0], -5);
    }

    #[test]
    fn what_had_nothing_is_asked_after_what_is_jammed_for_a_moment() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        fronts.looked(&ALL, look(sets(ALL_SET, 4, 4), true, false), &[], now);
        fronts.looked(
            &ALL[3..],
            look(sets(ALL_SET - 7, 0, 0), true, false),
            &[],
            now,
        );
        assert_eq!(fronts.turns(now)[0], Turn::Walk(Stripes(-6, -6)));
        let later = now + EMPTY - Duration::from_millis(1);
        assert_eq!(fronts.turns(later)[0], Turn::Walk(Stripes(-6, -6)));
        fronts.looked(&ALL, look(sets(ALL_SET, 4, 4), true, false), &[], later);
        assert!(matches!(fronts.turns(later)[0], Turn::Front { .. }));
    }

    #[test]
    fn where_many_stripes_are_jammed_one_walk_goes_through_all_keys() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let all = Turn::Walk(Stripes::ALL);
        let four = sets(ALL_SET, 0b1111, 0b1111).next(false);
        assert_eq!((four.len(), four.contains(&all)), (4, false));
        assert_eq!(
            sets(ALL_SET, 0b1_1111, 0b1_1111).next(false),
            std::slice::from_ref(&all)
        );
        fronts.looked(
            &ALL,
            look(sets(ALL_SET, ALL_SET, ALL_SET), true, false),
            &[],
            now,
        );
        assert_eq!(fronts.turns(now), [all]);
    }

    #[test]
    fn a_walk_through_all_keys_in_vain_is_not_what_the_next_claim_begins_with() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let many = look(sets(ALL_SET, ALL_SET, 0b1_1111), false, false);
        fronts.looked(&ALL, many, &[], now);
        fronts.at = 4;
        let all = Turn::Walk(Stripes::ALL);
        assert_eq!(fronts.turns(now)[0], all);
        fronts.walked(Stripes::ALL, Brought::Little, now);
        assert_ne!(fronts.turns(now)[0], all);
        assert_eq!(fronts.turns(now)[1], all);
    }

    #[test]
    fn a_claim_that_takes_long_for_what_it_brings_is_not_repeated_soon() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let mut slow = look(sets(1, 1, 0), false, true);
        slow.took = Duration::from_millis(30);
        fronts.looked(&ALL, slow, &[], now);
        assert_eq!(fronts.turns(now + Duration::from_millis(599)).len(), 2);
        assert_eq!(fronts.turns(now + Duration::from_millis(600)).len(), 1);
    }

    /// Else what commits late at the fronts would wait for as long as one claim of all of them took, not of
    /// one.
    #[test]
    fn a_claim_at_all_fronts_that_takes_long_puts_off_each_that_has_more_by_its_part() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        let mut slow = look(sets(ALL_SET, 0b111, 0), true, true);
        slow.took = Duration::from_millis(160);
        fronts.looked(&ALL, slow, &[], now);
        let all = [Turn::Walk(Stripes::ALL)];
        assert_eq!(fronts.turns(now + Duration::from_millis(199)), all);
        let turns = fronts.turns(now + Duration::from_millis(200));
        let deep = Turn::Front {
            stripes: vec![-7, -6, -8],
            together: false,
        };
        assert!(turns.contains(&deep), "{turns:?}");
        // Those that will be asked together again.
        assert_eq!(fronts.turns(now + Duration::from_millis(3_199)).len(), 2);
        assert_eq!(fronts.turns(now + Duration::from_millis(3_200)).len(), 1);
    }

    #[test]
    fn few_keys_jam_a_stripe_that_they_fill_and_many_do_not() {
        let keys = |lanes: usize, rows: usize| -> Vec<String> {
            (0..rows).map(|n| (n % lanes).to_string()).collect()
        };
        for (lanes, rows, jams) in [
            (1, 100, true),
            (2, 100, true),
            (12, 100, true),
            (13, 100, false),
            (2, 16, true),
            (3, 16, false),
            (15, 15, true),
        ] {
            let (mut fronts, now) = (Fronts::default(), Instant::now());
            let keys = keys(lanes, rows);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            fronts.looked(&ALL, look(sets(1, 1, 0), false, true), &events(&keys), now);
            assert_eq!(
                fronts.turns(now).len() == 2,
                jams,
                "{lanes} keys, {rows} rows"
            );
        }
    }

    #[test]
    fn a_row_that_found_no_room_is_what_the_next_claim_begins_with() {
        let (mut fronts, now) = (Fronts::default(), Instant::now());
        fronts.looked(&ALL, look(sets(ALL_SET, 4, 0), true, false), &[], now);
        let mut crowded = look(sets(4, 4, 0), false, false);
        crowded.crowded = true;
        fronts.looked(&[-6, -5], crowded, &[], now);
        let Some(Turn::Front { stripes, .. }) = fronts.turns(now).pop_front() else {
            panic!("no front");
        };
        assert_eq!(stripes[0], -6);
    }
}
