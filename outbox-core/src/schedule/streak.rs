//! Failures in a row: a job's outage is logged once.

use std::sync::{Mutex, PoisonError};

use super::job::JobEnd;

/// How often in a row a job has failed in this process.
#[derive(Debug, Default)]
pub(super) struct Streak(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u64,
    /// The last failure was one of the locks, which an answer of theirs ends.
    of_locks: bool,
}

/// What a run's end is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing new.
    None,
    /// The first failure, or the first after it worked.
    Fails,
    /// It works again, after so many failures.
    WorksAgain(u64),
}

impl Streak {
    pub(super) fn note(&self, end: &JobEnd) -> News {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if end.is_failure() {
            state.failures = state.failures.saturating_add(1);
            state.of_locks = matches!(end, JobEnd::LockFailed(_));
            return match state.failures {
                1 => News::Fails,
                _ => News::None,
            };
        }
        // A run that is left to another process says nothing about the job.
        let works = !end.is_skipped() || (state.of_locks && *end == JobEnd::Elsewhere);
        match (works, state.failures) {
            (true, failures) if failures > 0 => {
                *state = State::default();
                News::WorksAgain(failures)
            }
            _ => News::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_first_failure_and_the_recovery() {
        let streak = Streak::default();
        let failed = JobEnd::Failed("down".into());
        let notes = [
            &JobEnd::Finished,
            &failed,
            &JobEnd::TimedOut,
            &JobEnd::Busy,
            &JobEnd::Elsewhere,
            &JobEnd::Finished,
            &failed,
        ];
        let expected = [
            News::None,
            News::Fails,
            News::None,
            News::None,
            News::None,
            News::WorksAgain(2),
            News::Fails,
        ];
        assert_eq!(notes.map(|end| streak.note(end)), expected);
    }

    #[test]
    fn an_answer_of_the_locks_ends_their_outage() {
        let streak = Streak::default();
        let failed = JobEnd::LockFailed("down".into());
        let notes = [&failed, &failed, &JobEnd::Busy, &JobEnd::Elsewhere, &failed];
        let expected = [
            News::Fails,
            News::None,
            News::None,
            News::WorksAgain(2),
            News::Fails,
        ];
        assert_eq!(notes.map(|end| streak.note(end)), expected);
    }
}
