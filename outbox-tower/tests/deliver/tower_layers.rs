//! tower's own layers, each with the outcome that the table in the documentation promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use outbox_core::{
    DeathReason, Delivery, DeliveryError, DeliveryErrorKind, Phase, Receipt, Transport,
};
use outbox_tower::{ServiceTransport, TransportService, classify};
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer};
use tower::load::Constant;
use tower::{BoxError, ServiceBuilder};

use crate::support::{Broken, Gate, Moody, SECOND, delivery, delivery_to, kind, poll_once, until};

mod timeout {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn that_passes_is_transient_and_the_phase_says_whether_bytes_went_out() {
        let stack = ServiceBuilder::new()
            .timeout(5 * SECOND)
            .service(TransportService::new(Moody::default()));
        let delivery = delivery_to("hangs");
        let result = ServiceTransport::new(stack).deliver(delivery.clone()).await;
        assert_eq!(kind(&result), Some(DeliveryErrorKind::Transient));
        assert_eq!(result.unwrap_err().report(), "timed out: request timed out");
        assert_eq!(delivery.phase(), Phase::Sending);
    }

    #[tokio::test(start_paused = true)]
    async fn does_not_cover_readiness() {
        let stack = ServiceBuilder::new()
            .timeout(SECOND)
            .service(crate::support::Never);
        let transport = ServiceTransport::new(stack);
        let waited = tokio::time::timeout(60 * SECOND, transport.deliver(delivery())).await;
        assert!(
            waited.is_err(),
            "put a `DeadlineLayer` around what may not become ready"
        );
    }
}

mod concurrency_limit {
    use super::*;

    async fn most_at_once(transport: impl Transport + 'static, gate: Gate) -> usize {
        let transport = Arc::new(transport);
        gate.open(10);
        join_all((0..10).map(|_| {
            let transport = Arc::clone(&transport);
            tokio::spawn(async move { transport.deliver(delivery()).await.unwrap() })
        }))
        .await;
        gate.most.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn holds_over_the_clones_of_one_transport() {
        let gate = Gate::new();
        let stack = ServiceBuilder::new()
            .layer(ConcurrencyLimitLayer::new(2))
            .service(TransportService::new(gate.clone()));
        assert!(most_at_once(ServiceTransport::new(stack), gate).await <= 2);
    }

    #[tokio::test]
    async fn waits_unsent_for_its_turn_and_frees_it_when_dropped() {
        let gate = Gate::new();
        let stack = ServiceBuilder::new()
            .layer(GlobalConcurrencyLimitLayer::new(1))
            .service(TransportService::new(gate.clone()));
        let transport = ServiceTransport::new(stack);
        let mut first = transport.deliver(delivery());
        assert!(poll_once(&mut first).await.is_none());
        let second = delivery();
        let mut waiting = transport.deliver(second.clone());
        assert!(poll_once(&mut waiting).await.is_none());
        assert_eq!((gate.calls(), second.phase()), (1, Phase::Waiting));
        drop(first);
        assert!(poll_once(&mut waiting).await.is_none());
        assert_eq!((gate.calls(), second.phase()), (2, Phase::Sending));
    }
}

mod rate_limit {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn works_serialized_and_waits_unsent() {
        let stack = ServiceBuilder::new()
            .rate_limit(1, 10 * SECOND)
            .service(TransportService::new(Moody::default()));
        let transport = ServiceTransport::serialized(stack);
        transport.deliver(delivery()).await.unwrap();
        let second = delivery();
        let mut limited = transport.deliver(second.clone());
        assert!(poll_once(&mut limited).await.is_none());
        assert_eq!(second.phase(), Phase::Waiting);
        let began = tokio::time::Instant::now();
        limited.await.unwrap();
        assert_eq!(began.elapsed(), 10 * SECOND);
    }
}

mod load_shed {
    use super::*;

    #[tokio::test]
    async fn over_a_full_limit_is_not_attempted() {
        let gate = Gate::new();
        let stack = ServiceBuilder::new()
            .load_shed()
            .concurrency_limit(1)
            .service(TransportService::new(gate.clone()));
        let transport = ServiceTransport::new(stack);
        let mut first = transport.deliver(delivery());
        assert!(poll_once(&mut first).await.is_none());
        let result = transport.deliver(delivery()).await;
        assert_eq!(kind(&result), Some(DeliveryErrorKind::NotAttempted));
        assert_eq!(gate.calls(), 1);
    }

