//! One request, from its key to its answer.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::request::Parts;
use ::http::{HeaderMap, Request, Response, StatusCode};
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use futures::channel::oneshot;
use http_body::Body;
use http_body_util::BodyExt;
use outbox_core::{BeginKey, Begun, CompleteKey, IdempotencyKey, LeaseStatus};
use tower::BoxError;
use tower_service::Service;

use super::layer::{KeySource, Settings};
use super::{answer, key};
use crate::receive::Payload;
use crate::receive::fingerprint::fingerprint;
use crate::receive::problem::Problem;

/// In a box, so that a body can be read in part and then sent on.
pub(super) type Boxed<RB> = Pin<Box<RB>>;
type Answer<RB> = Response<Payload<Boxed<RB>>>;

pub(super) async fn run<S, B, RB>(
    settings: Arc<Settings>,
    inner: S,
    request: Request<B>,
) -> Result<Answer<RB>, S::Error>
where
    S: Service<Request<B>, Response = Response<RB>, Error: Send, Future: Send> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    RB: Body<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    let (head, body) = request.into_parts();
    let key = if (settings.applies)(&head) {
        match settings.key(&head) {
            Ok(key) => key,
            Err(problem) => return Ok(problem.into_response()),
        }
    } else {
        None
    };
    let Some(key) = key else {
        let response = call(inner, Request::from_parts(head, body)).await?;
        return Ok(response.map(as_it_is));
    };
    let body = match settings.limits.read(body).await {
        Ok(body) => body,
        Err(problem) => return Ok(problem.into_response()),
    };
    let begin = settings.request(key, &head, &body);
    if let Some(answer) = settings.begin(&begin).await {
        return Ok(answer);
    }
    let request = Request::from_parts(head, B::from(body));
    let Some(spawn) = settings.spawn.clone() else {
        return started(settings, inner, request, begin).await;
    };
    let (sender, receiver) = oneshot::channel();
    spawn.spawn(Box::pin(async move {
        let answer = started(settings, inner, request, begin).await;
        let _ = sender.send(answer);
    }));
    receiver.await.unwrap_or_else(|_| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Ok(Problem::new(status, "the handler broke off").into_response())
    })
}

impl Settings {
    fn key(&self, head: &Parts) -> Result<Option<IdempotencyKey>, Problem> {
        let bad = |title| Problem::new(StatusCode::BAD_REQUEST, title);
        let (scope, key) = match self.source {
            KeySource::Header => {
                let key = key::of(&head.headers, self.bare)
                    .map_err(|key::Malformed| bad("the Idempotency-Key is malformed"))?;
                (None, key)
            }
            #[cfg(feature = "verify")]
            KeySource::Verified => match head.extensions.get::<crate::receive::Verified>() {
                Some(verified) => (Some(verified.source.clone()), verified.id.clone()),
                None => (None, None),
            },
        };
        let Some(key) = key else {
            if self.required {
                return Err(bad("this request needs an Idempotency-Key"));
            }
            return Ok(None);
        };
        let scope = match (&self.scope, scope) {
            (Some(scope), _) => scope(head),
            (None, Some(scope)) => scope,
            (None, None) => default_scope(head),
        };
        let key =
            IdempotencyKey::new(scope, key).map_err(|_| bad("the Idempotency-Key is too long"))?;
        Ok(Some(key))
    }

    fn request(&self, key: IdempotencyKey, head: &Parts, body: &Bytes) -> BeginKey {
        let target = head.uri.path_and_query();
        let content_type = head.headers.get(CONTENT_TYPE);
        let fingerprint = fingerprint(&[
            head.method.as_str().as_bytes(),
            target.map_or(b"", |target| target.as_str().as_bytes()),
            content_type.map_or(b"", |value| value.as_bytes()),
            body,
        ]);
        let mut begin = BeginKey::new(key, fingerprint);
        begin.lease = self.lease;
        begin.retention = self.retention;
        begin
    }

