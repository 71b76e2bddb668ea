//! Holds, policies and blocked keys.

/// Implements [`Destinations`](outbox_core::Destinations) for a store, and `hold_one`. Policies are set
/// by the store's method `$set`: in a transaction or not.
macro_rules! destinations {
    ($store:ty, $set:ident) => {
        use outbox_core::{
            BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState,
            Destinations, Error, Hold, async_trait,
        };

        #[async_trait]
        impl Destinations for $store {
            async fn set_dead_head_policy(
                &self,
                destination: &str,
                policy: DeadHeadPolicy,
            ) -> Result<(), Error> {
                let asked = (destination.to_owned(), policy);
                let set = self.$set("set_policy", asked, |store, session, (name, policy)| {
                    let (sql, clock) = (&store.sql.destinations, store.store_clock());
                    Box::pin(sql.set_policy(session, clock, name, *policy))
                });
                let set = set.await;
                self.destinations_changed();
                set
            }

            async fn destinations(
                &self,
                page: &DestinationPage,
            ) -> Result<Vec<DestinationState>, Error> {
                self.on_pool("destinations", page.clone(), |store, session, page| {
                    let (sql, clock) = (&store.sql.destinations, store.store_clock());
                    Box::pin(sql.destinations(session, clock, page))
                })
                .await
            }

            async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
                self.on_pool("blocked_keys", page.clone(), |store, session, page| {
                    let (sql, clock) = (&store.sql.destinations, store.store_clock());
                    Box::pin(sql.blocked_keys(session, clock, page))
                })
                .await
            }
        }

        impl $store {
            pub(super) async fn hold_one(
                &self,
                destination: &str,
                hold: Hold,
            ) -> Result<(), Error> {
                let asked = (destination.to_owned(), hold);
                let held = self.on_pool("hold", asked, |store, session, (name, hold)| {
                    let (sql, clock) = (&store.sql.destinations, store.store_clock());
                    Box::pin(sql.hold(session, clock, name, hold))
                });
                let held = held.await;
                self.destinations_changed();
                held
            }
        }
    };
}
pub(crate) use destinations;
