//! The body of an answer, whichever client read it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of an answer. Its errors don't matter: the head has decided.
pub(crate) enum ResponseBody {
    Hyper(hyper::body::Incoming),
    #[cfg(feature = "reqwest")]
    Reqwest(reqwest::Body),
}

/// The body broke.
#[derive(Debug)]
pub(crate) struct BodyBroken;

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyBroken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyBroken>>> {
        match self.get_mut() {
            Self::Hyper(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|result| result.map_err(|_| BodyBroken))),
            #[cfg(feature = "reqwest")]
            Self::Reqwest(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|result| result.map_err(|_| BodyBroken))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Hyper(body) => body.is_end_stream(),
            #[cfg(feature = "reqwest")]
            Self::Reqwest(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Hyper(body) => body.size_hint(),
            #[cfg(feature = "reqwest")]
            Self::Reqwest(body) => body.size_hint(),
        }
    }
}
