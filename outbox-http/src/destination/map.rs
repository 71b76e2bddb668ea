//! Destinations that are names in a table.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use outbox_core::Error;

use super::{Destinations, Endpoint, Resolution};

/// Names with their endpoints, in memory. Cheap to clone; the clones share the table, which can be
/// changed while deliveries go on.
///
/// ```
/// use outbox_http::{Endpoint, MapDestinations};
///
/// let destinations = MapDestinations::new()
///     .with("ci", Endpoint::new("https://ci.example/hooks")?)
///     .with("chat", Endpoint::new("https://chat.example/in")?);
/// destinations.disable("chat", "asked to stop");
/// # Ok::<(), outbox_http::outbox_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MapDestinations(Arc<RwLock<HashMap<String, Entry>>>);

#[derive(Debug)]
struct Entry {
    endpoint: Arc<Endpoint>,
    disabled: Option<String>,
}

impl MapDestinations {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The table with one more entry.
    #[must_use]
    pub fn with(self, name: impl Into<String>, endpoint: Endpoint) -> Self {
        self.insert(name, endpoint);
        self
    }

    /// Adds an endpoint, or replaces one; it is enabled.
    pub fn insert(&self, name: impl Into<String>, endpoint: Endpoint) {
        let entry = Entry {
            endpoint: Arc::new(endpoint),
            disabled: None,
        };
        self.write(|table| table.insert(name.into(), entry));
    }

    /// Delivers nothing to it until it is enabled: its events stay pending. False where there is no
    /// such destination.
    pub fn disable(&self, name: &str, reason: impl Into<String>) -> bool {
        self.set_disabled(name, Some(reason.into()))
    }

    /// Delivers to it again. False where there is no such destination.
    pub fn enable(&self, name: &str) -> bool {
        self.set_disabled(name, None)
    }

    fn set_disabled(&self, name: &str, disabled: Option<String>) -> bool {
        self.write(|table| {
            let entry = table.get_mut(name);
            entry.map(|entry| entry.disabled = disabled).is_some()
        })
    }

    fn write<T>(&self, change: impl FnOnce(&mut HashMap<String, Entry>) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Destinations for MapDestinations {
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(match table.get(destination) {
            None => Resolution::Unknown,
            Some(Entry {
                disabled: Some(reason),
                ..
            }) => Resolution::Disabled {
                reason: reason.clone(),
            },
            Some(entry) => Resolution::Endpoint(entry.endpoint.clone()),
        })
    }
}
