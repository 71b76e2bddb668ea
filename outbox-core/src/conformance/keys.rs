//! Idempotency keys.

use std::sync::Arc;
use std::time::Duration;

use super::ReceivingHarness;
use super::kit::{
    HOUR, MINUTE, Must, assert_left, at_every_poll, cut_short, in_parallel, patient, until,
};
use crate::{
    Accepted, BeginKey, Begun, CompleteKey, EventId, Fingerprint, IdempotencyKey, IdempotencyKeys,
    InboxMessage, LeaseStatus, LeaseToken,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn key(name: &str) -> IdempotencyKey {
    IdempotencyKey::new("tests", name).must("IdempotencyKey::new")
}

/// A request with a lease of ten minutes.
fn request(fingerprint: u8) -> BeginKey {
    let mut request = BeginKey::new(key("k"), Fingerprint::from_bytes([fingerprint; 32]));
    request.lease = 10 * MINUTE;
    request
}

async fn begin<H: ReceivingHarness>(h: &H, request: &BeginKey) -> Begun {
    h.store().begin_key(request).await.must("begin_key")
}

async fn complete<H: ReceivingHarness>(h: &H, run: &BeginKey, answer: &'static str) -> LeaseStatus {
    let complete = CompleteKey::new(run, answer);
    h.store().complete_key(&complete).await.must("complete_key")
}

async fn abandon<H: ReceivingHarness>(h: &H, run: &BeginKey) -> LeaseStatus {
    let abandoned = h.store().abandon_key(&run.key, run.token).await;
    abandoned.must("abandon_key")
}

async fn extend<H: ReceivingHarness>(h: &H, run: &BeginKey, by: Duration) -> LeaseStatus {
    let extended = h.store().extend_key(&run.key, run.token, by).await;
    extended.must("extend_key")
}

fn done(answer: &'static str) -> Begun {
    Begun::Done {
        answer: answer.into(),
    }
}

pub async fn start_one_of_many<H: ReceivingHarness>(h: &Arc<H>) {
    let begun = in_parallel(h, h.capabilities().workers, |h, _| async move {
        let (store, request) = (h.open().await, request(1));
        for _ in 0..200 {
            match store.begin_key(&request).await {
                Ok(begun) => return begun,
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("begin_key failed: {error:?}"),
            }
        }
        panic!("two hundred conflicts in a row")
    })
    .await;
    let started = begun.iter().filter(|begun| **begun == Begun::Started);
    assert_eq!(started.count(), 1, "{begun:?}");
    for other in begun {
        if let Begun::Busy { retry_after } = other {
            assert_left(retry_after, 10 * MINUTE);
        } else {
            assert_eq!(other, Begun::Started);
        }
    }
}

pub async fn keep_the_answer_byte_for_byte<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    let answer: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
    let complete = CompleteKey::new(&run, answer.clone());
    let status = h.store().complete_key(&complete).await.must("complete_key");
    assert_eq!(status, LeaseStatus::Ours);
    let Begun::Done { answer: kept } = begin(&**h, &request(1)).await else {
        panic!("the answer is not kept");
    };
    assert!(kept == answer, "the answer has changed");
}

pub async fn are_apart_by_scope_and_byte_for_byte<H: ReceivingHarness>(h: &Arc<H>) {
    let names = [
        ("", "k"),
        ("a", "k"),
        ("A", "k"),
        ("a", "K"),
        ("a", "k "),
        ("ak", ""),
        ("a", "ḱ"),
    ];
    for (scope, name) in names {
        if let Ok(key) = IdempotencyKey::new(scope, name) {
            let run = BeginKey::new(key, Fingerprint::from_bytes([1; 32]));
            assert_eq!(
                begin(&**h, &run).await,
                Begun::Started,
                "{scope:?} {name:?}"
            );
        }
    }
}

pub async fn begun_again_by_the_same_run_renew_its_lease<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    h.advance(8 * MINUTE).await;
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    h.advance(8 * MINUTE).await;
    let Begun::Busy { retry_after } = begin(&**h, &request(1)).await else {
        panic!("the lease was not renewed");
    };
    assert_left(retry_after, 2 * MINUTE);
}

pub async fn of_a_crashed_run_are_taken_over<H: ReceivingHarness>(h: &Arc<H>) {
    let (crashed, next) = (request(1), request(1));
    assert_eq!(begin(&**h, &crashed).await, Begun::Started);
    h.advance(11 * MINUTE).await;
    assert_eq!(begin(&**h, &next).await, Begun::Started);
    assert_eq!(complete(&**h, &crashed, "stale").await, LeaseStatus::Lost);
    assert_eq!(abandon(&**h, &crashed).await, LeaseStatus::Lost);
    assert_eq!(extend(&**h, &crashed, HOUR).await, LeaseStatus::Lost);
    assert_eq!(complete(&**h, &next, "mine").await, LeaseStatus::Ours);
    assert_eq!(begin(&**h, &request(1)).await, done("mine"));
}

