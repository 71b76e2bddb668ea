//! Published signatures: `data/signature-vectors.json`, the must-reject ones included.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use outbox_http::{
    GitHub, SharedSecret, Shopify, Slack, StandardKey, StandardWebhooks, Stripe, Verifier,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    scheme: String,
    source: String,
    secret: Option<String>,
    public_key: Option<String>,
    timestamp: Option<u64>,
    body: Option<String>,
    headers: BTreeMap<String, String>,
    valid: bool,
}

impl Vector {
    fn headers(&self) -> HeaderMap {
        let header = |(name, value): (&String, &String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, value.parse().unwrap())
        };
        self.headers.iter().map(header).collect()
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.timestamp.unwrap_or_default())
    }

    /// Verifiers for the schemes of this crate; none for the others.
    fn verifiers(&self) -> Vec<Box<dyn Verifier>> {
        let at = self.now();
        let now = move || at;
        let shared = || SharedSecret::existing(self.secret.as_ref().unwrap()).unwrap();
        let standard = |text: &str| -> Box<dyn Verifier> {
            let key = StandardKey::new(text).unwrap();
            Box::new(StandardWebhooks::with_secret(key).clock(now))
        };
        match self.scheme.as_str() {
            "standard-webhooks-v1"
            | "standard-webhooks-v1-negative"
            | "standard-webhooks-v1+v1a" => {
                vec![standard(self.secret.as_ref().unwrap())]
            }
            "standard-webhooks-v1a" if cfg!(feature = "ed25519") => vec![
                standard(self.secret.as_ref().unwrap()),
                standard(self.public_key.as_ref().unwrap()),
            ],
            "github-x-hub-signature-256" => vec![Box::new(GitHub::with_secret(shared()))],
            "stripe-signature" => vec![Box::new(Stripe::with_secret(shared()).clock(now))],
            "slack-v0" => vec![Box::new(Slack::with_secret(shared()).clock(now))],
            _ => vec![],
        }
    }
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("data/signature-vectors.json")).unwrap()
}

#[test]
fn every_published_vector_of_our_schemes_is_judged_right() {
    let mut judged = 0;
    for vector in vectors() {
        for verifier in vector.verifiers() {
            let body = vector.body.as_deref().unwrap();
            let result = verifier.verify(&vector.headers(), body.as_bytes());
            assert_eq!(
                result.is_ok(),
                vector.valid,
                "{}: {result:?}",
                vector.source
            );
            judged += 1;
        }
    }
    assert_eq!(judged, if cfg!(feature = "ed25519") { 19 } else { 17 });
}

#[test]
fn a_changed_byte_makes_every_valid_vector_invalid() {
    for vector in vectors().into_iter().filter(|v| v.valid) {
        for verifier in vector.verifiers() {
            let mut body = vector.body.clone().unwrap().into_bytes();
            let last = body.len() - 1;
            body[last] ^= 1;
            verifier.verify(&vector.headers(), &body).unwrap_err();
        }
    }
}

#[test]
fn a_vector_is_refused_outside_the_tolerance() {
    for vector in vectors().into_iter().filter(|v| v.valid) {
        let Some(secret) = vector.secret.as_deref().filter(|s| s.starts_with("whsec_")) else {
            continue;
        };
        for (shift, ok) in [(-301_i64, false), (-300, true), (300, true), (301, false)] {
            let at = vector.now();
            let shifted = Duration::from_secs(shift.unsigned_abs());
            let at = if shift < 0 {
                at - shifted
            } else {
                at + shifted
            };
            let scheme = StandardWebhooks::new(secret).unwrap().clock(move || at);
            let body = vector.body.as_deref().unwrap();
            let result = scheme.verify(&vector.headers(), body.as_bytes());
            assert_eq!(result.is_ok(), ok, "{shift}: {result:?}");
        }
    }
}

/// RFC 4231, case 2, through a scheme whose signature is the bare code of the body (Shopify, for
/// which no vector with a key is published). The other cases have keys that are no text; they are
/// unit tests of the HMAC.
#[test]
fn rfc_4231_holds_where_the_key_is_text() {
    let key = SharedSecret::existing("Jefe").unwrap();
    let mut headers = HeaderMap::new();
    let code = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
    headers.insert("x-shopify-hmac-sha256", code.parse().unwrap());
    let verifier = Shopify::with_secret(key);
    verifier
        .verify(&headers, b"what do ya want for nothing?")
        .unwrap();
}
