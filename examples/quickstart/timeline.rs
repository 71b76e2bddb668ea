//! What the program tells while it runs: a line for each step; between them, on a terminal, one line
//! that is redrawn, elsewhere a line now and then.

use std::io::{IsTerminal, Write, stdout};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines of progress where they can't be redrawn.
const PLAIN_PAUSE: Duration = Duration::from_millis(500);

/// Prints with the time since the start.
#[derive(Debug)]
pub(crate) struct Timeline {
    start: Instant,
    terminal: bool,
    last: Mutex<(Instant, String)>,
}

impl Timeline {
    pub(crate) fn start() -> Self {
        let start = Instant::now();
        Self {
            start,
            terminal: stdout().is_terminal(),
            last: Mutex::new((start, String::new())),
        }
    }

    /// A step.
    pub(crate) fn step(&self, who: &str, what: &str) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        self.print(&format!("{clear}{}\n", self.line(who, what)));
    }

    /// How far it has come: printed where it changed.
    pub(crate) fn progress(&self, who: &str, what: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.1 == what {
            return;
        }
        if self.terminal {
            self.print(&format!("\r\x1b[K{}", self.line(who, what)));
        } else if last.0.elapsed() >= PLAIN_PAUSE {
            self.print(&format!("{}\n", self.line(who, what)));
        } else {
            return;
        }
        *last = (Instant::now(), what.to_owned());
    }

    /// Text that has no time.
    pub(crate) fn text(&self, text: &str) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        self.print(&format!("{clear}{text}\n"));
    }

    fn line(&self, who: &str, what: &str) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        format!("{seconds:6.2}s  {who:<9} {what}")
    }

    /// A closed pipe is no reason to stop relaying.
    fn print(&self, text: &str) {
        let mut out = stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }
}
