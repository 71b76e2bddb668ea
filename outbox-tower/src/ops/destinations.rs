//! Destinations that are held, and keys that wait.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use outbox_core::clock::rfc3339;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DestinationPage, DestinationState, Destinations, Hold, OutboxStore,
};
use serde::{Deserialize, Serialize};

use super::error::{Answer, Failed};
use super::router::{Parts, Shared};
use super::time::seconds;

const MOST: u32 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    after: Option<String>,
    rows: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockedQuery {
    after_destination: Option<String>,
    after_key: Option<String>,
    rows: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldBody {
    destination: String,
    /// For how long; absent: until it is freed.
    #[serde(default, deserialize_with = "seconds")]
    for_seconds: Option<Duration>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FreeBody {
    destination: String,
}

#[derive(Serialize)]
pub(super) struct DestinationsView {
    destinations: Vec<DestinationView>,
}

#[derive(Serialize)]
struct DestinationView {
    destination: String,
    dead_head_policy: &'static str,
    held_until: Option<String>,
    disabled: bool,
    reason: Option<String>,
}

#[derive(Serialize)]
pub(super) struct BlockedKeys {
    blocked_keys: Vec<BlockedView>,
}

#[derive(Serialize)]
struct BlockedView {
    destination: String,
    key: String,
    seq: i64,
    since: String,
}

#[derive(Serialize)]
pub(super) struct Done {
    done: bool,
}

pub(super) async fn list(
    State(parts): State<Shared>,
    Query(query): Query<ListQuery>,
) -> Answer<DestinationsView> {
    let mut page = DestinationPage::default();
    page.after = query.after;
    page.rows = query.rows.unwrap_or(page.rows).clamp(1, MOST);
    let states = store(&parts)?.destinations(&page).await?;
    Ok(Json(DestinationsView {
        destinations: states.into_iter().map(DestinationView::from).collect(),
    }))
}

pub(super) async fn blocked_keys(
    State(parts): State<Shared>,
    Query(query): Query<BlockedQuery>,
) -> Answer<BlockedKeys> {
    let mut page = BlockedKeyPage::default();
    page.rows = query.rows.unwrap_or(page.rows).clamp(1, MOST);
    page.after = match (query.after_destination, query.after_key) {
        (Some(destination), Some(key)) => Some((destination, key)),
        (None, None) => None,
        _ => {
            let problem = "`after_destination` and `after_key` go together";
            return Err(Failed::bad_request(problem));
        }
    };
    let keys = store(&parts)?.blocked_keys(&page).await?;
    Ok(Json(BlockedKeys {
        blocked_keys: keys.into_iter().map(BlockedView::from).collect(),
    }))
}

pub(super) async fn hold(State(parts): State<Shared>, Json(body): Json<HoldBody>) -> Answer<Done> {
    let reason = body.reason.trim().to_owned();
    if reason.is_empty() {
        return Err(Failed::bad_request("`reason` is empty; say why"));
    }
    let hold = match body.for_seconds {
        Some(period) => Hold::For { period, reason },
        None => Hold::Disabled { reason },
    };
    holds(&parts)?.hold(&body.destination, hold).await?;
    Ok(Json(Done { done: true }))
}

pub(super) async fn free(State(parts): State<Shared>, Json(body): Json<FreeBody>) -> Answer<Done> {
    holds(&parts)?.hold(&body.destination, Hold::Free).await?;
    Ok(Json(Done { done: true }))
}

fn store(parts: &Parts) -> Result<&Arc<dyn Destinations>, Failed> {
    let store = parts.destinations.as_ref();
    store.ok_or_else(|| Failed::not_found("part"))
}

fn holds(parts: &Parts) -> Result<&Arc<dyn OutboxStore>, Failed> {
    let store = parts.holds.as_ref();
    store.ok_or_else(|| Failed::not_found("part"))
}

impl From<DestinationState> for DestinationView {
    fn from(state: DestinationState) -> Self {
        Self {
            destination: state.destination,
            dead_head_policy: state.dead_head_policy.as_str(),
            held_until: state.held_until.map(rfc3339),
            disabled: state.disabled,
            reason: state.reason,
        }
    }
}

impl From<BlockedKey> for BlockedView {
    fn from(key: BlockedKey) -> Self {
        Self {
            destination: key.destination,
            key: key.key,
            seq: key.seq,
            since: rfc3339(key.since),
        }
    }
}
