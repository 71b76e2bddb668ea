//! Letting time pass without waiting, in databases whose own clock decides.

use std::time::Duration;

/// The statement that moves every stored instant of PostgreSQL's tables `outbox_*` back by `by`:
/// what `Harness::advance` of the conformance suite needs where the server's clock decides.
pub fn pg_advance(by: Duration) -> String {
    let micros = by.as_micros();
    format!(
        "DO $advance$ DECLARE t record; BEGIN
    FOR t IN
        SELECT table_schema, table_name, string_agg(
            format('%I = %I - {micros} * interval ''1 microsecond''', column_name, column_name),
            ', ') AS sets
        FROM information_schema.columns
        WHERE table_name LIKE 'outbox\\_%' AND data_type = 'timestamp with time zone'
        GROUP BY 1, 2
    LOOP
        EXECUTE format('UPDATE %I.%I SET %s', t.table_schema, t.table_name, t.sets);
    END LOOP;
END $advance$"
    )
}

/// The same for MySQL and MariaDB, in the connection's database. Of due rows, `place` is an instant
/// too.
pub fn mysql_advance(by: Duration) -> String {
    /// The instants of each table.
    const INSTANTS: [(&str, &[&str]); 10] = [
        (
            "events",
            &["available_at", "created_at", "expires_at", "lease_until"],
        ),
        ("published", &["created_at", "published_at"]),
        ("dead", &["created_at", "expires_at", "dead_at"]),
        ("discards", &["discarded_at"]),
        ("dedup", &["created_at"]),
        ("destinations", &["hold_until"]),
        ("blocked", &["since"]),
        ("idempotency", &["lease_until", "expires_at"]),
        ("inbox", &["expires_at"]),
        ("locks", &["held_until"]),
    ];

    let micros = by.as_micros();
    let mut text = format!(
        "START TRANSACTION; \
         UPDATE outbox_events SET place = place - {micros} WHERE shape = 1; "
    );
    for (table, columns) in INSTANTS {
        let sets: Vec<String> = columns
            .iter()
            .map(|column| format!("{column} = {column} - {micros}"))
            .collect();
        text += &format!("UPDATE outbox_{table} SET {}; ", sets.join(", "));
    }
    text + "COMMIT"
}

/// Runs a change of the test's own to its end: again where a deadlock cut it short, or where it is a
/// serializable transaction and a row went away. The store may still be at work on a call that a case
/// dropped, on rows that this change wants too.
///
/// # Panics
///
/// On any other failure, and after 20 conflicts.
pub async fn past_conflicts<F, E>(mut change: impl FnMut() -> F)
where
    F: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut failure = String::new();
    for _ in 0..20 {
        match change().await {
            Ok(()) => return,
            Err(error) => failure = error.to_string(),
        }
        let text = failure.to_lowercase();
        if !["deadlock", "could not serialize"]
            .iter()
            .any(|part| text.contains(part))
        {
            break;
        }
    }
    panic!("a change of the test failed: {failure}");
}

/// The statement that damages an open row so that it makes no event.
pub fn damage(seq: i64) -> String {
    format!("UPDATE outbox_events SET headers = '[1]' WHERE seq = {seq}")
}
