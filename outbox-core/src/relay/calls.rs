//! Store calls under way, and their answers.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, Either, OptionFuture, select};

use super::pacing::Asked;
use super::settings::LONGEST;
use super::settles::Batch;
use crate::faults::{contained, contained_future};
use crate::{
    Claim, ClaimRequest, Error, ErrorKind, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Timer,
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

/// Makes calls to a store. One that is not answered in time is dropped, and has failed.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) store: &'a dyn OutboxStore,
    pub(super) timer: &'a dyn Timer,
    pub(super) timeout: Duration,
}

impl<'a> Caller<'a> {
    pub(super) fn claim(self, request: ClaimRequest, asked: Asked, sent: Instant) -> Call<'a> {
        Box::pin(async move {
            let result = self.call(async { self.store.claim(&request).await }).await;
            let token = request.token;
            let what = What::Claim {
                token,
                asked,
                result,
            };
            Answer { sent, what }
        })
    }

    pub(super) fn settle(self, batch: Batch, sent: Instant) -> Call<'a> {
        Box::pin(async move {
            let call = async { self.store.settle(&batch.entries).await };
            let result = self.call(call).await;
            let what = What::Settle { batch, result };
            Answer { sent, what }
        })
    }

    pub(super) fn extend(self, leases: Vec<Lease>, by: Duration, sent: Instant) -> Call<'a> {
        Box::pin(async move {
            let result = self.call(async { self.store.extend(&leases, by).await });
            let result = result.await;
            let what = What::Extend { leases, result };
            Answer { sent, what }
        })
    }

    pub(super) fn release_claim(self, orphan: Orphan, sent: Instant) -> Call<'a> {
        Box::pin(async move {
            let call = async { self.store.release_claim(orphan.token).await };
            let result = self.call(call).await;
            let what = What::ReleaseClaim { orphan, result };
            Answer { sent, what }
        })
    }

    pub(super) fn hold(self, wish: HoldWish, sent: Instant) -> Call<'a> {
        Box::pin(async move {
            let hold = Hold::For {
                period: wish.until.saturating_duration_since(sent),
                reason: wish.reason.clone(),
            };
            let call = async { self.store.hold(&wish.destination, hold).await };
            let result = self.call(call).await;
            let what = What::Hold { wish, result };
            Answer { sent, what }
        })
    }

    async fn call<T>(self, code: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut code = pin!(OptionFuture::from(Some(contained_future(code))));
        let timeout = self.timer.sleep(self.timeout.min(LONGEST));
        let answer = match select(code.as_mut(), timeout).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => None,
        };
        answer.map_or_else(
            || {
                let _ = contained(|| code.set(OptionFuture::from(None)));
                let message = format!("the store has not answered within {:?}", self.timeout);
                Err(Error::new(ErrorKind::Unavailable, message))
            },
            |answer| {
                answer.unwrap_or_else(|panic| {
                    let message = format!("the store panicked: {panic}");
                    Err(Error::new(ErrorKind::Other, message))
                })
            },
        )
    }
}
