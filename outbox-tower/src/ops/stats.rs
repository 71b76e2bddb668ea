//! The store's state, as JSON and as Prometheus text.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use outbox_core::Stats;
use serde::Serialize;

use super::error::{Answer, Failed};
use super::prometheus;
use super::router::Shared;

#[derive(Serialize)]
pub(super) struct Count {
    value: u64,
    /// True where the store stopped counting there.
    capped: bool,
}

#[derive(Serialize)]
pub(super) struct StatsView {
    pending: Count,
    claimed: Count,
    due: Count,
    parked: Count,
    dead: Count,
    blocked_keys: Count,
    oldest_due_seconds: Option<f64>,
}

impl From<Stats> for StatsView {
    fn from(stats: Stats) -> Self {
        let count = |count: outbox_core::Count| Count {
            value: count.value,
            capped: count.capped,
        };
        Self {
            pending: count(stats.pending),
            claimed: count(stats.claimed),
            due: count(stats.due),
            parked: count(stats.parked),
            dead: count(stats.dead),
            blocked_keys: count(stats.blocked_keys),
            oldest_due_seconds: stats.oldest_due.map(|age| age.as_secs_f64()),
        }
    }
}

pub(super) async fn stats(State(parts): State<Shared>) -> Answer<StatsView> {
    let store = parts.maintenance.as_ref();
    let store = store.ok_or_else(|| Failed::not_found("part"))?;
    Ok(Json(store.stats(parts.count_limit).await?.into()))
}

/// A scrape never fails for the store's sake: `outbox_store_answers` says whether it did.
pub(super) async fn metrics(State(parts): State<Shared>) -> impl IntoResponse {
    let mut text = String::new();
    if let Some(store) = &parts.maintenance {
        match store.stats(parts.count_limit).await {
            Ok(stats) => prometheus::stats(&mut text, &stats),
            Err(error) => {
                tracing::warn!(%error, "no stats for a scrape");
                prometheus::down(&mut text);
            }
        }
    }
    prometheus::circuits(&mut text, &parts.circuits);
    for render in &parts.metrics {
        text.push_str(&render());
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}
