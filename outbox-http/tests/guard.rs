//! The address guard: hostile URLs and addresses, and names that change their answers.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use outbox_http::outbox_core::{DeathReason, DeliveryErrorKind as Kind, Phase};
use outbox_http::{
    AddressGuard, HttpFailure, HttpFailureKind as Failure, Refused, Resolve, Target, Webhooks,
};
use support::{OK, Receiver, builder, send};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// URLs that must lead nowhere under the default guard, whatever their spelling.
const HOSTILE_URLS: &[&str] = &[
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://0177.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://127.255.255.254/",
    "http://0/",
    "http://0.0.0.0/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://%31%32%37%2e0.0.1/",
    "http:127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "http:////127.0.0.1/",
    "HTTP://127.0.0.1/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b:1::10.0.0.1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2606:4700::5efe:127.0.0.1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/machine/",
    "http://192.0.0.192/opc/v2/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://192.0.2.1/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://192.88.99.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://example.com@127.0.0.1/",
    "http://user:password@example.com/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:6379/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "https://example.com:80800/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "dict://127.0.0.1:11211/stats",
    "data:text/plain,x",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "//127.0.0.1/",
    "127.0.0.1",
    "http://",
    "http:///",
    "http://[::1",
    "http://[::1%25eth0]/",
    "http://exa mple.com/",
    "http://example.com/\r\nx-injected: 1",
    "http://example.com\t.evil/",
    "http://example.com/\0",
    "http://1.1.1.1\n.evil.example/",
    "",
    " ",
];

#[tokio::test]
async fn no_hostile_url_is_delivered_to() {
    assert!(HOSTILE_URLS.len() >= 60);
    let webhooks = Webhooks::builder().unsigned().build().unwrap();
    for url in HOSTILE_URLS {
        let (result, delivery) = send(&webhooks, url).await;
        let error = result.unwrap_err();
        assert_eq!(
            error.kind(),
            Kind::Permanent(DeathReason::Unroutable),
            "{url:?}: {error:?}"
        );
        assert_eq!(delivery.phase(), Phase::Waiting, "{url:?}");
        let failure = HttpFailure::of(&error).unwrap().kind();
        let known = matches!(failure, Failure::Refused | Failure::Destination);
        assert!(known, "{url:?}: {failure:?}");
    }
}

/// A denied network is denied in every spelling, for a host that may be private too.
#[test]
fn a_denied_ipv4_network_is_denied_inside_ipv6() {
    let guard = AddressGuard::public_internet()
        .allow_private_networks()
        .deny_network("203.0.113.0/24".parse().unwrap());
    for spelling in [
        "203.0.113.9",
        "::ffff:203.0.113.9",
        "::203.0.113.9",
        "64:ff9b::203.0.113.9",
        "2002:cb00:7109::1",
    ] {
        let checked = guard.check_address(spelling.parse().unwrap());
        assert_eq!(checked, Err(Refused::Denied), "{spelling}");
    }
    guard
        .check_address("::ffff:203.0.114.9".parse().unwrap())
        .unwrap();
}

#[test]
fn the_public_internet_is_admitted() {
    let guard = AddressGuard::public_internet();
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.215.14",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "169.253.0.1",
        "192.0.1.1",
        "198.17.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2a00:1450:4001::1",
        "2003::1",
    ] {
        guard
            .check_address(address.parse().unwrap())
            .unwrap_or_else(|e| panic!("{address}: {e}"));
    }
    guard.check_host("ci.example").unwrap();
    guard.check_port(443).unwrap();
}

/// Every special network at both of its ends.
#[test]
fn special_networks_end_where_they_end() {
    let guard = AddressGuard::public_internet();
    for network in [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/3",
        "4000::/2",
        "8000::/1",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "2620:4f:8000::/48",
    ] {
        let network: ipnet::IpNet = network.parse().unwrap();
        for address in [network.network(), network.broadcast()] {
            assert!(
                guard.check_address(address).is_err(),
                "{address} of {network}"
            );
        }
    }
}

