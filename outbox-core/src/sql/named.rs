//! Statements that name their values: `:token` in a template becomes what the database takes there,
//! so that one call binds the same values whatever their order in each database's text.

use std::time::Duration;

use super::{Cell, Row, Session, Sql, Value, micros};
use crate::clock::{Clock, to_micros};
use crate::{Error, LeaseToken};

/// The clock of a store whose database has none: its statements bind the time. `None` where they read
/// the server's clock.
pub type StoreClock<'a> = Option<&'a dyn Clock>;

/// Defines [`Param`]: the name in templates, the variant, and the null that stands for none.
macro_rules! params {
    ($($name:literal => $param:ident or $null:ident,)*) => {
        /// What a template can name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Param {
            /// The store's clock in µs; no call gives it.
            Now,
            $($param,)*
        }

        impl Param {
            fn named(name: &str) -> Option<Self> {
                match name {
                    "now" => Some(Self::Now),
                    $($name => Some(Self::$param),)*
                    _ => None,
                }
            }

            const fn none(self) -> Value<'static> {
                match self {
                    Self::Now => Value::NoInt,
                    $(Self::$param => Value::$null,)*
                }
            }
        }
    };
}

// Periods are in µs: of a lease, of keeping a row (`kept`), or of what a call asks for (`period`).
params! {
    "name" => Name or NoText,
    "token" => Token or NoBytes,
    "lease" => Lease or NoInt,
    "period" => Period or NoInt,
    "scope" => Scope or NoText,
    "key" => Key or NoText,
    "print" => Print or NoBytes,
    "kept" => Kept or NoInt,
    "answer" => Answer or NoBytes,
    "rows" => Rows or NoInt,
    "destination" => Destination or NoText,
    "reason" => Reason or NoText,
    "policy" => Policy or NoText,
}

/// A value and what it is.
pub(super) type Given<'a> = (Param, Value<'a>);

/// A period as it is given: in µs.
pub(super) fn period(duration: Duration) -> Value<'static> {
    Value::Int(micros(duration))
}

/// A token as it is given.
pub(super) fn id(token: LeaseToken) -> Value<'static> {
    Value::Id(*token.as_bytes())
}

/// How a database marks the place of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marks {
    /// By this character and a number, which can repeat: `$1`.
    Numbered(char),
    /// By a question mark, and the value is bound again for each.
    Each,
}

/// A statement, and the values that it binds in their order.
#[derive(Debug)]
pub(super) struct Named {
    text: Sql,
    order: Vec<Param>,
}

impl Named {
    /// A template as a statement. `fill` completes the text, with the marks in it: whatever it puts
    /// in (the names of tables) is not read as names of values. An unknown name stays, for the
    /// database to refuse; debug builds, and so all tests, refuse it here.
    pub(super) fn new(template: &str, marks: Marks, fill: impl FnOnce(&str) -> String) -> Self {
        let mut text = String::with_capacity(template.len());
        let mut order = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once(':') {
            text.push_str(before);
            let end = after.find(|c: char| !c.is_ascii_lowercase());
            let (name, tail) = after.split_at(end.unwrap_or(after.len()));
            if let Some(param) = Param::named(name) {
                marks.push(&mut text, &mut order, param);
                rest = tail;
                continue;
            }
            text.push(':');
            rest = after;
            // A cast of PostgreSQL's.
            if let Some(cast) = after.strip_prefix(':') {
                text.push(':');
                rest = cast;
            }
            debug_assert!(name.is_empty(), "`:{name}` is no value: {template}");
        }
        text.push_str(rest);
        Self {
            text: fill(&text).into(),
            order,
        }
    }

    /// Makes the statement; returns how many rows it matched.
    pub(super) async fn execute<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        given: &[Given<'_>],
    ) -> Result<u64, Error> {
        let values = self.values(clock, given);
        session.execute(&self.text, &values).await
    }

