//! Hosts as lists of the guard name them.

use std::net::Ipv6Addr;

use outbox_core::Error;
use url::Host;

/// A host, or all names below one, in the form in which URLs hold it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum HostPattern {
    Is(String),
    /// With the dot in front.
    Below(String),
}

impl HostPattern {
    /// Parses `git.example`, `*.example`, or an IP literal.
    pub(super) fn new(field: &'static str, pattern: &str) -> Result<Self, Error> {
        let below = pattern.strip_prefix("*.");
        let host = below.unwrap_or(pattern);
        match parsed(host).filter(|_| !host.contains('*')) {
            Some(host) if below.is_none() => Ok(Self::Is(host)),
            Some(host) if super::literal(&host).is_none() => Ok(Self::Below(format!(".{host}"))),
            _ => {
                let allowed = "a host name, `*.` and a host name, or an IP address is allowed, \
                               without scheme, port and path";
                let problem = format!("is {pattern:?}; {allowed}");
                Err(Error::invalid_config(field, problem))
            }
        }
    }

    /// Whether it names this host, which is in the form of [`parsed`].
    pub(super) fn fits(&self, host: &str) -> bool {
        match self {
            Self::Is(name) => host == name,
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        }
    }
}

/// The host as a URL holds it, without the dot of the root: lower case, punycode, IPv4 in dotted
/// decimals, IPv6 in brackets. `None`: it is no host.
pub(super) fn parsed(host: &str) -> Option<String> {
    if let Ok(v6) = host.parse::<Ipv6Addr>() {
        return Some(format!("[{v6}]"));
    }
    let host = Host::parse(host).ok()?.to_string();
    let host = host.strip_suffix('.').unwrap_or(&host);
    (!host.is_empty()).then(|| host.to_owned())
}
