//! Messages that are accepted once.

use std::sync::Arc;
use std::time::Duration;

use super::ReceivingHarness;
use super::kit::{HOUR, Must, POLLS, SPELLINGS, cut_short, in_parallel};
use crate::{Accepted, ErrorKind, Fingerprint, InboxMessage};

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn bare() -> InboxMessage {
    InboxMessage::from_source("forge", "1").must("InboxMessage::from_source")
}

fn message(fingerprint: u8) -> InboxMessage {
    bare().with_fingerprint(Fingerprint::from_bytes([fingerprint; 32]))
}

/// Accepts in a transaction of its own.
async fn accept<H: ReceivingHarness>(h: &H, message: &InboxMessage) -> Accepted {
    let mut tx = h.begin().await;
    let accepted = h.accept(&mut tx, message).await.must("accept");
    h.commit(tx).await;
    accepted
}

pub async fn commits_and_rolls_back_with_the_transaction<H: ReceivingHarness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    assert_eq!(
        h.accept(&mut tx, &message(1)).await.must("accept"),
        Accepted::First
    );
    h.rollback(tx).await;
    let mut tx = h.begin().await;
    assert_eq!(
        h.accept(&mut tx, &message(1)).await.must("accept"),
        Accepted::First
    );
    assert_eq!(
        h.accept(&mut tx, &message(1)).await.must("accept"),
        Accepted::Duplicate
    );
    h.commit(tx).await;
    assert_eq!(accept(&**h, &message(1)).await, Accepted::Duplicate);
}

pub async fn notices_an_id_with_another_content<H: ReceivingHarness>(h: &Arc<H>) {
    assert_eq!(accept(&**h, &message(1)).await, Accepted::First);
    assert_eq!(accept(&**h, &message(2)).await, Accepted::Mismatch);
    assert_eq!(accept(&**h, &bare()).await, Accepted::Duplicate);
    let other = InboxMessage::from_source("another forge", "1");
    let other = other.must("InboxMessage::from_source");
    assert_eq!(accept(&**h, &other).await, Accepted::First);
    let again = other.with_fingerprint(Fingerprint::from_bytes([3; 32]));
    assert_eq!(accept(&**h, &again).await, Accepted::Duplicate);
}

pub async fn tells_sources_and_ids_apart_byte_for_byte<H: ReceivingHarness>(h: &Arc<H>) {
    for name in SPELLINGS {
        for (source, id) in [(name, "x"), ("x", name)] {
            let message = InboxMessage::from_source(source, id);
            let message = message.must("InboxMessage::from_source");
            assert_eq!(accept(&**h, &message).await, Accepted::First, "{message:?}");
            assert_eq!(accept(&**h, &message).await, Accepted::Duplicate);
        }
    }
}

pub async fn never_calls_a_duplicate_what_may_yet_roll_back<H: ReceivingHarness>(h: &Arc<H>) {
    let firsts = in_parallel(h, h.capabilities().workers, |h, worker| async move {
        for _ in 0..200 {
            let mut tx = h.begin().await;
            match h.accept(&mut tx, &message(1)).await {
                // Half of those who are first fail and roll back: another has to be first then.
                Ok(Accepted::First) if worker % 2 == 0 => {
                    h.rollback(tx).await;
                    return 0;
                }
                Ok(Accepted::First) => {
                    h.commit(tx).await;
                    return 1;
                }
                Ok(accepted) => {
                    assert_eq!(accepted, Accepted::Duplicate);
                    h.rollback(tx).await;
                    return 0;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
                    h.rollback(tx).await;
                }
            }
        }
        panic!("two hundred conflicts in a row")
    })
    .await;
    assert_eq!(firsts.iter().sum::<u32>(), 1, "{firsts:?}");
    assert_eq!(accept(&**h, &message(1)).await, Accepted::Duplicate);
}

pub async fn takes_an_id_for_new_when_its_retention_has_passed<H: ReceivingHarness>(h: &Arc<H>) {
    assert_eq!(accept(&**h, &message(1)).await, Accepted::First);
    h.advance(WEEK - HOUR).await;
    assert_eq!(accept(&**h, &message(1)).await, Accepted::Duplicate);
    h.advance(2 * HOUR).await;
    assert_eq!(accept(&**h, &message(2)).await, Accepted::First);
}

pub async fn cut_short_accepts_nothing_after_rollback<H: ReceivingHarness>(h: &Arc<H>) {
    let mut ended = false;
    for polls in 0..POLLS {
        let mut tx = h.begin().await;
        let message = message(1);
        let accept = h.accept(&mut tx, &message);
        ended = cut_short(polls, accept).await.is_some();
        drop(tx);
        if ended {
            break;
        }
    }
    assert!(ended, "the call does not come to its end");
    assert_eq!(accept(&**h, &message(2)).await, Accepted::First);
}
