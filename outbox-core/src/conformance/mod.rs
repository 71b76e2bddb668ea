//! The suite that every store must pass: one test for each case, on any runtime.
//!
//! [`Harness`] is what a store's author writes, and
//! [`conformance_suite!`](crate::conformance_suite) makes the tests.
#![doc = include_str!("../../../docs/writing-a-store.md")]

mod cases;
mod harness;
mod kit;
mod model;

// The cases, for the macro. Their names say what they check.
#[doc(hidden)]
pub mod claim;
#[doc(hidden)]
pub mod cut_short;
#[doc(hidden)]
pub mod dead_letters;
#[doc(hidden)]
pub mod enqueue;
#[doc(hidden)]
pub mod histories;
#[doc(hidden)]
pub mod holds;
#[doc(hidden)]
pub mod inbox;
#[doc(hidden)]
pub mod keys;
#[doc(hidden)]
pub mod lease;
#[doc(hidden)]
pub mod locks;
#[doc(hidden)]
pub mod maintenance;
#[doc(hidden)]
pub mod order;
#[doc(hidden)]
pub mod settle;

pub use self::harness::{Capabilities, Harness, ReceivingHarness};
