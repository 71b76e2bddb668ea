use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post as on_post;
use http::StatusCode;
use outbox_core::{Accepted, Enqueue, Error, Inbox, Maintenance, MemoryStore, NewEvent};
use outbox_tower::receive::{Received, VerifyLayer};

use crate::support::{ByHeader, post, send};

#[derive(Clone)]
struct App {
    store: MemoryStore,
    crashes: Arc<AtomicUsize>,
}

/// The effect is an event of its own; the first runs crash between effect and commit.
async fn handle(app: &App, message: &Received) -> Result<StatusCode, Error> {
    let mut tx = app.store.begin();
    match app.store.accept(&mut tx, message).await? {
        Accepted::First => {
            let event = NewEvent::bytes("Effect", "x").to("somewhere");
            app.store.enqueue(&mut tx, event).await?;
        }
        Accepted::Mismatch => return Ok(StatusCode::UNPROCESSABLE_ENTITY),
        _ => {}
    }
    let crashes = &app.crashes;
    let crash = crashes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    if crash.is_ok() {
        return Ok(StatusCode::INTERNAL_SERVER_ERROR);
    }
    tx.commit();
    Ok(StatusCode::NO_CONTENT)
}

fn app(crashes: usize) -> (Router, MemoryStore) {
    let store = MemoryStore::new();
    let state = App {
        store: store.clone(),
        crashes: Arc::new(AtomicUsize::new(crashes)),
    };
    let on_message = |State(app): State<App>, message: Received| async move {
        handle(&app, &message)
            .await
            .unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
    };
    let router = Router::new()
        .route("/", on_post(on_message))
        .layer(VerifyLayer::new(ByHeader))
        .with_state(state);
    (router, store)
}

async fn effects(store: &MemoryStore) -> u64 {
    store.stats(100).await.unwrap().pending.value
}

#[tokio::test]
async fn effect_and_de_duplication_commit_together() {
    let (app, store) = app(2);
    let message = || post(&[("x-signature", "good"), ("webhook-id", "m1")], "a");
    for expected in [500, 500, 204, 204, 204] {
        assert_eq!(send(&app, message()).await.status(), expected);
    }
    assert_eq!(effects(&store).await, 1);
}

#[tokio::test]
async fn one_id_of_two_sources_is_two_messages_and_with_another_body_none() {
    let (app, store) = app(0);
    let message = |source, body: &'static str| {
        let headers = [
            ("x-signature", "good"),
            ("webhook-id", "m1"),
            ("x-source", source),
        ];
        post(&headers, body)
    };
    assert_eq!(send(&app, message("one", "a")).await.status(), 204);
    assert_eq!(send(&app, message("other", "a")).await.status(), 204);
    assert_eq!(send(&app, message("one", "b")).await.status(), 422);
    assert_eq!(effects(&store).await, 2);
}

#[tokio::test]
async fn a_message_without_an_id_or_with_one_too_long_is_refused() {
    let (app, _) = app(0);
    let none = send(&app, post(&[("x-signature", "good")], "a")).await;
    assert_eq!(none.status(), StatusCode::BAD_REQUEST);
    let long = "i".repeat(256);
    let headers = [("x-signature", "good"), ("webhook-id", long.as_str())];
    assert_eq!(send(&app, post(&headers, "a")).await.status(), 400);
}

#[tokio::test]
async fn without_a_verify_layer_the_handler_does_not_run() {
    let router = Router::new().route("/", on_post(|_: Received| async {}));
    let response = send(&router, post(&[], "a")).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
}
