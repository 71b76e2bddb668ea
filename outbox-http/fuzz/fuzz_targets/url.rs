#![no_main]

#[path = "../properties.rs"]
#[allow(dead_code, reason = "each target uses one")]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::url(data));
