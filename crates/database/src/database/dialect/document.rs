//! JSON documents through the functions that SQLite, MySQL and MariaDB share.

use crate::record::ColumnKind;

/// Returns the path of a document's member. No layout creates names with quotes or backslashes.
pub fn path(member: &str) -> String {
    format!("$.\"{member}\"")
}

/// Returns `json_set` of a document with members; `literal` writes a text as a literal.
pub(super) fn with(literal: impl Fn(&str) -> String, document: &str, members: &[(&str, ColumnKind, String)]) -> String {
    let pairs = members.iter().map(|(name, _, value)| format!("{}, {value}", literal(&path(name))));
    format!("json_set({document}, {})", pairs.collect::<Vec<_>>().join(", "))
}
