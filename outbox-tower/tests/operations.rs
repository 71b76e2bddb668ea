//! The operations router over `MemoryStore`.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode};
use outbox_core::{
    ClaimRequest, DeadHeadPolicy, DeathReason, Destinations, Enqueue, Error, ErrorKind,
    Maintenance, MemoryStore, MockMaintenance, NewEvent, OutboxStore, Outcome, Settlement,
};
use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
use outbox_tower::ops::Operations;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A store with three dead letters (of two destinations) and a blocked key.
async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    store
        .set_dead_head_policy("keyed", DeadHeadPolicy::Block)
        .await
        .unwrap();
    let mut tx = store.begin();
    for event in [
        NewEvent::bytes("A", "secret payload").to("plain"),
        NewEvent::bytes("B", "x").to("plain"),
        NewEvent::bytes("B", "x").to("keyed").key("k"),
    ] {
        store.enqueue(&mut tx, event).await.unwrap();
    }
    tx.commit();
    let request = ClaimRequest::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(30));
    let claim = store.claim(&request).await.unwrap();
    let dead = |claimed: &outbox_core::Claimed| {
        let reason = DeathReason::Rejected;
        let error = "400".to_owned();
        Settlement::new(claimed.lease, Outcome::Dead { reason, error })
    };
    let batch: Vec<_> = claim.events.iter().map(dead).collect();
    store.settle(&batch).await.unwrap();
    store
}

async fn call(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(router: &Router, path: &str) -> (StatusCode, Value) {
    let (status, text) = call(router, Request::get(path).body(Body::empty()).unwrap()).await;
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

async fn post(router: &Router, path: &str, body: Value) -> (StatusCode, Value) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(body.to_string().into())
        .unwrap();
    let (status, text) = call(router, request).await;
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

#[tokio::test]
async fn stats_and_metrics_show_the_store() {
    let router = Operations::new()
        .store(store().await)
        .metrics(|| "own_metric 7\n".to_owned())
        .router();
    let (_, stats) = get(&router, "/stats").await;
    assert_eq!(stats["dead"], json!({ "value": 3, "capped": false }));
    assert_eq!(stats["blocked_keys"]["value"], 1);
    let (_, metrics) = get(&router, "/metrics").await;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("# TYPE outbox_dead_letters_now gauge\noutbox_dead_letters_now 3\n"));
    assert!(metrics.contains("outbox_store_answers 1\n"));
    assert!(metrics.ends_with("own_metric 7\n"));
}

#[tokio::test]
async fn a_store_that_is_down_is_503_and_does_not_break_a_scrape() {
    let mut down = MockMaintenance::new();
    down.expect_stats()
        .returning(|_| Err(Error::new(ErrorKind::Unavailable, "no connection")));
    let router = Operations::new().maintenance(down).router();
    let (status, body) = get(&router, "/stats").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, json!({ "error": "no connection" }));
    let (status, metrics) = get(&router, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        metrics
            .as_str()
            .unwrap()
            .contains("outbox_store_answers 0\n")
    );
}

#[tokio::test]
async fn readiness_follows_what_it_asks_and_health_does_not() {
    let ready = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&ready);
    let operations = Operations::new().ready(move || asked.load(Ordering::SeqCst));
    let router = operations.ready(|| true).router();
    assert_eq!(get(&router, "/ready").await.0, StatusCode::OK);
    ready.store(false, Ordering::SeqCst);
    let (status, body) = get(&router, "/ready").await;
    assert_eq!(
        (status, body),
        (StatusCode::SERVICE_UNAVAILABLE, json!({ "ready": false }))
    );
    assert_eq!(get(&router, "/health").await.0, StatusCode::OK);
}

#[tokio::test]
async fn dead_letters_are_paged_and_filtered() {
    let router = Operations::new().store(store().await).router();
    let (_, first) = get(&router, "/dead-letters?rows=2").await;
    assert_eq!(first["dead_letters"].as_array().unwrap().len(), 2);
    let after = first["next_after"].as_i64().unwrap();
    let (_, last) = get(&router, &format!("/dead-letters?rows=2&after={after}")).await;
    assert_eq!(last["dead_letters"].as_array().unwrap().len(), 1);
    assert!(last.get("next_after").is_none());
    let (_, plain) = get(&router, "/dead-letters?destination=plain&event_type=B").await;
    let plain = plain["dead_letters"].as_array().unwrap();
    assert_eq!((plain.len(), &plain[0]["reason"]), (1, &json!("rejected")));
    assert_eq!(get(&router, "/dead-letters?reason=nonsense").await.0, 400);
    assert_eq!(get(&router, "/dead-letters?desination=typo").await.0, 400);
}

