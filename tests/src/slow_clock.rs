//! A database whose clock is not the application's.

use std::time::{SystemTime, UNIX_EPOCH};

/// The statements after which sessions that begin in this database of PostgreSQL see its functions of
/// time an hour behind.
pub const PG_AN_HOUR_BEHIND: &str = "CREATE SCHEMA behind;
CREATE FUNCTION behind.now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT pg_catalog.now() - interval ''1 hour''';
CREATE FUNCTION behind.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT pg_catalog.transaction_timestamp() - interval ''1 hour''';
CREATE FUNCTION behind.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT pg_catalog.statement_timestamp() - interval ''1 hour''';
CREATE FUNCTION behind.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.clock_timestamp() - interval ''1 hour''';
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = public, behind, pg_catalog',
        current_database());
END $$;";

/// A statement that fails in a session where [`PG_AN_HOUR_BEHIND`] has no effect: the application's
/// clock, of now, is an hour ahead of each function.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock to tell from the database's"
)]
pub fn pg_check_an_hour_behind() -> String {
    let here = SystemTime::now().duration_since(UNIX_EPOCH);
    let here = here.map_or(0, |since| since.as_secs());
    format!(
        "DO $$ DECLARE t timestamptz; BEGIN
    FOREACH t IN ARRAY ARRAY[
        now(), transaction_timestamp(), statement_timestamp(), clock_timestamp()]
    LOOP
        IF abs({here} - extract(epoch FROM t) - 3600) > 60 THEN
            RAISE EXCEPTION '% is not an hour behind', t;
        END IF;
    END LOOP;
END $$"
    )
}
