//! Answers of the layers themselves (RFC 9457).

use std::time::Duration;

use ::http::header::{CONTENT_TYPE, RETRY_AFTER};
use ::http::{HeaderValue, Response, StatusCode};
use bytes::Bytes;

/// An answer of `application/problem+json`. Titles are fixed texts of this crate, which need no
/// escapes.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) const fn new(status: StatusCode, title: &'static str) -> Self {
        Self {
            status,
            title,
            retry_after: None,
        }
    }

    /// Rounded up to whole seconds, at least one.
    pub(crate) const fn after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    pub(crate) fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let text = format!(
            r#"{{"title":"{}","status":{}}}"#,
            self.title,
            self.status.as_u16()
        );
        let mut response = Response::new(B::from(text.into()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let media_type = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, media_type);
        if let Some(after) = self.retry_after {
            let round_up = u64::from(after.subsec_nanos() > 0);
            let seconds = after.as_secs().saturating_add(round_up).max(1);
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
