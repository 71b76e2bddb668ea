//! The operations router behind a bearer token, beside a relay's breaker.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode, header::AUTHORIZATION};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use outbox_core::{Enqueue, MemoryStore, NewEvent};
use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
use outbox_tower::ops::Operations;
use tower::ServiceExt;

#[derive(Clone)]
struct Token(&'static str);

/// Looks at every byte, so that the time it takes tells nothing about where two tokens differ.
async fn operators_only(
    State(token): State<Token>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let expected = format!("Bearer {}", token.0);
    let given = request.headers().get(AUTHORIZATION);
    let given = given.map_or(&b""[..], |given| given.as_bytes());
    let differs = expected
        .bytes()
        .zip(given)
        .fold(0, |all, (a, b)| all | (a ^ b));
    if given.len() == expected.len() && differs == 0 {
        next.run(request).await
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

async fn show(router: &Router, path: &str, token: &str) -> Result<(), axum::http::Error> {
    let request = Request::get(path)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Body::empty())?;
    let Ok(response) = router.clone().oneshot(request).await;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap_or_default();
    println!("GET {path}: {status}\n{}\n", String::from_utf8_lossy(&body));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let event = NewEvent::bytes("RepositoryPushed", "{}").to("https://ci.example/hooks");
    store.enqueue(&mut tx, event).await?;
    tx.commit();

    let breaker = CircuitBreakerLayer::per_destination(Breaker::default());
    let circuits = breaker.circuits(); // of the layer in front of the relay's transport
    circuits.open("https://down.example/hooks", Duration::from_secs(60));

    let operations = Operations::new()
        .store(store)
        .circuits("webhooks", circuits)
        .ready(|| true) // a supervisor's `Readiness::is_ready`
        .router()
        .layer(from_fn_with_state(Token("for-operators"), operators_only));
    // Beside it, on a port that only operators reach:
    // axum::serve(tokio::net::TcpListener::bind("127.0.0.1:9090").await?, operations).await?
    show(&operations, "/stats", "a guess").await?;
    for path in ["/ready", "/stats", "/circuits", "/dead-letters", "/metrics"] {
        show(&operations, path, "for-operators").await?;
    }
    Ok(())
}
