//! Private database servers for tests.
//!
//! Each server lives in a temporary folder on a free port, runs as an unprivileged user (also where
//! the tests run as root), and is stopped and deleted when it is dropped or when the test process
//! ends, however it ends.
//!
//! Most tests share one server per test process and take a database of their own from it:
//!
//! ```no_run
//! let url = tests::PgServer::shared().create_database();
//! ```
//!
//! Tests that crash or reconfigure a server start one for themselves with [`PgServer::start`] or
//! [`PgServer::start_with`].
//!
//! A server that can't be started is a failed test whose message says what to install; no test is
//! skipped.

mod advance;
mod binaries;
mod bouncer;
mod clock;
mod daemon;
mod mysql;
mod pg;
mod poll;
mod server;
mod user;

pub use advance::{damage, mysql_advance, past_conflicts, pg_advance};
pub use bouncer::PgBouncer;
pub use clock::{pg_check_clock, pg_shift_clock};
pub use mysql::MySqlServer;
pub use pg::PgServer;
pub use poll::{poll_until, try_until};

/// Every Rust block of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
pub struct Readme;
