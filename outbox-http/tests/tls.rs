//! TLS: whom we trust, who we are, and HTTP/2.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;

use outbox_http::outbox_core::{DeathReason, DeliveryErrorKind as Kind, Phase};
use outbox_http::{Endpoint, HttpFailure, HttpFailureKind as Failure, Identity, MapDestinations};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use support::{Receiver, builder, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

struct Ca(CertifiedIssuer<'static, KeyPair>);

struct Leaf {
    chain: String,
    key: KeyPair,
    der: rustls::pki_types::CertificateDer<'static>,
}

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn leaf(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Leaf {
            chain: certificate.pem(),
            der: certificate.der().clone(),
            key,
        }
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A receiver that answers 200 over TLS; with `clients`, only to those that this CA vouches for.
async fn receiver(leaf: &Leaf, clients: Option<&Ca>) -> Receiver {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(ca.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(leaf.key.serialize_der()).unwrap();
    let config = builder
        .with_single_cert(vec![leaf.der.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Receiver::run(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .await;
            }
        }
    })
    .await
}

fn https(receiver: &Receiver) -> String {
    receiver.url().replace("http", "https")
}

async fn refused_handshake(webhooks: &outbox_http::Webhooks, url: &str) {
    let (result, delivery) = send(webhooks, url).await;
    let error = result.unwrap_err();
    let kind = HttpFailure::of(&error).unwrap().kind();
    assert_eq!(kind, Failure::Tls, "{}", error.report());
    assert_eq!(error.kind(), Kind::Transient);
    assert_eq!(delivery.phase(), Phase::Waiting);
}

#[tokio::test]
async fn a_certificate_of_a_trusted_issuer_is_taken() {
    let ca = Ca::new();
    let receiver = receiver(&ca.leaf("127.0.0.1", |_| {}), None).await;
    let webhooks = builder()
        .root_certificates(&ca.pem())
        .unwrap()
        .build()
        .unwrap();
    send(&webhooks, &https(&receiver)).await.0.unwrap();
}

#[tokio::test]
async fn certificates_that_prove_nothing_are_refused_before_a_byte_is_sent() {
    let ca = Ca::new();
    let trusting = builder()
        .root_certificates(&ca.pem())
        .unwrap()
        .build()
        .unwrap();
    let good = ca.leaf("127.0.0.1", |_| {});
    let expired = ca.leaf("127.0.0.1", |p| {
        p.not_after = rcgen::date_time_ymd(2020, 1, 1)
    });
    let other = ca.leaf("other.example", |_| {});
    refused_handshake(
        &builder().build().unwrap(),
        &https(&receiver(&good, None).await),
    )
    .await;
    refused_handshake(&trusting, &https(&receiver(&expired, None).await)).await;
    refused_handshake(&trusting, &https(&receiver(&other, None).await)).await;
    let plain = Receiver::run(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Plain\r\n\r\n").await;
        let _ = stream.read(&mut [0; 4096]).await;
    })
    .await;
    refused_handshake(&trusting, &https(&plain)).await;
}

#[tokio::test]
async fn an_identity_is_shown_to_its_destination_and_to_no_other() {
    let ca = Ca::new();
    let receiver = receiver(&ca.leaf("127.0.0.1", |_| {}), Some(&ca)).await;
    let client = ca.leaf("sender.example", |_| {});
    let identity = Identity::from_pem(&client.chain, &client.key.serialize_pem()).unwrap();
    let endpoint = || Endpoint::new(&https(&receiver)).unwrap();
    let destinations = MapDestinations::new()
        .with("known", endpoint().identity(identity.clone()))
        .with("nobody", endpoint())
        .with(
            "plain",
            Endpoint::new(&receiver.url()).unwrap().identity(identity),
        );
    let webhooks = builder()
        .root_certificates(&ca.pem())
        .unwrap()
        .destinations(destinations)
        .build()
        .unwrap();
    send(&webhooks, "known").await.0.unwrap();
    send(&webhooks, "known").await.0.unwrap();
    assert_eq!(
        receiver.connections(),
        1,
        "connections of an identity are pooled"
    );

    // TLS 1.3 clients hear of the refusal after the handshake, so it can look ambiguous.
    let error = send(&webhooks, "nobody").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient, "{}", error.report());

    let error = send(&webhooks, "plain").await.0.unwrap_err();
    assert_eq!(error.kind(), Kind::Permanent(DeathReason::Unroutable));
    assert!(error.report().contains("not https"), "{}", error.report());
}

#[test]
fn an_identity_that_cannot_be_used_is_refused_where_it_is_made() {
    let ca = Ca::new();
    let (a, b) = (ca.leaf("a.example", |_| {}), ca.leaf("b.example", |_| {}));
    for (chain, key) in [
        (a.chain.as_str(), b.key.serialize_pem()),
        ("", a.key.serialize_pem()),
        (a.chain.as_str(), String::new()),
        (a.chain.as_str(), "no pem".to_owned()),
    ] {
        let error = Identity::from_pem(chain, &key).unwrap_err().to_string();
        assert!(error.starts_with("setting `identity` has "), "{error}");
    }
    let identity = Identity::from_pem(&a.chain, &a.key.serialize_pem()).unwrap();
    assert!(format!("{identity:?}").starts_with("Identity(certificate "));
}
