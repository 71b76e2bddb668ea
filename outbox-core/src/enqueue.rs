//! The producer's side: storing an event in the caller's own transaction.

use std::sync::Mutex;

use async_trait::async_trait;

use crate::{Error, EventId, EventLimits, NewEvent};

/// What an enqueue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The id of the stored event: the new one's, or the first one's where the key was taken.
    pub id: EventId,
    /// True where the de-duplication key was taken and nothing was stored.
    pub duplicate: bool,
}

impl Enqueued {
    /// A new event was stored.
    #[must_use]
    pub const fn stored(id: EventId) -> Self {
        Self {
            id,
            duplicate: false,
        }
    }

    /// The key belongs to this earlier event.
    #[must_use]
    pub const fn duplicate_of(id: EventId) -> Self {
        Self {
            id,
            duplicate: true,
        }
    }
}

/// Stores events through the caller's connection or open transaction `C`.
///
/// Write a producer against this trait and its unit tests need no database: see
/// [`RecordingOutbox`].
///
/// # Contract
///
/// * The event commits and rolls back with the caller's transaction; nothing else is opened.
/// * Limits are checked before anything is sent, so that a refused event leaves the transaction
///   usable. After any other error roll back: some of the events may be stored in it.
/// * Without a transaction each statement commits by itself, so that of many events some may be stored
///   where a call fails. Of one event that has a de-duplication key, both are stored or neither; but not
///   on MySQL, where they are two statements: a call that is dropped, or loses its connection, between
///   them leaves the key to an event that is nowhere. So begin one, even for a single event.
/// * Numbers (`seq`) are given at the insert, ascending in the order of the events, and are never
///   given again, whatever rolls back.
/// * An id that belongs to an open event is refused. That of a published or dead event is not: only
///   a de-duplication key guards longer, until it is [pruned](crate::Maintenance).
/// * Answers come in the order of the events; of several with one de-duplication key the first wins.
///
/// # Errors
///
/// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) names the field;
/// [`Conflict`](crate::ErrorKind::Conflict) where another open transaction has the de-duplication key
/// and the store can't wait for it, or a repeatable-read transaction can't see the
/// de-duplication key that it ran into; else as [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// A dropped call leaves the caller's transaction as the driver leaves it: roll it back.
#[async_trait]
pub trait Enqueue<C: ?Sized>: Send + Sync {
    /// Stores one event.
    async fn enqueue(&self, conn: &mut C, event: NewEvent) -> Result<Enqueued, Error>;

    /// Stores many events in as few statements as the database takes: one for 10,000 events or 16 MiB
    /// on PostgreSQL (256 MiB where there are de-duplication keys), for 500 or 1 MiB on MySQL and MariaDB,
    /// for 2,000 or 16 MiB on SQLite.
    ///
    /// De-duplication keys are taken in their order, so that two calls with the same ones wait for each
    /// other and do not deadlock; but on PostgreSQL, in the order of each statement. A call of more than
    /// 256 MiB there, and two calls in one transaction anywhere, can deadlock with another that
    /// has their keys: [`Conflict`](crate::ErrorKind::Conflict), so repeat the transaction.
    async fn enqueue_all(
        &self,
        conn: &mut C,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error>;
}

/// An outbox for a producer's unit tests: it keeps what was enqueued and needs no database.
///
/// It checks the [limits](EventLimits) as a store does; it keeps no de-duplication keys.
///
/// ```
/// # futures::executor::block_on(async {
/// use outbox_core::{Enqueue, NewEvent, RecordingOutbox};
///
/// async fn accept_push<C: Send>(outbox: &impl Enqueue<C>, tx: &mut C) -> Result<(), outbox_core::Error> {
///     let event = NewEvent::json("RepositoryPushed", &7)?.to("https://ci.example/hooks");
///     outbox.enqueue(tx, event).await.map(drop)
/// }
///
/// let outbox = RecordingOutbox::default();
/// accept_push(&outbox, &mut ()).await?;
/// assert_eq!(outbox.events()[0].event_type(), "RepositoryPushed");
/// # Ok::<(), outbox_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct RecordingOutbox {
    limits: EventLimits,
    events: Mutex<Vec<NewEvent>>,
}

impl RecordingOutbox {
    /// What was enqueued so far, in order.
    #[must_use]
    pub fn events(&self) -> Vec<NewEvent> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<NewEvent>> {
        self.events
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl Enqueue<()> for RecordingOutbox {
    async fn enqueue(&self, conn: &mut (), event: NewEvent) -> Result<Enqueued, Error> {
        self.enqueue_all(conn, vec![event])
            .await
            .map(|mut all| all.remove(0))
    }

    async fn enqueue_all(&self, _: &mut (), events: Vec<NewEvent>) -> Result<Vec<Enqueued>, Error> {
        events
            .iter()
            .try_for_each(|event| self.limits.check(event))?;
        let answers = events
            .iter()
            .map(|event| Enqueued::stored(event.event_id()))
            .collect();
        self.lock().extend(events);
        Ok(answers)
    }
}
