//! What store adapters on SQL databases share: statements and migrations as text, and the logic
//! around them that needs no driver.
//!
//! The text of every statement is here and nowhere else, so that adapters on different drivers work
//! on one table. What a call does is here too, over a [`Session`]: for all databases at once where only
//! their text differs ([`LockSql`], [`IdempotencySql`], [`DestinationSql`]), and in their modules where
//! they go about it in different ways. Statements name their values (`:token`) or bind them by position;
//! the documentation of each lists them. Durations are bound as whole microseconds, see [`micros`].

mod claiming;
mod cut;
mod destinations;
mod enqueuing;
mod failure;
mod front;
mod idempotency;
mod json;
mod listening;
mod locks;
mod mark;
mod migration;
pub mod mysql;
mod named;
mod names;
mod notes;
pub mod pg;
mod pruning;
mod receiving;
mod retried;
mod row;
mod scan;
mod session;
mod settling;
mod shares;
pub mod sqlite;
mod stats;
mod taken;
mod walk;
mod window;

use std::sync::Arc;
use std::time::Duration;

use crate::{Error, ErrorKind};

pub use claiming::{ClaimDriver, claim};
pub use destinations::DestinationSql;
pub use enqueuing::{Batches, NewRow, Winners, sparse};
pub use failure::{failure, id_taken};
pub use idempotency::IdempotencySql;
pub use json::{hex, json};
pub use listening::{Listen, Listener, Patience, listen};
pub use locks::LockSql;
pub use mark::{Mark, Scan, Start};
pub use migration::Migration;
pub use named::StoreClock;
pub use names::TableNames;
pub use notes::Notes;
pub use pruning::{Pruning, pruned};
pub use retried::retried;
pub use row::{EventRow, header_text};
pub use scan::ScanState;
pub use session::{Cell, Letter, Row, Session, Value};
pub use settling::{Kind, Settling, answer, at_places, releases};
pub use shares::{Shape, Shapes, Shares};
pub use taken::{Step, Taken, filters};

/// The text of a statement, cheap to clone.
pub type Sql = Arc<str>;

/// A century: longer than anything waits, and short enough for every database's timestamps.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// A duration as a statement takes it: whole microseconds, a century at most.
#[must_use]
pub fn micros(duration: Duration) -> i64 {
    crate::clock::duration_micros(duration.min(LONGEST))
}

/// Checks the version of a schema against the library's own: `migrate` names the call that updates
/// it. One version newer is fine, so that an application can be rolled back.
///
/// # Errors
///
/// [`Schema`](crate::ErrorKind::Schema), with what to do.
pub fn check_version(found: impl Into<i64>, own: i32, migrate: &str) -> Result<(), Error> {
    let (found, own) = (found.into(), i64::from(own));
    let problem = if found < own {
        format!("`{migrate}` updates it")
    } else if found > own + 1 {
        "use a newer version of this library".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::Schema,
        format!("the outbox schema has version {found}, this library works on {own}: {problem}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_the_own_version_or_the_next_is_accepted() {
        let problem = |found| {
            let checked = check_version(found, 2, "store.migrate()");
            checked.err().map(|error| (error.kind(), error.to_string()))
        };
        assert_eq!((problem(2), problem(3)), (None, None));
        for (found, remedy) in [
            (0, "`store.migrate()` updates it"),
            (1, "`store.migrate()` updates it"),
            (4, "use a newer version of this library"),
        ] {
            let (kind, text) = problem(found).expect("a problem");
            assert_eq!(kind, ErrorKind::Schema);
            let version = format!("has version {found}, this library works on 2: {remedy}");
            assert!(text.contains(&version), "{text}");
        }
    }
}
