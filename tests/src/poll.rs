//! Waiting for a condition, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(5);

/// Asks until `condition` holds.
///
/// # Panics
///
/// When `deadline` has passed, with `what` was awaited.
#[track_caller]
pub fn poll_until(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    let held = try_until(deadline, || condition().then_some(()));
    assert!(held.is_some(), "not within {deadline:?}: {what}");
}

/// Asks until `attempt` gives something; `None` when `deadline` has passed.
pub fn try_until<T>(deadline: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let found = attempt();
        if found.is_some() || start.elapsed() >= deadline {
            return found;
        }
        thread::sleep(PAUSE);
    }
}
