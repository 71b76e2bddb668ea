//! The cases, over any adapter.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use outbox_core::sql::TableNames;
use outbox_core::{
    ClaimRequest, Delivery, DeliveryError, Outcome, Receipt, RecordingObserver, Relay,
    RelayBuilder, Settlement, TokioTimer, Transport, async_trait,
};
use outbox_sqlx::sqlx::postgres::PgListener;
use outbox_sqlx::sqlx::query;
use tests::PgServer;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::subject::{Fixture, Subject};

const LONG: Duration = Duration::from_secs(30);
/// A relay that found nothing six times in a row looks again after 15 seconds.
const SLEEPS: usize = 6;
const SOON: Duration = Duration::from_secs(10);

/// The next wake-up.
pub(crate) async fn item(wakes: &mut BoxStream<'static, ()>) {
    let item = timeout(LONG, wakes.next()).await;
    assert_eq!(item.expect("woken in time"), Some(()), "a wake never ends");
}

struct Tell(UnboundedSender<i64>);

#[async_trait]
impl Transport for Tell {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let _ = self.0.send(delivery.event().seq);
        Ok(Receipt::new())
    }
}

/// A relay in a task, that looks by itself only at long intervals.
struct Running {
    seen: Arc<RecordingObserver>,
    delivered: UnboundedReceiver<i64>,
    task: JoinHandle<()>,
}

impl Running {
    fn start<S: Subject>(subject: &S, build: impl FnOnce(RelayBuilder) -> RelayBuilder) -> Self {
        let (send, delivered) = unbounded_channel();
        let seen = Arc::new(RecordingObserver::new());
        let builder = Relay::builder(subject.store(), Tell(send), TokioTimer)
            .poll_interval(Duration::from_secs(3600))
            .store_backoff(Duration::from_millis(20), Duration::from_millis(200))
            .observer(Arc::clone(&seen));
        let relay = build(builder).build().expect("valid");
        let task = tokio::spawn(async move {
            relay.run(std::future::pending()).await;
        });
        Self {
            seen,
            delivered,
            task,
        }
    }

    /// Until it has found nothing for a while.
    async fn sleeps(&self) {
        let claims = self.seen.wait_for("claimed", SLEEPS);
        timeout(LONG, claims).await.expect("the relay sleeps");
    }

    async fn delivers(&mut self, within: Duration) {
        let delivered = timeout(within, self.delivered.recv()).await;
        assert!(delivered.expect("delivered in time").is_some());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn a_call_after_the_commit_wakes_a_sleeping_relay<S: Subject>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    let mut relay = Running::start(&fixture.subject, |b| b.wake(fixture.subject.wake(None)));
    relay.sleeps().await;
    fixture.commit().await.unwrap();
    fixture.subject.notify().await.unwrap();
    relay.delivers(SOON).await;
}

pub(crate) async fn the_trigger_wakes_a_sleeping_relay<S: Subject>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    fixture.subject.enable_trigger().await.unwrap();
    let mut relay = Running::start(&fixture.subject, |b| b.wake(fixture.subject.wake(None)));
    relay.sleeps().await;
    fixture.commit().await.unwrap();
    relay.delivers(SOON).await;
}

pub(crate) async fn the_trigger_notifies_of_inserts_alone_and_can_be_removed<S: Subject>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    let (first, second) = (fixture.subject.clone(), fixture.subject.clone());
    let both = tokio::join!(first.enable_trigger(), second.enable_trigger());
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    let mut listener = PgListener::connect(&fixture.url).await.unwrap();
    listener.listen("outbox_events").await.unwrap();

    fixture.commit().await.unwrap();
    let request = ClaimRequest::new(10.try_into().unwrap(), LONG);
    let claim = fixture.subject.store().claim(&request).await.unwrap();
    let outcome = Outcome::Retry {
        after: LONG,
        error: "later".to_owned(),
    };
    let retry = Settlement::new(claim.events[0].lease, outcome);
    fixture.subject.store().settle(&[retry]).await.unwrap();
    fixture.subject.disable_trigger().await.unwrap();
    fixture.subject.disable_trigger().await.unwrap();
    fixture.commit().await.unwrap();

    let end = query("SELECT pg_notify('outbox_events', 'end')");
    end.execute(fixture.producer.pool()).await.unwrap();
    let mut payloads = Vec::new();
    while payloads.last().is_none_or(|last| last != "end") {
        let notification = timeout(LONG, listener.recv()).await.unwrap().unwrap();
        payloads.push(notification.payload().to_owned());
    }
    assert_eq!(payloads, ["", "end"]);
}

pub(crate) async fn a_listener_whose_backend_is_terminated_listens_again_and_looks_once<
    S: Subject,