#[tokio::test]
async fn payloads_are_shown_only_where_that_is_set() {
    let store = store().await;
    let closed = Operations::new().store(store.clone()).router();
    let (_, list) = get(&closed, "/dead-letters").await;
    let seq = list["dead_letters"][0]["seq"].as_i64().unwrap();
    let (_, letter) = get(&closed, &format!("/dead-letters/{seq}")).await;
    assert_eq!(letter["payload_bytes"], 14);
    assert!(letter.get("payload_base64").is_none());
    let open = Operations::new().store(store).payloads().router();
    let (_, letter) = get(&open, &format!("/dead-letters/{seq}")).await;
    assert_eq!(letter["payload_base64"], "c2VjcmV0IHBheWxvYWQ=");
    assert_eq!(
        get(&open, "/dead-letters/999").await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_replay_needs_a_filter_and_frees_the_key() {
    let store = store().await;
    let router = Operations::new().store(store.clone()).router();
    for filter in [json!({}), json!({ "all": true, "key": "k" })] {
        let (status, _) = post(&router, "/dead-letters/replay", json!({ "filter": filter })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
    let (_, blocked) = get(&router, "/blocked-keys").await;
    assert_eq!(blocked["blocked_keys"][0]["key"], "k");
    let body = json!({ "filter": { "destination": "keyed" }, "pace_seconds": 0.5 });
    let (_, replayed) = post(&router, "/dead-letters/replay", body).await;
    assert_eq!(replayed, json!({ "replayed": 1 }));
    let (_, blocked) = get(&router, "/blocked-keys").await;
    assert_eq!(blocked, json!({ "blocked_keys": [] }));
    let body = json!({ "filter": { "all": true } });
    let (_, replayed) = post(&router, "/dead-letters/replay", body).await;
    assert_eq!(replayed, json!({ "replayed": 2 }));
    assert_eq!(store.stats(10).await.unwrap().pending.value, 3);
}

#[tokio::test]
async fn a_discard_needs_a_reason() {
    let store = store().await;
    let router = Operations::new().store(store.clone()).router();
    let all = json!({ "all": true });
    let silent = json!({ "filter": all, "reason": " " });
    assert_eq!(post(&router, "/dead-letters/discard", silent).await.0, 400);
    let body = json!({ "filter": all, "reason": "test data", "rows": 2 });
    let (_, discarded) = post(&router, "/dead-letters/discard", body).await;
    assert_eq!(discarded, json!({ "discarded": 2 }));
    assert!(
        store
            .discarded()
            .iter()
            .all(|(_, reason)| reason == "test data")
    );
}

#[tokio::test]
async fn nothing_changes_by_get_nor_by_a_form() {
    let store = store().await;
    let layer = CircuitBreakerLayer::per_destination(Breaker::default());
    let router = Operations::new().store(store.clone());
    let router = router.circuits("webhooks", layer.circuits()).router();
    let before = store.stats(10).await.unwrap();
    for path in [
        "/dead-letters/replay",
        "/dead-letters/discard",
        "/destinations/hold",
        "/destinations/free",
        "/circuits/reset",
    ] {
        for method in [Method::GET, Method::HEAD, Method::DELETE, Method::PUT] {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            *request.uri_mut() = path.parse().unwrap();
            let (status, _) = call(&router, request).await;
            assert!(status.is_client_error(), "{path}: {status}");
        }
        let form = Request::post(path)
            .header("content-type", "text/plain")
            .body(r#"{"filter":{"all":true},"reason":"x"}"#.into())
            .unwrap();
        let (status, _) = call(&router, form).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    assert_eq!(store.stats(10).await.unwrap(), before);
}

#[tokio::test]
async fn destinations_are_held_disabled_and_freed() {
    let router = Operations::new().store(MemoryStore::new()).router();
    let body = json!({ "destination": "d", "for_seconds": 60, "reason": "deploy" });
    assert_eq!(
        post(&router, "/destinations/hold", body).await.0,
        StatusCode::OK
    );
    let (_, list) = get(&router, "/destinations").await;
    assert_eq!(list["destinations"][0]["reason"], "deploy");
    assert!(list["destinations"][0]["held_until"].is_string());
    let body = json!({ "destination": "d", "reason": "moving" });
    post(&router, "/destinations/hold", body).await;
    let (_, list) = get(&router, "/destinations").await;
    assert_eq!(list["destinations"][0]["disabled"], true);
    post(&router, "/destinations/free", json!({ "destination": "d" })).await;
    let (_, list) = get(&router, "/destinations").await;
    assert_eq!(list, json!({ "destinations": [] }));
}

#[tokio::test]
async fn circuits_are_shown_and_reset() {
    let layer = CircuitBreakerLayer::per_destination(Breaker::default());
    layer
        .circuits()
        .open("https://down.example", Duration::from_secs(60));
    let router = Operations::new()
        .circuits("webhooks", layer.circuits())
        .router();
    let (_, list) = get(&router, "/circuits").await;
    assert_eq!(list["circuits"][0]["state"], "open");
    assert_eq!(list["circuits"][0]["key"], "https://down.example");
    let (_, metrics) = get(&router, "/metrics").await;
    let expected = "outbox_circuits_tripped{stack=\"webhooks\"} 1\n";
    assert!(metrics.as_str().unwrap().contains(expected));
    let body = json!({ "stack": "webhooks", "key": "https://down.example" });
    assert_eq!(
        post(&router, "/circuits/reset", body).await.0,
        StatusCode::OK
    );
    assert_eq!(layer.circuits().tripped(), 0);
    let unknown = json!({ "stack": "webhooks", "key": "?" });
    assert_eq!(
        post(&router, "/circuits/reset", unknown).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn parts_that_were_not_given_are_not_there() {
    let router = Operations::new().router();
    for path in [
        "/stats",
        "/dead-letters",
        "/destinations",
        "/blocked-keys",
        "/circuits",
    ] {
        assert_eq!(get(&router, path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}
