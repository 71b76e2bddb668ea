//! Leased locks.

use super::PgStore;

crate::locks::locks!(PgStore);
