//! Runnable examples.
//!
//! * `quickstart`: a git host whose webhooks survive an outage of the CI server, in one program.
//! * `observability`: metrics and traces of a relay (feature `observability`).
