//! Special-purpose networks (IANA registries of RFC 6890 and later), and clouds' own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is special about an address; `None` for one of the public internet.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

/// The IPv4 address to which packets for this one go: IPv4-mapped and -compatible, NAT64, 6to4.
pub(super) fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// Network, prefix length, what it is. The narrower network stands first.
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified (0.0.0.0/8)"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared (CGNAT)"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud platform"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local (metadata)"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "IETF protocol"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "AS112"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "AMT"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "AS112"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// Special networks inside `2000::/3`, the only global unicast space. Everything outside it is
/// special: loopback, `fc00::/7`, `fe80::/10`, IPv4-mapped, NAT64 (`64:ff9b::/96`, `64:ff9b:1::/48`).
const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "Teredo"),
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        "IETF protocol",
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        "documentation",
    ),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (
        Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0),
        48,
        "AS112",
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        "documentation",
    ),
];

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    V4.iter()
        .find(|(network, prefix, _)| (bits ^ network.to_bits()) >> (32 - prefix) == 0)
        .map(|(_, _, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    if bits >> 125 != 1 {
        return Some(outside_global_unicast(address));
    }
    // ISATAP (RFC 5214): an IPv4 address in the interface identifier.
    if matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _]) {
        return Some("ISATAP");
    }
    V6.iter()
        .find(|(network, prefix, _)| (bits ^ network.to_bits()) >> (128 - prefix) == 0)
        .map(|(_, _, what)| *what)
}

const fn outside_global_unicast(address: Ipv6Addr) -> &'static str {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        [0, 0, 0, 0, 0, 0xffff, _, _] => "IPv4-mapped",
        [0x64, 0xff9b, _, _, _, _, _, _] => "NAT64",
        [0xfc00..=0xfdff, _, _, _, _, _, _, _] => "private",
        [0xfe80..=0xfebf, _, _, _, _, _, _, _] => "link-local",
        [0xff00..=0xffff, _, _, _, _, _, _, _] => "multicast",
        _ => "reserved",
    }
}
