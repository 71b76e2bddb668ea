//! What must hold for whatever strangers send: shared by the fuzz targets and the quick tests.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use outbox_http::http::header::{DATE, RETRY_AFTER};
use outbox_http::http::{HeaderMap, HeaderName, HeaderValue};
use outbox_http::{
    AddressGuard, GitHub, SharedSecret, Shopify, Slack, StandardKey, StandardWebhooks, Stripe,
    Target, Verifier, VerifyErrorKind, XSignature, retry_after as parse_retry_after,
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Every header that any scheme reads.
const NAMES: [&str; 11] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-signature",
    "x-webhook-id",
    "x-hub-signature-256",
    "stripe-signature",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "x-shopify-hmac-sha256",
    "x-github-delivery",
];

fn verifiers() -> Vec<Box<dyn Verifier>> {
    let Ok(secret) = SharedSecret::new(SECRET) else {
        unreachable!("the secret is valid");
    };
    let Ok(key) = StandardKey::new(SECRET) else {
        unreachable!("the secret is valid");
    };
    vec![
        Box::new(StandardWebhooks::with_secret(key).tolerance(Duration::MAX)),
        Box::new(XSignature::with_secret(secret.clone())),
        Box::new(GitHub::with_secret(secret.clone())),
        Box::new(Shopify::with_secret(secret.clone())),
        Box::new(Stripe::with_secret(secret.clone()).tolerance(Duration::MAX)),
        Box::new(Slack::with_secret(secret).tolerance(Duration::MAX)),
    ]
}

/// Nothing verifies that was not signed, and nothing panics. The data are lines: a digit that
/// chooses the header, and its value.
pub fn signature_headers(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let name = NAMES[usize::from(line[0]) % NAMES.len()];
        if let Ok(value) = HeaderValue::from_bytes(&line[1..]) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    for verifier in verifiers() {
        assert!(verifier.verify(&headers, data).is_err());
    }
}

/// A secret is taken or refused; either way no text shows it.
pub fn secret(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let said = [
        format!("{:?}", StandardKey::new(text)),
        format!("{:?}", SharedSecret::new(text)),
    ];
    // Short texts turn up in any sentence; the public half of an Ed25519 key may be shown.
    if text.len() >= 12 && !text.starts_with("whpk_") {
        let quoted = format!("{text:?}");
        let inner = &quoted[1..quoted.len() - 1];
        let quotes = said.iter().any(|said| said.contains(inner));
        assert!(!quotes || is_our_own_word(inner), "{said:?}");
    }
}

/// Whether the texts about any secret hold these words, whatever their numbers: a fuzzer finds them.
fn is_our_own_word(words: &str) -> bool {
    let samples = [
        "",
        " ",
        "v1,",
        "v1a,",
        "other",
        "whsec_",
        "whsec_!",
        "whsec_-",
        "whsec_AAAA",
        SECRET,
        "whsk_",
        "whsk_!",
        "whsk_-",
        "whsk_AAAA",
        "whpk_",
        "whpk_!",
        "whpk_-",
        "whpk_AAAA",
    ];
    let about = |text| format!("{:?} {:?}", StandardKey::new(text), SharedSecret::new(text));
    let numberless = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
    samples
        .iter()
        .any(|text| numberless(&about(text)).contains(&numberless(words)))
}

/// A wait is at most 30 days, and seconds are understood whatever their number.
pub fn retry_after(data: &[u8]) {
    let mut headers = HeaderMap::new();
    let mut lines = data.split(|b| *b == b'\n');
    let value = lines.next().unwrap_or_default();
    let Ok(header) = HeaderValue::from_bytes(value) else {
        return;
    };
    headers.insert(RETRY_AFTER, header);
    if let Some(Ok(date)) = lines.next().map(HeaderValue::from_bytes) {
        headers.insert(DATE, date);
    }
    let wait = parse_retry_after(&headers, SystemTime::UNIX_EPOCH);
    assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(30 * 86_400)));
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        assert!(wait.is_some());
    }
}

/// A timestamp is 1 to 12 digits, and nothing else.
pub fn timestamp(data: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(data) else {
        return;
    };
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_static("1"));
    headers.insert("webhook-timestamp", value);
    headers.insert("webhook-signature", HeaderValue::from_static("v1,AAAA"));
    let verifier = &verifiers()[0];
    let Err(error) = verifier.verify(&headers, b"") else {
        unreachable!("four zero bytes are no signature");
    };
    let digits = (1..=12).contains(&data.len()) && data.iter().all(u8::is_ascii_digit);
    assert_eq!(error.kind() != VerifyErrorKind::MalformedHeader, digits);
}

/// What the guard admits is no address that the standard library knows to be special; a host that is
/// denied is denied as its URL has it; and a target's `Debug` shows scheme, host and port alone.
pub fn url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(target) = Target::new(text) else {
        return;
    };
    let shown = format!("{target:?}");
    assert!(shown.ends_with(&format!("{}:{}/…", target.host(), target.port())));
    let host = target.host().trim_start_matches('[').trim_end_matches(']');
    let guard = AddressGuard::public_internet();
    if let (Ok(()), Ok(address)) = (guard.check_host(target.host()), host.parse::<IpAddr>()) {
        address_is_public(address);
    }
    if let Ok(denying) = guard.deny_host(target.host()) {
        assert!(denying.check_target(&target).is_err(), "{shown}");
    }
}

/// An admitted address is none that is special in any form; a refused IPv4 address stays refused
/// inside IPv6.
pub fn address(address: IpAddr) {
    let guard = AddressGuard::public_internet();
    if guard.check_address(address).is_ok() {
        address_is_public(address);
    }
    if let IpAddr::V4(v4) = address {
        let [a, b, c, d] = v4.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        for embedded in [
            v4.to_ipv6_mapped(),
            [0x64, 0xff9b, 0, 0, 0, 0, high, low].into(),
            [0x2002, high, low, 0, 0, 0, 0, 1].into(),
            [0x2001, 0, high, low, 0, 0, 0, 0].into(),
            [0x2606, 0x4700, 0, 0, 0, 0x5efe, high, low].into(),
            [0, 0, 0, 0, 0, 0, high, low].into(),
        ] {
            assert!(guard.check_address(embedded.into()).is_err(), "{embedded}");
        }
    }
}

fn address_is_public(address: IpAddr) {
    let special = match address {
        IpAddr::V4(v4) => {
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4_mapped().is_some()
        }
    };
    assert!(!special, "{address}");
}
