//! SQL text with its values, as diesel takes a query.
//!
//! `sql_query` would do, but diesel prepares it anew for each call. A [`Statement`] is cached by
//! its text, like any boxed query: the texts are few, the values many.

use diesel::QueryResult;
use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::Untyped;

/// A value that a database of type `DB` takes.
pub(crate) trait Bind<DB: Backend> {
    /// Adds the value. The text has the placeholder already.
    fn bind<'b>(&'b self, out: AstPass<'_, 'b, DB>) -> QueryResult<()>;
}

/// One statement: its text, placeholders included, and its values in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Statement<'q, V> {
    sql: &'q str,
    values: Vec<V>,
}

impl<'q, V> Statement<'q, V> {
    /// A statement. It is prepared once for each connection.
    pub(crate) const fn new(sql: &'q str, values: Vec<V>) -> Self {
        Self { sql, values }
    }
}

impl<V> QueryId for Statement<'_, V> {
    type QueryId = ();

    // The type says nothing about the text: the cache goes by the text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<V> Query for Statement<'_, V> {
    type SqlType = Untyped;
}

impl<DB: Backend, V: Bind<DB>> QueryFragment<DB> for Statement<'_, V> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(self.sql);
        for value in &self.values {
            value.bind(out.reborrow())?;
        }
        Ok(())
    }
}
