//! From an event to a request.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
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
        let body = event.payload.clone();
        if body.len() > self.max_request {
            let problem = format!(
                "the request has {} bytes; at most {} are sent",
                body.len(),
                self.max_request
            );
            return Err(unsendable(problem));
        }
        let mut headers = HeaderMap::with_capacity(8 + event.headers.len());
        headers.insert(USER_AGENT, self.user_agent.clone());
        for (name, value) in &event.headers {
            let (name, value) = header::parse(name, value)
                .map_err(|problem| unsendable(format!("the event's header {problem}")))?;
            headers.insert(name, value);
        }
        let content_type = HeaderValue::from_str(&event.content_type)
            .map_err(|_| unsendable("the event's content type is no header value".to_owned()))?;
        headers.insert(CONTENT_TYPE, content_type);
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

    /// Adds the headers of every signer. Standard Webhooks signatures of several signers stand in
    /// one header.
    async fn sign(
        &self,
        event: &Event,
        endpoint: &Endpoint,
        body: Bytes,
        headers: &mut HeaderMap,
    ) -> Result<(), DeliveryError> {
        let signers = endpoint.signers.as_ref().unwrap_or(&self.signers);
        let input = SigningInput::new(event.id, self.clock.now(), body);
        let mut signature: Option<String> = None;
        for signer in signers {
            for header in signer.sign(&input).await.map_err(not_signed)? {
                if header.name == "webhook-signature" {
                    match &mut signature {
                        Some(list) => list.extend([" ", header.value.as_str()]),
                        None => signature = Some(header.value),
                    }
                    continue;
                }
                insert(headers, &header.name, header.value)?;
            }
        }
        signature.map_or(Ok(()), |list| insert(headers, "webhook-signature", list))
    }
}

fn insert(headers: &mut HeaderMap, name: &str, value: String) -> Result<(), DeliveryError> {
    let invalid = || {
        let problem = Error::new(ErrorKind::Other, "the signer made an invalid header");
        not_signed(problem)
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
    let value = HeaderValue::try_from(value).map_err(|_| invalid())?;
    headers.insert(name, value);
    Ok(())
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
