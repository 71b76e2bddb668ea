//! What we sign the `standardwebhooks` crate verifies, and the other way round.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use outbox_http::outbox_core::{Bytes, EventId, SignatureHeader, Signer, SigningInput};
use outbox_http::{Key, KeyRing, StandardKey, StandardWebhooks, Verifier};
use standardwebhooks::Webhook;

const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const BODY: &[u8] = br#"{"test": 2432232314}"#;

fn map(headers: Vec<SignatureHeader>) -> HeaderMap {
    let pair = |h: SignatureHeader| {
        let name = HeaderName::try_from(h.name).unwrap();
        (name, h.value.parse().unwrap())
    };
    headers.into_iter().map(pair).collect()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the other side goes by the clock"
)]
fn the_crate_verifies_what_we_sign_under_each_of_two_keys() {
    let keys = KeyRing::new([
        Key::new("new", StandardKey::new(NEW).unwrap()),
        Key::new("old", StandardKey::new(OLD).unwrap()),
    ]);
    let scheme = StandardWebhooks::with_keys(keys);
    let input = SigningInput::new(EventId::new(), SystemTime::now(), Bytes::from_static(BODY));
    let headers = map(futures::executor::block_on(scheme.sign(&input)).unwrap());
    for secret in [NEW, OLD] {
        Webhook::new(secret)
            .unwrap()
            .verify(BODY, &headers)
            .unwrap();
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the other side goes by the clock"
)]
fn we_verify_what_the_crate_signs() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let now = i64::try_from(now).unwrap();
    let signature = Webhook::new(OLD).unwrap().sign("msg_1", now, BODY).unwrap();
    let headers = map(vec![
        SignatureHeader::new("webhook-id", "msg_1"),
        SignatureHeader::new("webhook-timestamp", now.to_string()),
        SignatureHeader::new("webhook-signature", signature),
    ]);
    let keys = KeyRing::new([
        Key::new("new", StandardKey::new(NEW).unwrap()),
        Key::new("old", StandardKey::new(OLD).unwrap()),
    ]);
    let scheme = StandardWebhooks::with_keys(keys);
    let verified = scheme.verify(&headers, BODY).unwrap();
    assert_eq!(&*verified.key, "old");
    assert_eq!(verified.id.as_deref(), Some("msg_1"));
    assert_eq!(
        scheme.keys().current().uses(),
        [("new".into(), 0), ("old".into(), 1)]
    );
}
