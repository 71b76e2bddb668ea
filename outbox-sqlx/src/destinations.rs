//! Holds, policies and blocked keys.

/// Implements [`Destinations`](outbox_core::Destinations) for a store, by the `call!` of its database
/// and the store's own `set_policy`.
macro_rules! destinations {
    ($store:ty, $call:ident) => {
        use outbox_core::{
            BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState,
            Destinations, Error, async_trait,
        };

        #[async_trait]
        impl Destinations for $store {
            async fn set_dead_head_policy(
                &self,
                destination: &str,
                policy: DeadHeadPolicy,
            ) -> Result<(), Error> {
                self.set_policy(destination, policy).await
            }

            async fn destinations(
                &self,
                page: &DestinationPage,
            ) -> Result<Vec<DestinationState>, Error> {
                $call!(self, destinations.destinations(page))
            }

            async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
                $call!(self, destinations.blocked_keys(page))
            }
        }
    };
}
pub(crate) use destinations;
