//! Holds, policies and blocked keys.

use super::SqliteStore;

crate::destinations::destinations!(SqliteStore, on_pool);