>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    let mut wakes = fixture.listening(None).await;
    assert_eq!(
        fixture.listeners("pg_terminate_backend(pid)").await.len(),
        1
    );
    item(&mut wakes).await;
    fixture.subject.notify().await.unwrap();
    item(&mut wakes).await;
}

/// Lets a stopped process go on, whatever becomes of the test.
struct Stopped(i32);

impl Stopped {
    fn stop(pid: i32) -> Self {
        signal("STOP", pid);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

fn signal(name: &str, pid: i32) {
    let sent = Command::new("sh")
        .args(["-c", "kill -\"$1\" \"$2\"", "kill", name, &pid.to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
}

pub(crate) async fn a_listener_whose_backend_says_nothing_is_replaced<S: Subject>() {
    let server = PgServer::start();
    let fixture = Fixture::<S>::new(&server).await;
    let patience = (Duration::from_millis(50), Duration::from_secs(1));
    let mut wakes = fixture.listening(Some(patience)).await;
    let backend = fixture.listeners("true").await;
    let _stopped = Stopped::stop(backend[0]);
    item(&mut wakes).await;
    fixture.subject.notify().await.unwrap();
    item(&mut wakes).await;
}

pub(crate) async fn a_quiet_listener_is_kept<S: Subject>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    let patience = (Duration::from_millis(5), LONG);
    let mut wakes = fixture.listening(Some(patience)).await;
    let before = fixture.listeners("true").await;
    // While probes go on, every notification arrives.
    for _ in 0..100 {
        fixture.subject.notify().await.unwrap();
        item(&mut wakes).await;
    }
    assert_eq!(fixture.listeners("true").await, before);
}

pub(crate) async fn a_relay_outlives_a_crash_of_the_server<S: Subject>() {
    // What was committed must outlive it too.
    let server = PgServer::start_with(&["synchronous_commit=on"]);
    let fixture = Fixture::<S>::new(&server).await;
    let mut relay = Running::start(&fixture.subject, |b| b.wake(fixture.subject.wake(None)));
    fixture.commit().await.unwrap();
    fixture.subject.notify().await.unwrap();
    relay.delivers(LONG).await;
    server.kill();
    server.resume();
    // The producer's pool still has connections of the old server.
    let mut committed = fixture.commit().await;
    for _ in 0..20 {
        if committed.is_ok() {
            break;
        }
        committed = fixture.commit().await;
    }
    committed.unwrap();
    let _ = fixture.subject.notify().await;
    relay.delivers(LONG).await;
}

pub(crate) async fn a_wake_without_a_server_waits_for_one<S: Subject>() {
    let server = PgServer::start();
    let fixture = Fixture::<S>::new(&server).await;
    server.stop();
    let patience = (LONG, Duration::from_secs(2));
    let mut wakes = fixture.subject.wake(Some(patience)).wakes();
    let early = timeout(Duration::from_millis(300), wakes.next()).await;
    assert!(early.is_err(), "there is nothing to look at");
    server.resume();
    item(&mut wakes).await;
}

pub(crate) async fn any_payload_wakes<S: Subject>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    let mut wakes = fixture.listening(None).await;
    for payload in ["", "{\"not\": json", "\u{1}\u{fffd}", &"x".repeat(7_999)] {
        let notify = query("SELECT pg_notify('outbox_events', $1)").bind(payload);
        notify.execute(fixture.producer.pool()).await.unwrap();
        item(&mut wakes).await;
    }
}

pub(crate) async fn tables_of_other_names_have_another_channel<S: Subject>() {
    let names = TableNames::new("My-App").unwrap();
    let names = names
        .schema("tenant 1 of a rather long name ".repeat(2))
        .unwrap();
    let fixture = Fixture::<S>::with_names(PgServer::shared(), names).await;
    fixture.subject.enable_trigger().await.unwrap();
    let other = S::open(&fixture.url, TableNames::default()).await;
    let mut others = other.wake(None).wakes();
    item(&mut others).await;
    let mut wakes = fixture.listening(None).await;
    fixture.commit().await.unwrap();
    item(&mut wakes).await;
    fixture.subject.notify().await.unwrap();
    item(&mut wakes).await;
    // The other's one and only notification comes after those.
    other.notify().await.unwrap();
    item(&mut others).await;
    assert!(futures::FutureExt::now_or_never(others.next()).is_none());
}

pub(crate) async fn a_relay_without_a_wake_polls<S: Subject>() {
    let fixture = Fixture::<S>::new(PgServer::shared()).await;
    let poll = Duration::from_millis(50);
    let mut relay = Running::start(&fixture.subject, |b| b.poll_interval(poll));
    relay.sleeps().await;
    fixture.commit().await.unwrap();
    relay.delivers(SOON).await;
    assert!(fixture.listeners("true").await.is_empty());
}
