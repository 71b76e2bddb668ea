//! Leased locks.

use super::MySqlStore;
use super::calls::call;

crate::locks::locks!(MySqlStore, call);
