//! Sender and receiver together, over real sockets: what one says the other understands.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use outbox_core::{
    Backoff, Delivery, Enqueue, Event, EventId, MemoryStore, NewEvent, Relay, TokioSpawn,
    TokioTimer, Transport,
};
use outbox_http::{
    Key, KeyRing, SharedRing, StandardKey, StandardWebhooks, Timeouts, Verdict, Webhooks,
};
use outbox_tower::receive::{IdempotencyLayer, VerifyLayer, WebhookVerifier};
use tokio::net::TcpListener;
use tokio::time::sleep;

const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Ring = SharedRing<StandardKey>;

fn ring(keys: &[(&str, &str)]) -> KeyRing<StandardKey> {
    let key = |(name, text): &(&str, &str)| Key::new(*name, StandardKey::new(text).unwrap());
    KeyRing::new(keys.iter().map(key))
}

/// A receiver whose handler counts its effects by id, and takes so long for each; its URL.
async fn receiver(keys: Ring, takes: Duration, effects: Effects) -> String {
    let handler = move |headers: HeaderMap| async move {
        sleep(takes).await;
        let id = headers["webhook-id"].to_str().unwrap().to_owned();
        *effects.lock().unwrap().entry(id).or_default() += 1;
        StatusCode::NO_CONTENT
    };
    let idempotent = IdempotencyLayer::for_webhooks(MemoryStore::new())
        .detached(TokioSpawn)
        .busy_retry(Duration::from_secs(1));
    let scheme = StandardWebhooks::with_keys(keys);
    let app = Router::new()
        .route("/hooks", post(handler))
        .layer(idempotent)
        .layer(VerifyLayer::new(WebhookVerifier::new("forge", scheme)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

type Effects = Arc<Mutex<HashMap<String, u32>>>;

#[tokio::test]
async fn a_slow_handler_and_an_impatient_sender_make_each_effect_once() {
    let keys = Ring::from(ring(&[("only", NEW)]));
    let effects = Effects::default();
    let takes = Duration::from_millis(300);
    let url = receiver(keys.clone(), takes, effects.clone()).await;
    let store = MemoryStore::new();
    let mut tx = store.begin();
    for n in 0..20 {
        let event = NewEvent::json("Pushed", &n).unwrap().to(url.clone());
        store.enqueue(&mut tx, event).await.unwrap();
    }
    tx.commit();
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let notes = seen.clone();
    let webhooks = Webhooks::builder()
        .signer(StandardWebhooks::with_keys(keys))
        .allow_private_networks()
        .timeouts(Timeouts::default().head(takes / 3))
        .observer(move |report: &outbox_http::AttemptReport<'_>| {
            let status = report.status.map(|status| status.as_u16());
            notes.lock().unwrap().push((status, report.verdict));
        })
        .build()
        .unwrap();
    let retry = Backoff::exponential().base(Duration::from_millis(5));
    let relay = Relay::builder(store, webhooks, TokioTimer)
        .retry(retry)
        .per_destination(32)
        .build()
        .unwrap();
    let mut published = 0;
    while published < 20 {
        let report = relay.run_until_idle().await.unwrap();
        assert_eq!(report.dead, 0, "{report:?}");
        published += report.published;
    }
    let effects = effects.lock().unwrap();
    assert_eq!(effects.len(), 20);
    assert!(effects.values().all(|times| *times == 1), "{effects:?}");
    let seen = seen.lock().unwrap();
    let count = |what| seen.iter().filter(|seen| **seen == what).count();
    assert_eq!(count((None, None)), 20, "every first attempt was given up");
    assert_eq!(count((Some(204), Some(Verdict::Delivered))), 20);
    let in_flight = count((Some(409), Some(Verdict::Transient)));
    assert_eq!(20 + 20 + in_flight, seen.len(), "{seen:?}");
    assert!(in_flight > 0);
}

/// The receiver learns the new secret, the sender signs with both, then with the new one alone, and
/// the receiver forgets the old one: no delivery in between is refused.
#[tokio::test]
async fn secrets_rotate_under_load_without_a_refusal() {
    let (theirs, ours) = (
        Ring::from(ring(&[("old", OLD)])),
        Ring::from(ring(&[("old", OLD)])),
    );
    let effects = Effects::default();
    let url = receiver(theirs.clone(), Duration::ZERO, effects.clone()).await;
    let webhooks = Webhooks::builder()
        .signer(StandardWebhooks::with_keys(ours.clone()))
        .allow_private_networks()
        .build()
        .unwrap();
    let stop = Arc::<AtomicBool>::default();
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let (webhooks, url, stop) = (webhooks.clone(), url.clone(), stop.clone());
            tokio::spawn(async move {
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) {
                    let event = Event::new(EventId::new(), 1, "Pushed", url.clone(), "{}");
                    let delivery = Delivery::new(Arc::new(event), Duration::from_secs(10));
                    webhooks.deliver(delivery).await.unwrap();
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    let uses = |name: &str| {
        let uses = theirs.current().uses();
        uses.iter()
            .find(|key| &*key.0 == name)
            .map_or(0, |key| key.1)
    };
    /// Until this many more deliveries were verified by the key.
    async fn after(more: u64, uses: impl Fn() -> u64) {
        let until = uses() + more;
        while uses() < until {
            sleep(Duration::from_millis(1)).await;
        }
    }
    after(50, || uses("old")).await;
    theirs.replace(ring(&[("new", NEW), ("old", OLD)]));
    after(50, || uses("old")).await;
    ours.replace(ring(&[("new", NEW), ("old", OLD)]));
    after(50, || uses("new")).await;
    ours.replace(ring(&[("new", NEW)]));
    after(50, || uses("new")).await;
    let rest = uses("old");
    after(50, || uses("new")).await;
    assert_eq!(uses("old"), rest, "nothing uses the old secret any more");
    theirs.replace(ring(&[("new", NEW)]));
    after(50, || uses("new")).await;
    stop.store(true, Ordering::Relaxed);
    let mut sent = 0;
    for sender in senders {
        sent += sender.await.unwrap();
    }
    assert_eq!(effects.lock().unwrap().len(), sent);
}
