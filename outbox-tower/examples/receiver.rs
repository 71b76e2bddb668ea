//! A service that receives: an API whose POST can be repeated, and a webhook with effects that
//! happen once.
//!
//! `POST /api/v1/repos` takes an `Idempotency-Key`. `POST /hooks/forge` takes signed webhooks and
//! records each in the transaction of its effect.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use outbox_core::{Accepted, Enqueue, Error, Inbox, MemoryStore, NewEvent};
use outbox_http::XSignature;
use outbox_tower::receive::{IdempotencyLayer, Received, VerifyLayer, WebhookVerifier};
use serde_json::{Value, json};
use tower::ServiceExt;

fn app(store: MemoryStore) -> Result<Router, Error> {
    let secret = outbox_http::SharedSecret::new("a secret that forge and we share")?;
    let forge = WebhookVerifier::new("forge", XSignature::with_secret(secret));
    let hooks = Router::new()
        .route("/hooks/forge", post(pushed))
        .layer(VerifyLayer::new(forge));
    let api = Router::new()
        .route("/api/v1/repos", post(create_repo))
        // With authenticated callers, name the tenant: `.scope(|head| tenant_of(head))`.
        .layer(IdempotencyLayer::new(store.clone()));
    Ok(api.merge(hooks).with_state(store))
}

/// The repository's row (here: nothing) and its event commit together.
async fn create_repo(
    State(store): State<MemoryStore>,
    Json(repo): Json<Value>,
) -> Result<impl IntoResponse, StatusCode> {
    let created = async {
        let mut tx = store.begin();
        let event = NewEvent::json("RepositoryCreated", &repo)?.to("https://ci.example/hooks");
        let stored = store.enqueue(&mut tx, event).await?;
        tx.commit();
        Ok::<_, Error>(stored.id)
    };
    let id = created.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))))
}

/// The effect of a push happens once, however often the webhook arrives.
async fn pushed(State(store): State<MemoryStore>, message: Received) -> StatusCode {
    let effect = async {
        let mut tx = store.begin();
        match store.accept(&mut tx, &message).await? {
            Accepted::First => {
                let event = NewEvent::bytes("BuildRequested", "{}").to("https://ci.example/hooks");
                store.enqueue(&mut tx, event).await?;
            }
            Accepted::Mismatch => return Ok(StatusCode::UNPROCESSABLE_ENTITY),
            _ => {}
        }
        tx.commit();
        Ok::<_, Error>(StatusCode::NO_CONTENT)
    };
    effect.await.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

fn create(key: Option<&str>, name: &str) -> Result<Request<Body>, axum::http::Error> {
    let request = Request::post("/api/v1/repos").header("content-type", "application/json");
    let request = match key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    };
    request.body(json!({ "name": name }).to_string().into())
}

async fn send(app: &Router, request: Request<Body>) -> (StatusCode, String) {
    let Ok(response) = app.clone().oneshot(request).await;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap_or_default();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // To serve it: axum::serve(tokio::net::TcpListener::bind("127.0.0.1:3000").await?, app).await?
    let app = app(MemoryStore::new())?;
    let key = Some("\"8e03978e-40d5-43e8-bc93-6894a57f9324\"");
    for (key, name) in [
        (key, "outbox"),
        (key, "outbox"),
        (key, "other"),
        (None, "outbox"),
    ] {
        let (status, body) = send(&app, create(key, name)?).await;
        println!("create {name} with key {key:?}: {status} {body}");
    }
    let unsigned = Request::post("/hooks/forge").body(Body::from("{}"))?;
    println!("an unsigned webhook: {:?}", send(&app, unsigned).await);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbox_core::Maintenance;

    const KEY: Option<&str> = Some("\"8e03978e\"");

    async fn stored(store: &MemoryStore) -> u64 {
        store.stats(100).await.unwrap().pending.value
    }

    #[tokio::test]
    async fn a_repository_is_created_once_and_answered_alike() {
        let store = MemoryStore::new();
        let app = app(store.clone()).unwrap();
        let first = send(&app, create(KEY, "outbox").unwrap()).await;
        let second = send(&app, create(KEY, "outbox").unwrap()).await;
        assert_eq!(first.0, StatusCode::CREATED);
        assert_eq!(first, second);
        assert_eq!(stored(&store).await, 1);
    }

    #[tokio::test]
    async fn another_body_or_no_key_creates_nothing() {
        let store = MemoryStore::new();
        let app = app(store.clone()).unwrap();
        send(&app, create(KEY, "outbox").unwrap()).await;
        let other = send(&app, create(KEY, "other").unwrap()).await;
        assert_eq!(other.0, StatusCode::UNPROCESSABLE_ENTITY);
        let none = send(&app, create(None, "other").unwrap()).await;
        assert_eq!(none.0, StatusCode::BAD_REQUEST);
        assert_eq!(stored(&store).await, 1);
    }

    #[tokio::test]
    async fn a_webhook_has_its_effect_once() {
        // HMAC-SHA256 of `{}` under the secret above.
        const SIGNATURE: &str = "f4b264184e823835f6ec1c55888fadaef7db797b95ec41f43b9f85254734e122";
        let store = MemoryStore::new();
        let app = app(store.clone()).unwrap();
        for _ in 0..3 {
            let request = Request::post("/hooks/forge")
                .header("x-webhook-id", "7")
                .header("x-signature", SIGNATURE)
                .body(Body::from("{}"))
                .unwrap();
            assert_eq!(send(&app, request).await.0, StatusCode::NO_CONTENT);
        }
        assert_eq!(stored(&store).await, 1);
    }
}