pub async fn refuse_another_request<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    assert_eq!(begin(&**h, &request(2)).await, Begun::Mismatch);
    h.advance(11 * MINUTE).await;
    assert_eq!(begin(&**h, &request(2)).await, Begun::Mismatch);
    assert_eq!(complete(&**h, &run, "").await, LeaseStatus::Ours);
    assert_eq!(begin(&**h, &request(2)).await, Begun::Mismatch);
    assert_eq!(begin(&**h, &request(1)).await, done(""));
}

pub async fn are_forgotten_when_their_retention_has_passed<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    h.advance(DAY).await;
    assert_eq!(complete(&**h, &run, "").await, LeaseStatus::Ours);
    h.advance(7 * DAY - HOUR).await;
    assert_eq!(begin(&**h, &request(2)).await, Begun::Mismatch);
    h.advance(2 * HOUR).await;
    assert_eq!(begin(&**h, &request(2)).await, Begun::Started);
}

pub async fn abandoned_are_free_for_any_request<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    assert_eq!(abandon(&**h, &run).await, LeaseStatus::Ours);
    assert_eq!(abandon(&**h, &run).await, LeaseStatus::Unknown);
    assert_eq!(begin(&**h, &request(2)).await, Begun::Started);
}

pub async fn that_are_done_are_neither_abandoned_nor_extended<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    assert_eq!(complete(&**h, &run, "first").await, LeaseStatus::Ours);
    assert_eq!(complete(&**h, &run, "first").await, LeaseStatus::Ours);
    assert_eq!(abandon(&**h, &run).await, LeaseStatus::Unknown);
    assert_eq!(extend(&**h, &run, HOUR).await, LeaseStatus::Unknown);
    assert_eq!(begin(&**h, &request(1)).await, done("first"));
}

pub async fn under_an_expired_lease_still_complete_and_extend<H: ReceivingHarness>(h: &Arc<H>) {
    let run = request(1);
    assert_eq!(begin(&**h, &run).await, Begun::Started);
    h.advance(11 * MINUTE).await;
    assert_eq!(extend(&**h, &run, 10 * MINUTE).await, LeaseStatus::Ours);
    h.advance(11 * MINUTE).await;
    assert_eq!(complete(&**h, &run, "").await, LeaseStatus::Ours);
}

pub async fn that_do_not_exist_are_unknown<H: ReceivingHarness>(h: &Arc<H>) {
    let mut run = request(1);
    run.token = LeaseToken::new();
    assert_eq!(complete(&**h, &run, "").await, LeaseStatus::Unknown);
    assert_eq!(abandon(&**h, &run).await, LeaseStatus::Unknown);
    assert_eq!(extend(&**h, &run, HOUR).await, LeaseStatus::Unknown);
}

pub async fn are_pruned_when_over_and_never_in_flight<H: ReceivingHarness>(h: &Arc<H>) {
    // The oldest ones are in flight: more of them than a batch has.
    let mut running = request(1);
    running.lease = 30 * DAY;
    assert_eq!(begin(&**h, &running).await, Begun::Started);
    for n in 0..4 {
        let mut other = BeginKey::new(key(&format!("running {n}")), running.fingerprint);
        other.lease = running.lease;
        assert_eq!(begin(&**h, &other).await, Begun::Started);
    }
    h.advance(MINUTE).await;
    for n in 0..5 {
        let run = BeginKey::new(key(&n.to_string()), Fingerprint::from_bytes([0; 32]));
        assert_eq!(begin(&**h, &run).await, Begun::Started);
        assert_eq!(complete(&**h, &run, "").await, LeaseStatus::Ours);
    }
    let mut tx = h.begin().await;
    let message = InboxMessage::from_source("s", "1").must("InboxMessage::from_source");
    h.accept(&mut tx, &message).await.must("accept");
    h.commit(tx).await;
    let prune = |rows| h.store().prune_keys(rows);
    assert_eq!(prune(100).await.must("prune_keys"), 0);
    h.advance(7 * DAY + MINUTE).await;
    assert_eq!(prune(3).await.must("prune_keys"), 4);
    assert_eq!(prune(100).await.must("prune_keys"), 2);
    assert_eq!(prune(100).await.must("prune_keys"), 0);
    let busy = begin(&**h, &request(1)).await;
    assert!(matches!(busy, Begun::Busy { .. }), "{busy:?}");
}

