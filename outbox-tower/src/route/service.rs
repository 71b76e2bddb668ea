use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tower::BoxError;
use tower_service::Service;

use super::ResponseFuture;
use crate::{Attempt, ByEventType, KeyOf};

/// Chooses a service by a key of the request.
///
/// A request for which there is none is unroutable: its event dies with that reason. Services of
/// different types are boxed first (`tower::util::BoxCloneService`).
///
/// ```
/// use outbox_tower::route::Route;
/// # use outbox_core::{Delivery, DeliveryError, Receipt};
/// # let (pushes, rest) = (
/// #     tower::service_fn(|_: Delivery| async { Ok::<_, DeliveryError>(Receipt::new()) }),
/// #     tower::service_fn(|_: Delivery| async { Ok::<_, DeliveryError>(Receipt::new()) }),
/// # );
/// use tower::util::BoxCloneService;
///
/// let route = Route::by_event_type()
///     .on("RepositoryPushed", BoxCloneService::new(pushes))
///     .otherwise(BoxCloneService::new(rest));
/// ```
#[derive(Clone)]
pub struct Route<S, K = ByEventType> {
    key_of: K,
    routes: Arc<Routes<S>>,
}

struct Routes<S> {
    by_key: HashMap<String, Shared<S>>,
    otherwise: Option<Shared<S>>,
}

type Shared<S> = Arc<Mutex<S>>;

impl<S> Route<S> {
    /// Chooses by the event's type.
    #[must_use]
    pub fn by_event_type() -> Self {
        Self::by(ByEventType)
    }
}

impl<S, K> Route<S, K> {
    /// Chooses by this key.
    #[must_use]
    pub fn by(key_of: K) -> Self {
        let routes = Arc::new(Routes {
            by_key: HashMap::new(),
            otherwise: None,
        });
        Self { key_of, routes }
    }

    /// Requests with this key go to `service`.
    #[must_use]
    pub fn on(mut self, key: impl Into<String>, service: S) -> Self {
        let mut routes = self.routes.unshared();
        routes
            .by_key
            .insert(key.into(), Arc::new(Mutex::new(service)));
        self.routes = Arc::new(routes);
        self
    }

    /// All others go to `service`.
    #[must_use]
    pub fn otherwise(mut self, service: S) -> Self {
        let mut routes = self.routes.unshared();
        routes.otherwise = Some(Arc::new(Mutex::new(service)));
        self.routes = Arc::new(routes);
        self
    }
}

impl<S> Routes<S> {
    fn unshared(&self) -> Self {
        Self {
            by_key: self.by_key.clone(),
            otherwise: self.otherwise.clone(),
        }
    }
}

impl<S, K, R> Service<R> for Route<S, K>
where
    S: Service<R, Error: Into<BoxError>> + Clone,
    K: KeyOf<R>,
    R: Attempt,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let chosen = {
            let key = self.key_of.key(&request);
            let chosen = self.routes.by_key.get(&*key);
            chosen.or(self.routes.otherwise.as_ref()).map(|service| {
                service
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone()
            })
        };
        match chosen {
            Some(service) => ResponseFuture::to(service, request),
            None => ResponseFuture::nowhere(),
        }
    }
}

impl<S, K: fmt::Debug> fmt::Debug for Route<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("key_of", &self.key_of)
            .field("routes", &self.routes.by_key.keys())
            .finish_non_exhaustive()
    }
}
