//! Dead letters: looking, replaying, discarding.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outbox_core::clock::rfc3339;
use outbox_core::{DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, EventId, Page, Replay};
use serde::{Deserialize, Serialize};

use super::error::{Answer, Failed};
use super::router::{Parts, Shared};
use super::time::seconds;

/// The most rows of one call.
const MOST: u32 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    after: Option<i64>,
    rows: Option<u32>,
    id: Option<EventId>,
    event_type: Option<String>,
    destination: Option<String>,
    key: Option<String>,
    reason: Option<DeathReason>,
    #[serde(default, deserialize_with = "seconds")]
    dead_for_seconds: Option<Duration>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilterBody {
    /// Needed to match every letter, so that a filter left out by mistake matches none.
    all: bool,
    seqs: Option<Vec<i64>>,
    ids: Option<Vec<EventId>>,
    event_type: Option<String>,
    destination: Option<String>,
    key: Option<String>,
    reason: Option<DeathReason>,
    #[serde(deserialize_with = "seconds")]
    dead_for_seconds: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayBody {
    filter: FilterBody,
    rows: Option<u32>,
    #[serde(default, deserialize_with = "seconds")]
    pace_seconds: Option<Duration>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in_seconds: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiscardBody {
    filter: FilterBody,
    rows: Option<u32>,
    reason: String,
}

#[derive(Serialize)]
pub(super) struct Letters {
    dead_letters: Vec<LetterView>,
    /// `after` of the next page; absent where this one is not full.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

#[derive(Serialize)]
pub(super) struct LetterView {
    seq: i64,
    id: EventId,
    event_type: String,
    destination: String,
    key: Option<String>,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    reason: DeathReason,
    last_error: Option<String>,
    attempts: u32,
    replays: u32,
    created_at: String,
    dead_at: String,
    content_type: String,
    payload_bytes: usize,
    #[serde(flatten)]
    content: Option<Content>,
}

#[derive(Serialize)]
struct Content {
    headers: BTreeMap<String, String>,
    payload_base64: String,
}

#[derive(Serialize)]
pub(super) struct Replayed {
    replayed: u64,
}

#[derive(Serialize)]
pub(super) struct Discarded {
    discarded: u64,
}

pub(super) async fn list(
    State(parts): State<Shared>,
    Query(query): Query<ListQuery>,
) -> Answer<Letters> {
    let mut page = Page::default();
    page.after = query.after;
    page.rows = query.rows.unwrap_or(page.rows).clamp(1, MOST);
    let mut filter = DeadLetterFilter::all();
    filter.ids = query.id.map(|id| vec![id]);
    filter.event_type = query.event_type;
    filter.destination = query.destination;
    filter.key = query.key;
    filter.reason = query.reason;
    filter.dead_for = query.dead_for_seconds;
    let letters = store(&parts)?.list(&filter, &page).await?;
    let full = letters.len() >= usize::try_from(page.rows).unwrap_or(usize::MAX);
    let last = letters.last().map(|letter| letter.event.seq);
    Ok(Json(Letters {
        next_after: last.filter(|_| full),
        dead_letters: letters
            .into_iter()
            .map(|letter| view(letter, false))
            .collect(),
    }))
}

pub(super) async fn one(State(parts): State<Shared>, Path(seq): Path<i64>) -> Answer<LetterView> {
    let letter = store(&parts)?.get(seq).await?;
    let letter = letter.ok_or_else(|| Failed::not_found("dead letter"))?;
    Ok(Json(view(letter, parts.payloads)))
}

pub(super) async fn replay(
    State(parts): State<Shared>,
    Json(body): Json<ReplayBody>,
) -> Answer<Replayed> {
    let mut replay = Replay::new(body.filter.into_filter()?);
    replay.rows = body.rows.unwrap_or(replay.rows).clamp(1, MOST);
    replay.pace = body.pace_seconds.unwrap_or_default();
    replay.expires_in = body.expires_in_seconds;
    let replayed = store(&parts)?.replay(&replay).await?;
    tracing::info!(replayed, "dead letters replayed by hand");
    Ok(Json(Replayed { replayed }))
}

pub(super) async fn discard(
    State(parts): State<Shared>,
    Json(body): Json<DiscardBody>,
) -> Answer<Discarded> {
    let reason = body.reason.trim();
    if reason.is_empty() {
        return Err(Failed::bad_request("`reason` is empty; say why"));
    }
    let filter = body.filter.into_filter()?;
    let rows = body.rows.unwrap_or(MOST).clamp(1, MOST);
    let discarded = store(&parts)?.discard(&filter, rows, reason).await?;
    tracing::info!(discarded, reason, "dead letters discarded by hand");
    Ok(Json(Discarded { discarded }))
}

impl FilterBody {
    fn into_filter(self) -> Result<DeadLetterFilter, Failed> {
        let mut filter = DeadLetterFilter::all();
        filter.seqs = self.seqs;
        filter.ids = self.ids;
        filter.event_type = self.event_type;
        filter.destination = self.destination;
        filter.key = self.key;
        filter.reason = self.reason;
        filter.dead_for = self.dead_for_seconds;
        if self.all == (filter == DeadLetterFilter::all()) {
            return Ok(filter);
        }
        Err(Failed::bad_request(
            "`filter` must have a condition, or `all: true` and none",
        ))
    }
}

fn store(parts: &Parts) -> Result<&Arc<dyn DeadLetters>, Failed> {
    let store = parts.dead_letters.as_ref();
    store.ok_or_else(|| Failed::not_found("part"))
}

fn view(letter: DeadLetter, content: bool) -> LetterView {
    let event = letter.event;
    LetterView {
        seq: event.seq,
        id: event.id,
        reason: letter.reason,
        last_error: event.last_error,
        attempts: event.attempts,
        replays: event.replays,
        created_at: rfc3339(event.created_at),
        dead_at: rfc3339(letter.dead_at),
        payload_bytes: event.payload.len(),
        content: content.then(|| Content {
            headers: event.headers,
            payload_base64: STANDARD.encode(&event.payload),
        }),
        event_type: event.event_type,
        destination: event.destination,
        key: event.key,
        aggregate_type: event.aggregate_type,
        aggregate_id: event.aggregate_id,
        content_type: event.content_type,
    }
}
