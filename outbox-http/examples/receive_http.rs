//! Receiving webhooks without a framework: a function over an `http::Request`.
//!
//! `cargo run -p outbox-http --example receive_http`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::SystemTime;

use outbox_http::http::{HeaderName, Request, Response, StatusCode};
use outbox_http::outbox_core::{Bytes, EventId, Signer, SigningInput};
use outbox_http::{Key, KeyRing, StandardKey, StandardWebhooks, Verifier};

/// Verify first, over the raw bytes; then parse.
fn receive(verifier: &dyn Verifier, request: &Request<Bytes>) -> Response<()> {
    let status = match verifier.verify(request.headers(), request.body()) {
        Ok(verified) => {
            // Here the id goes into a table with a unique column, in the transaction of the effect.
            println!(
                "accepted {:?}, signed with the key {:?}",
                verified.id, verified.key
            );
            StatusCode::NO_CONTENT
        }
        Err(reason) => {
            // The reason is for the log; the sender gets none.
            println!("refused: {reason}");
            StatusCode::UNAUTHORIZED
        }
    };
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
}

#[expect(clippy::disallowed_methods, reason = "signed as of now")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Two secrets while one is being rotated out.
    let keys = KeyRing::new([
        Key::new(
            "2026-11",
            StandardKey::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?,
        ),
        Key::new(
            "2026-05",
            StandardKey::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")?,
        ),
    ]);
    let verifier = StandardWebhooks::with_keys(keys);

    // A sender that still has the old secret.
    let sender = StandardWebhooks::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")?;
    let body = Bytes::from_static(br#"{"after":"4f1c"}"#);
    let input = SigningInput::new(EventId::new(), SystemTime::now(), body.clone());
    let mut request = Request::new(body);
    for header in futures::executor::block_on(sender.sign(&input))? {
        let name = HeaderName::try_from(header.name)?;
        request.headers_mut().insert(name, header.value.parse()?);
    }
    assert_eq!(
        receive(&verifier, &request).status(),
        StatusCode::NO_CONTENT
    );

    *request.body_mut() = Bytes::from_static(br#"{"after":"0000"}"#);
    assert_eq!(
        receive(&verifier, &request).status(),
        StatusCode::UNAUTHORIZED
    );
    Ok(())
}
