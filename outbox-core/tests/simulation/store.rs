//! A store that is slow, fails, and loses answers.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use outbox_core::{
    Claim, ClaimRequest, Error, ErrorKind, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore,
    Settlement, Timer, async_trait,
};

use super::world::World;

/// The store as one relay sees it.
pub(crate) struct Flaky(pub(crate) Arc<World>);

impl Flaky {
    /// One call: what happens to it is decided before and after the work, which takes no time.
    async fn call<T: Send>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        self.delay().await;
        if self.fails() {
            self.0.note(format_args!("{name} fails"));
            return Err(self.error());
        }
        self.0.note(format_args!("{name}"));
        let answer = work();
        self.delay().await;
        if self.fails() {
            self.0.note(format_args!("{name}: answer lost"));
            self.0.meet("answer lost");
            return Err(Error::new(ErrorKind::Unavailable, "connection lost"));
        }
        answer
    }

    async fn delay(&self) {
        let sim = &self.0.sim;
        let period = match sim.below(20) {
            _ if self.0.healed() => return,
            0 => sim.below(3_000),
            1..8 => sim.below(20),
            _ => return,
        };
        sim.sleep(Duration::from_millis(period)).await;
    }

    fn fails(&self) -> bool {
        let world = &self.0;
        !world.healed() && (world.is_down() || world.sim.once_in(world.cast.store_fails_once_in))
    }

    fn error(&self) -> Error {
        let kind = [ErrorKind::Unavailable, ErrorKind::Conflict];
        let kind = kind[usize::from(self.0.sim.once_in(3))];
        Error::new(kind, "no answer")
    }
}

/// The store in memory answers at once.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().unwrap()
}

#[async_trait]
impl OutboxStore for Flaky {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let world = &self.0;
        let work = || {
            let claim = at_once(world.store.claim(request))?;
            let now = world.database_time();
            for claimed in &claim.events {
                world.note(format_args!("claimed {}", claimed.lease.seq));
                world.ledger().claimed(claimed, now, request.lease);
            }
            Ok(claim)
        };
        self.call("claim", work).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        let world = &self.0;
        let work = || {
            let statuses = at_once(world.store.settle(batch))?;
            for (one, status) in batch.iter().zip(&statuses) {
                world.note(format_args!(
                    "{} is {:?}: {status:?}",
                    one.lease.seq, one.outcome
                ));
                world.ledger().settled(one.lease, &one.outcome, *status);
            }
            Ok(statuses)
        };
        self.call("settle", work).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        let world = &self.0;
        let work = || {
            let statuses = at_once(world.store.extend(leases, by))?;
            let until = world.database_time() + by;
            for (lease, status) in leases.iter().zip(&statuses) {
                world.ledger().extended(*lease, *status, until);
            }
            Ok(statuses)
        };
        self.call("extend", work).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        let batch: Vec<_> = leases
            .iter()
            .map(|lease| Settlement::new(*lease, outbox_core::Outcome::Release))
            .collect();
        self.settle(&batch).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        let world = &self.0;
        let work = || {
            let released = at_once(world.store.release_claim(token))?;
            world.ledger().released(token);
            Ok(released)
        };
        self.call("release_claim", work).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        let work = || at_once(self.0.store.hold(destination, hold));
        self.call("hold", work).await
    }
}
