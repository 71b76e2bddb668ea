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
