//! What operators see and do, as a router.
//!
//! | | |
//! |---|---|
//! | `GET /health` | the process answers: always 200 |
//! | `GET /ready` | 200 or 503 |
//! | `GET /stats` | the store's state |
//! | `GET /metrics` | the same, and what else there is, as Prometheus text |
//! | `GET /dead-letters` | a page; `after`, `rows`, and filters |
//! | `GET /dead-letters/{seq}` | one |
//! | `POST /dead-letters/replay` | puts back what a filter matches |
//! | `POST /dead-letters/discard` | deletes what a filter matches, with a reason |
//! | `GET /blocked-keys` | a page; `after_destination` and `after_key`, `rows` |
//! | `GET /destinations` | a page of those that are held, disabled, or have a policy |
//! | `POST /destinations/hold`, `…/free` | holds, disables or frees one |
//! | `GET /circuits` | breaker states |
//! | `POST /circuits/reset` | closes one |
//!
//! A part that was not given is not there: its paths answer 404. Nothing is changed by GET, and what
//! changes something takes `application/json` alone, which no form of another site can send.
//!
//! **The router has no authentication.** Put yours in front, and don't serve it beside the public
//! API:
//!
//! ```
//! use axum::http::{Request, StatusCode};
//! use axum::middleware::{Next, from_fn};
//! use axum::response::{IntoResponse, Response};
//! use outbox_core::MemoryStore;
//! use outbox_tower::ops::Operations;
//!
//! async fn operators_only(request: Request<axum::body::Body>, next: Next) -> Response {
//!     let token = request.headers().get("authorization");
//!     // Compare in constant time: this is a sketch.
//!     if token.is_some_and(|token| token == "Bearer …") {
//!         next.run(request).await
//!     } else {
//!         StatusCode::UNAUTHORIZED.into_response()
//!     }
//! }
//!
//! let store = MemoryStore::new();
//! let router = Operations::new()
//!     .store(store)
//!     .router()
//!     .layer(from_fn(operators_only));
//! # let _ = router;
//! ```

mod circuits;
mod dead_letters;
mod destinations;
mod error;
mod health;
mod prometheus;
mod router;
mod stats;
mod time;

pub use router::Operations;