    /// Makes the query, whose columns are `cells`.
    pub(super) async fn fetch<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        given: &[Given<'_>],
        cells: &[Cell],
    ) -> Result<Vec<Row>, Error> {
        let values = self.values(clock, given);
        session.fetch(&self.text, &values, cells).await
    }

    /// The values in the statement's order; null for those that were not given.
    fn values<'a>(&self, clock: StoreClock<'_>, given: &[Given<'a>]) -> Vec<Value<'a>> {
        let value = |param: &Param| match (param, clock) {
            (Param::Now, Some(clock)) => Value::Int(to_micros(clock.now())),
            _ => given
                .iter()
                .find(|(of, _)| of == param)
                .map_or_else(|| param.none(), |(_, value)| *value),
        };
        self.order.iter().map(value).collect()
    }
}

/// Makes the first of the statements, tried in turn, that changes a row. Returns whether one did.
pub(super) async fn first<S: Session>(
    statements: &[Named],
    session: &mut S,
    clock: StoreClock<'_>,
    given: &[Given<'_>],
) -> Result<bool, Error> {
    for statement in statements {
        if statement.execute(session, clock, given).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Marks {
    fn push(self, text: &mut String, order: &mut Vec<Param>, param: Param) {
        match self {
            Self::Each => {
                order.push(param);
                text.push('?');
            }
            Self::Numbered(mark) => {
                let at = order.iter().position(|of| *of == param);
                let at = at.unwrap_or_else(|| {
                    order.push(param);
                    order.len() - 1
                });
                text.push(mark);
                text.push_str(&(at + 1).to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    const TEMPLATE: &str = "UPDATE {locks} SET a = :lease::bigint, t = :token WHERE name = :name OR t = :token OR '0:00'";

    fn tables(text: &str) -> String {
        text.replace("{locks}", "\"x:token\"")
    }

    #[test]
    fn a_numbered_value_has_one_number() {
        let named = Named::new(TEMPLATE, Marks::Numbered('$'), tables);
        let text =
            "UPDATE \"x:token\" SET a = $1::bigint, t = $2 WHERE name = $3 OR t = $2 OR '0:00'";
        assert_eq!(&*named.text, text);
        assert_eq!(named.order, [Param::Lease, Param::Token, Param::Name]);
    }

    #[test]
    fn a_value_without_a_number_is_bound_for_each_mark() {
        let named = Named::new(TEMPLATE, Marks::Each, tables);
        let text = "UPDATE \"x:token\" SET a = ?::bigint, t = ? WHERE name = ? OR t = ? OR '0:00'";
        assert_eq!(&*named.text, text);
        let order = [Param::Lease, Param::Token, Param::Name, Param::Token];
        assert_eq!(named.order, order);
    }

    #[test]
    fn values_are_bound_in_the_order_of_the_text() {
        let named = Named::new(":name :now :period :token", Marks::Each, str::to_owned);
        let clock = ManualClock::new();
        let given = [
            (Param::Token, Value::Id([7; 16])),
            (Param::Name, Value::Text("n")),
        ];
        let values = named.values(Some(&clock), &given);
        let at = to_micros(clock.now());
        assert!(
            matches!(values[..], [
                Value::Text("n"),
                Value::Int(now),
                Value::NoInt,
                Value::Id(_)
            ] if now == at),
            "{values:?}"
        );
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "`:tokn` is no value")]
    fn an_unknown_name_is_noticed() {
        Named::new("SELECT :tokn", Marks::Each, str::to_owned);
    }

    /// Building them reads every template.
    #[test]
    fn the_statements_of_every_database_name_values_that_there_are() {
        use crate::sql::{TableNames, mysql, pg, sqlite};
        let names = TableNames::default();
        let _ = pg::Statements::new(&names, crate::Retention::default());
        let _ = mysql::Statements::new(&names);
        let _ = sqlite::Statements::new(&names).unwrap();
    }
}
