//! The address guard: where deliveries may go.

mod networks;
mod pattern;
mod resolve;
mod target;

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use http::Uri;
use ipnet::IpNet;
use outbox_core::Error;

use pattern::HostPattern;
pub(crate) use resolve::GuardedResolver;
pub use resolve::{Resolve, SystemResolver};
pub use target::Target;

/// Decides which hosts, addresses and ports deliveries may reach. On by default.
///
/// The default admits the public internet on ports 80 and 443, and nothing else: no private,
/// loopback, link-local (cloud metadata), shared (CGNAT), multicast, documentation or otherwise
/// special address, in IPv4, IPv6, or one embedded in the other (IPv4-mapped, NAT64, 6to4, Teredo,
/// ISATAP).
///
/// Addresses are checked on every connection, on the address that is dialled: a name whose answer
/// changes between a check and its use gains nothing, and an IP literal is checked like any other.
/// Denials go before allowances.
///
/// ```
/// use outbox_http::AddressGuard;
///
/// let guard = AddressGuard::public_internet()
///     .allow_port(8443)
///     .allow_network("10.20.0.0/16".parse()?)
///     .deny_host("*.corp.example")?;
/// assert!(guard.check_address("10.20.1.1".parse()?).is_ok());
/// assert!(guard.check_address("10.21.1.1".parse()?).is_err());
/// assert!(guard.check_host("git.corp.example").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddressGuard {
    private: bool,
    https_only: bool,
    allowed_networks: Vec<IpNet>,
    denied_networks: Vec<IpNet>,
    allowed_hosts: Vec<HostPattern>,
    denied_hosts: Vec<HostPattern>,
    /// `None`: any.
    ports: Option<BTreeSet<u16>>,
    denied_ports: BTreeSet<u16>,
}

impl Default for AddressGuard {
    fn default() -> Self {
        Self::public_internet()
    }
}

impl AddressGuard {
    /// The public internet, ports 80 and 443.
    #[must_use]
    pub fn public_internet() -> Self {
        Self {
            private: false,
            https_only: false,
            allowed_networks: Vec::new(),
            denied_networks: Vec::new(),
            allowed_hosts: Vec::new(),
            denied_hosts: Vec::new(),
            ports: Some([80, 443].into()),
            denied_ports: BTreeSet::new(),
        }
    }

    /// The opt-out for development and tests: every address and every port but those denied.
    #[must_use]
    pub fn allow_private_networks(mut self) -> Self {
        self.private = true;
        self.ports = None;
        self
    }

    /// Admits the addresses of a network that would be refused.
    #[must_use]
    pub fn allow_network(mut self, network: IpNet) -> Self {
        self.allowed_networks.push(network);
        self
    }

    /// Refuses the addresses of a network, your own public ones for example.
    #[must_use]
    pub fn deny_network(mut self, network: IpNet) -> Self {
        self.denied_networks.push(network);
        self
    }

    /// Admits a host whatever its addresses (denied networks excepted): `hooks.internal`, or
    /// `*.internal` for all names below it.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): neither a host, nor `*.` and a host.
    pub fn allow_host(mut self, pattern: &str) -> Result<Self, Error> {
        let pattern = HostPattern::new("allow_host", pattern)?;
        self.allowed_hosts.push(pattern);
        Ok(self)
    }

    /// Refuses a host by name: `git.example`, or `*.example` for all names below it. Names are taken
    /// in Unicode or punycode.
    ///
    /// # Errors
    ///
    /// As [`allow_host`](Self::allow_host).
    pub fn deny_host(mut self, pattern: &str) -> Result<Self, Error> {
        let pattern = HostPattern::new("deny_host", pattern)?;
        self.denied_hosts.push(pattern);
        Ok(self)
    }

    /// Admits a port beside 80 and 443.
    #[must_use]
    pub fn allow_port(mut self, port: u16) -> Self {
        if let Some(ports) = &mut self.ports {
            ports.insert(port);
        }
        self
    }

    /// Refuses a port, whatever else admits it.
    #[must_use]
    pub fn deny_port(mut self, port: u16) -> Self {
        self.denied_ports.insert(port);
        self
    }

    /// Admits every port but those denied.
    #[must_use]
    pub fn allow_any_port(mut self) -> Self {
        self.ports = None;
        self
    }

