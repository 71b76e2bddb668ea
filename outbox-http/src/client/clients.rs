//! The pooled clients of a transport, by identity and guard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outbox_core::Error;

use super::{ClientSettings, Identity, PooledClient};
use crate::guard::AddressGuard;

/// Clients beside the default one that are kept; when there are more, all are made anew.
const KEPT: usize = 1_024;

type Key = (Option<Identity>, Arc<AddressGuard>);

/// Connections are shared among destinations of one identity and one guard, and with no others: a
/// connection that one policy admits is out of reach for another.
pub(crate) struct Clients {
    settings: ClientSettings,
    guard: Arc<AddressGuard>,
    default: PooledClient,
    others: Mutex<HashMap<Key, PooledClient>>,
}

impl Clients {
    pub(crate) fn new(settings: ClientSettings, guard: Arc<AddressGuard>) -> Result<Self, Error> {
        let default = PooledClient::new(&settings, &guard, None)?;
        Ok(Self::with_default(settings, guard, default))
    }

    pub(crate) fn with_default(
        settings: ClientSettings,
        guard: Arc<AddressGuard>,
        default: PooledClient,
    ) -> Self {
        Self {
            settings,
            guard,
            default,
            others: Mutex::default(),
        }
    }

    /// The transport's own guard.
    pub(crate) const fn guard(&self) -> &Arc<AddressGuard> {
        &self.guard
    }

    /// The client for this identity and guard; `None` stands for the transport's own.
    pub(crate) fn client(
        &self,
        identity: Option<&Identity>,
        guard: Option<&Arc<AddressGuard>>,
    ) -> Result<PooledClient, Error> {
        if identity.is_none() && guard.is_none_or(|guard| *guard == self.guard) {
            return Ok(self.default.clone());
        }
        let guard = guard.unwrap_or(&self.guard);
        let key = (identity.cloned(), guard.clone());
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = others.get(&key) {
            return Ok(client.clone());
        }
        let client = PooledClient::new(&self.settings, guard, identity)?;
        if others.len() >= KEPT {
            others.clear();
        }
        others.insert(key, client.clone());
        Ok(client)
    }
}
