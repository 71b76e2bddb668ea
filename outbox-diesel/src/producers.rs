//! What every store offers to producers.

/// Lets a store's producers enqueue through asynchronous and through plain connections to `$backend`.
/// The store's own `enqueue_on` does it.
macro_rules! producers {
    ($(#[$plain:meta])* $store:ty, $backend:ty) => {
        use diesel::connection::LoadConnection;
        use diesel_async::AsyncConnectionCore;
        use outbox_core::{Enqueue, Enqueued, Error, NewEvent, async_trait};

        use crate::run::{Asynchronous, Plain, Runs, blocking};

        /// Through any asynchronous connection to the database, pooled ones included.
        #[async_trait]
        impl<C: AsyncConnectionCore<Backend = $backend>> Enqueue<C> for $store {
            async fn enqueue(&self, conn: &mut C, event: NewEvent) -> Result<Enqueued, Error> {
                let mut answers = self.enqueue_all(conn, vec![event]).await?;
                Ok(answers.remove(0))
            }

            async fn enqueue_all(
                &self,
                conn: &mut C,
                events: Vec<NewEvent>,
            ) -> Result<Vec<Enqueued>, Error> {
                self.enqueue_on(Asynchronous(conn), &events).await
            }
        }

        $(#[$plain])*
        impl $store {
            /// Stores one event, as [`Enqueue::enqueue`] does. Blocks the thread.
            ///
            /// # Errors
            ///
            /// As [`Enqueue`].
            pub fn enqueue_sync<C>(&self, conn: &mut C, event: &NewEvent) -> Result<Enqueued, Error>
            where
                C: LoadConnection<Backend = $backend>,
            {
                let mut answers = self.enqueue_all_sync(conn, std::slice::from_ref(event))?;
                Ok(answers.remove(0))
            }

            /// Stores many events, as [`Enqueue::enqueue_all`] does. Blocks the thread.
            ///
            /// # Errors
            ///
            /// As [`Enqueue`].
            pub fn enqueue_all_sync<C>(
                &self,
                conn: &mut C,
                events: &[NewEvent],
            ) -> Result<Vec<Enqueued>, Error>
            where
                C: LoadConnection<Backend = $backend>,
            {
                blocking(self.enqueue_on(Plain(conn), events))
            }
        }
    };
}
pub(crate) use producers;
