//! An egress proxy: a tunnel for every connection, http and https alike.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use outbox_core::Error;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

/// The longest head of a proxy's answer, in bytes.
const MAX_HEAD: usize = 8 << 10;

/// Where the proxy is, and what it wants to hear.
#[derive(Clone)]
pub(crate) struct EgressProxy {
    host: String,
    port: u16,
    authorization: Option<String>,
}

impl EgressProxy {
    /// Parses `http://[user:password@]host:port`.
    pub(crate) fn new(url: &str) -> Result<Self, Error> {
        let refused = |problem: &str| Error::invalid_config("egress_proxy", problem);
        let url = Url::parse(url).map_err(|_| refused("is no URL"))?;
        let more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
        if url.scheme() != "http" || more {
            return Err(refused("must be http://host:port and no more"));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(refused("has no host"));
        };
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let mut pair: Vec<u8> = percent_decode_str(user).collect();
                pair.push(b':');
                pair.extend(percent_decode_str(password.unwrap_or_default()));
                Some(pair)
            }
        };
        Ok(Self {
            host: host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port,
            authorization: credentials.map(|c| format!("Basic {}", STANDARD.encode(c))),
        })
    }

    /// A connection to the target through the proxy. The proxy looks the name up and dials, so it is
    /// the proxy that guards addresses. A proxy that is not reached within `limit` is down.
    pub(super) async fn tunnel(
        &self,
        target: &Uri,
        limit: Duration,
    ) -> Result<TcpStream, TunnelFailed> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let connected = tokio::time::timeout(limit, connecting).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let mut stream = connected.map_err(TunnelFailed::Proxy)?;
        stream.set_nodelay(true).map_err(TunnelFailed::Proxy)?;
        let port = match (target.port_u16(), target.scheme_str()) {
            (Some(port), _) => port,
            (None, Some("https")) => 443,
            (None, _) => 80,
        };
        let authority = format!("{}:{port}", target.host().unwrap_or_default());
        let mut head = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n");
        if let Some(value) = &self.authorization {
            head.extend(["proxy-authorization: ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        stream
            .write_all(head.as_bytes())
            .await
            .map_err(TunnelFailed::Proxy)?;
        match status(&mut stream).await.map_err(TunnelFailed::Proxy)? {
            200..=299 => Ok(stream),
            status @ (401 | 403 | 407) => Err(TunnelFailed::Unauthorized(status)),
            status => Err(TunnelFailed::Target(status)),
        }
    }
}

/// Reads the proxy's head byte by byte: what follows belongs to the tunnel.
async fn status(stream: &mut TcpStream) -> io::Result<u16> {
    let mut head = Vec::with_capacity(128);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the head is too long",
            ));
        }
        head.push(stream.read_u8().await?);
    }
    head.strip_prefix(b"HTTP/1.1 ")
        .or_else(|| head.strip_prefix(b"HTTP/1.0 "))
        .and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP"))
}

/// Why there is no tunnel.
#[derive(Debug)]
pub(crate) enum TunnelFailed {
    /// The proxy can't be reached or spoken with: the sender's own trouble.
    Proxy(io::Error),
    /// The proxy refuses the sender or the target: the sender's own trouble.
    Unauthorized(u16),
    /// The proxy could not reach the target.
    Target(u16),
}

impl fmt::Display for TunnelFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proxy(_) => f.write_str("the egress proxy can't be used"),
            Self::Unauthorized(status) => write!(f, "the egress proxy refuses: {status}"),
            Self::Target(status) => {
                write!(f, "the egress proxy can't reach the receiver: {status}")
            }
        }
    }
}

impl StdError for TunnelFailed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Proxy(source) => Some(source),
            Self::Unauthorized(_) | Self::Target(_) => None,
        }
    }
}
