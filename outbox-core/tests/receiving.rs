//! Idempotency keys, inbox ids and locks: what their contracts say, on `MemoryStore`.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::time::Duration;

use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, ErrorKind, Fingerprint, IdempotencyKey,
    IdempotencyKeys, Inbox, InboxMessage, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks,
    ManualClock, MemoryStore,
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(clock.clone()), clock)
}

fn request(fingerprint: u8) -> BeginKey {
    let key = IdempotencyKey::new("tests", "k").unwrap();
    BeginKey::new(key, Fingerprint::from_bytes([fingerprint; 32]))
}

mod begin_key {
    use super::*;

    #[tokio::test]
    async fn starts_one_of_many() {
        let (store, _) = store();
        let mut started = 0;
        for _ in 0..100 {
            match store.begin_key(&request(1)).await.unwrap() {
                Begun::Started => started += 1,
                other => assert_eq!(
                    other,
                    Begun::Busy {
                        retry_after: 60 * SECOND
                    }
                ),
            }
        }
        assert_eq!(started, 1);
    }

    #[tokio::test]
    async fn renews_the_callers_own_lease_when_it_is_repeated() {
        let (store, clock) = store();
        let run = request(1);
        store.begin_key(&run).await.unwrap();
        clock.advance(30 * SECOND);
        assert_eq!(store.begin_key(&run).await.unwrap(), Begun::Started);
        clock.advance(40 * SECOND);
        let retry_after = 20 * SECOND;
        let other = store.begin_key(&request(1)).await.unwrap();
        assert_eq!(other, Begun::Busy { retry_after });
    }

    #[tokio::test]
    async fn takes_a_crashed_runs_key_over_and_the_stale_run_changes_nothing() {
        let (store, clock) = store();
        let (crashed, next) = (request(1), request(1));
        store.begin_key(&crashed).await.unwrap();
        clock.advance(60 * SECOND);
        assert_eq!(store.begin_key(&next).await.unwrap(), Begun::Started);
        let stale = CompleteKey::new(&crashed, "stale");
        assert_eq!(store.complete_key(&stale).await.unwrap(), LeaseStatus::Lost);
        let abandoned = store
            .abandon_key(&crashed.key, crashed.token)
            .await
            .unwrap();
        assert_eq!(abandoned, LeaseStatus::Lost);
        let mine = CompleteKey::new(&next, "mine");
        assert_eq!(store.complete_key(&mine).await.unwrap(), LeaseStatus::Ours);
        let answer = "mine".into();
        assert_eq!(
            store.begin_key(&request(1)).await.unwrap(),
            Begun::Done { answer }
        );
    }

    #[tokio::test]
    async fn refuses_another_request_in_flight_after_a_crash_and_when_done() {
        let (store, clock) = store();
        let run = request(1);
        store.begin_key(&run).await.unwrap();
        assert_eq!(store.begin_key(&request(2)).await.unwrap(), Begun::Mismatch);
        clock.advance(90 * SECOND);
        assert_eq!(store.begin_key(&request(2)).await.unwrap(), Begun::Mismatch);
        store
            .complete_key(&CompleteKey::new(&run, ""))
            .await
            .unwrap();
        assert_eq!(store.begin_key(&request(2)).await.unwrap(), Begun::Mismatch);
    }

    #[tokio::test]
    async fn forgets_a_key_when_its_retention_has_passed() {
        let (store, clock) = store();
        let run = request(1);
        store.begin_key(&run).await.unwrap();
        clock.advance(DAY);
        store
            .complete_key(&CompleteKey::new(&run, ""))
            .await
            .unwrap();
        clock.advance(7 * DAY - SECOND);
        assert_eq!(store.begin_key(&request(2)).await.unwrap(), Begun::Mismatch);
        clock.advance(SECOND);
        assert_eq!(store.begin_key(&request(2)).await.unwrap(), Begun::Started);
    }
}

mod end_of_a_run {
    use super::*;

