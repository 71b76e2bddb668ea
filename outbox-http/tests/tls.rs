//! TLS: whom we trust, who we are, and HTTP/2.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;

use outbox_http::outbox_core::{DeathReason, DeliveryErrorKind as Kind, Phase};
use outbox_http::{
    DestinationRecord, Endpoint, HttpFailure, HttpFailureKind as Failure, Identity, MapDestinations,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use support::{OK, Receiver, builder, send};
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

/// Who the receiver is; with `clients`, it talks only to those that this CA vouches for.
fn server(leaf: &Leaf, clients: Option<&Ca>) -> ServerConfig {
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
    builder
        .with_single_cert(vec![leaf.der.clone()], key)
        .unwrap()
}

/// A receiver that answers 200 over TLS.
async fn receiver(leaf: &Leaf, clients: Option<&Ca>) -> Receiver {
    let acceptor = TlsAcceptor::from(Arc::new(server(leaf, clients)));
    Receiver::run(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {
                let _ = stream.write_all(OK.as_bytes()).await;
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
    let mut stored = DestinationRecord::new(https(&receiver));
    stored.identity = Some(identity.clone());
    let destinations = MapDestinations::new()
        .with("known", endpoint().identity(identity.clone()))
        .with("stored", stored.endpoint().unwrap())
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
    send(&webhooks, "stored").await.0.unwrap();
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

/// An issuer that is renewed makes another identity: connections show the new chain.
#[test]
fn identities_are_equal_where_their_whole_chains_are() {
    let ca = Ca::new();
    let leaf = ca.leaf("a.example", |_| {});
    let identity = |chain: &str| Identity::from_pem(chain, &leaf.key.serialize_pem()).unwrap();
    assert_eq!(identity(&leaf.chain), identity(&leaf.chain));
    let with_issuer = format!("{}{}", leaf.chain, ca.pem());
    assert_ne!(identity(&leaf.chain), identity(&with_issuer));
}

/// Which version is spoken, as the receiver sees it.
#[cfg(feature = "http2")]
mod negotiation {
    use std::convert::Infallible;

    use http::{Request, Response};
    use hyper::body::Incoming;
    use hyper::server::conn::{http1, http2};
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use outbox_http::{HttpVersion, Webhooks};

    use super::*;

    async fn refuse(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
        let mut answer = Response::new(format!("{:?}", request.version()));
        *answer.status_mut() = http::StatusCode::IM_A_TEAPOT;
        Ok(answer)
    }

    /// A receiver that names the version of each request in its answer.
    async fn receiver(ca: &Ca, protocols: &[&str]) -> Receiver {
        let mut config = server(&ca.leaf("127.0.0.1", |_| {}), None);
        config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Receiver::run(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let chosen = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let (io, service) = (TokioIo::new(stream), service_fn(refuse));
                if chosen {
                    let serving = http2::Builder::new(TokioExecutor::new());
                    let _ = serving.serve_connection(io, service).await;
                } else {
                    let _ = http1::Builder::new().serve_connection(io, service).await;
                }
            }
        })
        .await
    }

    fn speaking(ca: &Ca, version: HttpVersion) -> Webhooks {
        let trusting = builder().root_certificates(&ca.pem()).unwrap();
        trusting.http(version).build().unwrap()
    }

    #[tokio::test]
    async fn both_sides_speak_the_best_that_both_know() {
        let ca = Ca::new();
        let both: &[&str] = &["h2", "http/1.1"];
        for (wish, offered, spoken) in [
            (HttpVersion::Negotiate, both, "HTTP/2.0"),
            (HttpVersion::Negotiate, &["http/1.1"], "HTTP/1.1"),
            (HttpVersion::Negotiate, &[], "HTTP/1.1"),
            (HttpVersion::Http1, both, "HTTP/1.1"),
            (HttpVersion::Http2, both, "HTTP/2.0"),
        ] {
            let receiver = receiver(&ca, offered).await;
            let webhooks = speaking(&ca, wish);
            for _ in 0..3 {
                let error = send(&webhooks, &https(&receiver)).await.0.unwrap_err();
                let text = error.report();
                assert!(text.ends_with(spoken), "{wish:?} {offered:?}: {text}");
            }
            assert_eq!(receiver.connections(), 1, "{wish:?} {offered:?}");
        }
    }

    #[tokio::test]
    async fn one_that_speaks_no_http2_is_refused_where_nothing_else_will_do() {
        let ca = Ca::new();
        let receiver = receiver(&ca, &["http/1.1"]).await;
        refused_handshake(&speaking(&ca, HttpVersion::Http2), &https(&receiver)).await;
    }
}

/// The system's roots are read from the environment, which a test can set for another process only:
/// this one starts itself again.
#[cfg(feature = "native-roots")]
mod native_roots {
    use std::process::Command;

    use super::*;

    const CHILD: &str = "native_roots::in_a_process_of_its_own";

    fn run(ca: &Ca) -> std::process::Output {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("outbox-http-roots-{}.pem", std::process::id()));
        std::fs::write(&file, ca.pem()).unwrap();
        let leaf = ca.leaf("127.0.0.1", |_| {});
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD, "--ignored", "--nocapture"])
            .env("SSL_CERT_FILE", &file)
            .env_remove("SSL_CERT_DIR")
            .env("OUTBOX_TEST_CHAIN", &leaf.chain)
            .env("OUTBOX_TEST_KEY", leaf.key.serialize_pem())
            .output()
            .unwrap();
        std::fs::remove_file(file).unwrap();
        output
    }

    #[test]
    fn what_the_system_trusts_is_trusted_where_asked_for() {
        let output = run(&Ca::new());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
    }

    #[tokio::test]
    #[ignore = "runs in a process of its own, with the roots that its parent made"]
    async fn in_a_process_of_its_own() {
        let chain = std::env::var("OUTBOX_TEST_CHAIN").unwrap();
        let key = KeyPair::from_pem(&std::env::var("OUTBOX_TEST_KEY").unwrap()).unwrap();
        let der = rustls::pki_types::pem::PemObject::from_pem_slice(chain.as_bytes()).unwrap();
        let receiver = receiver(&Leaf { chain, key, der }, None).await;
        refused_handshake(&builder().build().unwrap(), &https(&receiver)).await;
        let trusting = builder().native_roots().unwrap().build().unwrap();
        send(&trusting, &https(&receiver)).await.0.unwrap();
    }
}
