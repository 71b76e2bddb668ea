//! Idempotency keys and inbox ids.

use std::collections::{BTreeSet, HashMap};
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::state::Micros;
use super::{MemoryStore, MemoryTx, Shared};
use crate::clock::{duration_micros, to_micros};
use crate::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, Fingerprint, IdempotencyKey,
    IdempotencyKeys, Inbox, InboxMessage, LeaseStatus, LeaseToken,
};

#[derive(Debug, Default)]
pub(super) struct Keys {
    keys: Table<KeyRow>,
    inbox: Table<InboxRow>,
}

/// Rows by key, and the order in which they expire.
#[derive(Debug)]
struct Table<R> {
    rows: HashMap<IdempotencyKey, R>,
    expiries: BTreeSet<(Micros, IdempotencyKey)>,
}

trait Row {
    fn expires_at(&self) -> Micros;
    /// Kept whatever its expiry says.
    fn is_held(&self, now: Micros) -> bool;
}

#[derive(Debug)]
struct KeyRow {
    fingerprint: Fingerprint,
    token: LeaseToken,
    lease_until: Micros,
    answer: Option<Bytes>,
    expires_at: Micros,
}

#[derive(Debug)]
struct InboxRow {
    fingerprint: Option<Fingerprint>,
    expires_at: Micros,
    committed: bool,
}

impl Row for KeyRow {
    fn expires_at(&self) -> Micros {
        self.expires_at
    }

    fn is_held(&self, now: Micros) -> bool {
        self.answer.is_none() && self.lease_until > now
    }
}

impl Row for InboxRow {
    fn expires_at(&self) -> Micros {
        self.expires_at
    }

    fn is_held(&self, _: Micros) -> bool {
        !self.committed
    }
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self {
            rows: HashMap::new(),
            expiries: BTreeSet::new(),
        }
    }
}

impl<R: Row> Table<R> {
    /// The row, unless it is over.
    fn get(&mut self, key: &IdempotencyKey, now: Micros) -> Option<&mut R> {
        let row = self.rows.get_mut(key)?;
        (row.expires_at() > now || row.is_held(now)).then_some(row)
    }

    fn put(&mut self, key: &IdempotencyKey, row: R) {
        self.remove(key);
        self.expiries.insert((row.expires_at(), key.clone()));
        self.rows.insert(key.clone(), row);
    }

    fn remove(&mut self, key: &IdempotencyKey) -> Option<R> {
        let row = self.rows.remove(key)?;
        self.expiries.remove(&(row.expires_at(), key.clone()));
        Some(row)
    }

    fn prune(&mut self, rows: u32, now: Micros) -> u64 {
        let over = self.expiries.iter().take_while(|(at, _)| *at <= now);
        let free = over.filter(|(_, key)| !self.rows.get(key).is_some_and(|row| row.is_held(now)));
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let keys: Vec<_> = free.take(rows).map(|(_, key)| key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        u64::try_from(keys.len()).unwrap_or(u64::MAX)
    }
}

impl Keys {
    fn begin(&mut self, request: &BeginKey, now: Micros) -> Begun {
        if let Some(row) = self.keys.get(&request.key, now) {
            if row.fingerprint != request.fingerprint {
                return Begun::Mismatch;
            }
            if let Some(answer) = &row.answer {
                let answer = answer.clone();
                return Begun::Done { answer };
            }
            if row.lease_until > now && row.token != request.token {
                let left = u64::try_from(row.lease_until - now).unwrap_or(0);
                let retry_after = Duration::from_micros(left);
                return Begun::Busy { retry_after };
            }
        }
        let row = KeyRow {
            fingerprint: request.fingerprint,
            token: request.token,
            lease_until: later(now, request.lease),
            answer: None,
            expires_at: later(now, request.retention),
        };
        self.keys.put(&request.key, row);
        Begun::Started
    }