#[test]
fn lists_go_by_network_host_and_port_and_denials_go_first() {
    let guard = AddressGuard::public_internet()
        .allow_network("10.0.0.0/8".parse().unwrap())
        .deny_network("10.9.0.0/16".parse().unwrap())
        .deny_network("1.1.1.0/24".parse().unwrap())
        .deny_host("*.bad.example")
        .and_then(|guard| guard.deny_host("worse.example"))
        .unwrap()
        .allow_port(8443);
    let address = |text: &str| guard.check_address(text.parse().unwrap()).is_ok();
    assert!(
        address("10.1.1.1") && !address("10.9.1.1") && !address("1.1.1.1") && address("1.1.2.1")
    );
    let host = |text: &str| guard.check_host(text).is_ok();
    assert!(!host("a.bad.example") && !host("A.Bad.Example.") && host("bad.example"));
    assert!(!host("worse.example") && host("notworse.example") && host("worse.example.org"));
    assert!(guard.check_port(8443).is_ok() && guard.check_port(8080).is_err());
    let open = AddressGuard::public_internet()
        .deny_network("127.0.0.2/32".parse().unwrap())
        .allow_private_networks();
    assert!(open.check_address("127.0.0.1".parse().unwrap()).is_ok());
    assert!(open.check_address("127.0.0.2".parse().unwrap()).is_err());
}

/// A denial that never fits anything would be worse than none.
#[test]
fn a_host_is_denied_in_every_spelling_of_its_name() {
    let deny = |pattern: &str| AddressGuard::public_internet().deny_host(pattern).unwrap();
    for (pattern, host) in [
        ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
        ("xn--mnchen-3ya.example.", "münchen.example"),
        ("*.münchen.example", "git.xn--mnchen-3ya.example"),
        ("2606:4700::1111", "[2606:4700::1111]"),
        ("[2606:4700:0::1111]", "2606:4700::1111"),
        ("1.1.1.1", "0x1010101"),
    ] {
        assert_eq!(
            deny(pattern).check_host(host),
            Err(Refused::Host),
            "{pattern}"
        );
    }
    for pattern in [
        "",
        ".",
        "*",
        "*.",
        "*example",
        "a.*.example",
        "*.10.0.0.1",
        "*.[::1]",
        "https://git.example",
        "git.example:443",
        "git.example/",
        "git example",
        "10.0.0.0/8",
    ] {
        for error in [
            AddressGuard::public_internet().deny_host(pattern),
            AddressGuard::public_internet().allow_host(pattern),
        ] {
            let error = error.expect_err(pattern).to_string();
            assert!(error.contains("_host` is \""), "{error}");
        }
    }
}

#[test]
fn a_host_is_checked_in_every_spelling_and_what_is_none_is_refused() {
    let guard = AddressGuard::public_internet();
    for host in [
        "0x7f.1",
        "2130706433",
        "127.1",
        "①②⑦.⓪.⓪.①",
        "::1",
        "[::1]",
        "LOCALHOST",
        "a.localhost.",
        "",
        "a b",
        "a/b",
        "user@ci.example",
    ] {
        assert!(guard.check_host(host).is_err(), "{host}");
    }
    guard.check_host("CI.Example.").unwrap();
}

#[test]
fn a_target_is_checked_when_somebody_enters_it() {
    let guard = AddressGuard::public_internet().https_only().deny_port(80);
    let check = |url: &str| guard.check_target(&Target::new(url).unwrap());
    assert_eq!(check("https://ci.example/hooks"), Ok(()));
    assert_eq!(check("http://ci.example/hooks"), Err(Refused::Scheme));
    assert_eq!(check("https://ci.example:80/"), Err(Refused::Port(80)));
    assert!(matches!(check("https://[::1]/"), Err(Refused::Address(_))));
}

#[test]
fn a_denied_port_stays_denied_where_every_port_is_allowed() {
    let guard = AddressGuard::public_internet().deny_port(25);
    for guard in [
        guard.clone().allow_port(25),
        guard.clone().allow_any_port(),
        guard.allow_private_networks(),
    ] {
        assert_eq!(guard.check_port(25), Err(Refused::Port(25)));
        guard.check_port(443).unwrap();
    }
}

