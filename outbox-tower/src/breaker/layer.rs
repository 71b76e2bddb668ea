use std::fmt;
use std::task::{Context, Poll};

use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::{Breaker, ByError, CircuitState, Circuits, Judge, Judged};
use crate::admission::{Admission, Admitted};
use crate::{Attempt, ByDestination, KeyOf};

/// Puts a circuit breaker per key in front of a service.
///
/// All services that one layer, or its clones, made share the circuits.
#[derive(Clone)]
pub struct CircuitBreakerLayer<K, J = ByError> {
    key_of: K,
    judge: J,
    circuits: Circuits,
}

impl CircuitBreakerLayer<ByDestination> {
    /// A circuit for each destination.
    #[must_use]
    pub fn per_destination(config: Breaker) -> Self {
        Self::new(config, ByDestination)
    }
}

impl<K> CircuitBreakerLayer<K> {
    /// A circuit for each key; errors are judged by [`ByError`].
    #[must_use]
    pub fn new(config: Breaker, key_of: K) -> Self {
        Self {
            key_of,
            judge: ByError,
            circuits: Circuits::new(config, None),
        }
    }

    /// The same, and calls `on_change` at each change of a circuit, with the key and the new state.
    /// It runs in the call that made the change: be quick.
    #[must_use]
    pub fn observed(
        config: Breaker,
        key_of: K,
        on_change: impl Fn(&str, CircuitState) + Send + Sync + 'static,
    ) -> Self {
        Self {
            key_of,
            judge: ByError,
            circuits: Circuits::new(config, Some(Box::new(on_change))),
        }
    }
}

impl<K, J> CircuitBreakerLayer<K, J> {
    /// Judges outcomes otherwise: by HTTP status, say. The circuits are the same.
    #[must_use]
    pub fn judge<J2>(self, judge: J2) -> CircuitBreakerLayer<K, J2> {
        CircuitBreakerLayer {
            key_of: self.key_of,
            judge,
            circuits: self.circuits,
        }
    }

    /// The circuits, to look at and to reset.
    #[must_use]
    pub fn circuits(&self) -> Circuits {
        self.circuits.clone()
    }
}

impl<S, K: Clone, J: Clone> Layer<S> for CircuitBreakerLayer<K, J> {
    type Service = CircuitBreaker<S, K, J>;

    fn layer(&self, inner: S) -> Self::Service {
        CircuitBreaker {
            inner,
            layer: self.clone(),
        }
    }
}

impl<K: fmt::Debug, J> fmt::Debug for CircuitBreakerLayer<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerLayer")
            .field("key_of", &self.key_of)
            .field("circuits", &self.circuits)
            .finish_non_exhaustive()
    }
}

/// The service that [`CircuitBreakerLayer`] makes. Always ready; the inner service is readied once
/// the circuit lets the call through.
#[derive(Debug, Clone)]
pub struct CircuitBreaker<S, K, J = ByError> {
    inner: S,
    layer: CircuitBreakerLayer<K, J>,
}

impl<S, K, J, R> Service<R> for CircuitBreaker<S, K, J>
where
    S: Service<R, Error: Into<BoxError>> + Clone,
    K: KeyOf<R>,
    J: Judge<S::Response>,
    R: Attempt,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Admitted<S, R, Judged<J>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let admitted = {
            let key = self.layer.key_of.key(&request);
            self.layer.circuits.admit(&key)
        };
        let admission = match admitted {
            Ok(mut permit) => {
                if let Some(delivery) = request.delivery() {
                    permit.within(delivery.timeout());
                }
                Admission::Granted(Judged::new(permit, self.layer.judge.clone()))
            }
            Err(open) => Admission::Refused(open.into()),
        };
        Admitted::new(admission, self.inner.clone(), request)
    }
}
