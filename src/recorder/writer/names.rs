//! Names of tables and columns, made from what clients call their measurements, tags and fields.
//!
//! Main functions: [`table_name`] and [`column_name`]. A name that every database takes stays as it is; any other gets a plain
//! form with a hash of the original behind it, so that different names stay different.

use sha2::{Digest, Sha256};

/// Room is left for what layouts append, and for the names of indexes.
const TABLE_CHARACTERS_MAX: usize = 36;
/// PostgreSQL cuts longer names off.
const COLUMN_CHARACTERS_MAX: usize = 60;

/// Columns that the recorder itself makes.
pub(super) const RESERVED: &[&str] = &[
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
    "ctid",
    "xmin",
    "xmax",
    "cmin",
    "cmax",
    "tableoid",
];

/// The table of a measurement; `is_taken` says which names others have, in lower case.
pub(super) fn table_name(measurement: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let lower = measurement.to_lowercase();
    let is_reserved = lower.starts_with("loadline_") || lower.starts_with("sqlite_") || lower.starts_with("pg_");
    let is_good = is_plain(measurement, TABLE_CHARACTERS_MAX) && !is_reserved && !is_taken(&lower);
    if is_good { measurement.to_owned() } else { hashed(measurement, "m", TABLE_CHARACTERS_MAX) }
}

/// The column of a tag or field; `is_taken` as above.
pub(super) fn column_name(role: &str, name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let lower = name.to_lowercase();
    let is_good = is_plain(name, COLUMN_CHARACTERS_MAX) && !RESERVED.contains(&lower.as_str()) && !is_taken(&lower);
    if is_good { name.to_owned() } else { hashed(name, role, COLUMN_CHARACTERS_MAX) }
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

fn hashed(name: &str, role: &str, characters_max: usize) -> String {
    let hash = hash_hex(&[role, name]);
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    let start: String = plain.chars().take(characters_max - 10).collect();
    let start = if start.is_empty() { role } else { &start };
    format!("{start}_{}", &hash[..8])
}

/// SHA-256 of texts, each with its length, as 32 hexadecimal digits: what stands for a text of any length in keys.
pub(super) fn hash_hex(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_stay_and_others_get_a_hash() {
        let free = |_: &str| false;
        assert_eq!(table_name("cpu", free), "cpu");
        assert_eq!(column_name("field", "usage.idle", free), "usage.idle");
        assert!(table_name("loadline_writer", free).starts_with("loadline_writer_"));
        assert!(table_name("mittaus ä", free).starts_with("mittaus_"));
        assert!(table_name("ä", free).starts_with("m_"));
        assert!(column_name("field", "Time_NS", free).starts_with("Time_NS_"));
        assert_ne!(column_name("field", "a", |_| true), column_name("tag", "a", |_| true));
    }

    proptest! {
        #[test]
        fn every_name_becomes_a_name_that_all_databases_take(name in ".{1,80}", taken in any::<bool>()) {
            for made in [table_name(&name, |_| taken), column_name("tag", &name, |_| taken)] {
                prop_assert!(!made.is_empty() && made.len() <= COLUMN_CHARACTERS_MAX && made.is_ascii(), "{made}");
            }
        }
    }
}