    #[tokio::test]
    async fn over_a_full_buffer_is_not_attempted_and_charges_nothing() {
        let gate = Gate::new();
        let stack = ServiceBuilder::new()
            .load_shed()
            .buffer(1)
            .concurrency_limit(1)
            .service(TransportService::new(gate.clone()));
        let transport = Arc::new(ServiceTransport::new(stack));
        let spawn = || {
            let transport = Arc::clone(&transport);
            tokio::spawn(async move { transport.deliver(delivery()).await })
        };
        let running = spawn();
        until(|| gate.calls() == 1).await;
        let rest: Vec<_> = (0..20).map(|_| spawn()).collect();
        tokio::task::yield_now().await;
        gate.open(21);
        running.await.unwrap().unwrap();
        let mut shed = 0;
        for result in join_all(rest).await {
            let result = result.unwrap();
            if result.is_err() {
                assert_eq!(kind(&result), Some(DeliveryErrorKind::NotAttempted));
                shed += 1;
            }
        }
        assert_eq!(gate.calls(), 21 - shed);
        assert!(shed > 0);
    }
}

mod buffer {
    use super::*;

    #[tokio::test]
    async fn keeps_the_kind_the_pause_and_the_phase_of_an_error() {
        let stack = ServiceBuilder::new()
            .buffer(8)
            .service(TransportService::new(Moody::default()));
        let transport = ServiceTransport::new(stack);
        let busy = transport.deliver(delivery_to("busy")).await.unwrap_err();
        assert_eq!(busy.kind(), DeliveryErrorKind::Throttled);
        assert_eq!(busy.retry_after(), Some(7 * SECOND));
        let down = transport.deliver(delivery_to("down")).await.unwrap_err();
        assert_eq!(down.phase(), Some(Phase::Waiting));
        let gone = transport.deliver(delivery_to("gone")).await.unwrap_err();
        assert_eq!(gone.kind(), DeliveryErrorKind::Permanent(DeathReason::Gone));
    }

