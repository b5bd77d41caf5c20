//! Reads what `[record]` says of `usertable`, and `[workload.ycsb]`.
//!
//! Main functions: [`read_usertable`], [`read_ycsb`]. Invariant: keys are the fields of [`UsertableSettings`] and [`YcsbSettings`], with
//! the shares one by one, so that a setting's value is found by its name.

use std::collections::BTreeMap;

use crate::study::place::Errors;
use crate::study::section::Section;
use crate::trial::{Settings, UsertableSettings, YcsbSettings};
use crate::workload::ycsb::SHARES;

/// Keys of `[record]` that `usertable` has.
pub const USERTABLE_KEYS: [&str; 7] =
    ["fields", "field_length", "field_length_least", "field_lengths", "field_prefix", "keys", "key_digits"];

/// Keys of `[workload.ycsb]`.
pub const YCSB_KEYS: [&str; 18] = [
    "read",
    "update",
    "insert",
    "scan",
    "read_modify_write",
    "requests",
    "read_all_fields",
    "write_all_fields",
    "scan_least",
    "scan_most",
    "scan_lengths",
    "hot_records",
    "hot_operations",
    "recent_records",
    "recent_operations",
    "operations_expected",
    "first",
    "records",
];

/// Largest numbers of records and operations, as everywhere in a study.
const LARGE: i64 = 1 << 53;

/// What `[record]` says of `usertable`; what is missing is as in YCSB.
pub fn read_usertable(record: &Section, errors: &mut Errors) -> UsertableSettings {
    let default = UsertableSettings::default();
    let text =
        |key: &str, default: String, errors: &mut Errors| record.text(key, errors).map_or(default, str::to_owned);
    let field_prefix = text("field_prefix", default.field_prefix, errors);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = field_prefix.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if let (true, Some(entry)) =
        (!begins || field_prefix.len() > 40 || !field_prefix.chars().all(is_name), record.get("field_prefix"))
    {
        let must = "it must be 1 to 40 letters, digits or underscores and not begin with a digit";
        errors.push(entry.node.place, format!("record.field_prefix is {}; {must}", entry.node));
    }
    UsertableSettings {
        fields: record.count("fields", 1, 1000, errors).map_or(default.fields, |fields| fields as u16),
        field_length: record.count("field_length", 1, 1 << 20, errors).unwrap_or(default.field_length),
        field_length_least: record
            .count("field_length_least", 1, 1 << 20, errors)
            .unwrap_or(default.field_length_least),
        field_lengths: text("field_lengths", default.field_lengths, errors),
        field_prefix,
        keys: text("keys", default.keys, errors),
        key_digits: record.count("key_digits", 1, 250, errors).unwrap_or(default.key_digits),
    }
}

/// `[workload.ycsb]`; empty when there is no such table.
pub fn read_ycsb(workload: &Section, errors: &mut Errors) -> YcsbSettings {
    let section =
        workload.get("ycsb").and_then(|entry| Section::of_node(&entry.node, "workload.ycsb", &YCSB_KEYS, errors));
    let Some(section) = section else { return YcsbSettings::default() };
    let mut shares = BTreeMap::new();
    for name in SHARES {
        shares.extend(section.number(name, 0.0..=1e9, errors).map(|share| (name.to_owned(), share)));
    }
    let mut share = |key: &str| section.number(key, 0.0..=1.0, errors);
    let (hot_records, hot_operations) = (share("hot_records"), share("hot_operations"));
    let (recent_records, recent_operations) = (share("recent_records"), share("recent_operations"));
    let mut whole = |key: &str, least: i64| section.whole(key, least..=LARGE, errors).map(i64::unsigned_abs);
    let (first, records, operations_expected) =
        (whole("first", 0), whole("records", 1), whole("operations_expected", 0));
    YcsbSettings {
        shares,
        requests: section.text("requests", errors).map(str::to_owned),
        read_all_fields: section.truth("read_all_fields", errors),
        write_all_fields: section.truth("write_all_fields", errors),
        scan_least: section.count("scan_least", 1, 1_000_000, errors),
        scan_most: section.count("scan_most", 1, 1_000_000, errors),
        scan_lengths: section.text("scan_lengths", errors).map(str::to_owned),
        hot_records,
        hot_operations,
        recent_records,
        recent_operations,
        operations_expected,
        first,
        records,
    }
}

/// The value of one of these settings; none for those that are absent or unknown.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    if let Some(key) = setting.strip_prefix("workload.ycsb.") {
        let ycsb = &settings.workload.ycsb;
        let share = ycsb.shares.get(key).map(|share| (*share).into());
        return share.or_else(|| serde_json::to_value(ycsb).ok()?.get(key).cloned());
    }
    let key = setting.strip_prefix("record.")?;
    serde_json::to_value(&settings.record.usertable).ok()?.get(key).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::settings::SETTINGS;
    use crate::study::tree::Table;

    #[test]
    fn every_key_is_a_setting_and_is_found_by_its_name() {
        let mut errors = Errors::default();
        let text = "[workload.ycsb]\nread = 1\nupdate = 2\ninsert = 3\nscan = 4\nread_modify_write = 5\nrequests = \"latest\"\n\
            read_all_fields = false\nwrite_all_fields = true\nscan_least = 6\nscan_most = 7\nscan_lengths = \"zipfian\"\n\
            hot_records = 0.1\nhot_operations = 0.2\nrecent_records = 0.3\nrecent_operations = 0.4\n\
            operations_expected = 8\nfirst = 9\nrecords = 10\n\
            [record]\nfields = 2\nfield_length = 20\nfield_length_least = 3\nfield_lengths = \"uniform\"\n\
            field_prefix = \"f\"\nkeys = \"ordered\"\nkey_digits = 8\n";
        let root = Table::parse(text, &mut errors);
        let workload = Section::open(&root, "workload", &["ycsb"], &mut errors);
        let record = Section::open(&root, "record", &USERTABLE_KEYS, &mut errors);
        let mut settings = Settings::default();
        settings.workload.ycsb = read_ycsb(&workload, &mut errors);
        settings.record.usertable = read_usertable(&record, &mut errors);
        assert!(errors.into_result(&Default::default()).is_ok());
        for (section, keys) in [("record", &USERTABLE_KEYS[..]), ("workload.ycsb", &YCSB_KEYS[..])] {
            for key in keys {
                let setting = format!("{section}.{key}");
                assert!(SETTINGS.contains(&setting.as_str()), "{setting} cannot be varied");
                let written = root.find(&setting).and_then(|entry| entry.node.to_json()).unwrap();
                let found = value(&settings, &setting).unwrap();
                assert!(found == written || found.as_f64() == written.as_f64(), "{setting}: {found} and {written}");
            }
        }
    }

    #[test]
    fn a_study_that_says_nothing_has_the_defaults_of_ycsb() {
        let (root, mut errors) = (Table::default(), Errors::default());
        let section = Section::open(&root, "record", &[], &mut errors);
        assert_eq!(read_usertable(&section, &mut errors), UsertableSettings::default());
        assert_eq!(read_ycsb(&section, &mut errors), YcsbSettings::default());
    }
}
