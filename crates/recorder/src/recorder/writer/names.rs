//! Names of tables and columns, made from what clients call their measurements, tags and fields.
//!
//! Main functions: [`table_names`] and [`column_names`]. A name that every database takes stays as it is; any other gets a plain
//! form with a hash of the original behind it. A name made this way may be another client's own name, so there are always more
//! names; which one is free is found out where names are claimed (`claims`).

use crate::layout::recorded::{
    COLUMN_CHARACTERS_MAX, TABLE_CHARACTERS_MAX, hash_hex, is_of_others, keeps_column_name, keeps_table_name,
};

/// The name of the registry's table.
pub(super) const REGISTRY: &str = "loadline_column";

/// Returns the name of a measurement's tables, or its beginning, if no other has that name.
pub(super) fn table_name(measurement: &str) -> String {
    table_names(measurement).next().unwrap_or_default()
}

/// Returns names for the tables of a measurement, the best first, without end: they are tried until one is free.
pub(super) fn table_names(measurement: &str) -> impl Iterator<Item = String> {
    plain_first(measurement, "m", TABLE_CHARACTERS_MAX, keeps_table_name(measurement))
}

/// Returns names for the column of a tag or field in the same way.
pub(super) fn column_names(role: &str, name: &str) -> impl Iterator<Item = String> {
    plain_first(name, role, COLUMN_CHARACTERS_MAX, keeps_column_name(name))
}

fn plain_first(name: &str, role: &str, characters_max: usize, is_good: bool) -> impl Iterator<Item = String> {
    let hashes = (0_u32..).map(move |number| hashed(name, role, characters_max, number));
    is_good.then(|| name.to_owned()).into_iter().chain(hashes)
}

/// Returns a plain form of a name with a hash of it: of 8 digits, then of 16, then of 16 others each time.
fn hashed(name: &str, role: &str, characters_max: usize, number: u32) -> String {
    let (hash, digits) = match number {
        0 => (hash_hex(&[role, name]), 8),
        1 => (hash_hex(&[role, name]), 16),
        more => (hash_hex(&[role, name, &more.to_string()]), 16),
    };
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    let plain = if is_of_others(plain) { format!("{role}_{plain}") } else { plain.to_owned() };
    let start: String = plain.chars().take(characters_max - 2 - digits).collect();
    let start = if start.is_empty() { role } else { &start };
    format!("{start}_{}", &hash[..digits])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(mut names: impl Iterator<Item = String>) -> String {
        names.next().unwrap()
    }

    #[test]
    fn plain_names_stay_and_others_get_a_hash() {
        assert_eq!(table_name("cpu"), "cpu");
        assert_eq!(first(column_names("field", "usage.idle")), "usage.idle");
        assert!(table_name("mittaus ä").starts_with("mittaus_"));
        assert!(table_name("ä").starts_with("m_"));
        assert!(first(column_names("field", "Time_NS")).starts_with("Time_NS_"));
        assert!(first(column_names("field", "DB_TRX_ID")).starts_with("DB_TRX_ID_"));
        for reserved in ["loadline_writer", "sqlite", "sqlite_x", "PG_class", "sqlite ä"] {
            assert!(table_name(reserved).starts_with("m_"), "{reserved} became {}", table_name(reserved));
        }
    }

    proptest! {
        #[test]
        fn every_name_has_ever_more_names_that_all_databases_take(name in ".{1,80}") {
            for (names, most) in [
                (table_names(&name).take(6).collect::<Vec<_>>(), TABLE_CHARACTERS_MAX),
                (column_names("tag", &name).take(6).collect(), COLUMN_CHARACTERS_MAX),
            ] {
                let different: std::collections::HashSet<_> = names.iter().collect();
                prop_assert_eq!(different.len(), names.len());
                prop_assert!(names.iter().all(|name| !name.is_empty() && name.len() <= most && name.is_ascii()), "{names:?}");
            }
        }
    }
}
