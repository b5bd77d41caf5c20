//! The names of tables and columns that a recorder keeps as clients write them.

/// Maximum length in bytes of a table name that is kept: room is left for what layouts append, and for the names of indexes.
pub const TABLE_CHARACTERS_MAX: usize = 36;
/// Maximum length in bytes of a column name that is kept: PostgreSQL truncates longer names.
pub const COLUMN_CHARACTERS_MAX: usize = 60;

/// Names of columns that the recorder itself creates, and of columns that tables of some databases have implicitly.
pub const RESERVED: &[&str] = &[
    "record_id",
    "time_ns",
    "measurement",
    "series",
    "begin_ns",
    "end_ns",
    "edited_ns",
    "more",
    "values",
    "rowid",
    "oid",
    "_rowid_",
    "db_row_id",
    "db_trx_id",
    "db_roll_ptr",
    "fts_doc_id",
    "ctid",
    "xmin",
    "xmax",
    "cmin",
    "cmax",
    "tableoid",
];

/// Returns whether the tables of a measurement have its name, or begin with it, unchanged.
pub fn keeps_table_name(measurement: &str) -> bool {
    is_plain(measurement, TABLE_CHARACTERS_MAX) && !is_of_others(measurement)
}

/// Returns whether the column of a tag or field has its name unchanged.
pub fn keeps_column_name(name: &str) -> bool {
    is_plain(name, COLUMN_CHARACTERS_MAX) && !RESERVED.contains(&name.to_lowercase().as_str())
}

/// Returns whether tables whose names begin like this belong to the recorder or to the database; `sqlite_identity` would be a table of `sqlite`.
pub fn is_of_others(start: &str) -> bool {
    let lower = start.to_lowercase();
    lower == "sqlite" || ["loadline_", "sqlite_", "pg_"].iter().any(|reserved| lower.starts_with(reserved))
}

/// Returns whether a name consists of letters, digits and common separators, with no separator but `_` and `%` at its ends.
fn is_plain(name: &str, characters_max: usize) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b' ' | b':' | b'/' | b'%');
    let outer =
        |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'%');
    !name.is_empty()
        && name.len() <= characters_max
        && name.bytes().all(inner)
        && outer(name.bytes().next())
        && outer(name.bytes().last())
}
