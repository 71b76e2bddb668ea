//! What an event may hold; checked at enqueue, inside the caller's transaction.

use crate::{Error, NewEvent};

/// The longest `event_type`, `aggregate_type` and `content_type`, in bytes.
pub const MAX_NAME: usize = 255;
/// The longest `aggregate_id`, ordering `key` and `dedup_key`, in bytes.
///
/// Short enough for a composite index on every supported database (MySQL's limit is 3,072 bytes).
pub const MAX_KEY: usize = 255;
/// The longest `destination`, in bytes.
pub const MAX_DESTINATION: usize = 2_048;

/// Limits of an event. The defaults suit webhooks; each can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventLimits {
    /// The largest payload in bytes. Default: 1 MiB.
    pub payload: usize,
    /// The most headers. Default: 64.
    pub headers: usize,
    /// The largest sum of header names and values in bytes. Default: 16 KiB.
    pub header_bytes: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self {
            payload: 1 << 20,
            headers: 64,
            header_bytes: 16 << 10,
        }
    }
}

impl EventLimits {
    /// Checks each of these events.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_all(&self, events: &[NewEvent]) -> Result<(), Error> {
        events.iter().try_for_each(|event| self.check(event))
    }

    /// Checks one event.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent), naming the field, its size and the limit.
    pub fn check(&self, event: &NewEvent) -> Result<(), Error> {
        required("event_type", &event.event_type, MAX_NAME)?;
        required("destination", &event.destination, MAX_DESTINATION)?;
        required("content_type", &event.content_type, MAX_NAME)?;
        optional("aggregate_type", event.aggregate_type.as_deref(), MAX_NAME)?;
        optional("aggregate_id", event.aggregate_id.as_deref(), MAX_KEY)?;
        optional("key", event.key.as_deref(), MAX_KEY)?;
        optional("dedup_key", event.dedup_key.as_deref(), MAX_KEY)?;
        at_most("payload", event.payload.len(), self.payload, "bytes")?;
        at_most("headers", event.headers.len(), self.headers, "headers")?;
        let header_bytes = event.headers.iter().map(|(k, v)| k.len() + v.len()).sum();
        at_most("headers", header_bytes, self.header_bytes, "bytes")?;
        for (name, value) in &event.headers {
            header(name, value)?;
        }
        if event.max_attempts == Some(0) {
            return Err(Error::invalid_event(
                "max_attempts",
                "is 0; it must be at least 1",
            ));
        }
        Ok(())
    }
}

fn required(field: &str, value: &str, limit: usize) -> Result<(), Error> {
    if value.is_empty() {
        return Err(Error::invalid_event(field, "is empty; it is required"));
    }
    text(field, value, limit)
}

fn optional(field: &str, value: Option<&str>, limit: usize) -> Result<(), Error> {
    value.map_or(Ok(()), |value| required(field, value, limit))
}

fn text(field: &str, value: &str, limit: usize) -> Result<(), Error> {
    at_most(field, value.len(), limit, "bytes")?;
    if value.contains('\0') {
        return Err(Error::invalid_event(
            field,
            "holds a NUL character, which databases refuse",
        ));
    }
    Ok(())
}

fn at_most(field: &str, size: usize, limit: usize, unit: &str) -> Result<(), Error> {
    if size <= limit {
        return Ok(());
    }
    Err(Error::invalid_event(
        field,
        format_args!("has {size} {unit}; at most {limit} are allowed"),
    ))
}

/// Names as HTTP has them (RFC 9110, section 5.6.2), values without control characters: an event
/// that passes can't inject a header whatever transport carries it.
fn header(name: &str, value: &str) -> Result<(), Error> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        let problem = format!("has the name {name:?}; use letters, digits and !#$%&'*+-.^_`|~");
        return Err(Error::invalid_event("headers", problem));
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        let problem = format!("has a control character in the value of {name:?}");
        return Err(Error::invalid_event("headers", problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(event: &NewEvent) -> String {
        EventLimits::default().check(event).unwrap_err().to_string()
    }

    fn valid() -> NewEvent {
        NewEvent::bytes("T", "x").to("somewhere")
    }

    #[test]
    fn accepts_a_minimal_event() {
        EventLimits::default().check(&valid()).unwrap();
    }

    #[test]
    fn names_the_field_the_size_and_the_limit() {
        let event = NewEvent::bytes("T", vec![0; (1 << 20) + 1]).to("somewhere");
        assert_eq!(
            refused(&event),
            "event field `payload` has 1048577 bytes; at most 1048576 are allowed"
        );
        let long = "k".repeat(256);
        assert_eq!(
            refused(&valid().key(&long)),
            "event field `key` has 256 bytes; at most 255 are allowed"
        );
    }

    #[test]
    fn names_each_field_that_is_too_long() {
        let long = |bytes| "x".repeat(bytes);
        for (event, field) in [
            (NewEvent::bytes(long(256), "x").to("d"), "event_type"),
            (valid().to(long(2_049)), "destination"),
            (valid().content_type(long(256)), "content_type"),
            (valid().aggregate(long(256), "1"), "aggregate_type"),
            (valid().aggregate("T", long(256)), "aggregate_id"),
            (valid().key(long(256)), "key"),
            (valid().dedup_key(long(256)), "dedup_key"),
            (valid().header("a", long(16 << 10)), "headers"),
        ] {
            let refused = refused(&event);
            let named = format!("event field `{field}` has ");
            assert!(refused.starts_with(&named), "{field}: {refused}");
        }
    }

    #[test]
    fn refuses_a_missing_destination() {
        assert_eq!(
            refused(&NewEvent::bytes("T", "x")),
            "event field `destination` is empty; it is required"
        );
    }

    #[test]
    fn refuses_header_injection_and_nul() {
        assert!(refused(&valid().header("a b", "1")).contains("has the name \"a b\""));
        assert!(refused(&valid().header("a", "1\r\nb: 2")).contains("control character"));
        assert!(refused(&valid().key("a\0b")).contains("NUL"));
    }

    #[test]
    fn refuses_zero_attempts_and_too_many_headers() {
        assert!(refused(&valid().max_attempts(0)).contains("at least 1"));
        let many = (0..65).fold(valid(), |e, n| e.header(format!("h{n}"), ""));
        assert!(refused(&many).contains("has 65 headers; at most 64"));
    }
}
