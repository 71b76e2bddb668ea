//! Reading a request's body whole, within a limit of bytes and time.

use std::time::Duration;

use ::http::StatusCode;
use bytes::Bytes;
use futures::FutureExt;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use outbox_core::Timer;
use tower::BoxError;

use super::problem::Problem;

/// The most bytes of a request's body that are read, unless set. 1 MiB: the largest payload that an
/// outbox of this library stores by default.
pub(super) const DEFAULT_LIMIT: usize = 1 << 20;

/// How much of a body is read, and for how long.
#[derive(Clone)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) time: Option<(Duration, std::sync::Arc<dyn Timer>)>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: DEFAULT_LIMIT,
            time: None,
        }
    }
}

impl Limits {
    /// The whole body, or what to answer.
    pub(super) async fn read<B>(&self, body: B) -> Result<Bytes, Problem>
    where
        B: Body<Error: Into<BoxError>>,
    {
        let too_large = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
        if body.size_hint().lower() > u64::try_from(self.bytes).unwrap_or(u64::MAX) {
            return Err(too_large);
        }
        let read = Limited::new(body, self.bytes).collect();
        let read = match &self.time {
            None => read.await,
            Some((period, timer)) => {
                let mut read = std::pin::pin!(read.fuse());
                futures::select_biased! {
                    read = read => read,
                    () = timer.sleep(*period).fuse() => {
                        let status = StatusCode::REQUEST_TIMEOUT;
                        return Err(Problem::new(status, "the body took too long"));
                    }
                }
            }
        };
        match read {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large),
            Err(_) => Err(Problem::new(StatusCode::BAD_REQUEST, "the body broke off")),
        }
    }
}
