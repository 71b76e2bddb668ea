//! `X-Signature` with `X-Webhook-Id`.

use super::Settings;
use super::body_mac::{BodyMac, Encoding, body_mac_scheme};
use crate::secret::SharedSecret;

/// `X-Signature`: the lower-case hex HMAC-SHA256 of the body; `X-Webhook-Id`: the event's id.
///
/// It signs neither the id nor a time, so a delivery that somebody overheard can be sent again.
/// Prefer [`StandardWebhooks`](super::StandardWebhooks) where the receiver can do it.
/// With several keys the first that counts signs.
#[derive(Debug, Clone)]
pub struct XSignature(Settings<SharedSecret>);

const FORMAT: BodyMac = BodyMac {
    scheme: "X-Signature",
    signature: "x-signature",
    id: "x-webhook-id",
    prefix: "",
    encoding: Encoding::Hex,
};

body_mac_scheme!(XSignature, FORMAT);
