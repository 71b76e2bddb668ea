//! Transports behind services and services as transports: readiness, errors, keyed layers.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod breaker;
mod concurrency;
mod deadline;
mod fallback;
mod forward;
mod http;
#[cfg(feature = "metrics")]
mod metrics;
mod rate;
mod readiness;
mod route;
mod support;
mod tower_layers;
