//! Answers repeats of a request without running its handler again.
//!
//! It follows `draft-ietf-httpapi-idempotency-key-header`:
//!
//! | the request | the answer |
//! |---|---|
//! | first with its key | the handler's, which is kept |
//! | has no key where one is required, or a malformed one | 400 |
//! | repeats one that is still running | 409 with `Retry-After` |
//! | has the key of a request with another method, path, content type or body | 422 |
//! | repeats one that was answered, success or error | the kept answer, with `idempotent-replayed: true` |
//!
//! What says "try again" (408, 425, 429, 5xx) is not kept, so that trying again helps. Where the
//! store can't be asked, the answer is 503 and the handler does not run.
//!
//! A handler that crashes, panics or is dropped leaves the key; a panic frees it at once, else the
//! end of the lease does.

mod answer;
mod key;
mod layer;
mod run;

pub use layer::{Idempotency, IdempotencyLayer};
