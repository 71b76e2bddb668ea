//! The producer: accepting a push is one transaction over the business tables and the outbox.

use async_trait::async_trait;
use outbox_core::{Enqueue, EventId, NewEvent, TypedEvent};
use serde::Serialize;

use crate::history::{Commit, Push};

pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// What receivers get.
#[derive(Debug, Serialize)]
struct RepositoryPushed<'a> {
    #[serde(skip)]
    repo_id: i64,
    repository: &'a str,
    r#ref: &'a str,
    before: &'a str,
    after: &'a str,
    commits: &'a [Commit],
}

impl TypedEvent for RepositoryPushed<'_> {
    const EVENT_TYPE: &'static str = "RepositoryPushed";

    /// One repository's pushes arrive in order.
    fn key(&self) -> Option<String> {
        Some(self.repo_id.to_string())
    }
}

/// The table `repositories`, through a connection `C`.
#[async_trait]
pub(crate) trait Repositories<C>: Send + Sync {
    /// Records the push with its repository.
    async fn update(&self, conn: &mut C, push: &Push) -> Result<(), AnyError>;
}

/// Updates the repository and stores one event for each of the `hooks` (URLs), all in the caller's
/// transaction. Returns the ids of the events.
pub(crate) async fn accept_push<C: Send>(
    repositories: &impl Repositories<C>,
    outbox: &impl Enqueue<C>,
    tx: &mut C,
    push: &Push,
    hooks: &[&str],
) -> Result<Vec<EventId>, AnyError> {
    repositories.update(tx, push).await?;

    let pushed = RepositoryPushed {
        repo_id: push.repo_id,
        repository: &push.repository,
        r#ref: "refs/heads/main",
        before: &push.before,
        after: &push.after,
        commits: &push.commits,
    };
    let mut ids = Vec::with_capacity(hooks.len());
    for hook in hooks {
        let event = NewEvent::typed(&pushed)?
            .aggregate("repository", push.repo_id)
            .to(*hook);
        ids.push(outbox.enqueue(tx, event).await?.id);
    }
    Ok(ids)
}