#[tokio::test]
async fn https_can_be_required() {
    let guard = AddressGuard::public_internet()
        .allow_private_networks()
        .https_only();
    let webhooks = builder().guard(guard).build().unwrap();
    let error = send(&webhooks, "http://127.0.0.1:1/").await.0.unwrap_err();
    assert!(
        error.report().contains("requires https"),
        "{}",
        error.report()
    );
}

/// Answers each lookup with the next list.
struct Flipping(Vec<Vec<IpAddr>>, Arc<AtomicUsize>);

impl Resolve for Flipping {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let n = self.1.fetch_add(1, Ordering::Relaxed);
        let answer = self.0[n % self.0.len()].clone();
        Box::pin(async move { Ok(answer) })
    }
}

/// A receiver on 127.0.0.1 and a trap on 127.0.0.2, on one port.
async fn receiver_and_trap() -> (Receiver, Arc<AtomicUsize>) {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    loop {
        let receiver = Receiver::answering(answer).await;
        let trap = SocketAddr::from(([127, 0, 0, 2], receiver.address.port()));
        let Ok(trap) = TcpListener::bind(trap).await else {
            continue;
        };
        let caught = Arc::<AtomicUsize>::default();
        let count = caught.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = trap.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(OK.as_bytes()).await;
            }
        });
        return (receiver, caught);
    }
}

fn only_127_0_0_1() -> AddressGuard {
    AddressGuard::public_internet()
        .allow_network("127.0.0.1/32".parse().unwrap())
        .allow_any_port()
}

const GOOD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
const BAD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

#[tokio::test]
async fn a_name_that_flips_between_answers_gets_nowhere() {
    let (receiver, caught) = receiver_and_trap().await;
    let url = format!("http://flip.example:{}/", receiver.address.port());
    let lookups = Arc::<AtomicUsize>::default();
    let resolver = Flipping(
        vec![vec![GOOD], vec![BAD], vec![BAD, GOOD]],
        lookups.clone(),
    );
    let webhooks = builder()
        .guard(only_127_0_0_1())
        .resolver(resolver)
        .build()
        .unwrap();
    let (mut delivered, mut refused) = (0, 0);
    for _ in 0..12 {
        match send(&webhooks, &url).await.0 {
            Ok(_) => delivered += 1,
            Err(error) => {
                assert_eq!(error.kind(), Kind::Permanent(DeathReason::Unroutable));
                refused += 1;
            }
        }
    }
    assert_eq!((delivered, refused), (8, 4));
    assert_eq!(
        lookups.load(Ordering::Relaxed),
        12,
        "each attempt looks the name up"
    );
    assert_eq!(caught.load(Ordering::Relaxed), 0);
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn the_guard_holds_in_a_reqwest_client_too() {
    let (receiver, caught) = receiver_and_trap().await;
    let resolver = Flipping(vec![vec![GOOD], vec![BAD]], Arc::default());
    let webhooks = builder()
        .guard(only_127_0_0_1())
        .resolver(resolver)
        .reqwest(reqwest::Client::builder())
        .build()
        .unwrap();
    let url = format!("http://flip.example:{}/", receiver.address.port());
    send(&webhooks, &url).await.0.unwrap();
    let error = send(&webhooks, &url).await.0.unwrap_err();
    assert_eq!(
        error.kind(),
        Kind::Permanent(DeathReason::Unroutable),
        "{}",
        error.report()
    );
    let literal = format!("http://127.0.0.2:{}/", receiver.address.port());
    send(&webhooks, &literal).await.0.unwrap_err();
    assert_eq!(caught.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_allowed_host_may_have_a_private_address() {
    let (receiver, _) = receiver_and_trap().await;
    let guard = AddressGuard::public_internet()
        .allow_host("*.internal")
        .unwrap()
        .allow_any_port();
    let resolver = Flipping(vec![vec![GOOD]], Arc::default());
    let webhooks = builder().guard(guard).resolver(resolver).build().unwrap();
    let port = receiver.address.port();
    send(&webhooks, &format!("http://ci.internal:{port}/"))
        .await
        .0
        .unwrap();
    send(&webhooks, &format!("http://ci.external:{port}/"))
        .await
        .0
        .unwrap_err();
    send(&webhooks, &format!("http://127.0.0.1:{port}/"))
        .await
        .0
        .unwrap_err();
}
