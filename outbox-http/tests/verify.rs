//! Verification: every scheme takes what it signed, and refuses with the right reason.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use outbox_http::outbox_core::{Bytes, EventId, Signer, SigningInput};
use outbox_http::{
    GitHub, SharedSecret, Shopify, Slack, StandardWebhooks, Stripe, Verifier,
    VerifyErrorKind as Kind, XSignature,
};

const STANDARD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &[u8] = b"{\"after\":\"\xff\x00\"}";

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn secret() -> SharedSecret {
    SharedSecret::new("correct horse battery staple").unwrap()
}

fn sign(signer: &dyn Signer) -> HeaderMap {
    let input = SigningInput::new(EventId::new(), now(), Bytes::from_static(BODY));
    let headers = futures::executor::block_on(signer.sign(&input)).unwrap();
    let pair = |h: outbox_http::outbox_core::SignatureHeader| {
        (
            HeaderName::try_from(h.name).unwrap(),
            h.value.parse().unwrap(),
        )
    };
    headers.into_iter().map(pair).collect()
}

fn standard() -> StandardWebhooks {
    StandardWebhooks::new(STANDARD).unwrap().clock(now)
}

fn stripe() -> Stripe {
    Stripe::with_secret(secret()).clock(now)
}

#[track_caller]
fn refused(verifier: &dyn Verifier, headers: &HeaderMap, kind: Kind) {
    let error = verifier.verify(headers, BODY).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
}

fn with(mut headers: HeaderMap, name: &'static str, value: &str) -> HeaderMap {
    headers.insert(name, value.parse().unwrap());
    headers
}