    /// Refuses `http://`. Default: both schemes.
    #[must_use]
    pub const fn https_only(mut self) -> Self {
        self.https_only = true;
        self
    }

    /// Checks all that a URL tells without looking its name up: scheme, host, port. For the moment
    /// when somebody enters it; each delivery checks it again, and the addresses beside it.
    ///
    /// ```
    /// use outbox_http::{AddressGuard, Target};
    ///
    /// let guard = AddressGuard::public_internet().https_only();
    /// let error = guard.check_target(&Target::new("https://0x7f.1/hooks")?).unwrap_err();
    /// assert_eq!(error.to_string(), "the address guard refuses loopback addresses");
    /// # Ok::<(), outbox_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refused`] that says why.
    pub fn check_target(&self, target: &Target) -> Result<(), Refused> {
        self.check_uri(target.uri())
    }

    /// Checks a host name or IP literal, in any spelling that a URL may have. What is no host is
    /// refused.
    ///
    /// # Errors
    ///
    /// A [`Refused`] that says why.
    pub fn check_host(&self, host: &str) -> Result<(), Refused> {
        self.check_parsed(&pattern::parsed(host).ok_or(Refused::Host)?)
    }

    /// Checks a host in the form in which a [`Target`] holds it, without the dot of the root.
    fn check_parsed(&self, host: &str) -> Result<(), Refused> {
        if self.denied_hosts.iter().any(|p| p.fits(host)) {
            return Err(Refused::Host);
        }
        match literal(host).or_else(|| loopback_name(host)) {
            Some(address) => self.check_address_of(host, address),
            None => Ok(()),
        }
    }

    /// Checks a port.
    ///
    /// # Errors
    ///
    /// A [`Refused`] that says why.
    pub fn check_port(&self, port: u16) -> Result<(), Refused> {
        let allowed = self
            .ports
            .as_ref()
            .is_none_or(|ports| ports.contains(&port));
        if allowed && !self.denied_ports.contains(&port) {
            return Ok(());
        }
        Err(Refused::Port(port))
    }

    /// Checks an address, whatever the name that led to it.
    ///
    /// # Errors
    ///
    /// A [`Refused`] that says why.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refused> {
        let embedded = networks::embedded_v4(address).map(IpAddr::V4);
        let denies = |address| self.denied_networks.iter().any(|n| n.contains(&address));
        if denies(address) || embedded.is_some_and(denies) {
            return Err(Refused::Denied);
        }
        if self.private || self.allowed_networks.iter().any(|n| n.contains(&address)) {
            return Ok(());
        }
        networks::special(address).map_or(Ok(()), |what| Err(Refused::Address(what)))
    }

    /// Checks an address to which this host name led.
    pub(crate) fn check_address_of(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let host = rootless(host);
        match self.check_address(address) {
            Err(Refused::Address(_)) if self.allowed_hosts.iter().any(|p| p.fits(host)) => Ok(()),
            checked => checked,
        }
    }

    /// Checks the URI of a [`Target`].
    pub(crate) fn check_uri(&self, uri: &Uri) -> Result<(), Refused> {
        let https = uri.scheme_str() == Some("https");
        if self.https_only && !https {
            return Err(Refused::Scheme);
        }
        self.check_port(uri.port_u16().unwrap_or(if https { 443 } else { 80 }))?;
        self.check_parsed(rootless(uri.host().unwrap_or_default()))
    }
}

/// Why the guard refuses. It names no address: the text can end where a stranger reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// The URL is not `https`.
    Scheme,
    /// The host is on the deny list, or is no host.
    Host,
    /// The port is not allowed.
    Port(u16),
    /// The address is on the deny list.
    Denied,
    /// The address is special: what it is.
    Address(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("the address guard requires https"),
            Self::Host => f.write_str("the address guard denies this host"),
            Self::Port(port) => write!(f, "the address guard doesn't allow port {port}"),
            Self::Denied => f.write_str("the address guard denies this network"),
            Self::Address(what) => write!(f, "the address guard refuses {what} addresses"),
        }
    }
}

impl StdError for Refused {}

/// Without the dot of the root.
fn rootless(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// `localhost` and all below it are the loopback by definition (RFC 6761, section 6.3).
fn loopback_name(host: &str) -> Option<IpAddr> {
    let local = host == "localhost" || host.ends_with(".localhost");
    local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

fn literal(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}
