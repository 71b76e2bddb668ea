//! What runs the statements of databases whose calls are written in the core.

/// Makes `Connection`, an [`outbox_core::sql::Session`] on a connection of one database. sqlx's own
/// traits can't be named for all databases at once, so the text is the same and the types differ.
/// An event's columns are read by `$get`.
macro_rules! session {
    ($database:ty, $connection:ty, $row:ty, $get:ident) => {
        use std::ops::DerefMut;

        use outbox_core::clock::from_micros;
        use outbox_core::sql::{Cell, EventRow, Letter, Row as Cells, Session, Sql, Value};
        use outbox_core::{Bytes, Error, async_trait};
        use sqlx::query::Query;
        use sqlx::{AssertSqlSafe, Database, Error as SqlxError, Row};

        use super::error::classify;

        /// How many columns of a row make the event.
        const EVENT_COLUMNS: usize = 17;

        /// A connection, and what to say where it fails.
        pub(super) struct Connection<C> {
            conn: C,
            operation: &'static str,
        }

        impl<C> Connection<C> {
            pub(super) const fn new(conn: C, operation: &'static str) -> Self {
                Self { conn, operation }
            }
        }

        #[async_trait]
        impl<C: DerefMut<Target = $connection> + Send> Session for Connection<C> {
            async fn batch(&mut self, statements: &str) -> Result<(), Error> {
                let done = sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *self.conn);
                let done = done.await.map(drop);
                done.map_err(|error| classify(self.operation, error))
            }

            async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
                let done = bound(sql, values).execute(&mut *self.conn).await;
                done.map(|done| done.rows_affected())
                    .map_err(|error| classify(self.operation, error))
            }

            async fn fetch(
                &mut self,
                sql: &Sql,
                values: &[Value<'_>],
                columns: &[Cell],
            ) -> Result<Vec<Cells>, Error> {
                let rows = bound(sql, values).fetch_all(&mut *self.conn).await;
                rows.and_then(|rows| rows.iter().map(|row| cells(row, 0, columns)).collect())
                    .map_err(|error| classify(self.operation, error))
            }

            async fn events(
                &mut self,
                sql: &Sql,
                values: &[Value<'_>],
                columns: &[Cell],
            ) -> Result<Vec<Letter>, Error> {
                let rows = bound(sql, values).fetch_all(&mut *self.conn).await;
                rows.and_then(|rows| rows.iter().map(|row| letter(row, columns)).collect())
                    .map_err(|error| classify(self.operation, error))
            }
        }

        fn bound<'q>(
            sql: &'q Sql,
            values: &[Value<'_>],
        ) -> Query<'q, $database, <$database as Database>::Arguments> {
            let query = crate::query(sql);
            values.iter().fold(query, |query, value| match *value {
                Value::NoInt => query.bind(None::<i64>),
                Value::NoText => query.bind(None::<String>),
                Value::NoBytes => query.bind(None::<Vec<u8>>),
                Value::Int(number) => query.bind(number),
                Value::Text(text) => query.bind(text.to_owned()),
                Value::Bytes(bytes) => query.bind(bytes.to_owned()),
                Value::Id(id) => query.bind(id.to_vec()),
            })
        }

        /// The columns from `first` on. Types are not compared: which kind of integer an expression
        /// makes differs between servers, and text is read as bytes.
        fn cells(row: &$row, first: usize, columns: &[Cell]) -> Result<Cells, SqlxError> {
            let mut cells = Cells::default();
            for (place, column) in columns.iter().enumerate() {
                match column {
                    Cell::Int => cells.ints.push(row.try_get_unchecked(first + place)?),
                    Cell::Bytes => cells.bytes.push(row.try_get_unchecked(first + place)?),
                }
            }
            Ok(cells)
        }

        /// An event and the columns after it.
        fn letter(row: &$row, columns: &[Cell]) -> Result<Letter, SqlxError> {
            let seq = row.try_get_unchecked(0)?;
            let event = event_row(row, seq).map_err(|error| error.to_string());
            Ok(Letter::new(seq, event, cells(row, EVENT_COLUMNS, columns)?))
        }

        fn event_row(row: &$row, seq: i64) -> Result<EventRow, SqlxError> {
            let id: Vec<u8> = row.$get(1)?;
            let text = |at: usize| row.$get::<String, _>(at);
            let maybe = |at: usize| row.$get::<Option<String>, _>(at);
            let expires_at: Option<i64> = row.$get(12)?;
            Ok(EventRow {
                seq,
                id: id
                    .try_into()
                    .map_err(|_| SqlxError::Decode("column `id` has not 16 bytes".into()))?,
                event_type: text(2)?,
                destination: text(3)?,
                key: maybe(4)?,
                payload: Bytes::from(row.$get::<Vec<u8>, _>(5)?),
                content_type: text(6)?,
                aggregate_type: maybe(7)?,
                aggregate_id: maybe(8)?,
                headers: maybe(9)?,
                dedup_key: maybe(10)?,
                created_at: from_micros(row.$get(11)?),
                expires_at: expires_at.map(from_micros),
                max_attempts: row.$get(13)?,
                attempts: row.$get(14)?,
                replays: row.$get(15)?,
                last_error: maybe(16)?,
            })
        }
    };
}
pub(crate) use session;
