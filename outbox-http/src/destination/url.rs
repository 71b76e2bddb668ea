//! Destinations that are URLs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use outbox_core::Error;

use super::{Destinations, Endpoint, Resolution};

/// Parsed URLs that are kept; when there are more, all are parsed anew.
const KEPT: usize = 4_096;

/// The default: an event's destination is the URL. Events whose destination is none are dead letters.
#[derive(Default)]
pub struct UrlDestinations(RwLock<HashMap<String, Arc<Endpoint>>>);

/// Shows no URL: paths and queries hold secrets.
impl fmt::Debug for UrlDestinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlDestinations").finish_non_exhaustive()
    }
}

#[async_trait]
impl Destinations for UrlDestinations {
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = known.get(destination) {
            return Ok(Resolution::Endpoint(endpoint.clone()));
        }
        drop(known);
        let endpoint = match Endpoint::new(destination) {
            Ok(endpoint) => endpoint,
            Err(problem) => {
                let reason = problem.to_string();
                return Ok(Resolution::Invalid { reason });
            }
        };
        let endpoint = Arc::new(endpoint);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(destination.to_owned(), endpoint.clone());
        Ok(Resolution::Endpoint(endpoint))
    }
}
