//! One supervised task: how it is started, contained and dropped.

use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use futures::channel::mpsc::UnboundedSender;
use futures::future::{AbortHandle, BoxFuture, FutureExt};

use super::report::{TaskEnd, TaskKind};
use super::signal::Stop;
use crate::faults::{contained_future, error_chain};
use crate::{Report, SchedulerReport, Spawn, Timer};

/// What a task or a job may return: nothing, the report of a relay or a scheduler, or a `Result`
/// with any value, whose error is reported. Implement it for types of your own.
pub trait TaskOutput {
    /// The error with its causes in one line, if it is one.
    fn into_error(self) -> Option<String>;
}

impl TaskOutput for () {
    fn into_error(self) -> Option<String> {
        None
    }
}

impl TaskOutput for Report {
    fn into_error(self) -> Option<String> {
        None
    }
}

impl TaskOutput for SchedulerReport {
    fn into_error(self) -> Option<String> {
        None
    }
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> TaskOutput for Result<T, E> {
    fn into_error(self) -> Option<String> {
        let error: Box<dyn StdError + Send + Sync> = self.err()?.into();
        Some(error_chain(&*error))
    }
}

pub(super) type Start = Box<dyn FnOnce(Stop) -> BoxFuture<'static, Option<String>> + Send>;

pub(super) struct Task {
    pub(super) name: String,
    pub(super) kind: TaskKind,
    pub(super) start: Start,
}

/// A task as the caller gave it, with its output turned into an error text.
pub(super) fn start<F, Fut>(run: F) -> Start
where
    F: FnOnce(Stop) -> Fut + Send + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: TaskOutput,
{
    Box::new(move |stop| run(stop).map(TaskOutput::into_error).boxed())
}

/// The same task, which gives way once before it begins: then a runtime with many threads has woken
/// another one, which goes on with the timers should this task block its own.
pub(super) fn giving_way(start: Start) -> Start {
    Box::new(move |stop| {
        async move {
            let mut waited = false;
            poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            start(stop).await
        }
        .boxed()
    })
}

/// Runs the closure and its future inside one panic boundary.
pub(super) async fn contained(start: Start, stop: Stop) -> TaskEnd {
    // Nothing of the task is looked at after a panic, so no broken state can be seen.
    match contained_future(async move { start(stop).await }).await {
        Ok(None) => TaskEnd::Finished,
        Ok(Some(error)) => TaskEnd::Failed(error),
        Err(panic) => TaskEnd::Panicked(panic),
    }
}

/// The end of the task with this index.
pub(super) struct Ended {
    pub(super) index: usize,
    pub(super) end: TaskEnd,
    pub(super) at: Instant,
}

/// Says how the task ended, even where the runtime drops it.
struct Reporter {
    index: usize,
    end: TaskEnd,
    timer: Arc<dyn Timer>,
    ends: UnboundedSender<Ended>,
}

impl Reporter {
    fn set(&mut self, end: TaskEnd) {
        self.end = end;
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // The receiver is gone where the supervisor was dropped: nobody wants to know.
        let _ = self.ends.unbounded_send(Ended {
            index: self.index,
            end: self.end.clone(),
            at: self.timer.now(),
        });
    }
}

/// Drops the task together with whoever waits for it.
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) fn spawn(
    spawner: &dyn Spawn,
    timer: &Arc<dyn Timer>,
    ends: UnboundedSender<Ended>,
    index: usize,
    start: Start,
    stop: Stop,
) -> AbortHandle {
    let mut reporter = Reporter {
        index,
        end: TaskEnd::Abandoned,
        timer: Arc::clone(timer),
        ends,
    };
    let (task, handle) = futures::future::abortable(contained(start, stop));
    spawner.spawn(
        async move {
            if let Ok(end) = task.await {
                reporter.set(end);
            }
        }
        .boxed(),
    );
    handle
}