/// Signs and checks with one scheme: its own bytes, changed bytes, each header missing or repeated.
fn round_trip<S: Signer + Verifier>(scheme: &S, required: &[&'static str]) {
    let headers = sign(scheme);
    let verified = scheme.verify(&headers, BODY).unwrap();
    assert_eq!(&*verified.key, "default");
    assert_eq!(
        scheme.verify(&headers, b"other").unwrap_err().kind(),
        Kind::NoMatch
    );
    for name in required {
        let mut missing = headers.clone();
        missing.remove(*name);
        refused(scheme, &missing, Kind::MissingHeader);
        let mut repeated = headers.clone();
        repeated.append(*name, headers[*name].clone());
        refused(scheme, &repeated, Kind::RepeatedHeader);
        refused(
            scheme,
            &with(headers.clone(), name, ""),
            Kind::MalformedHeader,
        );
    }
}

#[test]
fn every_scheme_takes_what_it_signed_and_nothing_else() {
    round_trip(
        &standard(),
        &["webhook-id", "webhook-timestamp", "webhook-signature"],
    );
    round_trip(&XSignature::with_secret(secret()), &["x-signature"]);
    round_trip(&GitHub::with_secret(secret()), &["x-hub-signature-256"]);
    round_trip(&Shopify::with_secret(secret()), &["x-shopify-hmac-sha256"]);
    round_trip(&stripe(), &["stripe-signature"]);
    let slack = Slack::with_secret(secret()).clock(now);
    round_trip(&slack, &["x-slack-signature", "x-slack-request-timestamp"]);
}

#[test]
fn only_standard_webhooks_sign_the_id() {
    let headers = sign(&standard());
    assert!(standard().verify(&headers, BODY).unwrap().id_is_signed);
    refused(
        &standard(),
        &with(headers, "webhook-id", "other"),
        Kind::NoMatch,
    );
    let course = XSignature::with_secret(secret());
    let headers = with(sign(&course), "x-webhook-id", "other");
    let verified = course.verify(&headers, BODY).unwrap();
    assert_eq!(
        (verified.id.as_deref(), verified.id_is_signed),
        (Some("other"), false)
    );
}

/// The parts are joined by dots: with one in the id, a signed delivery could be read as another, whose
/// time is the beginning of the body.
#[test]
fn an_id_with_a_dot_is_refused() {
    let body = b"1700000200.{}";
    let input = SigningInput::new(EventId::new(), now(), Bytes::from_static(body));
    let id = input.id;
    let headers = futures::executor::block_on(standard().sign(&input)).unwrap();
    let signature = headers.into_iter().find(|h| h.name == "webhook-signature");
    let mut forged = HeaderMap::new();
    let forged_id = format!("{id}.1700000000");
    forged.insert("webhook-id", forged_id.parse().unwrap());
    forged.insert("webhook-timestamp", "1700000200".parse().unwrap());
    forged.insert(
        "webhook-signature",
        signature.unwrap().value.parse().unwrap(),
    );
    let error = standard().verify(&forged, b"{}").unwrap_err();
    assert_eq!(error.kind(), Kind::MalformedHeader);
}

#[test]
fn a_malformed_candidate_hides_no_good_one() {
    let headers = sign(&standard());
    let good = headers["webhook-signature"].to_str().unwrap().to_owned();
    let list = format!("v1 v1, ,x v1,!!! v2,AAAA v1a,AAAA  v1,AAAA {good}");
    standard()
        .verify(&with(headers.clone(), "webhook-signature", &list), BODY)
        .unwrap();
    let many = format!("{}{good}", "v1,AAAA ".repeat(16));
    let headers = with(headers, "webhook-signature", &many);
    refused(&standard(), &headers, Kind::TooManySignatures);
}

#[test]
fn a_timestamp_must_be_digits_and_near() {
    let headers = sign(&standard());
    for text in [
        "-1",
        "+1700000000",
        "1700000000.0",
        "1e9",
        "0x65",
        " 1700000000",
        "1700000000000",
        "inf",
    ] {
        refused(
            &standard(),
            &with(headers.clone(), "webhook-timestamp", text),
            Kind::MalformedHeader,
        );
    }
    refused(
        &standard(),
        &with(headers.clone(), "webhook-timestamp", "1"),
        Kind::TooOld,
    );
    refused(
        &standard(),
        &with(headers.clone(), "webhook-timestamp", "999999999999"),
        Kind::TooNew,
    );
    let later = standard().clock(|| now() + Duration::from_secs(301));
    refused(&later, &headers, Kind::TooOld);
    later
        .tolerance(Duration::from_secs(301))
        .verify(&headers, BODY)
        .unwrap();
}

#[test]
fn headers_that_are_too_long_are_refused() {
    let headers = sign(&standard());
    let long = "a".repeat(257);
    refused(
        &standard(),
        &with(headers.clone(), "webhook-id", &long),
        Kind::MalformedHeader,
    );
    let long = "a".repeat(4_097);
    refused(
        &standard(),
        &with(headers, "webhook-signature", &long),
        Kind::MalformedHeader,
    );
}

#[test]
fn stripes_members_come_in_any_order_and_number() {
    let headers = sign(&stripe());
    let header = headers["stripe-signature"].to_str().unwrap().to_owned();
    let (time, code) = header.split_once(',').unwrap();
    let zeros = "0".repeat(64);
    for good in [
        format!("{code},{time}"),
        format!("{time},v1={zeros},{code}"),
        format!("{time},v1=xyz,v0=1,{code}"),
        format!("{time}, {code}"),
    ] {
        stripe()
            .verify(&with(headers.clone(), "stripe-signature", &good), BODY)
            .unwrap();
    }
    for (bad, kind) in [
        (format!("{time},{code},oops"), Kind::MalformedHeader),
        (format!("{time},{time},{code}"), Kind::MalformedHeader),
        (code.to_owned(), Kind::MalformedHeader),
        (format!("{time},v1={zeros}"), Kind::NoMatch),
        (
            format!("{time}{}", ",v1=0".repeat(17)),
            Kind::TooManySignatures,
        ),
    ] {
        refused(
            &stripe(),
            &with(headers.clone(), "stripe-signature", &bad),
            kind,
        );
    }
}

#[test]
fn hex_is_taken_in_either_case_and_whole() {
    let github = GitHub::with_secret(secret());
    let headers = sign(&github);
    let code = headers["x-hub-signature-256"].to_str().unwrap()[7..].to_owned();
    let upper = format!("sha256={}", code.to_uppercase());
    github
        .verify(&with(headers.clone(), "x-hub-signature-256", &upper), BODY)
        .unwrap();
    for bad in [
        code.clone(),
        format!("sha1={code}"),
        format!("sha256={}", &code[..62]),
    ] {
        refused(
            &github,
            &with(headers.clone(), "x-hub-signature-256", &bad),
            Kind::NoMatch,
        );
    }
}
