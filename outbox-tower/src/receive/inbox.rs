//! The message of a verified request, for an inbox.

use std::fmt;

use ::http::StatusCode;
use ::http::request::Parts;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use outbox_core::InboxMessage;

use super::Verified;
use super::problem::Problem;

/// The message that a verified request carries: accept it in the transaction of its effects, and
/// both commit or neither does.
///
/// A [`VerifyLayer`](super::VerifyLayer) must stand in front. Requests whose scheme has no id get
/// 400.
///
/// ```
/// use axum::extract::State;
/// use http::StatusCode;
/// use outbox_core::{Accepted, Error, Inbox, MemoryStore};
/// use outbox_tower::receive::Received;
///
/// async fn pushed(State(store): State<MemoryStore>, message: Received) -> StatusCode {
///     let effects = async {
///         let mut tx = store.begin();
///         match store.accept(&mut tx, &message).await? {
///             Accepted::First => { /* the effects, in `tx` */ }
///             Accepted::Mismatch => return Ok(StatusCode::UNPROCESSABLE_ENTITY),
///             _ => {} // they were made before
///         }
///         tx.commit();
///         Ok::<_, Error>(StatusCode::NO_CONTENT)
///     };
///     effects.await.unwrap_or(StatusCode::SERVICE_UNAVAILABLE) // the sender tries again
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received(InboxMessage);

impl Received {
    /// The message.
    #[must_use]
    pub fn into_message(self) -> InboxMessage {
        self.0
    }
}

impl std::ops::Deref for Received {
    type Target = InboxMessage;

    fn deref(&self) -> &InboxMessage {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Received {
    type Rejection = NotReceived;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, NotReceived> {
        let Some(verified) = head.extensions.get::<Verified>() else {
            tracing::error!("`Received` needs a `VerifyLayer` in front of the handler");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Err(NotReceived(status, "the request was not verified"));
        };
        match verified.message() {
            Ok(Some(message)) => Ok(Self(message)),
            Ok(None) => Err(NotReceived(
                StatusCode::BAD_REQUEST,
                "the message has no id",
            )),
            Err(_) => Err(NotReceived(
                StatusCode::BAD_REQUEST,
                "the message's id is too long",
            )),
        }
    }
}

/// Why a request carries no message.
#[derive(Clone, Copy)]
pub struct NotReceived(StatusCode, &'static str);

impl IntoResponse for NotReceived {
    fn into_response(self) -> Response {
        Problem::new(self.0, self.1).into_response::<axum::body::Body>()
    }
}

impl fmt::Debug for NotReceived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NotReceived").field(&self.1).finish()
    }
}
