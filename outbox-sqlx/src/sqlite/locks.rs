//! Leased locks.

use super::SqliteStore;
use super::calls::call;

crate::locks::locks!(SqliteStore, call);
