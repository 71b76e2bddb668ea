//! Migrations as data.

use super::session::number;
use super::{Session, Sql};
use crate::Error;

/// One step of the schema. Steps only go forward and are never edited once released.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// Ascending from 1.
    pub version: i32,
    /// What it does, in a word or two.
    pub name: &'static str,
    /// The statements, for people who migrate with other tools. They record the version, so that
    /// the store finds its schema up to date.
    pub sql: String,
}

impl Migration {
    pub(crate) const fn new(version: i32, name: &'static str, sql: String) -> Self {
        Self { version, name, sql }
    }
}

/// Makes the steps after the version that the query `version` returns.
pub(super) async fn make_missing<S: Session>(
    session: &mut S,
    version: &Sql,
    steps: &[Migration],
) -> Result<(), Error> {
    let done = number(session, version).await?;
    for step in steps {
        if i64::from(step.version) > done {
            session.batch(&step.sql).await?;
        }
    }
    Ok(())
}
