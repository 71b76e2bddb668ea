//! Running statements on a connection.

use sqlx::Sqlite;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

crate::session::session!(Sqlite, SqliteConnection, SqliteRow, try_get);
