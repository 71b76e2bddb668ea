//! Idempotency keys and inbox ids.

use diesel::mysql::Mysql;

use super::MySqlStore;

crate::idempotency::idempotency! {
    /// Through any asynchronous connection to MySQL, pooled ones included.
    MySqlStore, Mysql
}
