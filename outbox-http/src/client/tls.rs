//! TLS settings.

use std::sync::Arc;

use outbox_core::Error;
use rustls::{ClientConfig, RootCertStore};

/// Mozilla's root certificates, TLS 1.2 and 1.3, no client certificate.
pub(crate) fn default_config() -> Result<ClientConfig, Error> {
    let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| Error::invalid_config("tls", "is unusable").with_source(source))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
