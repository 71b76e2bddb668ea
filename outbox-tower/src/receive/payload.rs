//! A body that is whole, or streams on after what was read of it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// Bytes, or another body after some bytes that were read of it.
    ///
    /// It can be made of `Bytes`, as the receiving layers need of a request's body: wrap hyper's
    /// `Incoming` in it (`Payload::new`).
    pub struct Payload<B>
    where
        B: Body,
    {
        head: Option<Bytes>,
        #[pin]
        rest: Option<B>,
        tail: Option<Result<Frame<Bytes>, B::Error>>,
    }
}

impl<B: Body> Payload<B> {
    /// A body as it is.
    #[must_use]
    pub const fn new(body: B) -> Self {
        Self {
            head: None,
            rest: Some(body),
            tail: None,
        }
    }

    /// What was read of a body, and the rest of it.
    #[cfg(feature = "idempotency")]
    pub(crate) const fn with_rest(head: Bytes, rest: B) -> Self {
        Self {
            head: Some(head),
            rest: Some(rest),
            tail: None,
        }
    }

    /// All that came of a body, and how it ended: with trailers, or with an error.
    #[cfg(feature = "idempotency")]
    pub(crate) const fn with_tail(
        head: Bytes,
        tail: Option<Result<Frame<Bytes>, B::Error>>,
    ) -> Self {
        Self {
            head: Some(head),
            rest: None,
            tail,
        }
    }
}

impl<B: Body> From<Bytes> for Payload<B> {
    fn from(bytes: Bytes) -> Self {
        Self {
            head: Some(bytes),
            rest: None,
            tail: None,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for Payload<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(head) = this.head.take()
            && !head.is_empty()
        {
            return Poll::Ready(Some(Ok(Frame::data(head))));
        }
        match this.rest.as_pin_mut() {
            Some(rest) => rest.poll_frame(cx),
            None => Poll::Ready(this.tail.take()),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.head.as_ref().is_none_or(Bytes::is_empty)
            && self.rest.as_ref().is_none_or(Body::is_end_stream)
            && self.tail.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let head = self.head.as_ref().map_or(0, Bytes::len);
        let head = u64::try_from(head).unwrap_or(u64::MAX);
        let rest = match &self.rest {
            Some(rest) => rest.size_hint(),
            None => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(head));
        // A body that breaks off has no size: a length that it does not keep would mislead.
        if let (Some(upper), None | Some(Ok(_))) = (rest.upper(), &self.tail) {
            hint.set_upper(upper.saturating_add(head));
        }
        hint
    }
}

impl<B: Body> fmt::Debug for Payload<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").finish_non_exhaustive()
    }
}
