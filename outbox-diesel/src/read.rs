//! Reading rows by the place of their columns, the same way on every database.

use std::marker::PhantomData;

use diesel::backend::Backend;
use diesel::deserialize;
use diesel::result::UnexpectedEndOfRow;
use diesel::row::{Field, Row};

/// A database that sends the column types which our statements return.
pub(crate) trait Columns: Backend {
    /// A 64-bit integer.
    fn bigint(value: Self::RawValue<'_>) -> deserialize::Result<i64>;
    /// Text.
    fn text(value: Self::RawValue<'_>) -> deserialize::Result<String>;
    /// Bytes.
    fn bytes(value: Self::RawValue<'_>) -> deserialize::Result<Vec<u8>>;
}

/// What a row is read as.
pub(crate) trait FromRow: Sized {
    /// Reads the columns from the first on.
    fn from_row<'a, DB: Columns, R: Row<'a, DB>>(
        row: &mut Reader<'_, DB, R>,
    ) -> deserialize::Result<Self>;
}

/// A row that is read from left to right.
pub(crate) struct Reader<'r, DB, R> {
    row: &'r R,
    next: usize,
    database: PhantomData<DB>,
}

impl<'r, 'a, DB: Columns, R: Row<'a, DB>> Reader<'r, DB, R> {
    pub(crate) const fn new(row: &'r R) -> Self {
        Self {
            row,
            next: 0,
            database: PhantomData,
        }
    }

    pub(crate) fn bigint(&mut self) -> deserialize::Result<i64> {
        self.required(DB::bigint)
    }

    pub(crate) fn text(&mut self) -> deserialize::Result<String> {
        self.required(DB::text)
    }

    pub(crate) fn bytes(&mut self) -> deserialize::Result<Vec<u8>> {
        self.required(DB::bytes)
    }

    pub(crate) fn maybe_bigint(&mut self) -> deserialize::Result<Option<i64>> {
        self.optional(DB::bigint)
    }

    pub(crate) fn maybe_text(&mut self) -> deserialize::Result<Option<String>> {
        self.optional(DB::text)
    }

    fn required<T>(
        &mut self,
        read: impl FnOnce(DB::RawValue<'_>) -> deserialize::Result<T>,
    ) -> deserialize::Result<T> {
        self.optional(read)?.ok_or_else(|| {
            let place = self.next;
            format!("column {place} is null").into()
        })
    }

    fn optional<T>(
        &mut self,
        read: impl FnOnce(DB::RawValue<'_>) -> deserialize::Result<T>,
    ) -> deserialize::Result<Option<T>> {
        let field = self.row.get(self.next).ok_or(UnexpectedEndOfRow)?;
        self.next += 1;
        field.value().map(read).transpose()
    }
}
