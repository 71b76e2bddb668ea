//! Waiting for the head of the answer.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use http::Response;
use tokio::time::{Instant, sleep_until};

use crate::client::{HttpFailure, HttpFailureKind, Progress, ResponseBody, Timeouts};

type Answer = Response<ResponseBody>;

/// The answer, within the head's deadline and the attempt's.
///
/// The head's time runs from the first byte of the request, which is not known when the waiting
/// begins; so one alarm is set for the earliest end, and set again when it rings too soon. A common
/// delivery sets it once.
pub(super) async fn answer(
    sent: impl Future<Output = Result<Answer, HttpFailure>>,
    progress: &Progress,
    timeouts: &Timeouts,
    end: Instant,
) -> Result<Answer, HttpFailure> {
    let mut sent = pin!(sent);
    let mut alarm = pin!(sleep_until(end.min(Instant::now() + timeouts.head)));
    poll_fn(|cx| {
        if let Poll::Ready(answer) = sent.as_mut().poll(cx) {
            return Poll::Ready(answer);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let head_due = progress.sending_since().map(|since| since + timeouts.head);
            if now >= end {
                return Poll::Ready(Err(HttpFailure::new(HttpFailureKind::TotalTimeout)));
            }
            if head_due.is_some_and(|due| now >= due) {
                return Poll::Ready(Err(HttpFailure::new(HttpFailureKind::HeadTimeout)));
            }
            // Still waiting for a connection: the head's time has not begun.
            let next = head_due.unwrap_or_else(|| now + timeouts.head);
            alarm.as_mut().reset(end.min(next));
        }
        Poll::Pending
    })
    .await
}
