//! Idempotency keys and inbox ids: what the calls do, on every database. Each statement commits by
//! itself, but those of `accept`.

use std::time::Duration;

use super::named::{Given, Named, Param, StoreClock, first, id, period};
use super::receiving::{prove, time_left};
use super::{Cell, Row, Session, Value};
use crate::{
    Accepted, BeginKey, Begun, Bytes, CompleteKey, Error, ErrorKind, Fingerprint, IdempotencyKey,
    InboxMessage, LeaseStatus, LeaseToken,
};

/// How often a run asks for a key that came free between two statements.
const TRIES: u32 = 4;

/// The statements on idempotency keys and inbox ids, of one database. All name the scope and the key
/// (of a message: its source and id), but for the prunes.
#[derive(Debug)]
pub struct IdempotencySql {
    /// The first that changes a row starts the run. Print, token, lease, kept.
    pub(super) begin: Vec<Named>,
    /// Whether the fingerprint is this one, how many µs the lease has left, the answer; no row where
    /// a run could start by now. Print, token.
    pub(super) look: Named,
    /// Token, answer, kept.
    pub(super) complete: Named,
    /// Token.
    pub(super) abandon: Named,
    /// Token, period.
    pub(super) extend: Named,
    /// Whether another token has the key; no row where nobody has. Token.
    pub(super) owner: Named,
    /// Changes a row where the message is new, and holds it until the transaction ends. Print, kept.
    pub(super) accept: Named,
    /// Whether the message's time is over (where `accept` doesn't see to that), and its fingerprint.
    pub(super) accepted: Named,
    /// Takes the place of a message whose time is over. Print, kept.
    pub(super) renew: Option<Named>,
    /// Rows.
    pub(super) prune_keys: Named,
    /// Rows.
    pub(super) prune_inbox: Named,
}

impl IdempotencySql {
    /// Starts a run, or says why not.
    ///
    /// # Errors
    ///
    /// Those of the session; [`Conflict`](ErrorKind::Conflict) where the key came free each time
    /// after it was found taken.
    pub async fn begin_key<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        request: &BeginKey,
    ) -> Result<Begun, Error> {
        let [scope, key] = on(&request.key);
        let given = [
            scope,
            key,
            (Param::Print, Value::Bytes(request.fingerprint.as_bytes())),
            (Param::Token, id(request.token)),
            (Param::Lease, period(request.lease)),
            (Param::Kept, period(request.retention)),
        ];
        let cells = [Cell::Int, Cell::Int, Cell::Bytes];
        for _ in 0..TRIES {
            if first(&self.begin, session, clock, &given).await? {
                return Ok(Begun::Started);
            }
            let mut found = self.look.fetch(session, clock, &given, &cells).await?;
            if let Some(row) = found.pop() {
                return Ok(begun(row));
            }
        }
        let problem = "begin_key: others are faster each time";
        Err(Error::new(ErrorKind::Conflict, problem))
    }

    /// Keeps the answer and ends the run.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn complete_key<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        request: &CompleteKey,
    ) -> Result<LeaseStatus, Error> {
        let [scope, key] = on(&request.key);
        let given = [
            scope,
            key,
            (Param::Token, id(request.token)),
            (Param::Answer, Value::Bytes(&request.answer)),
            (Param::Kept, period(request.retention)),
        ];
        prove(&self.complete, &self.owner, session, clock, &given).await
    }

    /// Forgets the key.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn abandon_key<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let [scope, key] = on(key);
        let given = [scope, key, (Param::Token, id(token))];
        prove(&self.abandon, &self.owner, session, clock, &given).await
    }

    /// Lets the lease run until `by` from now.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn extend_key<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let [scope, key] = on(key);
        let by = (Param::Period, period(by));
        let given = [scope, key, (Param::Token, id(token)), by];
        prove(&self.extend, &self.owner, session, clock, &given).await
    }

    /// Deletes up to `rows` keys whose retention has passed.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn prune_keys<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        rows: u32,
    ) -> Result<u64, Error> {
        let given = [(Param::Rows, Value::Int(rows.into()))];
        self.prune_keys.execute(session, clock, &given).await
    }

    /// Deletes up to `rows` inbox ids whose retention has passed.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn prune_inbox<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        rows: u32,
    ) -> Result<u64, Error> {
        let given = [(Param::Rows, Value::Int(rows.into()))];
        self.prune_inbox.execute(session, clock, &given).await
    }

    /// Accepts a message, once; in the caller's transaction.
    ///
    /// # Errors
    ///
    /// Those of the session; [`Conflict`](ErrorKind::Conflict) where the id was found taken and is
    /// gone again.
    pub async fn accept<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        message: &InboxMessage,
    ) -> Result<Accepted, Error> {
        let [source, name] = on(&message.key);
        let print = message.fingerprint.as_ref();
        let print = Value::bytes(print.map(|print| &print.as_bytes()[..]));
        let kept = (Param::Kept, period(message.retention));
        let given = [source, name, (Param::Print, print), kept];
        if self.accept.execute(session, clock, &given).await? > 0 {
            return Ok(Accepted::First);
        }
        let cells = [Cell::Int, Cell::Bytes];
        let found = self.accepted.fetch(session, clock, &given, &cells).await?;
        let Some(row) = found.into_iter().next() else {
            let problem = "accept: the message's id was forgotten meanwhile";
            return Err(Error::new(ErrorKind::Conflict, problem));
        };
        if let Some(renew) = &self.renew
            && row.is(0)
        {
            renew.execute(session, clock, &given).await?;
            return Ok(Accepted::First);
        }
        Ok(again(row, message.fingerprint))
    }
}

fn on(key: &IdempotencyKey) -> [Given<'_>; 2] {
    [
        (Param::Scope, Value::Text(key.scope())),
        (Param::Key, Value::Text(key.key())),
    ]
}

/// Why a request does not start whose key is not free, from the row of a look.
fn begun(mut row: Row) -> Begun {
    match row.bytes.pop().flatten() {
        _ if !row.is(0) => Begun::Mismatch,
        Some(answer) => Begun::Done {
            answer: Bytes::from(answer),
        },
        None => Begun::Busy {
            retry_after: time_left(row.maybe(1)),
        },
    }
}

/// What a message is that was accepted before, from its row.
fn again(mut row: Row, fingerprint: Option<Fingerprint>) -> Accepted {
    match (row.bytes.pop().flatten(), fingerprint) {
        (Some(one), Some(other)) if one != other.as_bytes() => Accepted::Mismatch,
        _ => Accepted::Duplicate,
    }
}
