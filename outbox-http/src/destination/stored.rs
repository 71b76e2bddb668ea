//! Destinations that are rows of a table, kept for a while.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outbox_core::{Error, ErrorKind};
use tokio::time::Instant;

use super::kept::{Answer, Entry, Kept, Known};
use super::{DestinationRecord, Destinations, Resolution};

/// For how long a lookup that failed is not repeated.
const FAILED: Duration = Duration::from_secs(1);

/// Reads one destination: a query by its name.
///
/// # Contract
///
/// `None` where there is no such row: its events are then dead letters. A row that is disabled is a
/// record that says so: its events stay pending. Read from the primary, not from a replica that lags.
///
/// # Errors
///
/// Any: nothing is attempted now, or what was known is used a while longer.
///
/// # Cancel safety
///
/// Dropping the future changes nothing.
///
/// # Example
///
/// ```
/// use outbox_http::outbox_core::{async_trait, Error};
/// use outbox_http::{DestinationRecord, DestinationStore, SecretText};
///
/// # struct Row { url: String, secret: String, disabled: Option<String> }
/// # struct Pool;
/// # impl Pool { async fn select(&self, _: &str) -> Result<Option<Row>, Error> { Ok(None) } }
/// struct Subscriptions(Pool);
///
/// #[async_trait]
/// impl DestinationStore for Subscriptions {
///     async fn find(&self, destination: &str) -> Result<Option<DestinationRecord>, Error> {
///         Ok(self.0.select(destination).await?.map(|row| {
///             let mut record = DestinationRecord::new(row.url);
///             record.secrets.push(SecretText::new("current", row.secret));
///             record.disabled = row.disabled;
///             record
///         }))
///     }
/// }
/// ```
#[async_trait]
pub trait DestinationStore: Send + Sync {
    /// The row of this name.
    async fn find(&self, destination: &str) -> Result<Option<DestinationRecord>, Error>;
}

/// [`Destinations`] out of a [`DestinationStore`], with a bounded cache that forgets.
///
/// However many deliveries ask at once, a destination is looked up once at a time. While what is
/// known is looked up anew, one delivery waits for it and the others go on with what is known. When
/// the store can't answer, what is known counts a while longer; where nothing is known, nothing is
/// attempted, and nothing is charged. An endpoint is made anew only when its record has changed, so
/// that its limits count all its deliveries. A row that makes no endpoint (no URL, a secret that is
/// refused) costs no attempts either: its events wait until it is mended.
///
/// Share it by `Arc` to [`forget`](Self::forget) what has just been changed:
///
/// ```
/// # use outbox_http::outbox_core::{async_trait, Error};
/// # use outbox_http::{DestinationRecord, DestinationStore};
/// # struct Subscriptions;
/// # #[async_trait]
/// # impl DestinationStore for Subscriptions {
/// #     async fn find(&self, _: &str) -> Result<Option<DestinationRecord>, Error> { Ok(None) }
/// # }
/// use std::sync::Arc;
/// use outbox_http::{StoredDestinations, Webhooks};
///
/// let destinations = Arc::new(StoredDestinations::new(Subscriptions));
/// let webhooks = Webhooks::builder().destinations(destinations.clone()).build()?;
/// destinations.forget("customer-7");
/// # Ok::<(), Error>(())
/// ```
pub struct StoredDestinations<S> {
    store: S,
    kept: Kept,
    fresh_for: Duration,
    stale_for: Duration,
    unknown_for: Duration,
}

