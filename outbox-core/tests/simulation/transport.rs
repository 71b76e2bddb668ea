//! A transport that fails in every way, and an observer that sees what the relays decide.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Delivery, DeliveryError, Event, Observer, Phase, Receipt, Timer, Transition, Transport,
    async_trait,
};

use super::world::World;

/// What a panic says that belongs to the play.
pub(crate) const PLAYED: &str = "a panic that belongs to the play";

pub(crate) struct Moody(pub(crate) Arc<World>);

impl Moody {
    async fn up_to(&self, millis: u64) {
        let period = Duration::from_millis(self.0.sim.below(millis));
        self.0.sim.sleep(period).await;
    }

    fn received(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.0
            .note(format_args!("received {}", delivery.event().seq));
        self.0.ledger().acked(delivery.event());
        Ok(Receipt::new())
    }
}

#[async_trait]
impl Transport for Moody {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let world = &self.0;
        let event = delivery.event();
        world.note(format_args!(
            "attempt {} of {}",
            delivery.attempt(),
            event.seq
        ));
        world.ledger().attempting(event, world.database_time());
        let _live = Live::enter(world, event);
        if world.healed() {
            return self.received(&delivery);
        }
        let mood = world.sim.below(100);
        if mood < 40 {
            delivery.advance(Phase::Waiting);
            self.up_to(world.cast.answer_millis).await;
        }
        delivery.advance(Phase::Sending);
        match mood {
            0..55 => self.received(&delivery),
            55..58 => {
                world.meet("ambiguous");
                let _ = self.received(&delivery);
                Err(DeliveryError::transient("reset").with_phase(Phase::Sending))
            }
            58..70 => {
                self.up_to(500).await;
                Err(DeliveryError::transient("reset").with_phase(Phase::Sending))
            }
            70..74 => {
                world.meet("timed out");
                pending().await
            }
            74..77 => {
                // Later than the time-out: the relay has dropped it by then.
                self.up_to(8_000).await;
                self.received(&delivery)
            }
            77..82 => {
                world.meet("panic");
                std::panic::panic_any(PLAYED)
            }
            82..84 => Err(DeliveryError::rejected("422")),
            84 => Err(DeliveryError::gone("410")),
            85..90 => {
                let after = Duration::from_millis(world.sim.below(4_000));
                Err(DeliveryError::throttled("429").with_retry_after(after))
            }
            90..96 => {
                world.ledger().not_attempted(event);
                let after = Duration::from_millis(world.sim.below(2_000));
                Err(DeliveryError::not_attempted("limit").with_retry_after(after))
            }
            _ => Err(DeliveryError::transient("refused").with_phase(Phase::Waiting)),
        }
    }
}

/// A delivery under way, until it ends or is dropped.
struct Live(Arc<World>, u64);

impl Live {
    fn enter(world: &Arc<World>, event: &Event) -> Self {
        let number = world.ledger().entered(event.seq, world.sim.now());
        Self(Arc::clone(world), number)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut ledger) = self.0.unbroken_ledger() {
            ledger.left(self.1);
        }
    }
}

/// Learns of deaths without an attempt, which a run may go on after at once, and panics now and then.
pub(crate) struct Watcher(pub(crate) Arc<World>);

impl Observer for Watcher {
    fn on(&self, transition: &Transition<'_>) {
        if let Transition::Dead {
            lease, took: None, ..
        } = transition
        {
            self.0.ledger().given_up(lease.seq);
        }
        if !self.0.healed() && self.0.sim.once_in(50) {
            std::panic::panic_any(PLAYED);
        }
    }
}
