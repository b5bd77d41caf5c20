//! The keys of a table's rows. Functions: [`prefix_of`] and [`stream_of`].

/// Returns the prefix of the keys of a table's rows.
pub(super) fn prefix_of(table: &str) -> String {
    format!("{table}:")
}

/// Returns the key of the stream with the rows of a table that the server numbers.
pub(super) fn stream_of(table: &str) -> String {
    format!("{}rows", prefix_of(table))
}
