#![doc = include_str!("../README.md")]

mod calendar;
mod claim;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dead_letters;
mod delivery_error;
mod destinations;
mod enqueue;
mod error;
mod event;
mod faults;
mod forward;
mod id;
mod idempotency;
mod limits;
mod locks;
mod maintenance;
mod memory;
#[cfg(feature = "mock")]
pub mod mock;
mod new_event;
mod observe;
mod relay;
mod retry;
mod rt;
mod schedule;
mod settle;
mod signer;
mod spread;
#[cfg(feature = "sql")]
pub mod sql;
mod store;
mod supervisor;
mod text;
mod transport;
mod wake;

/// The attribute that implementations of this crate's traits need.
pub use async_trait::async_trait;
pub use bytes::Bytes;

pub use claim::{Claim, ClaimRequest, Claimed, DestinationFilter, Lease, Undecodable};
pub use clock::{Clock, ManualClock, SystemClock};
pub use dead_letters::{DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, Page, Replay};
pub use delivery_error::{DeliveryError, DeliveryErrorKind};
pub use destinations::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
};
pub use enqueue::{Enqueue, Enqueued, RecordingOutbox};
pub use error::{Error, ErrorKind};
pub use event::Event;
pub use id::{EventId, LeaseToken};
pub use idempotency::{
    Accepted, BeginKey, Begun, CompleteKey, Fingerprint, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage,
};
pub use limits::{EventLimits, MAX_DESTINATION, MAX_KEY, MAX_NAME};
pub use locks::{LockRequest, LockStatus, Locks};
pub use maintenance::{Count, Maintenance, Prune, Pruned, Stats};
pub use memory::{MemoryStore, MemoryTx, Retention};
pub use new_event::{NewEvent, TypedEvent};
#[cfg(feature = "metrics")]
pub use observe::MetricsObserver;
pub use observe::{
    Alert, Alerts, FanOut, Observer, Recorded, RecordingObserver, TRACEPARENT, TraceParent, Traced,
    TracingObserver, Transition, shown_destination,
};
pub use relay::{Relay, RelayBuilder, Report};
pub use retry::{
    Backoff, FailedAttempt, FixedSchedule, Jitter, RetryDecision, RetryPolicy, RetryRoutes,
};
#[cfg(feature = "smol")]
pub use rt::{SmolSpawn, SmolTimer};
pub use rt::{Spawn, Timer};
#[cfg(feature = "tokio")]
pub use rt::{TokioSpawn, TokioTimer};
pub use schedule::{
    Job, JobEnd, JobReport, JobRun, Missed, Schedule, ScheduledJob, Scheduler, SchedulerBuilder,
    SchedulerReport, jobs,
};
pub use settle::{Hold, LeaseStatus, Outcome, Settlement};
pub use signer::{SignatureHeader, Signer, SigningInput};
pub use store::OutboxStore;
pub use supervisor::{
    Budgets, OnFailure, Readiness, ShutdownCause, ShutdownReport, Signal, Stop, Supervisor,
    SupervisorBuilder, TaskEnd, TaskKind, TaskOutput, TaskReport, Trigger,
};
pub use text::{MAX_ERROR_TEXT, error_text};
pub use transport::{Delivery, Phase, Receipt, Transport};
pub use wake::{Poke, Wake};

#[cfg(feature = "mock")]
pub use {
    dead_letters::MockDeadLetters, destinations::MockDestinations,
    idempotency::MockIdempotencyKeys, locks::MockLocks, maintenance::MockMaintenance,
    retry::MockRetryPolicy, signer::MockSigner, store::MockOutboxStore, transport::MockTransport,
};

// The examples in the pages beside the code are tested with the crate's own.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guarantees.md")]
#[doc = include_str!("../../docs/operations.md")]
mod pages {}
