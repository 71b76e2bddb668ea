//! Running statements on a connection.

use sqlx::MySql;
use sqlx::mysql::{MySqlConnection, MySqlRow};

impl<C> Connection<C> {
    pub(super) fn into_inner(self) -> C {
        self.conn
    }
}

crate::session::session!(MySql, MySqlConnection, MySqlRow, try_get_unchecked);
