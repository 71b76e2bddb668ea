//! From an event to a request.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{Entry, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use outbox_core::{DeliveryError, Error, ErrorKind, Event, Phase, SigningInput};

use super::Inner;
use crate::client::{HttpFailure, HttpFailureKind, PhaseBody, Progress};
use crate::destination::Endpoint;
use crate::header;

impl Inner {
    /// The signed request for one attempt.
    pub(super) async fn request(
        &self,
        event: &Event,
        endpoint: &Endpoint,
        progress: Arc<Progress>,
    ) -> Result<Request<PhaseBody>, DeliveryError> {
        let encoding = endpoint.encoding.as_ref().unwrap_or(&self.encoding);
        let encoded = encoding.encode(event).map_err(unsendable)?;
        let (body, mut headers) = (encoded.body, encoded.headers);
        let most = endpoint.max_request.unwrap_or(self.max_request);
        if body.len() > most {
            let problem = format!(
                "the request has {} bytes; at most {most} are sent",
                body.len()
            );
            return Err(unsendable(problem));
        }
        headers.insert(USER_AGENT, self.user_agent.clone());
        for (name, value) in &event.headers {
            let (name, value) = header::parse(name, value)
                .map_err(|problem| unsendable(format!("the event's header {problem}")))?;
            // The encoding's own headers say what the body is.
            headers.entry(name).or_insert(value);
        }
        for (name, value) in &endpoint.headers {
            headers.insert(name, value.clone());
        }
        self.sign(event, endpoint, body.clone(), &mut headers)
            .await?;
        let mut request = Request::new(PhaseBody::new(body, progress));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.target.uri().clone();
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Adds the headers of every signer, in the place of the event's own of these names. Standard
    /// Webhooks signatures of several signers stand in one header.
    async fn sign(
        &self,
        event: &Event,
        endpoint: &Endpoint,
        body: Bytes,
        headers: &mut HeaderMap,
    ) -> Result<(), DeliveryError> {
        let signers = endpoint.signers.as_ref().unwrap_or(&self.signers);
        let input = SigningInput::new(event.id, self.clock.now(), body);
        let mut signatures = String::new();
        let mut signed = HeaderMap::with_capacity(4);
        for signer in signers {
            for header in signer.sign(&input).await.map_err(not_signed)? {
                if header.name.eq_ignore_ascii_case(SIGNATURES) {
                    let separator = if signatures.is_empty() { "" } else { " " };
                    signatures.extend([separator, &header.value]);
                } else {
                    insert(&mut signed, &header.name, header.value)?;
                }
            }
        }
        if !signatures.is_empty() {
            insert(&mut signed, SIGNATURES, signatures)?;
        }
        for (name, value) in signed.drain() {
            if let Some(name) = name {
                headers.insert(name, value);
            }
        }
        Ok(())
    }
}

/// The one header that has room for the signatures of several signers.
const SIGNATURES: &str = "webhook-signature";

/// Adds a signer's header. Two signers may say the same (the id, the time), but not write one header
/// differently: one of the signatures would be missing.
fn insert(headers: &mut HeaderMap, name: &str, value: String) -> Result<(), DeliveryError> {
    let (Some(name), Ok(value)) = (signature_name(name), HeaderValue::try_from(value)) else {
        let problem = "the signer made a header that HTTP doesn't allow";
        return Err(not_signed(Error::new(ErrorKind::Other, problem)));
    };
    match headers.entry(name) {
        Entry::Occupied(there) if *there.get() != value => {
            let problem = format!(
                "two signers write the header `{}`, which holds one signature; sign with one of \
                 them, or hand the keys of both to one",
                there.key()
            );
            return Err(not_signed(Error::new(ErrorKind::InvalidConfig, problem)));
        }
        entry => drop(entry.or_insert(value)),
    }
    Ok(())
}

/// The name of a signature's header; those of the common schemes cost no allocation.
fn signature_name(name: &str) -> Option<HeaderName> {
    static COMMON: [HeaderName; 5] = [
        HeaderName::from_static("webhook-id"),
        HeaderName::from_static("webhook-timestamp"),
        HeaderName::from_static("webhook-signature"),
        HeaderName::from_static("x-webhook-id"),
        HeaderName::from_static("x-signature"),
    ];
    let common = COMMON.iter().find(|common| common.as_str() == name);
    common
        .cloned()
        .or_else(|| HeaderName::from_bytes(name.as_bytes()).ok())
}

/// The event can't be sent by anybody: a dead letter.
fn unsendable(problem: String) -> DeliveryError {
    DeliveryError::unroutable("the event can't be made into a request")
        .with_phase(Phase::Waiting)
        .with_source(HttpFailure::new(HttpFailureKind::Request).with_detail(problem))
}

/// Nothing was sent; the attempt is made again.
fn not_signed(source: Error) -> DeliveryError {
    DeliveryError::transient("the request could not be signed")
        .with_phase(Phase::Waiting)
        .with_source(HttpFailure::new(HttpFailureKind::Signing).with_source(source))
}
