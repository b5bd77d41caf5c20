//! The settings of `[record]` for `usertable`, and of `[workload.ycsb]`.
//!
//! Main: [`YCSB`], [`read_usertable`] and [`read_ycsb`]. Invariant: settings that are not written have YCSB's defaults.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::fault::fault;
use crate::study::reading::LARGE;
use crate::trial::{Settings, UsertableSettings, YcsbSettings};
use crate::workload::ycsb::{REQUESTS, SHARES};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::{Absent, Kind, Part, Setting};

const USERTABLE: &str = "`type = \"usertable\"`";
const LETTER: Absent = Absent::Means("as the workload's letter means");

/// The number of fields of a record.
pub const FIELDS: Setting =
    Setting::new("fields", Kind::Whole(1, 1000), Absent::Whole(10), "Number of fields of a record.")
        .only(USERTABLE)
        .factor(|settings| Some(settings.record.usertable.fields.into()));

/// The length of a field.
pub const FIELD_LENGTH: Setting = Setting::new(
    "field_length",
    Kind::Whole(1, 1 << 20),
    Absent::Whole(100),
    "Length of a field in characters; the maximum if lengths differ.",
)
.only(USERTABLE)
.factor(|settings| Some(settings.record.usertable.field_length.into()));

/// The smallest length of a field.
pub const FIELD_LENGTH_LEAST: Setting = Setting::new(
    "field_length_least",
    Kind::Whole(1, 1 << 20),
    Absent::Whole(1),
    "Minimum length of a field, if lengths differ.",
)
.only(USERTABLE)
.factor(|settings| Some(settings.record.usertable.field_length_least.into()));

/// The distribution of lengths.
pub const FIELD_LENGTHS: Setting = Setting::new(
    "field_lengths",
    Kind::Named(|| vec!["constant", "uniform", "zipfian"]),
    Absent::Text("constant"),
    "The distribution of the lengths of fields.",
)
.only(USERTABLE)
.factor(|settings| Some(settings.record.usertable.field_lengths.as_str().into()));

/// The prefix of the names of fields.
pub const FIELD_PREFIX: Setting = Setting::new(
    "field_prefix",
    Kind::Text,
    Absent::Text("field"),
    "The beginning of the fields' names, before their number: 1 to 40 letters, digits or underscores.",
)
.only(USERTABLE)
.factor(|settings| Some(settings.record.usertable.field_prefix.as_str().into()));

/// The way in which keys follow from numbers.
pub const KEYS: Setting = Setting::new(
    "keys",
    Kind::Named(|| vec!["hashed", "ordered"]),
    Absent::Text("hashed"),
    "Whether keys are scattered by a hash or ascend.",
)
.only(USERTABLE)
.factor(|settings| Some(settings.record.usertable.keys.as_str().into()));

/// The number of digits of a key.
pub const KEY_DIGITS: Setting =
    Setting::new("key_digits", Kind::Whole(1, 250), Absent::Whole(1), "Minimum number of digits of a key.")
        .only(USERTABLE)
        .factor(|settings| Some(settings.record.usertable.key_digits.into()));

const OF_USERTABLE: [Setting; 7] =
    [FIELDS, FIELD_LENGTH, FIELD_LENGTH_LEAST, FIELD_LENGTHS, FIELD_PREFIX, KEYS, KEY_DIGITS];

/// Returns the keys of `[record]` that only `usertable` has.
pub fn usertable_keys() -> impl Iterator<Item = &'static str> {
    OF_USERTABLE.into_iter().map(|setting| setting.key)
}

/// Makes a setting for a share of the operations.
const fn share(key: &'static str, help: &'static str) -> Setting {
    Setting::new(key, Kind::Number(0.0, 1e9), LETTER, help)
}

/// Makes a setting for the share of records or operations that a distribution concerns.
const fn part_of(key: &'static str, usual: &'static str, help: &'static str) -> Setting {
    Setting::new(key, Kind::Number(0.0, 1.0), Absent::Means(usual), help)
}