    /// `None`: the key is this request's, and its handler is to run.
    async fn begin<RB: Body>(&self, begin: &BeginKey) -> Option<Answer<RB>> {
        let problem = match self.keys.begin_key(begin).await {
            Ok(Begun::Started) => return None,
            Ok(Begun::Done { answer }) => match answer::decode(answer) {
                Some(response) => return Some(response),
                None => {
                    tracing::error!(key = begin.key.key(), "the kept answer can't be read");
                    let title = "the kept answer can't be read";
                    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, title)
                }
            },
            Ok(Begun::Busy { retry_after }) => {
                let title = "a request with this Idempotency-Key is still running";
                Problem::new(StatusCode::CONFLICT, title).after(retry_after.min(self.busy))
            }
            Ok(Begun::Mismatch) => {
                let title = "this Idempotency-Key belongs to another request";
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, title)
            }
            Ok(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "try again later"),
            Err(error) => {
                tracing::warn!(%error, "idempotency keys can't be asked");
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "try again later");
                problem.after(Duration::from_secs(1))
            }
        };
        Some(problem.into_response())
    }

    /// Extends the lease for as long as it is polled.
    async fn keep_alive(&self, begin: &BeginKey) -> Infallible {
        let Some(timer) = &self.timer else {
            return std::future::pending().await;
        };
        loop {
            timer.sleep(begin.lease / 3).await;
            let extended = self.keys.extend_key(&begin.key, begin.token, begin.lease);
            match extended.await {
                Ok(LeaseStatus::Ours) => {}
                Ok(status) => {
                    tracing::warn!(
                        key = begin.key.key(),
                        ?status,
                        "the key is not ours any more"
                    );
                    return std::future::pending().await;
                }
                Err(error) => tracing::warn!(%error, "the lease of a key can't be extended"),
            }
        }
    }

    async fn abandon(&self, begin: &BeginKey) {
        if let Err(error) = self.keys.abandon_key(&begin.key, begin.token).await {
            tracing::warn!(%error, "a key stays busy until its lease ends");
        }
    }

    async fn complete(&self, begin: &BeginKey, answer: Bytes) {
        match self
            .keys
            .complete_key(&CompleteKey::new(begin, answer))
            .await
        {
            Ok(LeaseStatus::Ours) => {}
            Ok(status) => {
                let key = begin.key.key();
                tracing::warn!(
                    key,
                    ?status,
                    "the handler outlived its lease; it may run again"
                );
            }
            Err(error) => {
                tracing::error!(%error, "an answer can't be kept; its handler may run again")
            }
        }
    }
}

/// The key is ours: runs the handler and keeps its answer.
async fn started<S, B, RB>(
    settings: Arc<Settings>,
    inner: S,
    request: Request<B>,
    begin: BeginKey,
) -> Result<Answer<RB>, S::Error>
where
    S: Service<Request<B>, Response = Response<RB>>,
    RB: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let run = async {
        let response = call(inner, request).await?;
        Ok(settings.read(response).await)
    };
    let run = AssertUnwindSafe(run).catch_unwind();
    let result = {
        let mut run = pin!(run.fuse());
        let mut keep_alive = pin!(settings.keep_alive(&begin).fuse());
        futures::select_biased! {
            result = run => result,
            never = keep_alive => match never {},
        }
    };
    match result {
        Ok(Ok((response, kept))) => {
            match kept {
                Some(answer) => settings.complete(&begin, answer).await,
                None => settings.abandon(&begin).await,
            }
            Ok(response)
        }
        Ok(Err(error)) => {
            settings.abandon(&begin).await;
            Err(error)
        }
        Err(panic) => {
            settings.abandon(&begin).await;
            resume_unwind(panic)
        }
    }
}

impl Settings {
    /// Reads an answer as far as it can be kept: the answer to send, and what to keep of it.
    async fn read<RB>(&self, response: Response<RB>) -> (Answer<RB>, Option<Bytes>)
    where
        RB: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        if !(self.keeps)(response.status()) {
            return (response.map(as_it_is), None);
        }
        let (head, body) = response.into_parts();
        let (body, whole) = read_up_to(body, self.answer_limit).await;
        let limit = self.answer_limit;
        let kept = answer::encode(head.status, &head.headers, whole.as_ref(), limit)
            .or_else(|| answer::encode(head.status, &HeaderMap::new(), whole.as_ref(), limit));
        (Response::from_parts(head, body), kept)
    }
}

/// The body to send, and all of its bytes where they are no more than `limit`.
async fn read_up_to<RB>(body: RB, limit: usize) -> (Payload<Boxed<RB>>, Option<Bytes>)
where
    RB: Body<Data = Bytes>,
{
    let mut body = Box::pin(body);
    let mut read = BytesMut::new();
    loop {
        match body.frame().await {
            None => {
                let whole = read.freeze();
                return (whole.clone().into(), Some(whole));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    read.extend_from_slice(&data);
                    if read.len() > limit {
                        return (Payload::with_rest(read.freeze(), body), None);
                    }
                }
                Err(trailers) => {
                    let whole = read.freeze();
                    let sent = Payload::with_tail(whole.clone(), Some(Ok(trailers)));
                    return (sent, Some(whole));
                }
            },
            Some(Err(error)) => {
                return (Payload::with_tail(read.freeze(), Some(Err(error))), None);
            }
        }
    }
}

fn as_it_is<RB: Body>(body: RB) -> Payload<Boxed<RB>> {
    Payload::new(Box::pin(body))
}

async fn call<S, B>(mut inner: S, request: Request<B>) -> Result<S::Response, S::Error>
where
    S: Service<Request<B>>,
{
    poll_fn(|cx| inner.poll_ready(cx)).await?;
    inner.call(request).await
}

/// Method and path; a digest of them where they are long.
fn default_scope(head: &Parts) -> String {
    let scope = format!("{} {}", head.method, head.uri.path());
    if scope.len() <= outbox_core::MAX_KEY {
        scope
    } else {
        format!("{:?}", fingerprint(&[scope.as_bytes()]))
    }
}
