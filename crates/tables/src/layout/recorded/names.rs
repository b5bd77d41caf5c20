//! Which names of tables and columns a recorder keeps as clients write them.

/// Bytes of such a name of a table: room is left for what layouts append, and for the names of indexes.
pub const TABLE_CHARACTERS_MAX: usize = 36;
/// Bytes of such a name of a column: PostgreSQL cuts longer names off.
pub const COLUMN_CHARACTERS_MAX: usize = 60;

/// Columns that the recorder itself makes, and those that tables of a database have unasked.
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

/// Whether the tables of a measurement of this name are called, or begin, as it is.
pub fn keeps_table_name(measurement: &str) -> bool {
    is_plain(measurement, TABLE_CHARACTERS_MAX) && !is_of_others(measurement)
}

/// Whether the column of a tag or field of this name is called as it is.
pub fn keeps_column_name(name: &str) -> bool {
    is_plain(name, COLUMN_CHARACTERS_MAX) && !RESERVED.contains(&name.to_lowercase().as_str())
}

/// Whether tables whose names begin so belong to the recorder or to the database; `sqlite_identity` would be a table of `sqlite`.
pub fn is_of_others(start: &str) -> bool {
    let lower = start.to_lowercase();
    lower == "sqlite" || ["loadline_", "sqlite_", "pg_"].iter().any(|reserved| lower.starts_with(reserved))
}

/// Letters, digits and what often stands between them; not at the ends.
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
