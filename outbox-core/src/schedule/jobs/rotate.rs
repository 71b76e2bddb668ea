//! Changing secrets without a gap.

use async_trait::async_trait;

use crate::{Error, Job, JobRun};

/// The seam to whatever holds secrets: a file, a key service, a table.
///
/// # Contract
///
/// A rotation is made in steps that each may be repeated: the new secret is added and signs at
/// once, the old one stays beside it until receivers know the new one, then it goes. A call does
/// the next step that is due, or nothing. No secret appears in an error.
#[async_trait]
pub trait SecretRotation: Send + Sync {
    /// Does the next step.
    async fn rotate(&self) -> Result<(), Error>;
}

/// Calls a [`SecretRotation`] on a schedule. In a cluster, let one process do it
/// ([`ScheduledJob::cluster`](crate::ScheduledJob::cluster)) where secrets are shared, and every
/// process where each reloads its own.
#[derive(Debug)]
pub struct RotateSecrets<R>(R);

impl<R: SecretRotation> RotateSecrets<R> {
    /// Rotates by `rotation`.
    pub const fn new(rotation: R) -> Self {
        Self(rotation)
    }
}

#[async_trait]
impl<R: SecretRotation> Job for RotateSecrets<R> {
    async fn run(&self, _: JobRun) -> Result<(), Error> {
        self.0.rotate().await
    }
}