/// Of a key that no other case or call has.
fn unique() -> BeginKey {
    let mut request = request(1);
    request.key = key(&EventId::new().to_string());
    request
}

/// Another run meets the one that is at work, for about this long.
async fn is_busy<H: ReceivingHarness>(h: &H, run: &BeginKey, expected: Duration) {
    let mut other = run.clone();
    other.token = LeaseToken::new();
    match begin(h, &other).await {
        Begun::Busy { retry_after } => assert_left(retry_after, expected),
        begun => panic!("the key is not in flight: {begun:?}"),
    }
}

pub async fn are_as_the_repeat_says_where_a_call_was_cut_short<H: ReceivingHarness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        let run = unique();
        let mut ended = cut_short(polls, store.begin_key(&run)).await.is_some();
        let begun = patient(|| h.store().begin_key(&run)).await;
        assert_eq!(begun, Begun::Started);
        is_busy(&**h, &run, 10 * MINUTE).await;

        let run = unique();
        assert_eq!(begin(&**h, &run).await, Begun::Started);
        let extend = async |store: &H::Store| store.extend_key(&run.key, run.token, HOUR).await;
        ended &= cut_short(polls, extend(store)).await.is_some();
        assert_eq!(patient(|| extend(h.store())).await, LeaseStatus::Ours);
        is_busy(&**h, &run, HOUR).await;

        let run = unique();
        assert_eq!(begin(&**h, &run).await, Begun::Started);
        let complete = CompleteKey::new(&run, "answer");
        ended &= cut_short(polls, store.complete_key(&complete))
            .await
            .is_some();
        let completed = patient(|| h.store().complete_key(&complete)).await;
        assert_eq!(completed, LeaseStatus::Ours);
        assert_eq!(begin(&**h, &run).await, done("answer"));

        let run = unique();
        assert_eq!(begin(&**h, &run).await, Begun::Started);
        let abandon = async |store: &H::Store| store.abandon_key(&run.key, run.token).await;
        ended &= cut_short(polls, abandon(store)).await.is_some();
        assert_ne!(patient(|| abandon(h.store())).await, LeaseStatus::Lost);
        let mut other = request(2);
        other.key = run.key.clone();
        assert_eq!(begin(&**h, &other).await, Begun::Started);
        ended
    })
    .await;
}

fn message() -> InboxMessage {
    InboxMessage::from_source("tests", EventId::new().to_string()).must("InboxMessage::from_source")
}

/// Accepts in a transaction of its own, made again where it met another one.
async fn accept<H: ReceivingHarness>(h: &H, message: &InboxMessage) -> Accepted {
    patient(|| async {
        let mut tx = h.begin().await;
        let accepted = h.accept(&mut tx, message).await;
        match accepted {
            Ok(_) => h.commit(tx).await,
            Err(_) => h.rollback(tx).await,
        }
        accepted
    })
    .await
}

pub async fn cut_short_prunes_take_what_is_over_alone<H: ReceivingHarness>(h: &Arc<H>) {
    at_every_poll(h, async |store, polls| {
        let [over, mut running, young] = [(); 3].map(|()| unique());
        let [old_message, young_message] = [(); 2].map(|()| message());
        running.lease = 30 * DAY;
        for run in [&over, &running] {
            assert_eq!(begin(&**h, run).await, Begun::Started);
        }
        assert_eq!(complete(&**h, &over, "old").await, LeaseStatus::Ours);
        assert_eq!(accept(&**h, &old_message).await, Accepted::First);
        h.advance(7 * DAY + MINUTE).await;
        assert_eq!(begin(&**h, &young).await, Begun::Started);
        assert_eq!(complete(&**h, &young, "young").await, LeaseStatus::Ours);
        assert_eq!(accept(&**h, &young_message).await, Accepted::First);

        let ended = cut_short(polls, store.prune_keys(100)).await.is_some();
        until(async || patient(|| h.store().prune_keys(100)).await == 0).await;
        is_busy(&**h, &running, 23 * DAY - MINUTE).await;
        assert_eq!(begin(&**h, &young).await, done("young"));
        assert_eq!(accept(&**h, &young_message).await, Accepted::Duplicate);
        // These are free, also where the dropped call was about to delete them.
        let mut another = request(2);
        another.key = over.key;
        let begun = patient(|| h.store().begin_key(&another)).await;
        assert_eq!(begun, Begun::Started);
        assert_eq!(accept(&**h, &old_message).await, Accepted::First);
        ended
    })
    .await;
}
