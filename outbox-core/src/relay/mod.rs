//! The loop that claims, delivers and settles.

mod ahead;
mod alarm;
mod answers;
mod attempt;
mod builder;
mod calls;
mod decide;
mod deliver;
mod destinations;
mod driver;
mod health;
mod keeper;
mod pacing;
mod ready;
mod report;
mod requests;
mod runs;
mod settings;
mod settles;
mod slots;
mod stage;
mod watch;

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;

pub use builder::RelayBuilder;
pub use report::Report;

use self::driver::drive;
use self::settings::Settings;
use self::stage::Mode;
use crate::{Error, Observer, OutboxStore, Poke, RetryPolicy, Spawn, Timer, Transport, Wake};

/// Takes events from a store to a transport: **claim → deliver → settle**, as one future.
///
/// Cheap to clone. Each call of [`run`](Self::run) is a loop of its own; run several, in one process
/// or many, to use more cores. Events of one destination and key stay in order whatever the number.
///
/// ```
/// # use std::time::Duration;
/// # use outbox_core::*;
/// # struct Print;
/// # #[async_trait]
/// # impl Transport for Print {
/// #     async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> { Ok(Receipt::new()) }
/// # }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// let store = MemoryStore::new();
/// # let mut tx = store.begin();
/// # store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("somewhere")).await?;
/// # tx.commit();
/// let relay = Relay::builder(store, Print, TokioTimer)
///     .retry(Backoff::exponential())
///     .per_destination(8)
///     .build()?;
/// let wake = relay.wake_handle(); // for producers: `wake.poke()` after a commit
/// # let _ = wake;
/// # let shutdown = async { tokio::time::sleep(Duration::from_millis(50)).await };
/// let report = relay.run(shutdown).await;
/// assert_eq!(report.published, 1);
/// # Ok(()) }
/// ```
///
/// # Cancel safety
///
/// Dropping a run's future drops its deliveries and loses no event: leases expire by themselves and
/// the events are delivered again. The signal is the better way: it finishes, settles and gives back.
#[derive(Clone)]
pub struct Relay {
    parts: Arc<Parts>,
}

/// What a relay is made of.
struct Parts {
    store: Arc<dyn OutboxStore>,
    transport: Arc<dyn Transport>,
    timer: Arc<dyn Timer>,
    retry: Arc<dyn RetryPolicy>,
    observers: Vec<Arc<dyn Observer>>,
    wakes: Vec<Arc<dyn Wake>>,
    poke: Poke,
    spawn: Option<Arc<dyn Spawn>>,
    settings: Settings,
}

impl Relay {
    /// Starts to build a relay from a store to a transport; the timer is the runtime's.
    pub fn builder(
        store: impl OutboxStore + 'static,
        transport: impl Transport + 'static,
        timer: impl Timer + 'static,
    ) -> RelayBuilder {
        RelayBuilder::new(Arc::new(store), Arc::new(transport), Arc::new(timer))
    }

    /// Runs until `shutdown` resolves, then drains: claims stop, started attempts finish within the
    /// drain budget, everything is settled, and what never started goes back uncharged.
    ///
    /// No failure of the store or the transport ends it.
    pub fn run<S>(&self, shutdown: S) -> impl Future<Output = Report> + use<S>
    where
        S: Future<Output = ()>,
    {
        self.run_until(shutdown, pending())
    }

    /// As [`run`](Self::run), and gives up at once where `abort` resolves: attempts are dropped, and
    /// their leases expire by themselves.
    ///
    /// Calls to the store that have begun are still awaited, for five seconds at most.
    pub fn run_until<S, A>(&self, shutdown: S, abort: A) -> impl Future<Output = Report> + use<S, A>
    where
        S: Future<Output = ()>,
        A: Future<Output = ()>,
    {
        let parts = Arc::clone(&self.parts);
        async move { drive(&parts, Mode::Forever, shutdown, abort).await.0 }
    }

    /// Claims once, delivers and settles what came, and ends. For tests, cron and the like.
    ///
    /// # Errors
    ///
    /// The claim's error, or the store's where what came could not be settled within the
    /// [drain budget](RelayBuilder::drain_budget): the leases of that expire by themselves.
    pub fn run_once(&self) -> impl Future<Output = Result<Report, Error>> + use<> {
        self.run_mode(Mode::Once)
    }

    /// Claims, delivers and settles until nothing is due. Delayed events, and those that were put
    /// off, are left for later.
    ///
    /// # Errors
    ///
    /// A claim's error; what was claimed before it is delivered and settled first. And the store's,
    /// where it has failed for the [drain budget](RelayBuilder::drain_budget): no more attempts begin,
    /// those under way have that budget once more, and what can't be settled is left to the end of
    /// its lease.
    pub fn run_until_idle(&self) -> impl Future<Output = Result<Report, Error>> + use<> {
        self.run_mode(Mode::UntilIdle)
    }

    /// A handle for producers: a poke makes every run of this relay look at once.
    #[must_use]
    pub fn wake_handle(&self) -> Poke {
        self.parts.poke.clone()
    }

    fn run_mode(&self, mode: Mode) -> impl Future<Output = Result<Report, Error>> + use<> {
        let parts = Arc::clone(&self.parts);
        async move {
            match drive(&parts, mode, pending(), pending()).await {
                (_, Some(error)) => Err(error),
                (report, None) => Ok(report),
            }
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("settings", &self.parts.settings)
            .finish_non_exhaustive()
    }
}
