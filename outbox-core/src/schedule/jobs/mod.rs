//! Ready-made jobs: what an outbox needs done from time to time.

mod prune;
mod rotate;
mod stats;

pub use prune::{PruneIdempotencyKeys, PruneStore};
pub use rotate::{RotateSecrets, SecretRotation};
pub use stats::ExportStats;
