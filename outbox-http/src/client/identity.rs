//! A client certificate for mutual TLS.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use outbox_core::Error;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use sha2::{Digest, Sha256};

/// Who the sender is, to receivers that ask for a client certificate.
///
/// It fails closed: a destination with an identity is delivered to over TLS with it, or not at all.
/// Connections of different identities are never shared. Two identities are equal where their
/// certificate chains are.
#[derive(Clone)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    /// Of the first certificate.
    fingerprint: [u8; 32],
}

impl Identity {
    /// An identity from a certificate chain (the leaf first) and its private key, both as PEM.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): no PEM, no certificate, no key that
    /// can be used, or a key that doesn't belong to the certificate. The text never quotes the key.
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, Error> {
        let refused = |problem: &str| Error::invalid_config("identity", problem);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| refused("has a certificate chain that is no PEM"))?;
        let Some(leaf) = chain.first() else {
            return Err(refused("has no certificate"));
        };
        let fingerprint = Sha256::digest(leaf).into();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|_| refused("has no private key in PEM"))?;
        let provider = rustls::crypto::ring::default_provider();
        let key = CertifiedKey::from_der(chain, key, &provider).map_err(|source| {
            refused("has a key that doesn't fit its certificate").with_source(source)
        })?;
        Ok(Self {
            key: Arc::new(key),
            fingerprint,
        })
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::new(SingleCertAndKey::from(self.key.clone()))
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(certificate ")?;
        for byte in &self.fingerprint[..8] {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("…)")
    }
}
