//! Whether the process lives, and whether it is ready.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::router::Shared;

pub(super) async fn health() -> Json<Value> {
    Json(json!({ "status": "up" }))
}

pub(super) async fn ready(State(parts): State<Shared>) -> (StatusCode, Json<Value>) {
    let ready = parts.readiness.iter().all(|ready| ready());
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(json!({ "ready": ready })))
}
