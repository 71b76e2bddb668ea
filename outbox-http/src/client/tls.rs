//! TLS settings.

use std::sync::Arc;

use outbox_core::Error;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::{HttpVersion, Identity};

/// What TLS trusts: Mozilla's root certificates, the system's as well with the feature
/// `native-roots` where asked for, and those that were added.
#[derive(Debug, Clone)]
pub(crate) struct Roots(Arc<RootCertStore>);

impl Default for Roots {
    fn default() -> Self {
        let mozillas: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Self(Arc::new(mozillas))
    }
}

impl Roots {
    /// Trusts the certificates of this PEM text too.
    pub(crate) fn add_pem(&mut self, pem: &str) -> Result<(), Error> {
        let refused = |problem: &str| Error::invalid_config("root_certificates", problem);
        let roots = Arc::make_mut(&mut self.0);
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| refused("is no PEM"))?;
            roots
                .add(certificate)
                .map_err(|source| refused("has an unusable certificate").with_source(source))?;
        }
        if roots.len() == before {
            return Err(refused("holds no certificate"));
        }
        Ok(())
    }

    /// Trusts what the operating system trusts too.
    #[cfg(feature = "native-roots")]
    pub(crate) fn add_native(&mut self) -> Result<(), Error> {
        let found = rustls_native_certs::load_native_certs();
        let roots = Arc::make_mut(&mut self.0);
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let problem = "were asked of the system, which has none that can be read";
            return Err(Error::invalid_config("native_roots", problem));
        }
        Ok(())
    }

    /// TLS 1.2 and 1.3 with these roots.
    pub(super) fn config(
        &self,
        identity: Option<&Identity>,
        version: HttpVersion,
    ) -> Result<ClientConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|source| Error::invalid_config("tls", "is unusable").with_source(source))?
            .with_root_certificates(self.0.clone());
        let mut config = match identity {
            Some(identity) => builder.with_client_cert_resolver(identity.resolver()),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = version.alpn();
        Ok(config)
    }
}
