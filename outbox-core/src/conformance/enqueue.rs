//! Storing events in the caller's transaction.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::Harness;
use super::kit::{
    HOUR, MINUTE, Must, POLLS, cut_short, drain, event, events, in_parallel, name, names,
    nothing_is_due, publish, put, request, sorted_names, stats, take, take_one,
};
use crate::{ErrorKind, EventId, NewEvent, OutboxStore};

pub async fn is_seen_after_commit<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    h.enqueue(&mut tx, event("a")).await.must("enqueue");
    h.commit(tx).await;
    assert_eq!(name(&take_one(&**h).await), "a");
}

pub async fn is_not_seen_before_commit<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    h.enqueue(&mut tx, event("a")).await.must("enqueue");
    if h.capabilities().concurrent_transactions {
        nothing_is_due(&**h).await;
        assert_eq!(stats(&**h).await.pending.value, 0);
    }
    h.commit(tx).await;
    assert_eq!(name(&take_one(&**h).await), "a");
}

pub async fn is_gone_after_rollback<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    h.enqueue_all(&mut tx, events("a", 3)).await.must("enqueue");
    h.rollback(tx).await;
    nothing_is_due(&**h).await;
    assert_eq!(stats(&**h).await.pending.value, 0);
}

pub async fn is_gone_when_the_transaction_is_dropped<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    h.enqueue(&mut tx, event("a")).await.must("enqueue");
    drop(tx);
    put(&**h, [event("b")]).await;
    assert_eq!(drain(&**h, 10).await, ["b"]);
}

pub async fn is_gone_where_the_producer_panics<H: Harness>(h: &Arc<H>) {
    let producer = async {
        let mut tx = h.begin().await;
        h.enqueue(&mut tx, event("a")).await.must("enqueue");
        panic!("the producer fails, as this case wants");
    };
    let ended = std::panic::AssertUnwindSafe(producer).catch_unwind().await;
    assert!(ended.is_err());
    put(&**h, [event("b")]).await;
    assert_eq!(drain(&**h, 10).await, ["b"]);
}

pub async fn cut_short_leaves_nothing_after_rollback<H: Harness>(h: &Arc<H>) {
    let mut ended = false;
    for polls in 0..POLLS {
        let mut tx = h.begin().await;
        let list = vec![event("a"), event("b").dedup_key("once")];
        ended = cut_short(polls, h.enqueue_all(&mut tx, list))
            .await
            .is_some();
        drop(tx);
        if ended {
            break;
        }
    }
    assert!(ended, "the call does not come to its end");
    let answers = put(&**h, [event("c").dedup_key("once")]).await;
    assert!(!answers[0].duplicate, "the key of an event that is nowhere");
    assert_eq!(drain(&**h, 10).await, ["c"]);
}

pub async fn keeps_every_field<H: Harness>(h: &Arc<H>) {
    let new = NewEvent::bytes("Größe", "{}")
        .to("https://ci.example/hooks?a=b&c='d'")
        .key("key \u{1f511}")
        .aggregate("repository", "7'\"\\")
        .content_type("application/json")
        .header(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        )
        .header("x-empty", "")
        .dedup_key("once")
        .expires_in(HOUR)
        .max_attempts(3);
    let answers = put(&**h, [new.clone()]).await;
    assert_eq!(answers[0].id, new.event_id());
    assert!(!answers[0].duplicate);

    let claimed = take_one(&**h).await;
    let got = &claimed.event;
    assert_eq!(got.id, new.event_id());
    assert_eq!(got.event_type, new.event_type());
    assert_eq!(got.destination, new.destination());
    assert_eq!(got.payload, new.payload());
    assert_eq!(got.content_type, new.media_type());
    assert_eq!(got.aggregate_type.as_deref(), new.aggregate_type());
    assert_eq!(got.aggregate_id.as_deref(), new.aggregate_id());
    assert_eq!(got.key.as_deref(), new.ordering_key());
    assert_eq!(&got.headers, new.headers());
    assert_eq!(got.dedup_key.as_deref(), new.dedup());
    assert_eq!(got.max_attempts, new.attempt_limit());
    assert_eq!((got.attempts, got.replays), (1, 0));
    assert_eq!(got.last_error, None);
    let lifetime = got
        .expires_at
        .and_then(|at| at.duration_since(got.created_at).ok());
    assert_eq!(lifetime, Some(HOUR));
    assert!(!claimed.expired);
}

