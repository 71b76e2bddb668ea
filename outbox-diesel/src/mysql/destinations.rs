//! Holds, policies and blocked keys.

use super::MySqlStore;

crate::destinations::destinations!(MySqlStore, in_transaction);
