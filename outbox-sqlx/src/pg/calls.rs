//! What runs the statements of calls that are written in the core.

use outbox_core::sql::{Cell, Letter, Row as Cells, Session, Sql, Value};
use outbox_core::{Error, async_trait};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use sqlx::{AssertSqlSafe, PgConnection};

use super::PgStore;
use super::error::classify;
use super::row::{EVENT_COLUMNS, column, event_row};
use super::session::Statement;
use crate::query;

/// Where a call's statements run, and what to say where one fails.
pub(super) struct Calls<'a> {
    on: On<'a>,
    operation: &'static str,
}

enum On<'a> {
    /// Each statement on a pooled connection.
    Pool(&'a PgStore),
    /// On the caller's connection, and whether to keep prepared statements there.
    Connection(&'a mut PgConnection, bool),
}

impl PgStore {
    /// On pooled connections.
    pub(super) const fn calls(&self, operation: &'static str) -> Calls<'_> {
        let on = On::Pool(self);
        Calls { on, operation }
    }

    /// On the caller's connection.
    pub(super) const fn calls_on<'a>(
        &self,
        conn: &'a mut PgConnection,
        operation: &'static str,
    ) -> Calls<'a> {
        let on = On::Connection(conn, !self.in_transactions);
        Calls { on, operation }
    }
}

/// Makes a call of autocommit statements; again where another transaction was in the way.
macro_rules! call {
    ($store:ident, $operation:ident($($argument:expr),*)) => {
        crate::retry::retried!(async {
            let mut session = $store.calls(stringify!($operation));
            outbox_core::sql::pg::$operation(&mut session, &$store.sql, $($argument),*).await
        })
    };
    ($store:ident, $group:ident.$operation:ident($($argument:expr),*)) => {
        crate::retry::retried!(async {
            let mut session = $store.calls(stringify!($operation));
            let sql = &$store.sql.$group;
            sql.$operation(&mut session, None, $($argument),*).await
        })
    };
}
pub(super) use call;

impl Calls<'_> {
    async fn rows(&mut self, statement: Statement<'_>) -> Result<Vec<PgRow>, Error> {
        match &mut self.on {
            On::Pool(store) => store.fetch_all(self.operation, statement).await,
            On::Connection(conn, persistent) => {
                let statement = statement.persistent(*persistent);
                let rows = statement.fetch_all(&mut **conn).await;
                rows.map_err(|error| classify(self.operation, error))
            }
        }
    }

    fn read<T>(
        &self,
        rows: &[PgRow],
        read: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, Error> {
        let read: Result<_, _> = rows.iter().map(read).collect();
        read.map_err(|error| classify(self.operation, error))
    }
}

#[async_trait]
impl Session for Calls<'_> {
    async fn batch(&mut self, statements: &str) -> Result<(), Error> {
        let statements = sqlx::raw_sql(AssertSqlSafe(statements));
        let done = match &mut self.on {
            On::Pool(store) => statements.execute(&store.pool).await,
            On::Connection(conn, _) => statements.execute(&mut **conn).await,
        };
        done.map(drop)
            .map_err(|error| classify(self.operation, error))
    }

    async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        let statement = bound(sql, values);
        match &mut self.on {
            On::Pool(store) => store.changed(self.operation, statement).await,
            On::Connection(conn, persistent) => {
                let statement = statement.persistent(*persistent);
                let done = statement.execute(&mut **conn).await;
                done.map(|done| done.rows_affected())
                    .map_err(|error| classify(self.operation, error))
            }
        }
    }

    async fn fetch(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Cells>, Error> {
        let rows = self.rows(bound(sql, values)).await?;
        self.read(&rows, |row| cells(row, 0, columns))
    }

    async fn events(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Letter>, Error> {
        let rows = self.rows(bound(sql, values)).await?;
        self.read(&rows, |row| {
            let event = event_row(row).map_err(|error| error.to_string());
            let rest = cells(row, EVENT_COLUMNS, columns)?;
            Ok(Letter::new(column(row, 0)?, event, rest))
        })
    }
}

fn bound<'q>(sql: &'q Sql, values: &[Value<'_>]) -> Statement<'q> {
    values.iter().fold(query(sql), |query, value| match *value {
        Value::NoInt => query.bind(None::<i64>),
        Value::NoText => query.bind(None::<String>),
        Value::NoBytes => query.bind(None::<Vec<u8>>),
        Value::Int(number) => query.bind(number),
        Value::Text(text) => query.bind(text.to_owned()),
        Value::Bytes(bytes) => query.bind(bytes.to_owned()),
        Value::Id(id) => query.bind(Uuid::from_bytes(id)),
    })
}

/// The columns from `first` on. Text is read as bytes.
fn cells(row: &PgRow, first: usize, columns: &[Cell]) -> Result<Cells, sqlx::Error> {
    let mut cells = Cells::default();
    for (place, kind) in columns.iter().enumerate() {
        match kind {
            Cell::Int => cells.ints.push(column(row, first + place)?),
            Cell::Bytes => cells.bytes.push(column(row, first + place)?),
        }
    }
    Ok(cells)
}
