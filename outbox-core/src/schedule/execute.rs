//! One run of a job: panic boundary, time-out, own task.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{AbortHandle, Either, FutureExt, abortable, select};

use super::job::{Job, JobEnd, JobRun};
use crate::faults::{contained_future, error_chain};
use crate::{Spawn, Timer};

/// Runs it once, whatever it does.
pub(super) async fn execute(
    job: &Arc<dyn Job>,
    run: JobRun,
    timeout: Option<Duration>,
    spawner: Option<&dyn Spawn>,
    timer: &dyn Timer,
) -> JobEnd {
    let work = contained(Arc::clone(job), run);
    match spawner {
        None => limited(work, timeout, timer).await,
        Some(spawner) => limited(spawned(work, spawner), timeout, timer).await,
    }
}

async fn contained(job: Arc<dyn Job>, run: JobRun) -> JobEnd {
    // The call itself may panic too. Nothing that a panic broke is looked at: a job that keeps
    // state across runs has to bear its own panics.
    match contained_future(async move { job.run(run).await }).await {
        Ok(Ok(())) => JobEnd::Finished,
        Ok(Err(error)) => JobEnd::Failed(error_chain(&error)),
        Err(panic) => JobEnd::Panicked(panic),
    }
}

async fn limited(
    work: impl Future<Output = JobEnd>,
    timeout: Option<Duration>,
    timer: &dyn Timer,
) -> JobEnd {
    let Some(timeout) = timeout else {
        return work.await;
    };
    match select(Box::pin(work), timer.sleep(timeout)).await {
        Either::Left((end, _)) => end,
        Either::Right(_) => JobEnd::TimedOut,
    }
}

/// The work in its own task, which is dropped with this future.
async fn spawned(
    work: impl Future<Output = JobEnd> + Send + 'static,
    spawner: &dyn Spawn,
) -> JobEnd {
    struct AbortOnDrop(AbortHandle);
    impl Drop for AbortOnDrop {
        fn drop(&mut self) {
            self.0.abort();
        }
    }

    let (sender, receiver) = oneshot::channel();
    let (task, handle) = abortable(work);
    let _guard = AbortOnDrop(handle);
    spawner.spawn(
        async move {
            if let Ok(end) = task.await {
                // Nobody waits any more: the end is nobody's concern.
                let _ = sender.send(end);
            }
        }
        .boxed(),
    );
    receiver.await.unwrap_or(JobEnd::Abandoned)
}
