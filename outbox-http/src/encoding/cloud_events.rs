//! CloudEvents 1.0, HTTP protocol binding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use outbox_core::clock::rfc3339;
use outbox_core::{Error, Event};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{Encoded, raw};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CloudEvents {
    source: String,
    structured: bool,
}

impl CloudEvents {
    pub(super) fn new(source: &str, structured: bool) -> Result<Self, Error> {
        if source.is_empty() || source.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(Error::invalid_config(
                "source",
                "must be a URI reference: not empty, no spaces or control characters",
            ));
        }
        Ok(Self {
            source: source.to_owned(),
            structured,
        })
    }

    pub(super) fn encode(&self, event: &Event) -> Result<Encoded, String> {
        if self.structured {
            self.structured(event)
        } else {
            self.binary(event)
        }
    }

    /// The context attributes, but for `datacontenttype`.
    fn attributes(&self, event: &Event) -> Vec<(&'static str, String)> {
        let mut attributes = vec![
            ("specversion", "1.0".to_owned()),
            ("id", event.id.to_string()),
            ("source", self.source.clone()),
            ("type", event.event_type.clone()),
            ("time", rfc3339(event.created_at)),
        ];
        let optional = [
            ("subject", event.aggregate_id.as_ref()),
            ("partitionkey", event.key.as_ref()),
            ("traceparent", event.headers.get("traceparent")),
            ("tracestate", event.headers.get("tracestate")),
        ];
        let present = optional
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.clone())));
        attributes.extend(present.filter(|(_, value)| !value.is_empty()));
        attributes
    }

    fn binary(&self, event: &Event) -> Result<Encoded, String> {
        let mut encoded = raw(event)?;
        for (name, value) in self.attributes(event) {
            let name = HeaderName::try_from(format!("ce-{name}")).map_err(|e| e.to_string())?;
            let value = HeaderValue::try_from(header_text(&value)).map_err(|e| e.to_string())?;
            encoded.headers.insert(name, value);
        }
        Ok(encoded)
    }

    fn structured(&self, event: &Event) -> Result<Encoded, String> {
        let mut document: Map<String, Value> = self
            .attributes(event)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        document.insert("datacontenttype".into(), event.content_type.as_str().into());
        let json = is_json(&event.content_type) && is_valid_json(&event.payload);
        if !json {
            document.insert("data_base64".into(), STANDARD.encode(&event.payload).into());
        }
        let mut body = serde_json::to_vec(&document).map_err(|e| e.to_string())?;
        if json {
            // The payload stands in the document as it was enqueued, not parsed and written anew.
            body.pop();
            body.extend_from_slice(b",\"data\":");
            body.extend_from_slice(&event.payload);
            body.push(b'}');
        }
        let mut headers = HeaderMap::with_capacity(8);
        let content_type = HeaderValue::from_static("application/cloudevents+json");
        headers.insert(CONTENT_TYPE, content_type);
        Ok(Encoded {
            body: Bytes::from(body),
            headers,
        })
    }
}

/// `application/json`, or a type with the suffix `+json`, parameters aside.
fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let subtype = media.rsplit('/').next().unwrap_or_default();
    subtype.eq_ignore_ascii_case("json") || subtype.to_ascii_lowercase().ends_with("+json")
}

fn is_valid_json(payload: &[u8]) -> bool {
    // The parser doesn't look into strings that it ignores.
    std::str::from_utf8(payload).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// An attribute as a header value: space, `"`, `%` and all outside U+0021 to U+007E are
/// percent-encoded in UTF-8 (HTTP binding 1.0.2, section 3.1.3.2).
fn header_text(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'"' | b'%' => text.push_str(if byte == b'"' { "%22" } else { "%25" }),
            0x21..=0x7e => text.push(char::from(byte)),
            _ => {
                text.push('%');
                text.push_str(&format!("{byte:02X}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_percent_encoded_as_the_binding_says() {
        // The example of the specification.
        assert_eq!(header_text("Euro € 😀"), "Euro%20%E2%82%AC%20%F0%9F%98%80");
        assert_eq!(header_text("100% \"x\"\r\n"), "100%25%20%22x%22%0D%0A");
    }

    #[test]
    fn json_is_told_by_its_media_type() {
        for yes in [
            "application/json",
            "text/JSON; charset=utf-8",
            "application/vnd.a+json",
        ] {
            assert!(is_json(yes), "{yes}");
        }
        for no in [
            "",
            "text/plain",
            "application/jsonl",
            "application/json-seq",
        ] {
            assert!(!is_json(no), "{no}");
        }
    }
}
