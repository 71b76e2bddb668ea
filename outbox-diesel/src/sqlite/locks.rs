//! Leased locks.

use super::SqliteStore;

crate::locks::locks!(SqliteStore);
