//! A destination's URL, parsed once.

use std::fmt;

use http::Uri;
use outbox_core::Error;
use url::Url;

/// Where a delivery goes: an absolute `http` or `https` URL.
///
/// It is parsed as browsers do (WHATWG), so every spelling of an address (`0x7f.1`, `2130706433`,
/// `127.1`) is seen for what it is. A user name, a password or a fragment is refused: credentials
/// belong in headers, where they aren't logged. `Debug` shows scheme, host and port only, because
/// paths and queries hold secrets too.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
    host: String,
    port: u16,
}

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig) that says what is wrong; it never
    /// quotes the URL.
    pub fn new(url: &str) -> Result<Self, Error> {
        let refused = |problem: &str| Error::invalid_config("url", problem);
        if url.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return Err(refused("holds a space or a control character"));
        }
        let parsed =
            Url::parse(url).map_err(|source| refused("is no absolute URL").with_source(source))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(refused("has another scheme than http or https"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(refused("holds a user name or password; use a header"));
        }
        if parsed.fragment().is_some() {
            return Err(refused("holds a fragment (#…), which is never sent"));
        }
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Err(refused("has no host"));
        };
        if port == 0 {
            return Err(refused("has port 0"));
        }
        let uri = Uri::try_from(parsed.as_str())
            .map_err(|source| refused("can't be sent over HTTP").with_source(source))?;
        // Two parsers, one opinion: what is checked is what is dialled.
        if uri.host() != Some(host) || uri.port_u16() != parsed.port() {
            return Err(refused("has a host that parsers disagree on"));
        }
        Ok(Self {
            uri,
            host: host.to_owned(),
            port,
        })
    }

    /// The host: a name in ASCII (punycode), or an IP literal (IPv6 in brackets).
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether it is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        write!(f, "{scheme}://{}:{}/…", self.host, self.port)
    }
}
