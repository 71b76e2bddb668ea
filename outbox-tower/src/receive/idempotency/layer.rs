use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::request::Parts;
use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::Body;
use outbox_core::{IdempotencyKeys, Spawn, Timer};
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::run::run;
use crate::receive::Payload;
use crate::receive::body::Limits;

/// Runs the handler of each request once, however often the request arrives: see the
/// [module](super).
///
/// ```
/// # fn app(store: outbox_core::MemoryStore, app: axum::Router) -> axum::Router {
/// use outbox_tower::receive::IdempotencyLayer;
///
/// app.layer(IdempotencyLayer::new(store))
/// # }
/// ```
pub struct IdempotencyLayer {
    pub(super) settings: Arc<Settings>,
}

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) keys: Arc<dyn IdempotencyKeys>,
    pub(super) source: KeySource,
    pub(super) required: bool,
    pub(super) bare: bool,
    pub(super) scope: Option<Scope>,
    pub(super) applies: Applies,
    pub(super) limits: Limits,
    pub(super) answer_limit: usize,
    pub(super) keeps: Keeps,
    pub(super) lease: Duration,
    pub(super) retention: Duration,
    pub(super) busy: Duration,
    pub(super) timer: Option<Arc<dyn Timer>>,
    pub(super) spawn: Option<Arc<dyn Spawn>>,
}

pub(super) type Scope = Arc<dyn Fn(&Parts) -> String + Send + Sync>;
pub(super) type Applies = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;
pub(super) type Keeps = Arc<dyn Fn(StatusCode) -> bool + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    Header,
    #[cfg(feature = "verify")]
    Verified,
}

impl IdempotencyLayer {
    /// By the header `Idempotency-Key`, which POST and PATCH requests must have.
    #[must_use]
    pub fn new(keys: impl IdempotencyKeys + 'static) -> Self {
        Self::with(keys, KeySource::Header)
    }

    /// By the id of a webhook that a [`VerifyLayer`](crate::receive::VerifyLayer) in front has
    /// verified, within its source.
    #[cfg(feature = "verify")]
    #[must_use]
    pub fn for_webhooks(keys: impl IdempotencyKeys + 'static) -> Self {
        Self::with(keys, KeySource::Verified)
    }

    fn with(keys: impl IdempotencyKeys + 'static, source: KeySource) -> Self {
        let settings = Settings {
            keys: Arc::new(keys),
            source,
            required: true,
            bare: true,
            scope: None,
            applies: Arc::new(|head| matches!(head.method, Method::POST | Method::PATCH)),
            limits: Limits::default(),
            answer_limit: 256 << 10,
            keeps: Arc::new(says_no_more),
            lease: Duration::from_secs(60),
            retention: Duration::from_secs(7 * 24 * 60 * 60),
            busy: Duration::from_secs(5),
            timer: None,
            spawn: None,
        };
        Self {
            settings: Arc::new(settings),
        }
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Lets requests without a key pass. Default: they get 400.
    #[must_use]
    pub fn optional(self) -> Self {
        self.set(|settings| settings.required = false)
    }

    /// Takes keys in quotes alone, as the draft has them. Default: bare values too, as many clients
    /// send them.
    #[must_use]
    pub fn quoted_only(self) -> Self {
        self.set(|settings| settings.bare = false)
    }

    /// Whose key it is, at most 255 bytes. Default: method and path; the source of a verified
    /// webhook.
    ///
    /// **Where requests are authenticated, put the tenant in here**: else one tenant that knows
    /// another's key and body is given the other's answer.
    #[must_use]
    pub fn scope(self, scope: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.scope = Some(Arc::new(scope)))
    }

    /// Which requests it applies to; others pass untouched. Default: POST and PATCH.
    #[must_use]
    pub fn applies(self, applies: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.applies = Arc::new(applies))
    }

    /// The largest body of a request, in bytes; a larger one gets 413. Default: 1 MiB.
    #[must_use]
    pub fn body_limit(self, bytes: usize) -> Self {
        self.set(|settings| settings.limits.bytes = bytes)
    }

    /// The longest time to read a request's body in; a slower sender gets 408. Default: as long as
    /// the server waits.
    #[must_use]
    pub fn body_timeout(self, period: Duration, timer: impl Timer + 'static) -> Self {
        self.set(|settings| settings.limits.time = Some((period, Arc::new(timer))))
    }

    /// The largest answer that is kept whole, in bytes. A larger one reaches the first client as it
    /// is; repeats get its status and headers, an empty body, and `idempotent-body-omitted: true`.
    /// Default: 256 KiB.
    #[must_use]
    pub fn answer_limit(self, bytes: usize) -> Self {
        self.set(|settings| settings.answer_limit = bytes)
    }

    /// Which answers are kept. Default: all but 408, 425, 429 and 5xx, after which the key is free
    /// again.
    #[must_use]
    pub fn keeps(self, keeps: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.keeps = Arc::new(keeps))
    }

    /// After how long a crashed handler's key is free; longer than a handler takes, or see
    /// [`extending`](Self::extending). Default: one minute.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.set(|settings| settings.lease = lease)
    }

    /// How long an answer is kept; longer than senders try again. Default: 7 days.
    #[must_use]
    pub fn retention(self, retention: Duration) -> Self {
        self.set(|settings| settings.retention = retention)
    }

    /// The longest `Retry-After` of a 409; where the lease ends sooner, that. Default: 5 s.
    #[must_use]
    pub fn busy_retry(self, longest: Duration) -> Self {
        self.set(|settings| settings.busy = longest)
    }

    /// Extends the lease while the handler runs, each third of it.
    #[must_use]
    pub fn extending(self, timer: impl Timer + 'static) -> Self {
        self.set(|settings| settings.timer = Some(Arc::new(timer)))
    }

    /// Runs handlers as tasks of their own, so that a client that hangs up ends none of them.
    /// Default: the handler is dropped with its connection, and the key is free when the lease ends.
    #[must_use]
    pub fn detached(self, spawn: impl Spawn + 'static) -> Self {
        self.set(|settings| settings.spawn = Some(Arc::new(spawn)))
    }
}

/// An answer after which trying again does not help.
fn says_no_more(status: StatusCode) -> bool {
    !status.is_server_error() && !matches!(status.as_u16(), 408 | 425 | 429)
}

impl Clone for IdempotencyLayer {
    fn clone(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
        }
    }
}

impl fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("source", &self.settings.source)
            .field("required", &self.settings.required)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency {
            inner,
            settings: Arc::clone(&self.settings),
        }
    }
}

/// The service that [`IdempotencyLayer`] makes. Always ready; the inner service is readied once the
/// request's key is the request's.
#[derive(Clone)]
pub struct Idempotency<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> fmt::Debug for Idempotency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").finish_non_exhaustive()
    }
}

impl<S, B, RB> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<B>, Response = Response<RB>, Error: Send, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    RB: Body<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    type Response = Response<Payload<Pin<Box<RB>>>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(run(Arc::clone(&self.settings), self.inner.clone(), request))
    }
}
