//! Table names, quoted.

use crate::Error;

/// The longest prefix in bytes: the longest name made from it fits every database's limit (63).
const MAX_PREFIX: usize = 36;
const MAX_SCHEMA: usize = 63;

/// Where the library's tables are: a prefix for their names and, if wanted, a schema.
///
/// Both are quoted wherever they are used, so that any case, letters, spaces and dashes work.
///
/// ```
/// use outbox_core::sql::TableNames;
///
/// let names = TableNames::new("outbox")?.schema("My-Schema")?;
/// assert_eq!(names.table("events", '"'), r#""My-Schema"."outbox_events""#);
/// assert!(TableNames::new("").is_err());
/// # Ok::<(), outbox_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    prefix: String,
    schema: Option<String>,
}

impl Default for TableNames {
    /// The prefix `outbox` in the connection's own schema.
    fn default() -> Self {
        Self {
            prefix: "outbox".to_owned(),
            schema: None,
        }
    }
}

impl TableNames {
    /// Tables named `<prefix>_events` and so on, in the connection's own schema.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where the prefix is empty, has more than
    /// 36 bytes or holds a quote, `$`, a backslash, a brace or a control character.
    pub fn new(prefix: impl Into<String>) -> Result<Self, Error> {
        let prefix = prefix.into();
        check("prefix", &prefix, MAX_PREFIX)?;
        Ok(Self {
            prefix,
            schema: None,
        })
    }

    /// The same tables in this schema (MySQL: this database).
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where the name is empty, has more than 63
    /// bytes or holds a character that a prefix may not hold.
    pub fn schema(mut self, schema: impl Into<String>) -> Result<Self, Error> {
        let schema = schema.into();
        check("schema", &schema, MAX_SCHEMA)?;
        self.schema = Some(schema);
        Ok(self)
    }

    /// The schema, where one was set.
    #[must_use]
    pub fn schema_name(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The table (or function) `name`, with its schema, quoted by `quote`.
    #[must_use]
    pub fn table(&self, name: &str, quote: char) -> String {
        let local = self.local(name, quote);
        match &self.schema {
            Some(schema) => format!("{}.{local}", quoted(schema, quote)),
            None => local,
        }
    }

    /// The name of an index or constraint, quoted by `quote`, without a schema.
    #[must_use]
    pub fn local(&self, name: &str, quote: char) -> String {
        quoted(&format!("{}_{name}", self.prefix), quote)
    }

    /// Fills in a statement: `{events}` becomes [`table`](Self::table), `{~events_fresh}` becomes
    /// [`local`](Self::local).
    pub(crate) fn fill(&self, template: &str, quote: char) -> String {
        let mut out = String::with_capacity(template.len() * 2);
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            match name.strip_prefix('~') {
                _ if name.is_empty() => out.push_str("{}"),
                Some(name) => out.push_str(&self.local(name, quote)),
                None => out.push_str(&self.table(name, quote)),
            }
            rest = tail;
        }
        out.push_str(rest);
        out
    }
}

fn check(field: &str, name: &str, limit: usize) -> Result<(), Error> {
    if name.is_empty() || name.len() > limit {
        let problem = format!("has {} bytes; 1 to {limit} are allowed", name.len());
        return Err(Error::invalid_config(field, problem));
    }
    if name
        .chars()
        .any(|c| c.is_control() || "'\"`$\\{}".contains(c))
    {
        let problem =
            format!("is {name:?}; quotes, $, \\, braces and control characters are not allowed");
        return Err(Error::invalid_config(field, problem));
    }
    Ok(())
}

fn quoted(name: &str, quote: char) -> String {
    format!("{quote}{name}{quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_needs_quoting() {
        let names = TableNames::new("a-B").unwrap().schema("S").unwrap();
        assert_eq!(names.table("events", '"'), "\"S\".\"a-B_events\"");
        assert_eq!(
            names.fill("FROM {events} '{}' {~x}", '`'),
            "FROM `S`.`a-B_events` '{}' `a-B_x`"
        );
    }

    #[test]
    fn refuses_names_that_no_database_takes_and_says_why() {
        let refused = |name: &str| TableNames::new(name).unwrap_err().to_string();
        assert_eq!(
            refused(""),
            "setting `prefix` has 0 bytes; 1 to 36 are allowed"
        );
        assert!(refused("a\0").contains("control characters"));
        assert!(refused("a\"; DROP").contains("quotes"));
        assert!(TableNames::default().schema("s".repeat(64)).is_err());
    }
}
