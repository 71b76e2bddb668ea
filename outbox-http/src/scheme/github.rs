//! GitHub's `X-Hub-Signature-256`.

use super::Settings;
use super::body_mac::{BodyMac, Encoding, body_mac_scheme};
use crate::secret::SharedSecret;

/// `X-Hub-Signature-256: sha256=` and the hex HMAC-SHA256 of the body; `X-GitHub-Delivery`: the id
/// (GitHub documentation, "Validating webhook deliveries").
///
/// Neither the id nor a time is signed. With several keys the first that counts signs.
#[derive(Debug, Clone)]
pub struct GitHub(Settings<SharedSecret>);

const FORMAT: BodyMac = BodyMac {
    scheme: "GitHub",
    signature: "x-hub-signature-256",
    id: "x-github-delivery",
    prefix: "sha256=",
    encoding: Encoding::Hex,
};

body_mac_scheme!(GitHub, FORMAT);
