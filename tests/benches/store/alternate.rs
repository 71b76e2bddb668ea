//! The cost of claims and settles in two databases, in turns.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::time::Instant;

use outbox_core::{ClaimRequest, OutboxStore};

use crate::setup::{Bench, Fill, median, micros};
use crate::worker::{LEASE, published};

const BATCH: u32 = 100;
/// Not measured: statements are prepared and pages read.
const FIRST: usize = 20;

/// A database, and what replaces the events that a turn takes.
pub(crate) struct Side<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) refill: Fill<'a>,
}

/// Medians of one side, in µs.
pub(crate) struct Cost {
    pub(crate) claim: f64,
    pub(crate) both: f64,
    /// Rows of a claim.
    pub(crate) rows: f64,
}

/// Claims of 100 events and their settles.
pub(crate) async fn alternate(sides: [Side<'_>; 2], turns: usize) -> [Cost; 2] {
    let stores = sides.each_ref().map(|side| side.bench.sqlx());
    let mut seen = [HashSet::new(), HashSet::new()];
    let mut costs = [const { (Vec::new(), Vec::new(), Vec::new()) }; 2];
    for turn in 0..FIRST + turns {
        for (place, store) in stores.iter().enumerate() {
            let request = ClaimRequest::new(NonZeroU32::new(BATCH).expect("rows"), LEASE);
            let begun = Instant::now();
            let events = store.claim(&request).await.expect("claimed").events;
            let claim = begun.elapsed();
            let published = published(&events);
            let settling = Instant::now();
            store.settle(&published).await.expect("settled");
            let settle = settling.elapsed();
            for event in &events {
                assert!(seen[place].insert(event.lease.seq), "an event came twice");
            }
            let rows = u32::try_from(events.len()).expect("few");
            let mut refill = sides[place].refill;
            refill.events = rows;
            sides[place].bench.add(&refill).await;
            if turn >= FIRST {
                let (claims, both, counts) = &mut costs[place];
                claims.push(micros(claim));
                both.push(micros(claim + settle));
                counts.push(f64::from(rows));
            }
        }
    }
    costs.map(|(claims, both, counts)| Cost {
        claim: median(claims),
        both: median(both),
        rows: median(counts),
    })
}

/// Prints two sides and their ratio.
pub(crate) fn report(what: &str, [with, without]: &[Cost; 2]) {
    println!(
        "{what:>9} {:6.0} {:6.0} {:12.0} {:6.0} {:6.0} {:12.0} {:6.2} {:6.2}",
        with.rows,
        with.claim,
        with.both,
        without.rows,
        without.claim,
        without.both,
        with.claim / without.claim,
        with.both / without.both
    );
}