pub async fn keeps_what_is_not_set_unset<H: Harness>(h: &Arc<H>) {
    put(&**h, [NewEvent::bytes("T", "").to("d")]).await;
    let got = take_one(&**h).await.event;
    assert_eq!(got.payload.len(), 0);
    assert_eq!(got.content_type, "application/octet-stream");
    assert!(got.headers.is_empty());
    let unset = [
        &got.aggregate_type,
        &got.aggregate_id,
        &got.key,
        &got.dedup_key,
    ];
    assert_eq!(unset, [&None; 4]);
    assert_eq!((got.expires_at, got.max_attempts), (None, None));
}

pub async fn keeps_payloads_byte_for_byte<H: Harness>(h: &Arc<H>) {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let megabyte: Vec<u8> = every_byte.iter().copied().cycle().take(1 << 20).collect();
    let payloads = [
        b"\0".to_vec(),
        b"{ \"b\": 1,  \"a\": 1.0 }\r\n".to_vec(),
        b"\xff\xfe not text \xc3\x28".to_vec(),
        every_byte,
        megabyte,
    ];
    let new = |payload: &Vec<u8>| NewEvent::bytes("T", payload.clone()).to("d");
    put(&**h, payloads.iter().map(new).collect::<Vec<_>>()).await;
    let got = take(&**h, payloads.len()).await;
    for (got, given) in got.iter().zip(&payloads) {
        assert!(
            got.event.payload == given.as_slice(),
            "{} bytes changed",
            given.len()
        );
    }
}

pub async fn numbers_ascend_in_the_order_given<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    h.enqueue(&mut tx, event("a")).await.must("enqueue");
    let more = ["b", "c", "d"].map(event);
    h.enqueue_all(&mut tx, more.to_vec()).await.must("enqueue");
    h.enqueue(&mut tx, event("e")).await.must("enqueue");
    h.commit(tx).await;
    assert_eq!(names(&take(&**h, 5).await), ["a", "b", "c", "d", "e"]);
}

pub async fn numbers_are_never_reused<H: Harness>(h: &Arc<H>) {
    put(&**h, events("a", 3)).await;
    let first = take(&**h, 3).await;
    publish(&**h, &first).await;
    let mut tx = h.begin().await;
    h.enqueue(&mut tx, event("b")).await.must("enqueue");
    h.rollback(tx).await;
    put(&**h, [event("c")]).await;
    let next = take_one(&**h).await;
    assert!(first.iter().all(|old| old.lease.seq < next.lease.seq));
}

pub async fn stores_thousands_at_once<H: Harness>(h: &Arc<H>) {
    let many = events("", 3_000);
    let answers = put(&**h, many.clone()).await;
    let ids = |list: &[NewEvent]| list.iter().map(NewEvent::event_id).collect::<Vec<_>>();
    let stored: Vec<EventId> = answers.iter().map(|answer| answer.id).collect();
    assert_eq!(stored, ids(&many));
    assert_eq!(take(&**h, 3_000).await.len(), 3_000);
}

pub async fn stores_nothing_for_an_empty_list<H: Harness>(h: &Arc<H>) {
    assert_eq!(put(&**h, []).await, []);
    nothing_is_due(&**h).await;
}

pub async fn refuses_what_breaks_a_limit_and_leaves_the_transaction_usable<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    let refused = h.enqueue(&mut tx, event("a").key("k".repeat(256))).await;
    let error = match refused {
        Err(error) => error,
        Ok(_) => panic!("a key of 256 bytes was stored"),
    };
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert!(error.to_string().contains("`key`"), "{error}");
    h.enqueue(&mut tx, event("b")).await.must("enqueue");
    h.commit(tx).await;
    assert_eq!(drain(&**h, 10).await, ["b"]);
}

