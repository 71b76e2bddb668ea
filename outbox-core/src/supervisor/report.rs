//! What a supervisor tells at its end.

use std::fmt;
use std::time::Duration;

/// How a supervised task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEnd {
    /// It returned.
    Finished,
    /// It returned an error: this one with its causes.
    Failed(String),
    /// It panicked with this message.
    Panicked(String),
    /// It was dropped: its budget was used up, the operator asked a second time, or the runtime
    /// went down under it.
    Abandoned,
}

impl TaskEnd {
    /// The name of the outcome, for labels: `finished`, `failed`, `panicked` or `abandoned`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::Panicked(why) => write!(f, "{}: {why}", self.as_str()),
            Self::Finished | Self::Abandoned => f.write_str(self.as_str()),
        }
    }
}

/// What a task is to the shutdown's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TaskKind {
    /// Background work (relays, jobs): told to stop first.
    Work,
    /// Serves callers (an HTTP server): told to stop second.
    Server,
    /// Closes something (a client, a pool) when all tasks have ended.
    Close,
}

/// One task's end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// Its place in the order.
    pub kind: TaskKind,
    /// How it ended.
    pub end: TaskEnd,
    /// From the begin of the shutdown to its end (a close hook: from its own start). Zero where it
    /// had ended before.
    pub took: Duration,
}

/// Why a shutdown began.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownCause {
    /// The shutdown signal.
    Signal,
    /// The abort signal, with no shutdown signal before it.
    Abort,
    /// This task failed or panicked, and [`OnFailure::Shutdown`](crate::OnFailure) was asked for.
    Task(String),
}

/// What became of everything that a supervisor ran.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Why it began.
    pub cause: ShutdownCause,
    /// True where the abort signal cut it short.
    pub aborted: bool,
    /// From its begin to its end.
    pub took: Duration,
    /// Every task in the order in which it was added, then every close hook.
    pub tasks: Vec<TaskReport>,
}

impl ShutdownReport {
    /// True where every task and hook finished by itself and without an error.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.tasks.iter().all(|task| task.end == TaskEnd::Finished)
    }

    /// How many tasks and hooks did not end in time.
    #[must_use]
    pub fn abandoned(&self) -> usize {
        self.tasks
            .iter()
            .filter(|task| task.end == TaskEnd::Abandoned)
            .count()
    }

    /// The task or hook with this name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }
}
