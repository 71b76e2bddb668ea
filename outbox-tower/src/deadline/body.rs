use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower::BoxError;

use super::DeadlineExceeded;

pin_project! {
    /// A body that fails with [`DeadlineExceeded`] when what was left of the deadline has passed.
    pub struct DeadlineBody<B> {
        #[pin]
        body: B,
        rest: BoxFuture<'static, ()>,
    }
}

impl<B> DeadlineBody<B> {
    pub(super) const fn new(body: B, rest: BoxFuture<'static, ()>) -> Self {
        Self { body, rest }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for DeadlineBody<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        this.rest
            .as_mut()
            .poll(cx)
            .map(|()| Some(Err(DeadlineExceeded.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> fmt::Debug for DeadlineBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineBody").finish_non_exhaustive()
    }
}
