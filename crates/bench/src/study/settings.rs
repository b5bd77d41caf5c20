//! Reads all settings of a case, and tells their values.
//!
//! Main functions: [`read_settings`], [`setting_value`]. Invariant: which settings there are is said by [`STUDY`](super::table::STUDY) alone.
//! What does not go together is found in `check`.

use serde_json::json;

use super::background::read_background;
use super::blocks::read_blocks;
use super::database::read_database;
use super::disk::read_disk;
use super::freshness::read_freshness;
use super::link::read_link;
use super::load::read_load;
use super::names::{NameList, Names};
use super::record::read_record;
use super::recorder::read_recorder;
use super::shape::{INDEXES, read_indexes};
use super::table::STUDY;
use super::workload::read_workload;
use crate::fault::fault;
use crate::trial::{BackgroundSettings, LayoutSettings, Settings, WorkloadSettings};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Node, Table};
use crate::written::{Absent, Form, Kind, Part, Setting};

/// Largest numbers of rows, operations and seeds: what every store and JSON reader carries exactly.
pub const LARGE: i64 = 1 << 53;

/// The settings of `[layout]`.
pub static LAYOUT: Part = Part {
    name: "layout",
    help: "How records become tables.",
    settings: &[
        Setting::new(
            "name",
            Kind::Named(layout_names),
            Absent::Text("star"),
            "The layout; `loadline list layouts` says what each does.",
        )
        .factor(|settings| Some(settings.layout.name.as_str().into())),
        Setting::new(
            "indexes",
            Kind::Own(&INDEXES),
            Absent::Means("none"),
            "Columns that get a secondary index each. As a level of a factor they are text.",
        )
        .factor(|settings| Some(settings.layout.indexes.join(", ").into())),
        Setting::new(
            "tables",
            Kind::OneOf(&["one", PER_CLIENT]),
            Absent::Text("one"),
            "Whether all clients write into the same tables, or each into tables of its own.",
        )
        .factor(|settings| Some(if settings.layout.tables_per_client { PER_CLIENT } else { "one" }.into())),
    ],
};

const PER_CLIENT: &str = "per-client";

fn layout_names() -> Vec<&'static str> {
    crate::layout::REGISTRY.iter().map(|entry| entry.name).collect()
}

/// The form of a list of CPUs.
pub static CPUS: Form = Form {
    says: "CPUs, as in `\"0\"` or `\"0,2-3\"`",
    schema: || {
        let number = json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX });
        json!({ "anyOf": [{ "type": "string", "pattern": "^[0-9, -]+$" }, number] })
    },
    example: "\"0\"",
};

/// Reads all settings of a tree; what is missing or wrong has its default.
pub fn read_settings(root: &Table, names: &Names, errors: &mut Errors) -> Settings {
    let workload = read_workload(root, names, errors);
    let mut load = read_load(root, names, errors);
    load.connects_each_time |= workload.name == "connect";
    let background = read_background(root, errors);
    let freshness = read_freshness(root, &workload.name, errors);
    let recorder = read_recorder(root, errors);
    Settings {
        database: read_database(root, names, errors),
        record: read_record(root, names, written_batch(&workload, background.as_ref()), &load, errors),
        layout: read_layout(root, names, errors),
        workload,
        load,
        background,
        freshness,
        recorder,
        blocks: read_blocks(root, errors),
        link: read_link(root, errors),
        disk: read_disk(root, errors),
    }
}

/// Records in a transaction of the side that writes: measurements are made of whole transactions.
fn written_batch(workload: &WorkloadSettings, background: Option<&BackgroundSettings>) -> u64 {
    let beside = background.filter(|background| background.workload == "write");
    u64::from(beside.map_or(workload.batch, |background| background.batch))
}

/// The name under a key, checked against a list; the default of its row when it is missing or no text.
pub(super) fn read_name(section: &Section, key: &str, list: &NameList, errors: &mut Errors) -> String {
    if let (Some(name), Some(entry)) = (section.text(key, errors), section.get(key))
        && let Err(sentence) = list.check(name)
    {
        errors.push(entry.node.place, sentence);
    }
    section.read(key, errors)
}

/// CPUs as in `0` or `0,2-3`.
pub(super) fn read_cpus(section: &Section, errors: &mut Errors) -> Option<String> {
    let entry = section.get("cpus")?;
    let text = match &entry.node.content {
        Content::Text(text) => text.replace(' ', ""),
        _ => entry.node.to_string(),
    };
    let is_number = |part: &str| part.parse::<u16>().is_ok();
    let is_range = |part: &str| match part.split_once('-') {
        Some((low, high)) => match (low.parse::<u16>(), high.parse::<u16>()) {
            (Ok(low), Ok(high)) => low <= high,
            _ => false,
        },
        None => is_number(part),
    };
    if text.split(',').all(is_range) {
        return Some(text);
    }
    let path = section.path("cpus");
    errors.push(entry.node.place, fault!("{path} is {}", entry.node; "it must name CPUs, as in \"0\" or \"0,2-3\""));
    None
}

fn read_layout(root: &Table, names: &Names, errors: &mut Errors) -> LayoutSettings {
    let section = Section::open(root, &LAYOUT, errors);
    LayoutSettings {
        name: read_name(&section, "name", &names.layouts, errors),
        indexes: read_indexes(&section, errors),
        tables_per_client: section.find("tables", errors) == Some(PER_CLIENT),
    }
}

/// The value that a setting has, as a study file would state it; none for settings that are absent or unknown.
/// Durations are in seconds.
pub fn setting_value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    match setting.strip_prefix("database.config.") {
        Some(name) => settings.database.config.get(name).map(|value| value.as_str().into()),
        None => STUDY.find_path(setting)?.factor?(settings),
    }
}

/// Whether two levels of a setting mean the same: the same number, the same text, a duration and its seconds, or a
/// server setting and its text.
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

/// Whether the node can be the level of a factor.
pub fn is_scalar(node: &Node) -> bool {
    node.to_json().is_some()
}
