//! Reads all settings of a case, and returns their values by name.
//!
//! Main functions: [`read_settings`], [`setting_value`]. Invariant: only [`STUDY`](super::table::STUDY) defines which
//! settings exist. Settings that cannot be combined are found in `check`.

use super::background::read_background;
use super::blocks::read_blocks;
use super::database::read_database;
use super::disk::read_disk;
use super::events::read_events;
use super::freshness::read_freshness;
use super::layout::read_layout;
use super::link::read_link;
use super::load::read_load;
use super::names::Names;
use super::record::read_record;
use super::recorder::read_recorder;
use super::replay::read_replay;
use super::retention::read_retention;
use super::table::STUDY;
use super::tables::read_tables;
use super::workload::read_workload;
use crate::trial::{BackgroundSettings, RetireBy, Settings, WorkloadSettings};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration};
use crate::written::place::Errors;
use crate::written::tree::Table;

/// Reads all settings of a tree; a setting that is missing or wrong has its default.
pub fn read_settings(root: &Table, names: &Names, errors: &mut Errors) -> Settings {
    let mut workload = read_workload(root, names, errors);
    let mut load = read_load(root, names, errors);
    load.connects_each_time |= workload.name == "connect";
    read_replay(root, &mut workload, &mut load, errors);
    let background = read_background(root, errors);
    let freshness = read_freshness(root, &workload.name, errors);
    let recorder = read_recorder(root, errors);
    let mut layout = read_layout(root, names, errors);
    let retention = read_retention(root, layout.partition_ns, errors);
    // What is dropped are partitions, which need not be asked for.
    let dropped_ns = retention.as_ref().filter(|own| own.by == RetireBy::Drop).map(|own| own.step_ns);
    layout.partition_ns = layout.partition_ns.or(dropped_ns);
    Settings {
        database: read_database(root, names, errors),
        record: read_record(root, names, written_batch(&workload, background.as_ref()), &load, errors),
        retention,
        layout,
        workload,
        load,
        background,
        freshness,
        recorder,
        blocks: read_blocks(root, errors),
        link: read_link(root, errors),
        disk: read_disk(root, errors),
        tables: read_tables(root, names, errors),
        events: read_events(root, errors),
    }
}

/// Returns the number of records in a transaction of the writing side: measurements consist of whole transactions.
fn written_batch(workload: &WorkloadSettings, background: Option<&BackgroundSettings>) -> u64 {
    let beside = background.filter(|background| background.workload == "write");
    u64::from(beside.map_or(workload.batch, |background| background.batch))
}

/// Returns the value of a setting as a study file would state it; `None` for settings that are absent or unknown.
/// Durations are in seconds.
pub fn setting_value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    match setting.strip_prefix("database.config.") {
        Some(name) => settings.database.config.get(name).map(|value| value.as_str().into()),
        None => STUDY.find_path(setting)?.factor?(settings),
    }
}

/// Returns whether two levels of a setting mean the same: the same number, the same text, a duration and its seconds,
/// or a server setting and its text.
pub fn is_same_level(setting: &str, a: &serde_json::Value, b: &serde_json::Value) -> bool {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = |value: &serde_json::Value| {
        let time = || Some(parse_duration(value.as_str()?).ok()?.as_secs_f64());
        let rate = || parse_bit_rate(value.as_str()?).ok();
        let size = || Some(parse_bytes(value.as_str()?).ok()? as f64);
        value.as_f64().or_else(time).or_else(rate).or_else(size)
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || (setting.starts_with("database.config.") && text(a) == text(b)),
    }
}
