//! The same relay on every runtime.

use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use outbox_core::{
    Backoff, DeliveryError, MemoryStore, NewEvent, Relay, SmolSpawn, SmolTimer, Spawn, Timer,
    TokioSpawn, TokioTimer,
};
use std::sync::{Arc, Mutex};

use super::support::{Via, no, ok, payloads, put, text};

/// Ten keys of twenty events, each event failing once: delivered in order, none lost.
async fn delivers_everything(timer: impl Timer + 'static, spawn: Option<Arc<dyn Spawn>>) {
    let store = MemoryStore::new();
    let events = (0..200).map(|n| {
        NewEvent::bytes("T", format!("{}/{}", n % 10, n / 10))
            .to("somewhere")
            .key(n % 10)
    });
    put(&store, events).await;
    let (done, finished) = oneshot::channel();
    let state = Mutex::new((std::collections::HashSet::new(), Some(done)));
    let transport = Via(move |delivery: outbox_core::Delivery| {
        let text = text(&delivery);
        let mut state = state.lock().unwrap();
        let first = state.0.insert(text.clone());
        if !first && state.0.len() == 200 && text.ends_with("/19") {
            // One of the last events; the shutdown below drains the rest.
            let _ = state.1.take().map(|done| done.send(()));
        }
        async move {
            if first {
                no(DeliveryError::transient("once"))
            } else {
                ok()
            }
        }
    });
    let retry = Backoff::exponential()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(2));
    let mut builder = Relay::builder(store.clone(), transport, timer)
        .retry(retry)
        .poll_interval(Duration::from_millis(20));
    if let Some(spawn) = spawn {
        builder = builder.spawn(spawn);
    }
    let relay = builder.build().unwrap();
    let report = relay.run(finished.map(drop)).await;
    let mut rounds = 0;
    while payloads(&store).len() < 200 {
        relay.run_until_idle().await.unwrap();
        rounds += 1;
        assert!(rounds < 10_000, "{report:?}");
    }
    for key in 0..10 {
        let start = format!("{key}/");
        let of_key: Vec<_> = payloads(&store)
            .into_iter()
            .filter(|p| p.starts_with(&start))
            .collect();
        let expected: Vec<_> = (0..20).map(|n| format!("{key}/{n}")).collect();
        assert_eq!(of_key, expected);
    }
}

#[tokio::test]
async fn tokio_current_thread() {
    delivers_everything(TokioTimer, None).await;
}

#[tokio::test]
async fn tokio_current_thread_with_tasks() {
    delivers_everything(TokioTimer, Some(Arc::new(TokioSpawn))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_multi_thread() {
    delivers_everything(TokioTimer, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_multi_thread_with_tasks() {
    delivers_everything(TokioTimer, Some(Arc::new(TokioSpawn))).await;
}

#[test]
fn smol_without_tokio() {
    smol::block_on(delivers_everything(SmolTimer, None));
}

#[test]
fn smol_with_tasks() {
    smol::block_on(delivers_everything(SmolTimer, Some(Arc::new(SmolSpawn))));
}

#[tokio::test]
async fn the_run_can_be_spawned() {
    let store = MemoryStore::new();
    put(&store, [super::support::event(1)]).await;
    let relay = super::support::relay(store.clone(), Via(|_| async { ok() }))
        .build()
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let run = TaskOf::start(relay.run(stopped.map(drop)));
    while payloads(&store).is_empty() {
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    assert_eq!(run.0.await.unwrap().published, 1);
}

struct TaskOf<T>(tokio::task::JoinHandle<T>);

impl<T: Send + 'static> TaskOf<T> {
    #[expect(clippy::disallowed_methods, reason = "a test on tokio")]
    fn start(run: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(run))
    }
}