/// The settings of `[workload.ycsb]`.
pub static YCSB: Part = Part {
    name: "workload.ycsb",
    help: "Differences from what the workload's letter means. The workload `ycsb` has no letter and begins with YCSB's own defaults. Shares are relative to each other.",
    settings: &[
        share("read", "Share of operations that read a record.").factor(|settings| share_of(settings, "read")),
        share("update", "Share of operations that change fields of a record.")
            .factor(|settings| share_of(settings, "update")),
        share("insert", "Share of operations that write a new record.").factor(|settings| share_of(settings, "insert")),
        share("scan", "Share of operations that read consecutive records.")
            .factor(|settings| share_of(settings, "scan")),
        share("read_modify_write", "Share of operations that read a record and then change it.")
            .factor(|settings| share_of(settings, "read_modify_write")),
        Setting::new("requests", Kind::Named(|| REQUESTS.to_vec()), LETTER, "How records are chosen.")
            .factor(|settings| stored(settings, "requests")),
        Setting::new(
            "read_all_fields",
            Kind::Truth,
            Absent::Means("`true`"),
            "Whether reads and scans read all fields, or one at random.",
        )
        .factor(|settings| stored(settings, "read_all_fields")),
        Setting::new(
            "write_all_fields",
            Kind::Truth,
            Absent::Means("`false`"),
            "Whether updates set all fields, or one at random.",
        )
        .factor(|settings| stored(settings, "write_all_fields")),
        Setting::new(
            "scan_least",
            Kind::Whole(1, 1_000_000),
            Absent::Means("`1`"),
            "Minimum number of records of a scan.",
        )
        .factor(|settings| stored(settings, "scan_least")),
        Setting::new("scan_most", Kind::Whole(1, 1_000_000), LETTER, "Maximum number of records of a scan.")
            .factor(|settings| stored(settings, "scan_most")),
        Setting::new(
            "scan_lengths",
            Kind::Named(|| vec!["uniform", "zipfian"]),
            Absent::Means("`\"uniform\"`"),
            "The distribution of the lengths of scans.",
        )
        .factor(|settings| stored(settings, "scan_lengths")),
        part_of("hot_records", "`0.2`", "The share of records that are hot.")
            .only("`requests = \"hotspot\"`")
            .factor(|settings| stored(settings, "hot_records")),
        part_of("hot_operations", "`0.8`", "The share of operations on hot records.")
            .only("`requests = \"hotspot\"`")
            .factor(|settings| stored(settings, "hot_operations")),
        part_of("recent_records", "`0.8571428571`", "The share of records that count as recent: the last ones.")
            .only("`requests = \"exponential\"`")
            .factor(|settings| stored(settings, "recent_records")),
        part_of("recent_operations", "`0.95`", "The share of operations on recent records.")
            .only("`requests = \"exponential\"`")
            .factor(|settings| stored(settings, "recent_operations")),
        Setting::new(
            "operations_expected",
            Kind::Whole(0, LARGE),
            Absent::Means("those that end the trial"),
            "Number of operations for which `zipfian` leaves room if some of them insert.",
        )
        .factor(|settings| stored(settings, "operations_expected")),
        Setting::new(
            "first",
            Kind::Whole(0, LARGE),
            Absent::Means("`0`"),
            "The number of the first record that `ycsb-load` writes, or that other workloads use.",
        )
        .factor(|settings| stored(settings, "first")),
        Setting::new("records", Kind::Whole(1, LARGE), Absent::Means("all"), "Number of records from `first` on.")
            .factor(|settings| stored(settings, "records")),
    ],
};

fn share_of(settings: &Settings, name: &str) -> Option<Json> {
    settings.workload.ycsb.shares.get(name).map(|share| (*share).into())
}

/// Returns the value of a setting whose key is its name in the stored form.
fn stored(settings: &Settings, key: &str) -> Option<Json> {
    serde_json::to_value(&settings.workload.ycsb).ok()?.get(key).cloned()
}

/// Reads the settings of `[record]` for `usertable`.
pub fn read_usertable(record: &Section, errors: &mut Errors) -> UsertableSettings {
    let field_prefix: String = record.read("field_prefix", errors);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = field_prefix.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if let (true, Some(entry)) =
        (!begins || field_prefix.len() > 40 || !field_prefix.chars().all(is_name), record.get("field_prefix"))
    {
        let must = "it must be 1 to 40 letters, digits or underscores and not begin with a digit";
        errors.push(entry.node.place, fault!("record.field_prefix is {}", entry.node; "{must}"));
    }
    UsertableSettings {
        fields: record.read("fields", errors),
        field_length: record.read("field_length", errors),
        field_length_least: record.read("field_length_least", errors),
        field_lengths: record.read("field_lengths", errors),
        field_prefix,
        keys: record.read("keys", errors),
        key_digits: record.read("key_digits", errors),
    }
}

/// Reads `[workload.ycsb]`; empty if there is no such table.
pub fn read_ycsb(workload: &Section, errors: &mut Errors) -> YcsbSettings {
    let Some(section) = workload.part("ycsb", errors) else { return YcsbSettings::default() };
    let mut shares = BTreeMap::new();
    for name in SHARES {
        shares.extend(section.find(name, errors).map(|share: f64| (name.to_owned(), share)));
    }
    YcsbSettings {
        shares,
        requests: section.read("requests", errors),
        read_all_fields: section.read("read_all_fields", errors),
        write_all_fields: section.read("write_all_fields", errors),
        scan_least: section.read("scan_least", errors),
        scan_most: section.read("scan_most", errors),
        scan_lengths: section.read("scan_lengths", errors),
        hot_records: section.read("hot_records", errors),
        hot_operations: section.read("hot_operations", errors),
        recent_records: section.read("recent_records", errors),
        recent_operations: section.read("recent_operations", errors),
        operations_expected: section.read("operations_expected", errors),
        first: section.read("first", errors),
        records: section.read("records", errors),
    }
}
