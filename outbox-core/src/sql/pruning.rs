//! What a prune deletes.

use std::time::Duration;

use crate::{Error, Prune, Pruned};

/// A table to prune.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every adapter must prune each")]
pub enum Pruning {
    /// Published rows, and the records of discarded letters.
    Published,
    /// Dead letters.
    Dead,
    /// De-duplication keys whose event is neither open nor dead.
    Dedup,
}

/// Makes a prune: `one` deletes the rows of a table that are that old, and says how many.
///
/// # Errors
///
/// The first of `one`.
pub async fn pruned<F>(
    prune: &Prune,
    mut one: impl FnMut(Pruning, Duration) -> F,
) -> Result<Pruned, Error>
where
    F: Future<Output = Result<u64, Error>>,
{
    let mut pruned = Pruned::default();
    if let Some(age) = prune.published_after {
        pruned.published = one(Pruning::Published, age).await?;
    }
    if let Some(age) = prune.dead_after {
        pruned.dead = one(Pruning::Dead, age).await?;
    }
    if let Some(age) = prune.dedup_after {
        pruned.dedup = one(Pruning::Dedup, age).await?;
    }
    Ok(pruned)
}
