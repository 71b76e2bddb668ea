//! Notifications: listening, notifying, and a trigger that notifies.

use super::schema::ALONE;
use super::sql;
use crate::sql::{Sql, TableNames};

/// The longest name of a channel, in bytes (`NAMEDATALEN - 1`).
const LONGEST: usize = 63;

/// Statements about notifications. All of one set of tables use one channel, made from their names.
#[derive(Debug)]
#[non_exhaustive]
pub struct NotifySql {
    /// Makes a session a listener. Several statements: it goes by the simple query protocol. The
    /// session is one of its own, outside any pool.
    pub listen: Sql,
    /// Notifies. In autocommit mode, after the producer's commit and never in its transaction.
    pub notify: Sql,
    /// Adds the trigger that notifies for each statement that inserts events. Several statements,
    /// as `listen`, outside any transaction. Safe by many processes at once, and where it is there.
    pub enable_trigger: Sql,
    /// Removes the trigger, as `enable_trigger`.
    pub disable_trigger: Sql,
}

impl NotifySql {
    pub(super) fn new(names: &TableNames) -> Self {
        let channel = channel(names);
        let sql = |template: &str| sql(names, &template.replace(":channel", &channel));
        Self {
            listen: sql(LISTEN),
            notify: sql(NOTIFY),
            enable_trigger: sql(&format!("{ALONE}{ENABLE}")),
            disable_trigger: sql(&format!("{ALONE}{DISABLE}")),
        }
    }
}

/// Two sets of tables whose schemas begin alike may share one: each then wakes for the other.
fn channel(names: &TableNames) -> String {
    let mut channel = names.local("events", '"').replace('"', "");
    if let Some(schema) = names.schema_name() {
        channel.push('.');
        channel.push_str(schema);
    }
    channel.truncate(channel.floor_char_boundary(LONGEST));
    channel
}

/// The server notices by keepalives when a listener is gone: one that never reads would hold up the
/// queue of notifications for the whole server.
const LISTEN: &str = "SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3;
LISTEN \":channel\";";

const NOTIFY: &str = "SELECT pg_notify(':channel', '')";

/// On `INSERT` alone: on updates, the relay would wake itself. `CREATE OR REPLACE TRIGGER` is newer
/// than 13.
const ENABLE: &str = "CREATE OR REPLACE FUNCTION {notify_insert}() RETURNS trigger LANGUAGE plpgsql AS $outbox$ BEGIN
    PERFORM pg_catalog.pg_notify(':channel', '');
    RETURN NULL;
END $outbox$;
DO $outbox$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger
        WHERE tgrelid = '{events}'::regclass AND format('\"%s\"', tgname) = '{~events_notify}')
    THEN
        CREATE TRIGGER {~events_notify} AFTER INSERT ON {events}
            FOR EACH STATEMENT EXECUTE FUNCTION {notify_insert}();
    END IF;
END $outbox$;";

const DISABLE: &str = "SET LOCAL client_min_messages = warning;
DROP TRIGGER IF EXISTS {~events_notify} ON {events};
DROP FUNCTION IF EXISTS {notify_insert}();";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_is_quoted_and_no_longer_than_a_name_may_be() {
        let names = TableNames::new("My-App").unwrap();
        assert!(
            NotifySql::new(&names)
                .listen
                .ends_with("LISTEN \"My-App_events\";")
        );
        let names = names.schema("tenant 1").unwrap();
        assert_eq!(channel(&names), "My-App_events.tenant 1");
        let names = TableNames::new("p".repeat(36))
            .unwrap()
            .schema("ä".repeat(30))
            .unwrap();
        assert!((LONGEST - 1..=LONGEST).contains(&channel(&names).len()));
    }
}