    fn complete(&mut self, request: &CompleteKey, now: Micros) -> LeaseStatus {
        let key = &request.key;
        let status = self.owner(key, request.token);
        if status == LeaseStatus::Ours
            && let Some(mut row) = self.keys.remove(key)
        {
            row.answer = Some(request.answer.clone());
            row.expires_at = later(now, request.retention);
            self.keys.put(key, row);
        }
        status
    }

    fn abandon(&mut self, key: &IdempotencyKey, token: LeaseToken) -> LeaseStatus {
        let status = self.open_owner(key, token);
        if status == LeaseStatus::Ours {
            self.keys.remove(key);
        }
        status
    }

    fn extend(&mut self, key: &IdempotencyKey, token: LeaseToken, until: Micros) -> LeaseStatus {
        let status = self.open_owner(key, token);
        if status == LeaseStatus::Ours
            && let Some(row) = self.keys.rows.get_mut(key)
        {
            row.lease_until = until;
        }
        status
    }

    fn owner(&self, key: &IdempotencyKey, token: LeaseToken) -> LeaseStatus {
        match self.keys.rows.get(key) {
            None => LeaseStatus::Unknown,
            Some(row) if row.token == token => LeaseStatus::Ours,
            Some(_) => LeaseStatus::Lost,
        }
    }

    fn open_owner(&self, key: &IdempotencyKey, token: LeaseToken) -> LeaseStatus {
        match self.keys.rows.get(key) {
            Some(row) if row.token == token && row.answer.is_some() => LeaseStatus::Unknown,
            _ => self.owner(key, token),
        }
    }

    fn accept(
        &mut self,
        accepted: &mut Vec<IdempotencyKey>,
        message: &InboxMessage,
        now: Micros,
    ) -> Result<Accepted, Error> {
        if let Some(row) = self.inbox.get(&message.key, now) {
            if !row.committed && !accepted.contains(&message.key) {
                let problem = "another open transaction has just accepted this message";
                return Err(Error::new(ErrorKind::Conflict, problem));
            }
            return Ok(match (row.fingerprint, message.fingerprint) {
                (Some(one), Some(other)) if one != other => Accepted::Mismatch,
                _ => Accepted::Duplicate,
            });
        }
        let row = InboxRow {
            fingerprint: message.fingerprint,
            expires_at: later(now, message.retention),
            committed: false,
        };
        self.inbox.put(&message.key, row);
        accepted.push(message.key.clone());
        Ok(Accepted::First)
    }

    pub(super) fn commit(&mut self, accepted: Vec<IdempotencyKey>) {
        for key in accepted {
            if let Some(row) = self.inbox.rows.get_mut(&key) {
                row.committed = true;
            }
        }
    }

    pub(super) fn roll_back(&mut self, accepted: Vec<IdempotencyKey>) {
        for key in accepted {
            self.inbox.remove(&key);
        }
    }
}

fn later(now: Micros, by: Duration) -> Micros {
    now.saturating_add(duration_micros(by))
}

impl Shared {
    pub(super) fn with_keys<T>(&self, change: impl FnOnce(&mut Keys, Micros) -> T) -> T {
        let now = to_micros(self.clock.now());
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut keys, now)
    }
}

#[async_trait]
impl IdempotencyKeys for MemoryStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        Ok(self.shared.with_keys(|keys, now| keys.begin(request, now)))
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        Ok(self
            .shared
            .with_keys(|keys, now| keys.complete(request, now)))
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        Ok(self.shared.with_keys(|keys, _| keys.abandon(key, token)))
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        Ok(self
            .shared
            .with_keys(|keys, now| keys.extend(key, token, later(now, by))))
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        Ok(self
            .shared
            .with_keys(|keys, now| keys.keys.prune(rows, now) + keys.inbox.prune(rows, now)))
    }
}

#[async_trait]
impl Inbox<MemoryTx> for MemoryStore {
    async fn accept(&self, tx: &mut MemoryTx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.own(tx)?;
        self.shared
            .with_keys(|keys, now| keys.accept(tx.accepted(), message, now))
    }
}