impl<S: DestinationStore> StoredDestinations<S> {
    /// Rows of this store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            kept: Kept::new(10_000),
            fresh_for: Duration::from_secs(30),
            stale_for: Duration::from_secs(600),
            unknown_for: Duration::from_secs(1),
        }
    }

    /// After how long a destination is looked up anew: the longest that a change takes to be heeded
    /// while the store answers. Default: 30 s.
    #[must_use]
    pub const fn fresh_for(mut self, limit: Duration) -> Self {
        self.fresh_for = limit;
        self
    }

    /// For how long after that the last answer counts while the store can't be asked. Default: 10
    /// minutes.
    #[must_use]
    pub const fn stale_for(mut self, limit: Duration) -> Self {
        self.stale_for = limit;
        self
    }

    /// For how long it counts that there is no such destination, or that its row makes no endpoint.
    /// Short, because the events of an unknown destination are dead letters. Default: 1 s.
    #[must_use]
    pub const fn unknown_for(mut self, limit: Duration) -> Self {
        self.unknown_for = limit;
        self
    }

    /// The most destinations that are kept; of more, those that were not used for longest go.
    /// Default: 10,000.
    #[must_use]
    pub fn capacity(mut self, limit: NonZeroUsize) -> Self {
        self.kept = Kept::new(limit.get());
        self
    }

    /// Looks this destination up anew when it is next asked for.
    pub fn forget(&self, destination: &str) {
        self.kept.forget(destination);
    }

    /// Looks every destination up anew.
    pub fn forget_all(&self) {
        self.kept.clear();
    }

    /// What a finished lookup means; what is known of the same record stays.
    fn learn(&self, entry: &Entry, found: Option<DestinationRecord>, now: Instant) -> Known {
        let (keep, stale) = (after(now, self.fresh_for), self.stale_for);
        let Some(record) = found else {
            let until = after(now, self.unknown_for);
            return Known::new(Ok(Resolution::Unknown), until, until);
        };
        if let Some(reason) = &record.disabled {
            let reason = reason.clone();
            return Known::new(
                Ok(Resolution::Disabled { reason }),
                keep,
                after(keep, stale),
            );
        }
        let endpoint = match entry.endpoint_of(&record) {
            Some(endpoint) => endpoint,
            None => match record.endpoint() {
                Ok(endpoint) => Arc::new(endpoint),
                Err(problem) => {
                    let until = after(now, self.unknown_for);
                    return Known::new(Err(chain(&problem)), until, until);
                }
            },
        };
        let answer = Ok(Resolution::Endpoint(endpoint));
        Known::new(answer, keep, after(keep, stale)).of(record)
    }
}

#[async_trait]
impl<S: DestinationStore> Destinations for StoredDestinations<S> {
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error> {
        let entry = self.kept.entry(destination);
        if let Some(answer) = entry.fresh(Instant::now()) {
            return told(answer);
        }
        let _lookup = match entry.stale(Instant::now()) {
            None => entry.lookup.lock().await,
            Some(stale) => match entry.lookup.try_lock() {
                Ok(lookup) => lookup,
                Err(_) => return Ok(stale),
            },
        };
        // Another delivery may have looked it up in the meantime.
        if let Some(answer) = entry.fresh(Instant::now()) {
            return told(answer);
        }
        let found = self.store.find(destination).await;
        let now = Instant::now();
        let until = after(now, FAILED);
        match found {
            Ok(found) => {
                let known = self.learn(&entry, found, now);
                told(entry.set(known))
            }
            Err(error) => match entry.stale(now) {
                Some(stale) => {
                    entry.keep_until(until);
                    Ok(stale)
                }
                None => {
                    let text = "the store of destinations could not be asked".into();
                    let _ = entry.set(Known::new(Err(text), until, until));
                    Err(error)
                }
            },
        }
    }
}

/// The answer as a delivery gets it: what was kept of an error becomes an error again.
fn told(answer: Answer) -> Result<Resolution, Error> {
    answer.map_err(|text| Error::new(ErrorKind::Unavailable, text.to_string()))
}

fn chain(error: &Error) -> Arc<str> {
    let mut text = format!("the stored destination can't be used: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.into()
}

/// A day where the sum is beyond what the clock can tell.
fn after(at: Instant, wait: Duration) -> Instant {
    at.checked_add(wait)
        .unwrap_or_else(|| at + Duration::from_secs(86_400))
}

impl<S> fmt::Debug for StoredDestinations<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredDestinations")
            .field("fresh_for", &self.fresh_for)
            .field("stale_for", &self.stale_for)
            .field("unknown_for", &self.unknown_for)
            .finish_non_exhaustive()
    }
}
