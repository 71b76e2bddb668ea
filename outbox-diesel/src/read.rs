//! Reading rows by the place of their columns, the same way on every database.

use std::marker::PhantomData;
use std::time::SystemTime;

use diesel::backend::Backend;
use diesel::deserialize::Result;
use diesel::result::UnexpectedEndOfRow;
use diesel::row::{Field, Row};

/// A database whose columns our statements return.
pub(crate) trait Columns: Backend {
    fn integer(value: Self::RawValue<'_>) -> Result<i32>;
    fn bigint(value: Self::RawValue<'_>) -> Result<i64>;
    fn text(value: Self::RawValue<'_>) -> Result<String>;
    fn bytes(value: Self::RawValue<'_>) -> Result<Vec<u8>>;
    fn uuid(value: Self::RawValue<'_>) -> Result<[u8; 16]>;
    fn instant(value: Self::RawValue<'_>) -> Result<SystemTime>;
}

/// What a row is read as.
pub(crate) trait FromRow<DB: Columns>: Sized + Send {
    /// Reads the next columns.
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self>;
}

/// How rows of `DB` are read.
pub(crate) trait ReadRows<DB: Columns>: Sync {
    /// What comes of a row.
    type Out: Send;

    /// Reads a row.
    fn read<'a, R: Row<'a, DB>>(&self, row: &mut Reader<'_, DB, R>) -> Result<Self::Out>;
}

/// Reads rows as `T`, whose columns are always the same.
#[cfg(feature = "postgres")]
pub(crate) struct As<T>(PhantomData<fn() -> T>);

#[cfg(feature = "postgres")]
impl<T> As<T> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

#[cfg(feature = "postgres")]
impl<DB: Columns, T: FromRow<DB>> ReadRows<DB> for As<T> {
    type Out = T;

    fn read<'a, R: Row<'a, DB>>(&self, row: &mut Reader<'_, DB, R>) -> Result<T> {
        T::from_row(row)
    }
}

/// A row that is read from left to right.
pub(crate) struct Reader<'r, DB, R> {
    row: &'r R,
    place: usize,
    database: PhantomData<DB>,
}

impl<'r, 'a, DB: Columns, R: Row<'a, DB>> Reader<'r, DB, R> {
    pub(crate) const fn new(row: &'r R) -> Self {
        Self {
            row,
            place: 0,
            database: PhantomData,
        }
    }

    /// The same row, from the first column on.
    pub(crate) const fn rewound(&self) -> Self {
        Self::new(self.row)
    }

    /// The same row, from the column of this number on.
    pub(crate) const fn from(&self, place: usize) -> Self {
        let mut reader = Self::new(self.row);
        reader.place = place;
        reader
    }

    /// The next column, which holds a value.
    pub(crate) fn get<T>(&mut self, read: fn(DB::RawValue<'_>) -> Result<T>) -> Result<T> {
        let place = self.place;
        self.maybe(read)?
            .ok_or_else(|| format!("column {place} is null").into())
    }

    /// The next column, which may be null.
    pub(crate) fn maybe<T>(
        &mut self,
        read: fn(DB::RawValue<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let field = self.row.get(self.place).ok_or(UnexpectedEndOfRow)?;
        self.place += 1;
        field.value().map(read).transpose()
    }
}
