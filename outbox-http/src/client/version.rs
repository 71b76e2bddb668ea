//! Which version of HTTP is spoken.

/// Which versions of HTTP a transport speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/1.1. The default: webhooks are small and servers many, so that one stream for each
    /// connection is no loss, and a broken connection takes one request with it.
    #[default]
    Http1,
    /// What the receiver chooses in the TLS handshake; HTTP/1.1 without TLS.
    #[cfg(feature = "http2")]
    Negotiate,
    /// HTTP/2 alone, without TLS too (prior knowledge).
    #[cfg(feature = "http2")]
    Http2,
}

impl HttpVersion {
    pub(super) fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Http1 => &[b"http/1.1"],
            #[cfg(feature = "http2")]
            Self::Negotiate => &[b"h2", b"http/1.1"],
            #[cfg(feature = "http2")]
            Self::Http2 => &[b"h2"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}
