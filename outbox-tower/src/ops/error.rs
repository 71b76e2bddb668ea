//! What a call that fails answers.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use outbox_core::ErrorKind;
use serde_json::json;

/// An answer other than 200, as `application/json` with an `error`.
pub(super) struct Failed {
    status: StatusCode,
    error: String,
}

pub(super) type Answer<T> = Result<Json<T>, Failed>;

impl Failed {
    pub(super) fn not_found(what: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            error: format!("there is no such {what}"),
        }
    }

    pub(super) fn bad_request(error: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: error.into(),
        }
    }
}

impl From<outbox_core::Error> for Failed {
    fn from(error: outbox_core::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Conflict => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::InvalidConfig | ErrorKind::InvalidEvent => StatusCode::BAD_REQUEST,
            ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::warn!(%error, "an operation failed");
        }
        Self {
            status,
            error: error.to_string(),
        }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.error }))).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, 1.into());
        }
        response
    }
}
