//! Holds, policies and blocked keys.

use super::PgStore;

crate::destinations::destinations!(PgStore, on_pool);