pub async fn refuses_all_of_a_list_where_one_breaks_a_limit<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    let list = vec![event("a"), event("b").to(""), event("c")];
    let refused = h.enqueue_all(&mut tx, list).await;
    assert_eq!(
        refused.err().map(|error| error.kind()),
        Some(ErrorKind::InvalidEvent)
    );
    h.commit(tx).await;
    nothing_is_due(&**h).await;
}

pub async fn of_a_known_dedup_key_stores_nothing<H: Harness>(h: &Arc<H>) {
    let first = put(&**h, [event("a").dedup_key("once")]).await[0];
    let second = put(&**h, [event("b").dedup_key("once")]).await[0];
    assert_eq!((first.duplicate, second.duplicate), (false, true));
    assert_eq!(second.id, first.id);
    assert_eq!(drain(&**h, 10).await, ["a"]);
    let third = put(&**h, [event("c").dedup_key("once")]).await[0];
    assert!(third.duplicate, "the key outlives the delivery");
    assert_eq!(third.id, first.id);
    nothing_is_due(&**h).await;
}

pub async fn of_several_with_one_dedup_key_stores_the_first<H: Harness>(h: &Arc<H>) {
    let list = ["a", "b", "c"].map(|name| event(name).dedup_key("once"));
    let mut tx = h.begin().await;
    let answers = h.enqueue_all(&mut tx, list.to_vec()).await.must("enqueue");
    let again = h
        .enqueue(&mut tx, event("d").dedup_key("once"))
        .await
        .must("enqueue");
    h.commit(tx).await;
    let duplicates: Vec<bool> = answers.iter().map(|answer| answer.duplicate).collect();
    assert_eq!(duplicates, [false, true, true]);
    assert!(again.duplicate);
    assert!(answers.iter().all(|answer| answer.id == again.id));
    assert_eq!(drain(&**h, 10).await, ["a"]);
}

pub async fn of_a_list_answers_in_its_order<H: Harness>(h: &Arc<H>) {
    put(&**h, [event("x").dedup_key("x"), event("y").dedup_key("y")]).await;
    let list = vec![
        event("a"),
        event("b").dedup_key("y"),
        event("c").dedup_key("c"),
        event("d").dedup_key("x"),
        event("e"),
    ];
    let ids: Vec<EventId> = list.iter().map(NewEvent::event_id).collect();
    let answers = put(&**h, list).await;
    let duplicates: Vec<bool> = answers.iter().map(|answer| answer.duplicate).collect();
    assert_eq!(duplicates, [false, true, false, true, false]);
    for stored in [0, 2, 4] {
        assert_eq!(answers[stored].id, ids[stored]);
    }
    assert_eq!(
        sorted_names(&take(&**h, 5).await),
        ["a", "c", "e", "x", "y"]
    );
}

pub async fn of_thousands_stores_each_dedup_key_once<H: Harness>(h: &Arc<H>) {
    let keyed = |n: usize| event(&n.to_string()).dedup_key((n % 700).to_string());
    let list: Vec<NewEvent> = (0..2_000).map(keyed).collect();
    let ids: Vec<EventId> = list.iter().map(NewEvent::event_id).collect();
    let answers = put(&**h, list).await;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.duplicate, n >= 700, "event {n}");
        assert_eq!(answer.id, ids[n % 700], "event {n}");
    }
    assert_eq!(take(&**h, 700).await.len(), 700);
    nothing_is_due(&**h).await;
}

pub async fn rolled_back_frees_its_dedup_key<H: Harness>(h: &Arc<H>) {
    let mut tx = h.begin().await;
    h.enqueue(&mut tx, event("a").dedup_key("once"))
        .await
        .must("enqueue");
    h.rollback(tx).await;
    let answer = put(&**h, [event("b").dedup_key("once")]).await[0];
    assert!(!answer.duplicate);
    assert_eq!(drain(&**h, 10).await, ["b"]);
}

