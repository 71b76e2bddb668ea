//! Shopify's `X-Shopify-Hmac-SHA256`.

use super::Settings;
use super::body_mac::{BodyMac, Encoding, body_mac_scheme};
use crate::secret::SharedSecret;

/// `X-Shopify-Hmac-SHA256`: the base64 HMAC-SHA256 of the body; `X-Shopify-Webhook-Id`: the id
/// (Shopify documentation, "Verify webhook deliveries").
///
/// Neither the id nor a time is signed. With several keys the first that counts signs.
#[derive(Debug, Clone)]
pub struct Shopify(Settings<SharedSecret>);

const FORMAT: BodyMac = BodyMac {
    scheme: "Shopify",
    signature: "x-shopify-hmac-sha256",
    id: "x-shopify-webhook-id",
    prefix: "",
    encoding: Encoding::Base64,
};

body_mac_scheme!(Shopify, FORMAT);