    #[tokio::test]
    async fn abandoning_frees_the_key_for_any_request() {
        let (store, _) = store();
        let run = request(1);
        store.begin_key(&run).await.unwrap();
        let status = store.abandon_key(&run.key, run.token).await.unwrap();
        assert_eq!(status, LeaseStatus::Ours);
        let repeated = store.abandon_key(&run.key, run.token).await.unwrap();
        assert_eq!(repeated, LeaseStatus::Unknown);
        assert_eq!(store.begin_key(&request(2)).await.unwrap(), Begun::Started);
    }

    #[tokio::test]
    async fn an_answer_is_neither_abandoned_nor_extended() {
        let (store, _) = store();
        let run = request(1);
        store.begin_key(&run).await.unwrap();
        let complete = CompleteKey::new(&run, "first");
        store.complete_key(&complete).await.unwrap();
        assert_eq!(
            store.complete_key(&complete).await.unwrap(),
            LeaseStatus::Ours
        );
        let abandoned = store.abandon_key(&run.key, run.token).await.unwrap();
        let extended = store.extend_key(&run.key, run.token, SECOND).await.unwrap();
        assert_eq!(
            (abandoned, extended),
            (LeaseStatus::Unknown, LeaseStatus::Unknown)
        );
        let answer = "first".into();
        assert_eq!(
            store.begin_key(&request(1)).await.unwrap(),
            Begun::Done { answer }
        );
    }

    #[tokio::test]
    async fn an_expired_lease_that_nobody_took_over_still_completes_and_extends() {
        let (store, clock) = store();
        let run = request(1);
        store.begin_key(&run).await.unwrap();
        clock.advance(61 * SECOND);
        let extended = store
            .extend_key(&run.key, run.token, 60 * SECOND)
            .await
            .unwrap();
        assert_eq!(extended, LeaseStatus::Ours);
        clock.advance(61 * SECOND);
        let complete = CompleteKey::new(&run, "");
        assert_eq!(
            store.complete_key(&complete).await.unwrap(),
            LeaseStatus::Ours
        );
    }

    #[tokio::test]
    async fn an_unknown_key_is_said_to_be_unknown() {
        let (store, _) = store();
        let run = request(1);
        let complete = CompleteKey::new(&run, "");
        assert_eq!(
            store.complete_key(&complete).await.unwrap(),
            LeaseStatus::Unknown
        );
        let extended = store
            .extend_key(&run.key, LeaseToken::new(), SECOND)
            .await
            .unwrap();
        assert_eq!(extended, LeaseStatus::Unknown);
    }
}

mod prune_keys {
    use super::*;

    #[tokio::test]
    async fn deletes_what_is_over_and_no_key_in_flight() {
        let (store, clock) = store();
        for n in 0..5 {
            let key = IdempotencyKey::new("tests", n.to_string()).unwrap();
            let run = BeginKey::new(key, Fingerprint::from_bytes([0; 32]));
            store.begin_key(&run).await.unwrap();
            store
                .complete_key(&CompleteKey::new(&run, ""))
                .await
                .unwrap();
        }
        let mut running = request(1);
        running.lease = 30 * DAY;
        store.begin_key(&running).await.unwrap();
        let mut tx = store.begin();
        let message = InboxMessage::from_source("s", "1").unwrap();
        store.accept(&mut tx, &message).await.unwrap();
        tx.commit();
        assert_eq!(store.prune_keys(100).await.unwrap(), 0);
        clock.advance(7 * DAY);
        assert_eq!(store.prune_keys(3).await.unwrap(), 4);
        assert_eq!(store.prune_keys(100).await.unwrap(), 2);
        assert_eq!(store.prune_keys(100).await.unwrap(), 0);
        let busy = store.begin_key(&request(1)).await.unwrap();
        assert!(matches!(busy, Begun::Busy { .. }));
    }
}

mod accept {
    use super::*;

    fn message(fingerprint: u8) -> InboxMessage {
        let message = InboxMessage::from_source("forge", "1").unwrap();
        message.with_fingerprint(Fingerprint::from_bytes([fingerprint; 32]))
    }