pub async fn tells_dedup_keys_apart_byte_for_byte<H: Harness>(h: &Arc<H>) {
    let keys = ["once", "Once", "once ", "oncé"];
    let list: Vec<_> = keys.iter().map(|key| event(key).dedup_key(*key)).collect();
    let answers = put(&**h, list).await;
    assert!(
        answers.iter().all(|answer| !answer.duplicate),
        "{answers:?}"
    );
}

pub async fn in_parallel_stores_one_for_a_dedup_key<H: Harness>(h: &Arc<H>) {
    let workers = h.capabilities().workers;
    let answers = in_parallel(h, workers, |h, n| async move {
        for _ in 0..100 {
            let mut tx = h.begin().await;
            let new = event(&n.to_string()).dedup_key("once");
            match h.enqueue(&mut tx, new).await {
                Ok(answer) => {
                    h.commit(tx).await;
                    return answer;
                }
                Err(error) if error.is_retryable() => h.rollback(tx).await,
                Err(error) => panic!("enqueue failed: {error:?}"),
            }
        }
        panic!("a hundred conflicts in a row");
    })
    .await;
    let stored: Vec<_> = answers.iter().filter(|answer| !answer.duplicate).collect();
    assert_eq!(stored.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.id == stored[0].id));
    assert_eq!(drain(&**h, 10).await.len(), 1);
}

pub async fn refuses_the_id_of_an_open_event<H: Harness>(h: &Arc<H>) {
    let id = put(&**h, [event("a")]).await[0].id;
    let mut tx = h.begin().await;
    let refused = h.enqueue(&mut tx, event("b").id(id)).await;
    assert!(refused.is_err(), "an id is open twice");
    h.rollback(tx).await;
    assert_eq!(drain(&**h, 10).await, ["a"]);
}

pub async fn refused_for_its_id_takes_no_dedup_key<H: Harness>(h: &Arc<H>) {
    let id = put(&**h, [event("a")]).await[0].id;
    let mut tx = h.begin().await;
    let refused = h
        .enqueue(&mut tx, event("b").id(id).dedup_key("once"))
        .await;
    assert!(refused.is_err(), "an id is open twice");
    // A producer who goes on; some databases take this for a rollback.
    h.commit(tx).await;
    let answer = put(&**h, [event("c").dedup_key("once")]).await[0];
    assert!(!answer.duplicate, "the key of an event that is nowhere");
    assert_eq!(drain(&**h, 10).await, ["a", "c"]);
}

pub async fn accepts_the_id_of_a_published_event<H: Harness>(h: &Arc<H>) {
    for name in ["a", "b", "c"] {
        put(&**h, [event(name).id(EventId::from_bytes([7; 16]))]).await;
        assert_eq!(drain(&**h, 10).await, [name]);
    }
}

pub async fn with_a_delay_is_due_after_it<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [event("a").delay(MINUTE), event("b").delay(2 * MINUTE)],
    )
    .await;
    nothing_is_due(&**h).await;
    h.advance(MINUTE + Duration::from_secs(1)).await;
    assert_eq!(name(&take_one(&**h).await), "a");
    nothing_is_due(&**h).await;
    h.advance(MINUTE).await;
    assert_eq!(name(&take_one(&**h).await), "b");
}

pub async fn bears_any_delay_and_lifetime<H: Harness>(h: &Arc<H>) {
    put(
        &**h,
        [
            event("a").delay(Duration::MAX),
            event("b").expires_in(Duration::MAX),
        ],
    )
    .await;
    let b = take_one(&**h).await;
    assert_eq!((name(&b).as_str(), b.expired), ("b", false));
    put(
        &**h,
        [
            event("c").delay(Duration::ZERO),
            event("d").expires_in(Duration::ZERO),
        ],
    )
    .await;
    let taken = take(&**h, 2).await;
    assert_eq!(names(&taken), ["c", "d"]);
    assert!(taken[1].expired);
    h.advance(HOUR).await;
    let claim = h.store().claim(&request(10)).await.must("claim");
    assert!(!names(&claim.events).contains(&"a".to_owned()));
}
