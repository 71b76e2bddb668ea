use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, StatusCode};
use outbox_core::{
    Error, ErrorKind, ManualClock, MemoryStore, MockIdempotencyKeys, TokioSpawn, TokioTimer,
};
use outbox_tower::receive::{IdempotencyLayer, VerifyLayer};
use tokio::sync::Semaphore;

use crate::support::{ByHeader, SECOND, post, send, text};

/// Counts its runs; what it does stands in the request's headers.
#[derive(Clone, Default)]
struct Handler {
    runs: Arc<AtomicUsize>,
    gate: Option<Arc<Semaphore>>,
}

impl Handler {
    fn gated() -> Self {
        Self {
            gate: Some(Arc::new(Semaphore::new(0))),
            ..Self::default()
        }
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    async fn run(self, headers: HeaderMap, body: Bytes) -> Response {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        let wish = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        assert!(wish("panic").is_none(), "a bug in the handler");
        let status = wish("status").map_or(201, |status| status.parse().unwrap());
        let status = StatusCode::from_u16(status).unwrap();
        let body = match wish("size") {
            Some(size) => Body::from(vec![b'x'; size.parse().unwrap()]),
            None => Body::from(format!("run {run}: {} bytes", body.len())),
        };
        (status, [("location", "/repos/7")], body).into_response()
    }

    fn behind(&self, layer: IdempotencyLayer) -> Router {
        let handler = self.clone();
        let run = move |headers: HeaderMap, body: Bytes| handler.run(headers, body);
        Router::new().route("/", any(run)).layer(layer)
    }
}

const KEY: (&str, &str) = ("idempotency-key", "\"8e03978e\"");

#[tokio::test]
async fn a_repeat_gets_the_kept_answer() {
    let handler = Handler::default();
    let app = handler.behind(IdempotencyLayer::new(MemoryStore::new()));
    let first = send(&app, post(&[KEY], "abc")).await;
    assert!(!first.headers().contains_key("idempotent-replayed"));
    assert_eq!(
        (first.status().as_u16(), text(first).await),
        (201, "run 1: 3 bytes".into())
    );
    for _ in 0..3 {
        let repeat = send(&app, post(&[KEY], "abc")).await;
        assert_eq!(repeat.headers()["idempotent-replayed"], "true");
        assert_eq!(repeat.headers()["location"], "/repos/7");
        assert_eq!(
            (repeat.status().as_u16(), text(repeat).await),
            (201, "run 1: 3 bytes".into())
        );
    }
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn an_error_is_kept_too_but_not_one_after_which_to_try_again() {
    let handler = Handler::default();
    let app = handler.behind(IdempotencyLayer::new(MemoryStore::new()));
    for (status, runs) in [
        ("404", 1),
        ("422", 1),
        ("408", 2),
        ("429", 2),
        ("500", 2),
        ("503", 2),
    ] {
        let before = handler.runs();
        for _ in 0..2 {
            let headers = [("idempotency-key", status), ("status", status)];
            let response = send(&app, post(&headers, "")).await;
            assert_eq!(response.status().as_str(), status);
        }
        assert_eq!(handler.runs() - before, runs, "{status}");
    }
}

#[tokio::test]
async fn a_missing_or_malformed_key_is_a_bad_request() {
    let handler = Handler::default();
    let store = MemoryStore::new();
    let app = handler.behind(IdempotencyLayer::new(store.clone()));
    let long = "k".repeat(256);
    for headers in [
        &[][..],
        &[("idempotency-key", "")],
        &[("idempotency-key", "\"unended")],
        &[KEY, KEY],
        &[("idempotency-key", long.as_str())],
    ] {
        let response = send(&app, post(headers, "")).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{headers:?}");
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
    }
    assert_eq!(handler.runs(), 0);
    let quoted = handler.behind(IdempotencyLayer::new(store.clone()).quoted_only());
    let bare = send(&quoted, post(&[("idempotency-key", "bare")], "")).await;
    assert_eq!(bare.status(), StatusCode::BAD_REQUEST);
    let optional = handler.behind(IdempotencyLayer::new(store).optional());
    assert_eq!(send(&optional, post(&[], "")).await.status(), 201);
}

#[tokio::test]
async fn another_request_with_the_key_is_refused() {
    let handler = Handler::default();
    let layer = IdempotencyLayer::new(MemoryStore::new()).scope(|_| "tenant".to_owned());
    let app = handler.behind(layer);
    send(&app, post(&[KEY], "abc")).await;
    let mut query = post(&[KEY], "abc");
    *query.uri_mut() = "/?page=2".parse().unwrap();
    let mut patch = post(&[KEY], "abc");
    *patch.method_mut() = http::Method::PATCH;
    let typed = post(&[KEY, ("content-type", "text/plain")], "abc");
    for other in [post(&[KEY], "abd"), query, patch, typed] {
        let response = send(&app, other).await;
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn tenants_share_no_keys() {
    let handler = Handler::default();
    let tenant = |head: &http::request::Parts| head.headers["tenant"].to_str().unwrap().to_owned();
    let app = handler.behind(IdempotencyLayer::new(MemoryStore::new()).scope(tenant));
    for tenant in ["a", "b", "a"] {
        send(&app, post(&[KEY, ("tenant", tenant)], "")).await;
    }
    assert_eq!(handler.runs(), 2);
}

#[tokio::test]
async fn other_methods_pass_untouched() {
    let handler = Handler::default();
    let app = handler.behind(IdempotencyLayer::new(MemoryStore::new()));
    for _ in 0..2 {
        let get = Request::get("/").body(Body::empty()).unwrap();
        assert_eq!(send(&app, get).await.status(), 201);
    }
    assert_eq!(handler.runs(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_thousand_requests_at_once_one_runs() {
    let handler = Handler::gated();
    let app = handler.behind(IdempotencyLayer::new(MemoryStore::new()));
    let tasks = (0..10_000).map(|_| {
        let app = app.clone();
        tokio::spawn(async move { send(&app, post(&[KEY], "abc")).await })
    });
    let tasks: Vec<_> = tasks.collect();
    let deadline = std::time::Instant::now() + 60 * SECOND;
    while tasks.iter().filter(|task| task.is_finished()).count() < 9_999 {
        assert!(std::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    handler.gate.as_ref().unwrap().add_permits(1);
    let mut created = 0;
    for response in join_all(tasks).await {
        let response = response.unwrap();
        match response.status() {
            StatusCode::CREATED => created += 1,
            status => {
                assert_eq!(status, StatusCode::CONFLICT);
                assert_eq!(response.headers()["retry-after"], "5");
            }
        }
    }
    assert_eq!((created, handler.runs()), (1, 1));
    let repeat = send(&app, post(&[KEY], "abc")).await;
    assert_eq!(text(repeat).await, "run 1: 3 bytes");
}

#[tokio::test]
async fn a_panic_frees_the_key_at_once() {
    let handler = Handler::default();
    let app = handler.behind(IdempotencyLayer::new(MemoryStore::new()));
    let other = app.clone();
    let panics = [KEY, ("panic", "yes")];
    let task = tokio::spawn(async move { send(&other, post(&panics, "")).await });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(send(&app, post(&[KEY], "")).await.status(), 201);
}

#[tokio::test]
async fn a_handler_dropped_with_its_connection_frees_the_key_when_its_lease_ends() {
    let clock = ManualClock::new();
    let handler = Handler::gated();
    let store = MemoryStore::with_clock(clock.clone());
    let app = handler.behind(IdempotencyLayer::new(store).lease(30 * SECOND));
    let mut request = Box::pin(send(&app, post(&[KEY], "")));
    assert!(futures::poll!(&mut request).is_pending());
    drop(request);
    let busy = send(&app, post(&[KEY], "")).await;
    assert_eq!(busy.status(), StatusCode::CONFLICT);
    clock.advance(28 * SECOND);
    let busy = send(&app, post(&[KEY], "")).await;
    assert_eq!(busy.headers()["retry-after"], "2");
    clock.advance(2 * SECOND);
    handler.gate.as_ref().unwrap().add_permits(1);
    assert_eq!(send(&app, post(&[KEY], "")).await.status(), 201);
    assert_eq!(handler.runs(), 2);
}

#[tokio::test]
async fn a_detached_handler_ends_whatever_its_client_does() {
    let handler = Handler::gated();
    let layer = IdempotencyLayer::new(MemoryStore::new()).detached(TokioSpawn);
    let app = handler.behind(layer);
    let mut request = Box::pin(send(&app, post(&[KEY], "")));
    while handler.runs() == 0 {
        assert!(futures::poll!(&mut request).is_pending());
        tokio::task::yield_now().await;
    }
    drop(request);
    handler.gate.as_ref().unwrap().add_permits(1);
    let repeat = loop {
        let response = send(&app, post(&[KEY], "")).await;
        if response.status() != StatusCode::CONFLICT {
            break response;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(repeat.headers()["idempotent-replayed"], "true");
    assert_eq!(handler.runs(), 1);
    let panicked = send(
        &app,
        post(&[("idempotency-key", "p"), ("panic", "yes")], ""),
    );
    handler.gate.as_ref().unwrap().add_permits(1);
    assert_eq!(panicked.await.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test(start_paused = true)]
async fn a_running_handlers_lease_is_extended() {
    let clock = ManualClock::new();
    let handler = Handler::gated();
    let store = MemoryStore::with_clock(clock.clone());
    let layer = IdempotencyLayer::new(store)
        .lease(30 * SECOND)
        .extending(TokioTimer);
    let app = handler.behind(layer);
    let mut request = Box::pin(send(&app, post(&[KEY], "")));
    for _ in 0..10 {
        assert!(futures::poll!(&mut request).is_pending());
        clock.advance(10 * SECOND);
        tokio::time::advance(10 * SECOND).await;
    }
    assert!(futures::poll!(&mut request).is_pending());
    assert_eq!(send(&app, post(&[KEY], "")).await.status(), 409);
    handler.gate.as_ref().unwrap().add_permits(1);
    assert_eq!(request.await.status(), 201);
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn an_answer_over_the_limit_reaches_the_first_client_whole_and_repeats_without_body() {
    let handler = Handler::default();
    let layer = IdempotencyLayer::new(MemoryStore::new()).answer_limit(1_000);
    let app = handler.behind(layer);
    let headers = [KEY, ("size", "5000")];
    let first = send(&app, post(&headers, "")).await;
    assert_eq!(text(first).await.len(), 5_000);
    let repeat = send(&app, post(&headers, "")).await;
    assert_eq!(repeat.status(), StatusCode::CREATED);
    assert_eq!(repeat.headers()["idempotent-body-omitted"], "true");
    assert_eq!(text(repeat).await, "");
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_and_takes_no_key() {
    let handler = Handler::default();
    let layer = IdempotencyLayer::new(MemoryStore::new()).body_limit(4);
    let app = handler.behind(layer);
    assert_eq!(send(&app, post(&[KEY], "12345")).await.status(), 413);
    assert_eq!(send(&app, post(&[KEY], "1234")).await.status(), 201);
}

#[tokio::test]
async fn while_the_store_is_down_nothing_runs() {
    let mut keys = MockIdempotencyKeys::new();
    keys.expect_begin_key()
        .returning(|_| Err(Error::new(ErrorKind::Unavailable, "down")));
    let handler = Handler::default();
    let app = handler.behind(IdempotencyLayer::new(keys));
    let response = send(&app, post(&[KEY], "")).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(handler.runs(), 0);
}

#[tokio::test]
async fn an_answer_that_cannot_be_kept_is_sent_all_the_same() {
    let mut keys = MockIdempotencyKeys::new();
    keys.expect_begin_key()
        .returning(|_| Ok(outbox_core::Begun::Started));
    keys.expect_complete_key()
        .returning(|_| Err(Error::new(ErrorKind::Unavailable, "down")));
    let app = Handler::default().behind(IdempotencyLayer::new(keys));
    assert_eq!(send(&app, post(&[KEY], "")).await.status(), 201);
}

#[tokio::test]
async fn webhooks_go_by_their_verified_id() {
    let handler = Handler::default();
    let layer = IdempotencyLayer::for_webhooks(MemoryStore::new());
    let app = handler.behind(layer).layer(VerifyLayer::new(ByHeader));
    let message = |id, body: &'static str| {
        let headers = [
            ("x-signature", "good"),
            ("webhook-id", id),
            ("idempotency-key", "x"),
        ];
        post(&headers, body)
    };
    assert_eq!(send(&app, message("m1", "a")).await.status(), 201);
    assert_eq!(send(&app, message("m1", "a")).await.status(), 201);
    assert_eq!(send(&app, message("m1", "b")).await.status(), 422);
    assert_eq!(send(&app, message("m2", "b")).await.status(), 201);
    assert_eq!(handler.runs(), 2);
    let without_id = send(&app, post(&[("x-signature", "good")], "")).await;
    assert_eq!(without_id.status(), StatusCode::BAD_REQUEST);
}
