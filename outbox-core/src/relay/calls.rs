//! Store calls under way, and their answers.

use std::time::Instant;

use futures::future::BoxFuture;

use super::pacing::Asked;
use super::settles::Batch;
use crate::faults::contained_future;
use crate::{
    Claim, ClaimRequest, Error, ErrorKind, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore,
};

pub(super) type Call<'a> = BoxFuture<'a, Answer>;

/// A store call that came back.
pub(super) struct Answer {
    pub(super) sent: Instant,
    pub(super) what: What,
}

pub(super) enum What {
    Claim {
        token: LeaseToken,
        asked: Asked,
        result: Result<Claim, Error>,
    },
    Settle {
        batch: Batch,
        result: Result<Vec<LeaseStatus>, Error>,
    },
    Extend {
        leases: Vec<Lease>,
        result: Result<Vec<LeaseStatus>, Error>,
    },
    ReleaseClaim {
        orphan: Orphan,
        result: Result<u64, Error>,
    },
    Hold {
        wish: HoldWish,
        result: Result<(), Error>,
    },
}

/// A claim whose answer was lost: it may have taken leases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orphan {
    pub(super) token: LeaseToken,
    /// When its leases have run out by themselves.
    pub(super) until: Instant,
}

/// A hold that the store does not know yet.
#[derive(Debug, Clone)]
pub(super) struct HoldWish {
    pub(super) destination: std::sync::Arc<str>,
    pub(super) reason: String,
    pub(super) until: Instant,
}

pub(super) fn claim(store: &dyn OutboxStore, request: ClaimRequest, sent: Instant) -> Call<'_> {
    Box::pin(async move {
        let result = call(async { store.claim(&request).await }).await;
        let asked = Asked {
            events: usize::try_from(request.rows.get()).unwrap_or(usize::MAX),
            bytes: request.bytes,
        };
        let token = request.token;
        let what = What::Claim {
            token,
            asked,
            result,
        };
        Answer { sent, what }
    })
}

pub(super) fn settle(store: &dyn OutboxStore, batch: Batch, sent: Instant) -> Call<'_> {
    Box::pin(async move {
        let result = call(async { store.settle(&batch.entries).await }).await;
        let what = What::Settle { batch, result };
        Answer { sent, what }
    })
}

pub(super) fn extend(
    store: &dyn OutboxStore,
    leases: Vec<Lease>,
    by: std::time::Duration,
    sent: Instant,
) -> Call<'_> {
    Box::pin(async move {
        let result = call(async { store.extend(&leases, by).await }).await;
        let what = What::Extend { leases, result };
        Answer { sent, what }
    })
}

pub(super) fn release_claim(store: &dyn OutboxStore, orphan: Orphan, sent: Instant) -> Call<'_> {
    Box::pin(async move {
        let result = call(async { store.release_claim(orphan.token).await }).await;
        let what = What::ReleaseClaim { orphan, result };
        Answer { sent, what }
    })
}

pub(super) fn hold(store: &dyn OutboxStore, wish: HoldWish, sent: Instant) -> Call<'_> {
    Box::pin(async move {
        let hold = Hold::For {
            period: wish.until.saturating_duration_since(sent),
            reason: wish.reason.clone(),
        };
        let result = call(async { store.hold(&wish.destination, hold).await }).await;
        let what = What::Hold { wish, result };
        Answer { sent, what }
    })
}

async fn call<T>(code: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    contained_future(code).await.unwrap_or_else(|panic| {
        let message = format!("the store panicked: {panic}");
        Err(Error::new(ErrorKind::Other, message))
    })
}
