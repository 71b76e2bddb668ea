//! Lists of names in statements.

use crate::sql::hex;

/// Names as a statement takes them: in hex, separated by commas, for `FIND_IN_SET`. An empty list
/// is a comma: nothing is in it.
#[must_use]
pub fn names_text<T: AsRef<str>>(names: &[T]) -> String {
    if names.is_empty() {
        return ",".to_owned();
    }
    let names: Vec<String> = names
        .iter()
        .map(|name| hex(name.as_ref().as_bytes()))
        .collect();
    names.join(",")
}
