//! Services of `http::Request` as services of `Delivery`.
//!
//! `outbox-http` is the transport for webhooks, with an address guard, deadlines and signatures of
//! its own. This module is for a client that exists already, with its own stack of tower and
//! tower-http layers.

mod answer;
mod future;
mod request;
mod service;

pub use answer::by_status;
pub use future::ResponseFuture;
pub use request::post;
pub use service::HttpService;
