//! Producers.

use super::{Sql, TableNames, sql};

/// How many rows one insert takes: a batch is cut into as few of these as will do, so that there
/// are few statements to prepare. From large to small; the largest binds 1,600 values.
pub const CHUNKS: [usize; 3] = [100, 10, 1];

const COLUMN_COUNT: usize = 16;

/// The statements of an enqueue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EnqueueStatements {
    /// For each of [`CHUNKS`]: binds, for each row: id, event type, destination, key, payload,
    /// content type, aggregate type, aggregate id, headers, de-duplication key, created at, expires
    /// at, attempt limit, shape, available at, replays (0).
    pub insert: [Sql; 3],
    /// `?1` key · `?2` id · `?3` now. Returns a row where the key was free.
    pub take_dedup_key: Sql,
    /// `?1` key. Returns the id of the event that has it.
    pub dedup_owner: Sql,
}

impl EnqueueStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            insert: CHUNKS.map(|rows| sql(names, &insert(rows))),
            take_dedup_key: sql(
                names,
                "INSERT INTO {~dedup} (dedup_key, id, created_at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO NOTHING RETURNING 1",
            ),
            dedup_owner: sql(names, "SELECT id FROM {~dedup} WHERE dedup_key = ?1"),
        }
    }
}

fn insert(rows: usize) -> String {
    let row = format!("({})", vec!["?"; COLUMN_COUNT].join(", "));
    format!(
        "INSERT INTO {{~events}} (id, event_type, destination, \"key\", payload, content_type, \
           aggregate_type, aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, \
           shape, available_at, replays) \
         VALUES {}",
        vec![row; rows].join(", ")
    )
}
