//! The statements of a claim, counted on a table that a driver plays.
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use outbox_core::sql::{ClaimDriver, EventRow, Notes, ScanState, Step, Taken, claim};
use outbox_core::{Claim, ClaimRequest, DestinationFilter, Error, async_trait};

/// A row of the played table: fresh or due, and whether its destination is left out of claims.
#[derive(Clone, Copy)]
struct Row {
    seq: i64,
    closed: bool,
}

#[derive(Default)]
struct Table {
    fresh: Vec<Row>,
    due: Vec<Row>,
    parked: usize,
    next_due: i64,
    statements: Vec<&'static str>,
    widths: Vec<i64>,
    /// What a statement takes beyond a millisecond.
    slow: Duration,
    /// The last number that was given out.
    given_out: i64,
    /// Commits before the next look.
    late: Option<i64>,
    /// Where each walk through keys ends, which finds no run and does not come round.
    walks: Vec<i64>,
    /// Rows of keys with a run each.
    runs: i64,
    /// The size of each payload. The limit of bytes then cuts claims short, which have locked all that
    /// they looked at.
    size: usize,
    /// What happens while a statement has its rows locked.
    meanwhile: Option<Meanwhile>,
}

/// Works on the rows that are not locked.
type Meanwhile = Box<dyn FnOnce(&mut Table) + Send>;

impl Table {
    fn of(rows: i64, closed: impl Fn(i64) -> bool) -> Self {
        let row = |seq| Row {
            seq,
            closed: closed(seq),
        };
        Self {
            fresh: (1..=rows).map(row).collect(),
            ..Self::default()
        }
    }

    fn notes(&self) -> i64 {
        let bit = |set: bool, value| if set { value } else { 0 };
        bit(!self.due.is_empty(), 1)
            + bit(!self.walks.is_empty() || self.runs > 0, 2)
            + bit(self.parked > 0, 4)
            + 16 * self.next_due
    }

    /// The first rows from there that are not closed, which it walks past.
    fn open(&mut self, from: i64, width: i64, bytes: i64) -> Vec<i64> {
        let open = self.fresh.iter().filter(|r| r.seq >= from && !r.closed);
        let width = usize::try_from(width).unwrap();
        let locked: Vec<Row> = open.copied().take(width).collect();
        self.fresh
            .retain(|row| !locked.iter().any(|one| one.seq == row.seq));
        let fit = usize::try_from(bytes).unwrap() / self.size.max(1);
        let (taken, left) = locked.split_at(fit.min(locked.len()));
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile(self);
        }
        self.fresh.splice(0..0, left.iter().copied());
        taken.iter().map(|row| row.seq).collect()
    }

    fn window(&mut self, due: bool, from: i64, width: i64, most: i64) -> (Vec<i64>, EventRow) {
        let rows = if due { &mut self.due } else { &mut self.fresh };
        let width = usize::try_from(width).unwrap();
        let seen: Vec<Row> = rows
            .iter()
            .copied()
            .filter(|row| row.seq >= from)
            .take(width)
            .collect();
        let free: Vec<i64> = seen.iter().filter(|r| !r.closed).map(|r| r.seq).collect();
        let parked = seen.len() - free.len();
        let taken: Vec<i64> = free
            .iter()
            .copied()
            .take(usize::try_from(most).unwrap())
            .collect();
        let left = |row: &Row| !seen.iter().any(|s| s.seq == row.seq && s.closed);
        rows.retain(|row| left(row) && !taken.contains(&row.seq));
        self.parked += parked;
        let count = |n: usize| i32::try_from(n).unwrap();
        let mut note = EventRow::unreadable(seen.last().map_or(0, |row| row.seq));
        note.max_attempts = Some(count(seen.len()));
        note.replays = count(free.len());
        note.attempts = count(parked);
        (taken, note)
    }
}

