//! Waking a relay by a database's notifications, whatever becomes of the connection.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream, StreamExt};

use crate::spread::Spread;
use crate::{Error, ErrorKind, Timer};

/// The first and the longest delay before a lost connection is opened again; it doubles in between.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// How a driver listens.
#[async_trait]
pub trait Listen: Send + Sync {
    /// Opens a connection outside the caller's pool and listens on it.
    ///
    /// # Cancel safety
    ///
    /// Dropped where it takes too long.
    async fn open(&self) -> Result<Box<dyn Listener>, Error>;
}

/// A connection that listens.
///
/// # Cancel safety
///
/// Both futures are dropped at any point; only [`probe`](Self::probe) may leave a connection behind
/// that is of no more use, as it is then dropped.
#[async_trait]
pub trait Listener: Send {
    /// Waits for a notification; what it says is of no interest. An error where the connection is
    /// lost.
    async fn notified(&mut self) -> Result<(), Error>;

    /// Makes one round trip. What is notified meanwhile is kept for [`notified`](Self::notified).
    async fn probe(&mut self) -> Result<(), Error>;
}

/// How a connection that says nothing is told from one that is gone.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Patience {
    /// After so long without a notification the connection is probed. Default: 30 s.
    pub probe_after: Duration,
    /// A probe, or an attempt to connect, that takes longer has failed. Default: 10 s.
    pub answer_within: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            probe_after: Duration::from_secs(30),
            answer_within: Duration::from_secs(10),
        }
    }
}

/// One item for each notification, and one after each time that the connection was (re)opened, for
/// what was missed. It never ends: a lost connection is opened again for ever, at growing intervals
/// with jitter. Each outage is logged once.
pub fn listen(
    driver: Arc<dyn Listen>,
    timer: Arc<dyn Timer>,
    patience: Patience,
) -> BoxStream<'static, ()> {
    let listening = Listening {
        driver,
        timer,
        patience,
        spread: Spread::random(),
        connection: None,
        failures: 0,
    };
    stream::unfold(listening, |mut listening| async move {
        listening.next().await;
        Some(((), listening))
    })
    .boxed()
}

struct Listening {
    driver: Arc<dyn Listen>,
    timer: Arc<dyn Timer>,
    patience: Patience,
    spread: Spread,
    connection: Option<Box<dyn Listener>>,
    /// In a row, until a connection has proved to be of use.
    failures: u32,
}

impl Listening {
    /// Ends when the relay should look.
    async fn next(&mut self) {
        loop {
            let error = match self.connection.take() {
                None => match within(&*self.timer, &self.patience, self.driver.open()).await {
                    Ok(connection) => {
                        self.connection = Some(connection);
                        return;
                    }
                    Err(error) => error,
                },
                Some(connection) => match self.wait(connection).await {
                    Ok(()) => return,
                    Err(error) => error,
                },
            };
            self.pause(&error).await;
        }
    }

    /// Waits for a notification, probing. The connection is kept where it still works.
    async fn wait(&mut self, mut connection: Box<dyn Listener>) -> Result<(), Error> {
        loop {
            let quiet = self.timer.sleep(self.patience.probe_after);
            let notified = match select(connection.notified(), quiet).await {
                Either::Left((answer, _)) => {
                    answer?;
                    true
                }
                Either::Right(_) => false,
            };
            if !notified {
                within(&*self.timer, &self.patience, connection.probe()).await?;
            }
            if std::mem::take(&mut self.failures) > 0 {
                tracing::info!(target: "outbox::wake", "the listener works again");
            }
            if notified {
                self.connection = Some(connection);
                return Ok(());
            }
        }
    }

    async fn pause(&mut self, error: &Error) {
        if self.failures == 0 {
            let error = error as &(dyn std::error::Error + 'static);
            tracing::warn!(
                target: "outbox::wake",
                error,
                "the listener has no connection; the relay polls until it is back"
            );
        }
        let whole = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let delay = whole / 2 + self.spread.draw(whole / 2);
        self.timer.sleep(delay).await;
    }
}

async fn within<T>(
    timer: &dyn Timer,
    patience: &Patience,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let limit = patience.answer_within;
    match select(pin!(call), timer.sleep(limit)).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the listener's connection did not answer within {limit:?}"),
        )),
    }
}
