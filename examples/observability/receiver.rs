//! A receiver with faults, in the process.

use std::sync::atomic::{AtomicU32, Ordering};

use outbox_core::{Delivery, DeliveryError, Receipt, Transport, async_trait};

/// Fails every third attempt, and refuses one event for good.
#[derive(Default)]
pub(crate) struct Flaky(AtomicU32);

#[async_trait]
impl Transport for Flaky {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let attempts = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if delivery.event().payload.as_ref() == b"7" {
            return Err(DeliveryError::rejected("422 Unprocessable Content"));
        }
        if attempts.is_multiple_of(3) {
            return Err(DeliveryError::transient("503 Service Unavailable"));
        }
        Ok(Receipt::with_detail("202 Accepted"))
    }
}
