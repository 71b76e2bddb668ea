//! Breaker states.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use super::error::{Answer, Failed};
use super::router::Shared;
use crate::breaker::{CircuitState, CircuitStatus};

#[derive(Serialize)]
pub(super) struct CircuitsView {
    circuits: Vec<CircuitView>,
}

#[derive(Serialize)]
struct CircuitView {
    stack: String,
    key: String,
    state: &'static str,
    retry_after_seconds: Option<f64>,
    failures: u32,
    calls: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResetBody {
    stack: String,
    key: String,
}

#[derive(Serialize)]
pub(super) struct Done {
    done: bool,
}

pub(super) async fn list(State(parts): State<Shared>) -> Json<CircuitsView> {
    let all = parts.circuits.iter().flat_map(|(stack, circuits)| {
        let list = circuits.list().into_iter();
        list.map(|status| view(stack, status))
    });
    Json(CircuitsView {
        circuits: all.collect(),
    })
}

pub(super) async fn reset(
    State(parts): State<Shared>,
    Json(body): Json<ResetBody>,
) -> Answer<Done> {
    let stack = parts.circuits.iter().find(|(name, _)| *name == body.stack);
    match stack {
        Some((_, circuits)) if circuits.reset(&body.key) => Ok(Json(Done { done: true })),
        _ => Err(Failed::not_found("circuit")),
    }
}

fn view(stack: &str, status: CircuitStatus) -> CircuitView {
    CircuitView {
        stack: stack.to_owned(),
        key: status.key,
        state: match status.state {
            CircuitState::Closed => "closed",
            CircuitState::Open => "open",
            CircuitState::HalfOpen => "half_open",
        },
        retry_after_seconds: status.retry_after.map(|after| after.as_secs_f64()),
        failures: status.failures,
        calls: status.calls,
    }
}
