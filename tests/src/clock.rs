//! A database whose clock is not the application's.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::binaries::folder_of;

pub(crate) const REMEDY: &str = "Install libfaketime (Debian: `apt-get install libfaketime`; macOS: `brew \
    install libfaketime`) or run `scripts/test`, which does.";

/// The statements after which sessions that begin in this database of PostgreSQL see its functions of
/// time so many hours ahead, or behind where it is negative.
pub fn pg_shift_clock(hours: i32) -> String {
    let mut text = "CREATE SCHEMA shifted;".to_owned();
    for (function, volatility) in [
        ("now", "STABLE"),
        ("transaction_timestamp", "STABLE"),
        ("statement_timestamp", "STABLE"),
        ("clock_timestamp", "VOLATILE"),
    ] {
        text += &format!(
            "CREATE FUNCTION shifted.{function}() RETURNS timestamptz LANGUAGE sql {volatility}
    AS 'SELECT pg_catalog.{function}() + {hours} * interval ''1 hour''';"
        );
    }
    text + "DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = public, shifted, pg_catalog',
        current_database());
END $$;"
}

/// A statement that fails in a session where [`pg_shift_clock`] has no effect: where a function differs
/// otherwise from the application's clock of now.
pub fn pg_check_clock(hours: i32) -> String {
    let there = shifted(hours);
    format!(
        "DO $$ DECLARE t timestamptz; BEGIN
    FOREACH t IN ARRAY ARRAY[
        now(), transaction_timestamp(), statement_timestamp(), clock_timestamp()]
    LOOP
        IF abs({there} - extract(epoch FROM t)) > 60 THEN
            RAISE EXCEPTION '% is not shifted by {hours} h', t;
        END IF;
    END LOOP;
END $$"
    )
}

/// Has a program see its clock shifted, and wait as long as ever.
pub(crate) fn shift(command: &mut Command, hours: i32) {
    if cfg!(target_os = "macos") {
        let library = "libfaketime.1.dylib";
        let folders = ["/opt/homebrew/lib/faketime", "/usr/local/lib/faketime"];
        let folder = folder_of(library, &folders).unwrap_or_default();
        command
            .env("DYLD_INSERT_LIBRARIES", folder.join(library))
            .env("DYLD_FORCE_FLAT_NAMESPACE", "1");
    } else {
        // The loader knows what `$LIB` is.
        command.env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketimeMT.so.1");
    }
    // By the last, waits by the clock that is not shifted last as long as ever; MySQL's would be none.
    command
        .env("FAKETIME", format!("{hours:+}h"))
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("FAKETIME_FORCE_MONOTONIC_FIX", "0");
}

/// The application's clock of now, shifted by so many hours: seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock to tell from the database's"
)]
pub(crate) fn shifted(hours: i32) -> i64 {
    let here = SystemTime::now().duration_since(UNIX_EPOCH);
    let here = here.map_or(0, |since| since.as_secs());
    i64::try_from(here).unwrap_or(i64::MAX) + i64::from(hours) * 3_600
}
