//! A service that receives: an API whose POST can be repeated, and a webhook with effects that
//! happen once.
//!
//! `POST /api/v1/repos` takes an `Idempotency-Key`. `POST /hooks/forge` takes signed webhooks and
//! records each in the transaction of its effect. Keys, inbox, repositories and outbox are in one
//! SQLite file: the first argument, or else one that is gone when the example ends. Any
//! other store does as well; only the transaction is of another type.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::path::{Path, PathBuf};

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use outbox_core::{Accepted, Enqueue, Error, ErrorKind, Inbox, NewEvent};
use outbox_http::XSignature;
use outbox_sqlx::SqliteStore;
use outbox_sqlx::sqlx::{self, query};
use outbox_tower::receive::{IdempotencyLayer, Received, VerifyLayer, WebhookVerifier};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tower::ServiceExt;

/// Makes the tables that are not there.
async fn open(path: impl AsRef<Path>) -> Result<SqliteStore, Error> {
    let store = SqliteStore::connect(path).await?;
    store.migrate().await?;
    let create = query("CREATE TABLE IF NOT EXISTS repos (name TEXT NOT NULL)");
    create.execute(store.pool()).await.map_err(unavailable)?;
    Ok(store)
}

fn unavailable(error: sqlx::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the database").with_source(error)
}

fn app(store: SqliteStore) -> Result<Router, Error> {
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

#[derive(Deserialize, Serialize)]
struct Repo {
    name: String,
}

/// The repository's row and its event commit together.
async fn create_repo(
    State(store): State<SqliteStore>,
    Json(repo): Json<Repo>,
) -> Result<impl IntoResponse, StatusCode> {
    let created = async {
        let mut tx = store.begin_immediate().await?;
        let insert = query("INSERT INTO repos (name) VALUES (?)").bind(&repo.name);
        insert.execute(&mut *tx).await.map_err(unavailable)?;
        let event = NewEvent::json("RepositoryCreated", &repo)?.to("https://ci.example/hooks");
        let stored = store.enqueue(&mut tx, event).await?;
        tx.commit().await.map_err(unavailable)?;
        Ok::<_, Error>(stored.id)
    };
    let id = created.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))))
}

/// The effect of a push happens once, however often the webhook arrives.
async fn pushed(State(store): State<SqliteStore>, message: Received) -> StatusCode {
    let effect = async {
        let mut tx = store.begin_immediate().await?;
        match store.accept(&mut tx, &message).await? {
            Accepted::First => {
                let event = NewEvent::bytes("BuildRequested", "{}").to("https://ci.example/hooks");
                store.enqueue(&mut tx, event).await?;
            }
            Accepted::Mismatch => return Ok(StatusCode::UNPROCESSABLE_ENTITY),
            _ => {}
        }
        tx.commit().await.map_err(unavailable)?;
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
    let folder = tempfile::tempdir()?;
    let path = std::env::args_os().nth(1).map(PathBuf::from);
    let path = path.unwrap_or_else(|| folder.path().join("receiver.db"));
    let app = app(open(path).await?)?;
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

    async fn new() -> (SqliteStore, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path().join("receiver.db")).await.unwrap();
        (store, folder)
    }

    async fn repos(store: &SqliteStore) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM repos");
        count.fetch_one(store.pool()).await.unwrap()
    }

    async fn stored(store: &SqliteStore) -> u64 {
        store.stats(100).await.unwrap().pending.value
    }

    #[tokio::test]
    async fn a_repository_is_created_once_and_answered_alike() {
        let (store, _folder) = new().await;
        let app = app(store.clone()).unwrap();
        let first = send(&app, create(KEY, "outbox").unwrap()).await;
        let second = send(&app, create(KEY, "outbox").unwrap()).await;
        assert_eq!(first.0, StatusCode::CREATED);
        assert_eq!(first, second);
        assert_eq!((repos(&store).await, stored(&store).await), (1, 1));
    }

    #[tokio::test]
    async fn another_body_or_no_key_creates_nothing() {
        let (store, _folder) = new().await;
        let app = app(store.clone()).unwrap();
        send(&app, create(KEY, "outbox").unwrap()).await;
        let other = send(&app, create(KEY, "other").unwrap()).await;
        assert_eq!(other.0, StatusCode::UNPROCESSABLE_ENTITY);
        let none = send(&app, create(None, "other").unwrap()).await;
        assert_eq!(none.0, StatusCode::BAD_REQUEST);
        assert_eq!((repos(&store).await, stored(&store).await), (1, 1));
    }

    #[tokio::test]
    async fn a_webhook_has_its_effect_once() {
        // HMAC-SHA256 of `{}` under the secret above.
        const SIGNATURE: &str = "f4b264184e823835f6ec1c55888fadaef7db797b95ec41f43b9f85254734e122";
        let (store, _folder) = new().await;
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