#[async_trait]
impl ClaimDriver for Table {
    async fn take(
        &mut self,
        request: &ClaimRequest,
        step: &Step,
        bytes: i64,
        _: bool,
    ) -> Result<Taken, Error> {
        let mut taken = Taken::default();
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let notes = self.notes();
        let (name, seqs, note) = match *step {
            Step::Fresh { rows, seq, .. } => ("fresh", self.open(seq, rows, bytes), None),
            Step::FreshWindow { window, rows, seq } => {
                self.widths.push(window);
                let (seqs, note) = self.window(false, seq, window, rows);
                ("fresh window", seqs, Some(note))
            }
            Step::DueWindow { window, rows } => {
                let (seqs, note) = self.window(true, 0, window, rows);
                ("due window", seqs, Some(note))
            }
            Step::Parked { .. } => ("parked", Vec::new(), None),
            Step::Front { rows, .. } => {
                let most = i64::try_from(rows).unwrap().min(self.runs);
                self.runs -= most;
                // All stripes were looked at; where keys wait, all are jammed.
                let jammed = if self.walks.is_empty() {
                    0
                } else {
                    0xffff_ffff_0000
                };
                let note = EventRow::unreadable(0xffff | jammed);
                ("front", (0..most).collect(), Some(note))
            }
            Step::Keyed { .. } => {
                let to = self.walks.first().copied();
                self.walks.rotate_left(usize::from(to.is_some()));
                let note = to.map(|hash| {
                    let mut note = EventRow::unreadable(hash);
                    note.attempts = 1;
                    note
                });
                ("keyed", Vec::new(), note)
            }
        };
        self.statements.push(name);
        NOW.set(NOW.get() + self.slow);
        for seq in seqs {
            let mut row = EventRow::unreadable(seq);
            row.payload = vec![0; self.size].into();
            taken.row(request, step, row, Some(until), notes);
        }
        if let Some(note) = note {
            taken.row(request, step, note, None, notes);
        }
        Ok(taken)
    }

    async fn look(&mut self) -> Result<(Notes, i64), Error> {
        self.statements.push("look");
        let late = self.late.take();
        self.fresh
            .extend(late.map(|seq| Row { seq, closed: false }));
        Ok((Notes::new(self.notes()), self.given_out))
    }
}

thread_local! {
    #[expect(clippy::disallowed_methods, reason = "an instant can only be made from the clock")]
    static NOW: Cell<Instant> = Cell::new(Instant::now());
}

/// A millisecond later each time: what a statement takes.
fn clock() -> Instant {
    NOW.set(NOW.get() + Duration::from_millis(1));
    NOW.get()
}

fn request(rows: u32) -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(rows).unwrap(), Duration::from_secs(60))
}

fn left_out(rows: u32) -> ClaimRequest {
    let mut request = request(rows);
    request.destinations = DestinationFilter::Except(vec!["closed".into()]);
    request
}

/// A claim, and its statements.
fn make(
    table: &mut Table,
    state: &Mutex<ScanState>,
    request: &ClaimRequest,
) -> (Claim, Vec<&'static str>) {
    table.statements.clear();
    let claim = claim(table, state, request, clock).now_or_never();
    (claim.unwrap().unwrap(), table.statements.clone())
}

fn seqs(claim: &Claim) -> Vec<i64> {
    let readable = claim.events.iter().map(|row| row.lease);
    let all = readable.chain(claim.undecodable.iter().map(|row| row.lease));
    all.map(|lease| lease.seq).collect()
}

fn idle(table: &mut Table) -> Mutex<ScanState> {
    let state = Mutex::default();
    make(table, &state, &request(64));
    state
}

#[test]
fn an_idle_store_is_asked_one_statement_a_claim() {
    let mut table = Table {
        next_due: 5_000_000,
        ..Table::default()
    };
    let state = idle(&mut table);
    for _ in 0..3 {
        let (claim, statements) = make(&mut table, &state, &request(64));
        assert_eq!(statements, ["fresh window"]);
        assert_eq!(claim.next_due, Some(Duration::from_secs(5)));
    }
}

#[test]
fn an_event_after_idling_comes_with_the_first_statement() {
    let mut table = Table::default();
    let state = idle(&mut table);
    table.fresh = Table::of(1, |_| false).fresh;
    let (claim, statements) = make(&mut table, &state, &request(64));
    assert_eq!(
        (
            claim.events.len() + claim.undecodable.len(),
            statements.len()
        ),
        (1, 1)
    );
}

