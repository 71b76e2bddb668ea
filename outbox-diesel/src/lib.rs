//! Stores of a transactional outbox on diesel-async.
#![cfg_attr(not(test), expect(dead_code, reason = "the stores are being written"))]

mod detach;
mod pool;
mod read;
mod run;
mod statement;

pub use pool::{Connections, Loan};
pub use {diesel, diesel_async, outbox_core};
