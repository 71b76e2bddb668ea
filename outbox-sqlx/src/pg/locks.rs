//! Leased locks.

use super::PgStore;
use super::calls::call;

crate::locks::locks!(PgStore, call);