    #[tokio::test]
    async fn commits_and_rolls_back_with_the_transaction() {
        let (store, _) = store();
        let mut tx = store.begin();
        assert_eq!(
            store.accept(&mut tx, &message(1)).await.unwrap(),
            Accepted::First
        );
        drop(tx);
        let mut tx = store.begin();
        assert_eq!(
            store.accept(&mut tx, &message(1)).await.unwrap(),
            Accepted::First
        );
        assert_eq!(
            store.accept(&mut tx, &message(1)).await.unwrap(),
            Accepted::Duplicate
        );
        tx.commit();
        let mut tx = store.begin();
        assert_eq!(
            store.accept(&mut tx, &message(1)).await.unwrap(),
            Accepted::Duplicate
        );
        assert_eq!(
            store.accept(&mut tx, &message(2)).await.unwrap(),
            Accepted::Mismatch
        );
        let bare = InboxMessage::from_source("forge", "1").unwrap();
        assert_eq!(
            store.accept(&mut tx, &bare).await.unwrap(),
            Accepted::Duplicate
        );
    }

    #[tokio::test]
    async fn never_calls_an_id_a_duplicate_that_may_yet_roll_back() {
        let (store, _) = store();
        let (mut one, mut other) = (store.begin(), store.begin());
        store.accept(&mut one, &message(1)).await.unwrap();
        let error = store.accept(&mut other, &message(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        one.rollback();
        assert_eq!(
            store.accept(&mut other, &message(1)).await.unwrap(),
            Accepted::First
        );
    }

    #[tokio::test]
    async fn takes_an_id_for_new_when_its_retention_has_passed() {
        let (store, clock) = store();
        let mut tx = store.begin();
        store.accept(&mut tx, &message(1)).await.unwrap();
        tx.commit();
        clock.advance(7 * DAY);
        let mut tx = store.begin();
        assert_eq!(
            store.accept(&mut tx, &message(2)).await.unwrap(),
            Accepted::First
        );
    }
}

mod locks {
    use super::*;

    #[tokio::test]
    async fn one_of_many_holds_it_until_its_lease_ends() {
        let (store, clock) = store();
        let (one, other) = (LockRequest::new("job"), LockRequest::new("job"));
        assert_eq!(store.try_lock(&one).await.unwrap(), LockStatus::Acquired);
        clock.advance(20 * SECOND);
        let retry_after = 40 * SECOND;
        assert_eq!(
            store.try_lock(&other).await.unwrap(),
            LockStatus::Held { retry_after }
        );
        assert_eq!(store.try_lock(&one).await.unwrap(), LockStatus::Acquired);
        clock.advance(60 * SECOND);
        let status = store.extend_lock("job", one.token, SECOND).await.unwrap();
        assert_eq!(status, LeaseStatus::Ours);
        clock.advance(SECOND);
        assert_eq!(store.try_lock(&other).await.unwrap(), LockStatus::Acquired);
        let status = store.extend_lock("job", one.token, SECOND).await.unwrap();
        assert_eq!(status, LeaseStatus::Lost);
        let status = store.unlock("job", one.token, SECOND).await.unwrap();
        assert_eq!(status, LeaseStatus::Lost);
    }

    #[tokio::test]
    async fn stays_closed_while_it_cools_down() {
        let (store, clock) = store();
        let (one, other) = (LockRequest::new("job"), LockRequest::new("job"));
        store.try_lock(&one).await.unwrap();
        let status = store.unlock("job", one.token, 5 * SECOND).await.unwrap();
        assert_eq!(status, LeaseStatus::Ours);
        let status = store.unlock("job", one.token, SECOND).await.unwrap();
        assert_eq!(status, LeaseStatus::Unknown);
        let retry_after = 5 * SECOND;
        assert_eq!(
            store.try_lock(&one).await.unwrap(),
            LockStatus::Held { retry_after }
        );
        clock.advance(5 * SECOND);
        assert_eq!(store.try_lock(&other).await.unwrap(), LockStatus::Acquired);
    }

    #[tokio::test]
    async fn refuses_names_that_stores_cannot_keep() {
        let (store, _) = store();
        for name in [String::new(), "n".repeat(256)] {
            let error = store.try_lock(&LockRequest::new(name)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        }
    }
}
