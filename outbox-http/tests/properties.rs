//! The fuzz targets' properties, as quick tests.

#[path = "../fuzz/properties.rs"]
#[expect(unreachable_pub, reason = "shared with the fuzz targets")]
mod properties;

use proptest::prelude::*;

/// Bytes that look like what the parsers look for, and any bytes.
fn like(pattern: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        pattern.prop_map(String::into_bytes),
        "\\PC{0,80}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..120),
    ]
}

proptest! {
    #[test]
    fn nothing_verifies_that_was_not_signed(
        data in like("([0-9:;](v1a?,|sha256=|v0=|t=[0-9]{1,12},v1=)?[A-Za-z0-9+/=, ]{0,70}\n){0,6}")
    ) {
        properties::signature_headers(&data);
    }

    #[test]
    fn no_text_shows_a_secret(data in like("(v1,)?(whsec_|whsk_|whpk_)?[A-Za-z0-9+/_-]{0,90}={0,2}")) {
        properties::secret(&data);
    }

    #[test]
    fn a_wait_is_bounded(
        data in like("([0-9]{0,30}|(Sun|Sunday), [0-9]{2}[ -]Nov[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT)(\n.{0,40})?")
    ) {
        properties::retry_after(&data);
    }

    #[test]
    fn a_timestamp_is_digits(data in like("[-+ ]?[0-9]{0,14}[.eE ]?[0-9]{0,2}")) {
        properties::timestamp(&data);
    }

    #[test]
    fn the_guard_admits_no_special_literal(
        data in like("https?:/{0,4}(([0-9a-fx]{1,10}\\.){0,4}[0-9]{1,10}|\\[[0-9a-f:.]{2,40}\\])(:[0-9]{0,6})?/[a-z?#@]{0,6}")
    ) {
        properties::url(&data);
    }

    #[test]
    fn a_denied_host_is_denied_as_its_url_has_it(
        data in like("https?://[a-zA-Z0-9äÖß。%*_.-]{1,20}(:[0-9]{1,3})?/")
    ) {
        properties::url(&data);
    }

    #[test]
    fn no_form_of_a_special_address_is_admitted(v4: [u8; 4], v6: [u8; 16]) {
        properties::address(v4.into());
        properties::address(v6.into());
    }
}

/// What the fuzzer took for a secret was a word of ours.
#[test]
fn a_secret_that_reads_like_our_own_text_is_no_leak() {
    properties::secret(b"aredSecret([redacted])");
}
