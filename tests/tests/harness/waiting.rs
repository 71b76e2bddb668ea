//! Calls that wait for a lock of another session.

use outbox_sqlx::sqlx::{self, PgConnection};
use tokio::task::JoinHandle;

/// Returns once a session of this database waits for a lock.
///
/// # Panics
///
/// When the call ends without.
pub(crate) async fn until_it_waits<T>(observer: &mut PgConnection, call: &JoinHandle<T>) {
    loop {
        let waits: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND datname = current_database()",
        )
        .fetch_one(&mut *observer)
        .await
        .expect("counted");
        if waits > 0 {
            return;
        }
        assert!(!call.is_finished(), "the call did not wait");
    }
}
