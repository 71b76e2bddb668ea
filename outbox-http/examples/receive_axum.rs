//! Receiving webhooks with axum, and sending one to it.
//!
//! `cargo run -p outbox-http --example receive_axum`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use outbox_http::outbox_core::{Delivery, Event, EventId, Transport};
use outbox_http::{StandardWebhooks, Verifier, Webhooks};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// `Bytes` keeps the body as it came; verify before anything parses it.
async fn hook(
    State(verifier): State<Arc<StandardWebhooks>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    match verifier.verify(&headers, &body) {
        Ok(verified) => {
            println!(
                "accepted {:?}: {}",
                verified.id,
                String::from_utf8_lossy(&body)
            );
            StatusCode::NO_CONTENT
        }
        Err(reason) => {
            println!("refused: {reason}");
            StatusCode::UNAUTHORIZED
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new()
        .route("/hooks", post(hook))
        .layer(DefaultBodyLimit::max(1 << 20))
        .with_state(Arc::new(StandardWebhooks::new(SECRET)?));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/hooks", listener.local_addr()?);
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let webhooks = Webhooks::builder()
        .signer(StandardWebhooks::new(SECRET)?)
        // The receiver is on this machine. Never in production.
        .allow_private_networks()
        .build()?;
    let event = Event::new(
        EventId::new(),
        1,
        "RepositoryPushed",
        url,
        r#"{"after":"4f1c"}"#,
    );
    let delivery = Delivery::new(Arc::new(event), Duration::from_secs(30));
    let receipt = webhooks.deliver(delivery).await?;
    println!(
        "the receiver answered {}",
        receipt.detail.unwrap_or_default()
    );
    server.abort();
    Ok(())
}