/// Sweeps are rationed where they cost so much; the mark of an empty one must not pass over it.
#[test]
fn an_event_that_commits_after_an_expensive_sweep_comes_with_the_next_claim() {
    let mut table = Table {
        slow: Duration::from_millis(40),
        given_out: 5,
        ..Table::default()
    };
    let state = Mutex::default();
    for _ in 0..3 {
        NOW.set(NOW.get() + Duration::from_secs(2));
        make(&mut table, &state, &request(64));
    }
    NOW.set(NOW.get() + Duration::from_secs(2));
    (table.late, table.given_out) = (Some(6), 7);
    let (claim, statements) = make(&mut table, &state, &request(64));
    assert_eq!(claim.events.len() + claim.undecodable.len(), 0);
    assert!(statements.contains(&"look"), "{statements:?}");
    let (claim, statements) = make(&mut table, &state, &request(64));
    let came = claim.events.len() + claim.undecodable.len();
    assert_eq!(came, 1, "{statements:?}");
}

/// The mark must not pass over rows that were locked by a claim which left them.
#[test]
fn what_the_limit_of_bytes_left_comes_next_though_another_claim_passed_over_it() {
    let state = std::sync::Arc::new(Mutex::default());
    let beside = std::sync::Arc::clone(&state);
    let mut table = Table {
        size: 1 << 20,
        // Where sweeps are expensive, they don't find it soon.
        slow: Duration::from_millis(100),
        ..Table::of(1_000, |_| false)
    };
    // Sixteen fit into a claim.
    for _ in 0..3 {
        make(&mut table, &state, &request(20));
    }
    table.meanwhile = Some(Box::new(move |table| {
        let (claim, _) = make(table, &beside, &request(20));
        assert_eq!(seqs(&claim), (69..85).collect::<Vec<i64>>());
    }));
    for first in [49, 65] {
        let (claim, _) = make(&mut table, &state, &request(20));
        assert_eq!(seqs(&claim)[0], first);
    }
}

#[test]
fn claims_that_find_no_run_say_that_there_is_more_until_they_have_seen_each_key() {
    let quarter = 1 << 61;
    let mut table = Table {
        // Each statement takes so long that a claim makes one.
        slow: Duration::from_millis(300),
        walks: vec![i64::MIN + quarter, -1, quarter, i64::MAX, i64::MIN],
        next_due: 60_000_000,
        ..Table::default()
    };
    let state = Mutex::default();
    let mut more = Vec::new();
    while more.len() < 10 {
        NOW.set(NOW.get() + Duration::from_secs(1));
        let (claim, statements) = make(&mut table, &state, &request(64));
        if statements.contains(&"keyed") {
            more.push(claim.next_due == Some(Duration::ZERO));
        }
    }
    assert_eq!(
        more,
        [
            [true, true, true, true, false],
            [true, true, true, true, false]
        ]
        .concat()
    );
}

#[test]
fn fresh_rows_are_asked_for_now_and_then_while_keys_fill_the_claims() {
    let mut table = Table {
        runs: 100_000,
        ..Table::default()
    };
    let state = Mutex::default();
    make(&mut table, &state, &request(100));
    let mut asked = 0;
    for _ in 0..100 {
        let begun = NOW.get();
        let (claim, statements) = make(&mut table, &state, &request(100));
        // A claim takes a millisecond in all.
        NOW.set(begun + Duration::from_millis(1));
        assert_eq!(claim.events.len() + claim.undecodable.len(), 100);
        asked += statements.iter().filter(|name| **name == "fresh").count();
    }
    assert!((4..=10).contains(&asked), "{asked}");
    table.runs = 0;
    table.fresh = Table::of(1, |_| false).fresh;
    let (claim, statements) = make(&mut table, &state, &request(100));
    let came = claim.events.len() + claim.undecodable.len();
    assert_eq!(
        came, 1,
        "at once where there is nothing else: {statements:?}"
    );
}

