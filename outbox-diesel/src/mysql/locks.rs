//! Leased locks.

use super::MySqlStore;

crate::locks::locks!(MySqlStore);
