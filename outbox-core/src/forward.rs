//! Every trait for `Arc<T>`, `Box<T>` and `&T`, so that `Arc<dyn OutboxStore>` is a store.
//!
//! The methods are written as `async_trait` would expand them and return the inner future itself:
//! a wrapper costs no allocation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::{
    Accepted, BeginKey, Begun, BlockedKey, BlockedKeyPage, Claim, ClaimRequest, Clock, CompleteKey,
    DeadHeadPolicy, DeadLetter, DeadLetterFilter, DeadLetters, Delivery, DeliveryError,
    DestinationPage, DestinationState, Destinations, Enqueue, Enqueued, Error, Event,
    FailedAttempt, Hold, IdempotencyKey, IdempotencyKeys, Inbox, InboxMessage, Lease, LeaseStatus,
    LeaseToken, LockRequest, LockStatus, Locks, Maintenance, NewEvent, Observer, OutboxStore, Page,
    Prune, Pruned, Receipt, Replay, RetryDecision, RetryPolicy, Settlement, SignatureHeader,
    Signer, SigningInput, Spawn, Stats, Timer, Transition, Transport, Wake,
};

macro_rules! forward {
    ($trait:ident $(<$param:ident>)? { $($methods:tt)* }) => {
        forward!(@impl $trait $(<$param>)? for Arc<T> { $($methods)* });
        forward!(@impl $trait $(<$param>)? for Box<T> { $($methods)* });
        forward!(@impl $trait $(<$param>)? for &T { $($methods)* });
    };
    (@impl $trait:ident $(<$param:ident>)? for $pointer:ty {
        $(async fn $name:ident $(<$($life:lifetime),+>)? ($($arg:ident: $type:ty),*) -> $out:ty;)*
        $(fn $plain:ident($($plain_arg:ident: $plain_type:ty),*) $(-> $plain_out:ty)?;)*
    }) => {
        impl<$($param: ?Sized,)? T: $trait $(<$param>)? + ?Sized> $trait $(<$param>)? for $pointer {
            $(fn $name<'life0, $($($life,)+)? 'async_trait>(
                &'life0 self,
                $($arg: $type),*
            ) -> Pin<Box<dyn Future<Output = $out> + Send + 'async_trait>>
            where
                'life0: 'async_trait,
                $($($life: 'async_trait,)+)?
                Self: 'async_trait,
            {
                (**self).$name($($arg),*)
            })*
            $(fn $plain(&self, $($plain_arg: $plain_type),*) $(-> $plain_out)? {
                (**self).$plain($($plain_arg),*)
            })*
        }
    };
}

forward!(OutboxStore {
    async fn claim<'a>(request: &'a ClaimRequest) -> Result<Claim, Error>;
    async fn settle<'a>(batch: &'a [Settlement]) -> Result<Vec<LeaseStatus>, Error>;
    async fn extend<'a>(leases: &'a [Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error>;
    async fn release<'a>(leases: &'a [Lease]) -> Result<Vec<LeaseStatus>, Error>;
    async fn release_claim(token: LeaseToken) -> Result<u64, Error>;
    async fn hold<'a>(destination: &'a str, hold: Hold) -> Result<(), Error>;
});

forward!(DeadLetters {
    async fn list<'a, 'b>(filter: &'a DeadLetterFilter, page: &'b Page) -> Result<Vec<DeadLetter>, Error>;
    async fn get(seq: i64) -> Result<Option<DeadLetter>, Error>;
    async fn replay<'a>(replay: &'a Replay) -> Result<u64, Error>;
    async fn discard<'a, 'b>(filter: &'a DeadLetterFilter, rows: u32, reason: &'b str) -> Result<u64, Error>;
});

forward!(Maintenance {
    async fn stats(count_limit: u32) -> Result<Stats, Error>;
    async fn prune<'a>(prune: &'a Prune) -> Result<Pruned, Error>;
});

forward!(Destinations {
    async fn set_dead_head_policy<'a>(destination: &'a str, policy: DeadHeadPolicy) -> Result<(), Error>;
    async fn destinations<'a>(page: &'a DestinationPage) -> Result<Vec<DestinationState>, Error>;
    async fn blocked_keys<'a>(page: &'a BlockedKeyPage) -> Result<Vec<BlockedKey>, Error>;
});

forward!(Enqueue<C> {
    async fn enqueue<'a>(conn: &'a mut C, event: NewEvent) -> Result<Enqueued, Error>;
    async fn enqueue_all<'a>(conn: &'a mut C, events: Vec<NewEvent>) -> Result<Vec<Enqueued>, Error>;
});

forward!(Inbox<C> {
    async fn accept<'a, 'b>(conn: &'a mut C, message: &'b InboxMessage) -> Result<Accepted, Error>;
});

forward!(IdempotencyKeys {
    async fn begin_key<'a>(request: &'a BeginKey) -> Result<Begun, Error>;
    async fn complete_key<'a>(request: &'a CompleteKey) -> Result<LeaseStatus, Error>;
    async fn abandon_key<'a>(key: &'a IdempotencyKey, token: LeaseToken) -> Result<LeaseStatus, Error>;
    async fn extend_key<'a>(key: &'a IdempotencyKey, token: LeaseToken, by: Duration) -> Result<LeaseStatus, Error>;
    async fn prune_keys(rows: u32) -> Result<u64, Error>;
});

forward!(Locks {
    async fn try_lock<'a>(request: &'a LockRequest) -> Result<LockStatus, Error>;
    async fn extend_lock<'a>(name: &'a str, token: LeaseToken, by: Duration) -> Result<LeaseStatus, Error>;
    async fn unlock<'a>(name: &'a str, token: LeaseToken, cooldown: Duration) -> Result<LeaseStatus, Error>;
});

forward!(Transport {
    async fn deliver(delivery: Delivery) -> Result<Receipt, DeliveryError>;
});

forward!(Signer {
    async fn sign<'a>(input: &'a SigningInput) -> Result<Vec<SignatureHeader>, Error>;
});

forward!(RetryPolicy {
    fn validate() -> Result<(), Error>;
    fn max_attempts(event: &Event) -> u32;
    fn retry_after_cap(event: &Event) -> Duration;
    fn decide(attempt: &FailedAttempt, error: &DeliveryError) -> RetryDecision;
});

forward!(Observer {
    fn on(transition: &Transition<'_>);
});

forward!(Timer {
    fn now() -> Instant;
    fn sleep(period: Duration) -> BoxFuture<'static, ()>;
});

forward!(Wake {
    fn wakes() -> BoxStream<'static, ()>;
});

forward!(Spawn {
    fn spawn(task: BoxFuture<'static, ()>);
});

forward!(Clock {
    fn now() -> SystemTime;
});