#[test]
fn what_falls_due_while_idle_comes_with_the_claim_that_learns_of_it() {
    let mut table = Table::default();
    let state = idle(&mut table);
    table.due = Table::of(1, |_| false).fresh;
    let (claim, statements) = make(&mut table, &state, &request(64));
    assert_eq!(claim.events.len() + claim.undecodable.len(), 1);
    assert_eq!(statements, ["fresh window", "due window"]);
}

#[test]
fn a_claim_of_any_size_from_a_backlog_is_one_statement() {
    let mut table = Table::of(10_000, |_| false);
    let state = Mutex::default();
    // What the table has is not known yet.
    make(&mut table, &state, &request(1));
    for rows in [1, 2, 3, 6, 9, 14, 49, 126, 255, 499, 999, 1_499] {
        let (claim, statements) = make(&mut table, &state, &request(rows));
        let got = u32::try_from(claim.events.len() + claim.undecodable.len()).unwrap();
        assert_eq!(statements, ["fresh"], "{rows}");
        assert_eq!(got, rows);
    }
}

#[test]
fn a_claim_that_leaves_a_destination_out_looks_at_few_more_rows_than_it_takes() {
    let mut table = Table::of(10_000, |seq| seq % 100 == 0);
    let state = Mutex::default();
    make(&mut table, &state, &left_out(100));
    table.widths.clear();
    let mut parked = 0;
    for _ in 0..50 {
        let (claim, statements) = make(&mut table, &state, &left_out(126));
        assert!(claim.events.len() + claim.undecodable.len() >= 126 * 2 / 3);
        parked += usize::from(statements.contains(&"parked"));
    }
    let widths = &table.widths;
    assert!(widths.iter().all(|width| *width <= 126), "{widths:?}");
    assert!(widths.len() <= 50 + parked && parked < 10, "{parked}");
}

/// What only one claim in many meets is not worth the dearer statement, which parks it; sweeps do.
#[test]
fn a_few_rows_that_are_left_out_are_walked_past_and_parked_by_sweeps() {
    let mut table = Table::of(20_000, |seq| seq % 50 == 0);
    let state = Mutex::default();
    make(&mut table, &state, &left_out(100));
    let (mut plain, mut windows) = (0, 0);
    for _ in 0..100 {
        let (claim, statements) = make(&mut table, &state, &left_out(100));
        assert!(claim.events.len() + claim.undecodable.len() >= 50);
        let count = |name| statements.iter().filter(|made| **made == name).count();
        plain += count("fresh");
        windows += count("fresh window");
    }
    assert!(plain > 4 * windows, "{plain} {windows}");
    let left = table.fresh.first().unwrap().seq;
    let passed = usize::try_from(left).unwrap() / 50;
    assert!(table.parked > 100 && table.parked + 60 > passed, "{left}");
}

/// Sweeps are rationed where they cost so much; what was walked past would be found by them alone.
#[test]
fn where_sweeps_are_rationed_rows_that_are_left_out_are_parked() {
    let mut table = Table::of(1_000, |seq| seq % 10 == 0);
    table.slow = Duration::from_millis(400);
    let state = Mutex::default();
    let mut got = 0;
    while got < 900 {
        let (claim, _) = make(&mut table, &state, &left_out(50));
        let now = claim.events.len() + claim.undecodable.len();
        assert!(now > 0, "{got}");
        got += now;
    }
    assert_eq!(table.parked, 100, "{:?}", table.fresh.len());
}

#[test]
fn a_long_backlog_that_is_left_out_is_parked_by_wide_windows() {
    let mut table = Table::of(20_000, |seq| seq <= 10_000);
    let state = Mutex::default();
    let mut got = 0;
    let mut statements = 0;
    while got == 0 {
        let (claim, made) = make(&mut table, &state, &left_out(10));
        got = claim.events.len() + claim.undecodable.len();
        statements += made.len();
    }
    assert_eq!(table.parked, 10_000);
    assert!(statements < 30, "{statements}");
    let before = table.widths.len();
    for _ in 0..200 {
        make(&mut table, &state, &left_out(10));
    }
    let after = &table.widths[before..];
    assert!(after.len() < 50 && after.last() <= Some(&10), "{after:?}");
}
