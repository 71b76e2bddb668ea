//! Dead letters to another transport.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use outbox_core::{
    DeadLetter, DeadLetterFilter, DeadLetters, Delivery, Error, Job, JobRun, Page, Timer,
    Transport, async_trait, error_text,
};

/// Delivers dead letters through another transport (an archive, a queue for people) and discards
/// each once it is there.
///
/// It works on the store's dead letters, not on failed attempts, so that it sees every reason of
/// death and a crash loses nothing: a letter that was forwarded and not yet discarded is forwarded
/// again. It is a [`Job`]; hold it to one process with a cluster lock, or letters go out twice.
///
/// ```
/// # use std::time::Duration;
/// use outbox_core::{DeadLetterFilter, Schedule, ScheduledJob, TokioTimer};
/// use outbox_tower::Forwarder;
/// # fn job(store: outbox_core::MemoryStore, archive: impl outbox_core::Transport + 'static) {
///
/// let forwarder = Forwarder::new(store.clone(), archive, TokioTimer)
///     .filter(DeadLetterFilter::destination("https://ci.example/hooks"))
///     .to("s3://dead-letters");
/// let job = ScheduledJob::new("forward", Schedule::every(Duration::from_secs(60)), forwarder)
///     .cluster(store);
/// # }
/// ```
pub struct Forwarder<D, T, C> {
    letters: D,
    transport: T,
    timer: C,
    filter: DeadLetterFilter,
    destination: Option<String>,
    timeout: Duration,
}

/// What a run of a [`Forwarder`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forwarded {
    /// Letters that were delivered and discarded.
    pub forwarded: u64,
    /// Letters that the transport failed on; they stay.
    pub failed: u64,
}

impl<D: DeadLetters, T: Transport, C: Timer> Forwarder<D, T, C> {
    /// Forwards all dead letters of `letters` through `transport`.
    pub fn new(letters: D, transport: T, timer: C) -> Self {
        Self {
            letters,
            transport,
            timer,
            filter: DeadLetterFilter::all(),
            destination: None,
            timeout: Duration::from_secs(30),
        }
    }

    /// Only these. Default: all.
    #[must_use]
    pub fn filter(mut self, filter: DeadLetterFilter) -> Self {
        self.filter = filter;
        self
    }

    /// The destination that the transport is given. Default: the event's own.
    #[must_use]
    pub fn to(mut self, destination: impl Into<String>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// The time for one delivery. Default: 30 s.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Goes once through the letters, one after the other, until `stop` says so.
    ///
    /// # Errors
    ///
    /// The store's. What the transport fails on is counted and logged.
    ///
    /// # Cancel safety
    ///
    /// A dropped run may have delivered a letter that it did not discard.
    pub async fn run_once(&self, stop: impl Fn() -> bool + Send) -> Result<Forwarded, Error> {
        let mut done = Forwarded::default();
        let mut page = Page::default();
        loop {
            let letters = self.letters.list(&self.filter, &page).await?;
            let Some(last) = letters.last().map(|letter| letter.event.seq) else {
                return Ok(done);
            };
            for letter in letters {
                if stop() {
                    return Ok(done);
                }
                if self.forward(letter).await? {
                    done.forwarded += 1;
                } else {
                    done.failed += 1;
                }
            }
            page = Page::after(last, page.rows);
        }
    }

    async fn forward(&self, letter: DeadLetter) -> Result<bool, Error> {
        let (seq, id) = (letter.event.seq, letter.event.id);
        let mut event = letter.event;
        if let Some(destination) = &self.destination {
            event.destination.clone_from(destination);
        }
        let delivery = Delivery::new(Arc::new(event), self.timeout);
        let result = futures::select_biased! {
            result = self.transport.deliver(delivery).fuse() => result.map_err(|e| e.report()),
            () = self.timer.sleep(self.timeout).fuse() => Err("timed out".to_owned()),
        };
        if let Err(error) = result {
            let error = error_text(&error);
            tracing::warn!(event_id = %id, seq, error, "a dead letter could not be forwarded");
            return Ok(false);
        }
        let mut this = DeadLetterFilter::seq(seq);
        this.reason = Some(letter.reason);
        self.letters.discard(&this, 1, "forwarded").await?;
        Ok(true)
    }
}

#[async_trait]
impl<D: DeadLetters, T: Transport, C: Timer> Job for Forwarder<D, T, C> {
    async fn run(&self, run: JobRun) -> Result<(), Error> {
        let done = self.run_once(|| run.is_stopping()).await?;
        if done != Forwarded::default() {
            tracing::info!(
                forwarded = done.forwarded,
                failed = done.failed,
                "dead letters forwarded"
            );
        }
        Ok(())
    }
}

impl<D, T, C> std::fmt::Debug for Forwarder<D, T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}
