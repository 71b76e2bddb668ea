//! How far an attempt has come, told by the body as it is asked for.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use outbox_core::{Delivery, Phase};
use tokio::time::Instant;

/// The phase of one attempt, and when its first byte may have been written.
#[derive(Debug)]
pub(crate) struct Progress {
    delivery: Delivery,
    sending_since: OnceLock<Instant>,
}

impl Progress {
    pub(crate) const fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            sending_since: OnceLock::new(),
        }
    }

    /// When the request began to be written; `None` while it waits for a connection.
    pub(crate) fn sending_since(&self) -> Option<Instant> {
        self.sending_since.get().copied()
    }

    /// Whether bytes may have reached the receiver.
    pub(crate) fn is_sending(&self) -> bool {
        self.sending_since.get().is_some()
    }

    fn begin(&self) {
        if self.sending_since.get().is_none() {
            self.delivery.advance(Phase::Sending);
            // Set by one task only: the connection that took the request.
            let _ = self.sending_since.set(Instant::now());
        }
    }
}

/// A request body in one piece.
///
/// hyper asks a body for its size when a connection has taken the request and is about to encode
/// the head, over HTTP/1 and HTTP/2 alike, and never before. That is the moment from which bytes may
/// have reached the receiver; a request that never came so far can be made again without doubt.
pub(crate) struct PhaseBody {
    data: Option<Bytes>,
    progress: Arc<Progress>,
    /// Whether being asked for the size begins the sending.
    size_begins: bool,
}

impl PhaseBody {
    pub(crate) const fn new(data: Bytes, progress: Arc<Progress>) -> Self {
        Self {
            data: Some(data),
            progress,
            size_begins: true,
        }
    }

    /// For a client that asks for the size before it has a connection: the sending begins when the
    /// data is asked for.
    #[cfg(feature = "reqwest")]
    pub(super) const fn size_is_free(mut self) -> Self {
        self.size_begins = false;
        self
    }

    fn size_asked(&self) {
        if self.size_begins {
            self.progress.begin();
        }
    }
}

impl Body for PhaseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.progress.begin();
        let data = self.data.take().filter(|data| !data.is_empty());
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.size_asked();
        self.data.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        self.size_asked();
        let left = self.data.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
    }
}