    #[tokio::test]
    async fn smaller_than_the_number_of_callers_does_not_deadlock() {
        let stack = ServiceBuilder::new()
            .buffer(1)
            .service(TransportService::new(Moody::default()));
        let transport = ServiceTransport::new(stack);
        let all = join_all((0..100).map(|_| transport.deliver(delivery()))).await;
        assert!(all.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn that_died_of_an_unready_service_attempts_nothing_and_charges_nothing() {
        let stack = ServiceBuilder::new().buffer(8).service(Broken);
        let transport = ServiceTransport::new(stack);
        for _ in 0..3 {
            let result = transport.deliver(delivery()).await;
            assert_eq!(kind(&result), Some(DeliveryErrorKind::NotAttempted));
        }
    }

    #[tokio::test]
    async fn outlives_a_keyed_layer_that_refuses() {
        use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
        let breaker = Breaker::default().consecutive(1);
        let stack = ServiceBuilder::new()
            .buffer(8)
            .layer(CircuitBreakerLayer::per_destination(breaker))
            .service(TransportService::new(Moody::default()));
        let transport = ServiceTransport::new(stack);
        transport.deliver(delivery_to("down")).await.unwrap_err();
        let open = transport.deliver(delivery_to("down")).await.unwrap_err();
        assert_eq!(open.kind(), DeliveryErrorKind::NotAttempted);
        assert!(open.retry_after().is_some());
        transport.deliver(delivery_to("up")).await.unwrap();
    }
}

mod retry {
    use super::*;
    use std::future::Ready;
    use tower::retry::Policy;

    /// Twice more, whatever the error.
    #[derive(Clone)]
    struct Twice(usize);

    impl Policy<Delivery, Receipt, DeliveryError> for Twice {
        type Future = Ready<()>;

        fn retry(
            &mut self,
            _: &mut Delivery,
            result: &mut Result<Receipt, DeliveryError>,
        ) -> Option<Ready<()>> {
            if result.is_ok() || self.0 == 0 {
                return None;
            }
            self.0 -= 1;
            Some(std::future::ready(()))
        }

        fn clone_request(&mut self, delivery: &Delivery) -> Option<Delivery> {
            Some(delivery.clone())
        }
    }

    #[tokio::test]
    async fn makes_requests_that_count_as_one_attempt_and_passes_the_last_error_on() {
        let moody = Moody::default();
        let stack = ServiceBuilder::new()
            .retry(Twice(2))
            .service(TransportService::new(moody.clone()));
        let transport = ServiceTransport::new(stack);
        let result = transport.deliver(delivery_to("busy")).await;
        assert_eq!(kind(&result), Some(DeliveryErrorKind::Throttled));
        assert_eq!(moody.calls(), 3);
    }
}

mod filter {
    use super::*;

    #[tokio::test]
    async fn decides_what_follows_with_a_delivery_error() {
        let moody = Moody::default();
        let check = |delivery: Delivery| match delivery.event().destination.as_str() {
            "refused" => Err(DeliveryError::rejected("not for us")),
            _ => Ok(delivery),
        };
        let stack = ServiceBuilder::new()
            .filter(check)
            .service(TransportService::new(moody.clone()));
        let transport = ServiceTransport::new(stack);
        transport.deliver(delivery()).await.unwrap();
        let refused = transport.deliver(delivery_to("refused")).await;
        let rejected = DeliveryErrorKind::Permanent(DeathReason::Rejected);
        assert_eq!((kind(&refused), moody.calls()), (Some(rejected), 1));
    }

    #[tokio::test]
    async fn charges_an_attempt_for_an_error_that_says_nothing() {
        let refuse = |_: Delivery| Err::<Delivery, BoxError>("no".into());
        let stack = ServiceBuilder::new()
            .filter(refuse)
            .service(TransportService::new(Moody::default()));
        let result = ServiceTransport::new(stack).deliver(delivery()).await;
        assert_eq!(kind(&result), Some(DeliveryErrorKind::Transient));
    }
}

mod balance {
    use super::*;

    #[tokio::test]
    async fn spreads_deliveries_and_keeps_errors() {
        let (one, other) = (Moody::default(), Moody::default());
        let services =
            [&one, &other].map(|moody| Constant::new(TransportService::new(moody.clone()), 1));
        let balance = Balance::new(ServiceList::new::<Delivery>(services));
        let transport = ServiceTransport::serialized(balance);
        for _ in 0..64 {
            transport.deliver(delivery()).await.unwrap();
        }
        assert!(one.calls() > 0 && other.calls() > 0);
        let result = transport.deliver(delivery_to("busy")).await;
        assert_eq!(kind(&result), Some(DeliveryErrorKind::Throttled));
    }
}

mod classification {
    use super::*;

    #[derive(Debug)]
    struct Wrapped(BoxError);

    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("wrapped")
        }
    }

    impl std::error::Error for Wrapped {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&*self.0)
        }
    }

    #[test]
    fn finds_a_delivery_error_under_any_wrapping() {
        let inner = DeliveryError::throttled("429").with_retry_after(SECOND);
        let wrapped = Wrapped(Wrapped(inner.into()).into());
        let error = classify(wrapped.into());
        assert_eq!(error.kind(), DeliveryErrorKind::Throttled);
        assert_eq!(error.retry_after(), Some(SECOND));
        assert_eq!(error.report(), "throttled: wrapped: wrapped: 429");
    }

    #[test]
    fn leaves_a_bare_delivery_error_as_it_is() {
        let error = classify(DeliveryError::gone("410 Gone").into());
        assert_eq!(error.report(), "410 Gone");
    }

    #[test]
    fn ends_on_a_chain_without_an_end() {
        #[derive(Debug)]
        struct Endless;
        impl std::fmt::Display for Endless {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("endless")
            }
        }
        impl std::error::Error for Endless {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&Self)
            }
        }
        assert_eq!(
            outbox_tower::kind_of(&Endless),
            DeliveryErrorKind::Transient
        );
    }

    #[tokio::test]
    async fn a_panic_in_the_transport_leaves_the_stack_usable() {
        let calls = Arc::new(AtomicUsize::new(0));
        let stack = ServiceBuilder::new()
            .concurrency_limit(1)
            .service(TransportService::new(Moody {
                calls: Arc::clone(&calls),
            }));
        let transport = Arc::new(ServiceTransport::new(stack));
        let other = Arc::clone(&transport);
        let panicked = tokio::spawn(async move { other.deliver(delivery_to("panics")).await });
        assert!(panicked.await.unwrap_err().is_panic());
        transport.deliver(delivery()).await.unwrap();
    }
}
