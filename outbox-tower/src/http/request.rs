use ::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use ::http::{Method, Request, Uri};
use bytes::Bytes;
use outbox_core::{Delivery, DeliveryError};

/// A POST of the payload to the destination, with its content type, the event's headers,
/// `webhook-id` and `webhook-event-type`.
///
/// Headers that steer the connection (`host`, `content-length`, `transfer-encoding`, `connection`,
/// `keep-alive`, `proxy-connection`, `expect`, `upgrade`, `te`, `trailer`) are left out.
///
/// # Errors
///
/// Unroutable where the destination is no `http` or `https` URL; rejected where a header can't be
/// sent.
pub fn post(delivery: &Delivery) -> Result<Request<Bytes>, DeliveryError> {
    let event = delivery.event();
    let uri: Uri = event.destination.parse().map_err(|source| {
        DeliveryError::unroutable("the destination is no URL").with_source(Box::new(source))
    })?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(DeliveryError::unroutable(
            "the destination is no http or https URL",
        ));
    }
    let mut request = Request::new(event.payload.clone());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    for (name, text) in &event.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|error| bad_header(name).with_source(error))?;
        if !steers_the_connection(&name) {
            let value = value(name.as_str(), text)?;
            headers.insert(name, value);
        }
    }
    headers.insert(CONTENT_TYPE, value("content-type", &event.content_type)?);
    let id = value("webhook-id", &event.id.to_string())?;
    headers.insert(HeaderName::from_static("webhook-id"), id);
    let event_type = value("webhook-event-type", &event.event_type)?;
    headers.insert(HeaderName::from_static("webhook-event-type"), event_type);
    Ok(request)
}

fn value(name: &str, text: &str) -> Result<HeaderValue, DeliveryError> {
    HeaderValue::from_str(text).map_err(|error| bad_header(name).with_source(error))
}

fn bad_header(name: &str) -> DeliveryError {
    DeliveryError::rejected(format!("the header `{name}` can't be sent"))
}

fn steers_the_connection(name: &HeaderName) -> bool {
    const NAMES: [&str; 10] = [
        "host",
        "expect",
        "keep-alive",
        "proxy-connection",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
    ];
    NAMES.contains(&name.as_str())
}
