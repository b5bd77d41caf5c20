//! Reads `[database]`, `[record]`, `[layout]`, `[workload]` and `[load]`: types, ranges, names and defaults.
//!
//! Main function: [`read_settings`]. Invariant: every setting that can be a factor is in [`SETTINGS`]. What does
//! not go together is found in `check`.

use std::collections::BTreeMap;

use super::background::{self, read_background};
use super::blocks::{self, read_blocks};
use super::disk;
use super::evolve;
use super::fill::{read_mix, read_statements};
use super::freshness::read_freshness;
use super::link::{self, read_link};
use super::load::read_load;
use super::names::Names;
use super::place::Errors;
use super::query::read_queries;
use super::record::read_record;
use super::recorder::{self, read_recorder};
use super::section::Section;
use super::shape::read_indexes;
use super::tree::{Content, Node, Table};
use super::ycsb::settings as ycsb_settings;
use crate::trial::{
    BackgroundSettings, DatabaseSettings, LayoutSettings, Length, Settings, SqlStatement, WorkloadSettings,
};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration};

/// The sections that make up the settings of a trial.
pub const SECTIONS: &[&str] = &[
    "database",
    "record",
    "layout",
    "workload",
    "load",
    "background",
    "recorder",
    "blocks",
    "freshness",
    "link",
    "disk",
];

const DATABASE_KEYS: &[&str] =
    &["name", "engine", "url", "path", "binary", "base", "socket", "cpus", "encryption", "config"];
const LAYOUT_KEYS: &[&str] = &["name", "indexes", "tables"];
const WORKLOAD_KEYS: &[&str] = &[
    "name",
    "batch",
    "statements",
    "mix",
    "attribute",
    "evolve",
    "evolve_records",
    "evolve_change",
    "evolve_algorithm",
    "evolve_at_most",
    "queries",
    "query",
    "window",
    "explain",
    "writes",
    "ycsb",
];

/// The settings that end the measured phase; at most one of them can be given.
pub const LENGTHS: [&str; 3] = ["load.operations", "load.operations_per_client", "load.duration"];

/// Every setting with a single value. The server's own settings, `database.config.*`, come on top.
pub const SETTINGS: &[&str] = &[
    "database.name",
    "database.engine",
    "database.url",
    "database.path",
    "database.binary",
    "database.base",
    "database.socket",
    "database.cpus",
    "database.encryption",
    "record.type",
    "record.table",
    "record.rows",
    "record.scale",
    "record.seed",
    "record.per_measurement",
    "record.permutation",
    "record.existing",
    "record.fields",
    "record.field_length",
    "record.field_length_least",
    "record.field_lengths",
    "record.field_prefix",
    "record.keys",
    "record.key_digits",
    "record.length",
    "layout.name",
    "layout.indexes",
    "layout.tables",
    "workload.name",
    "workload.batch",
    "workload.attribute",
    "workload.query",
    "workload.window",
    "workload.evolve",
    "workload.evolve_records",
    "workload.evolve_change",
    "workload.evolve_algorithm",
    "workload.evolve_at_most",
    "workload.mix.select",
    "workload.mix.update",
    "workload.mix.read",
    "workload.mix.scan",
    "workload.mix.write",
    "workload.ycsb.read",
    "workload.ycsb.update",
    "workload.ycsb.insert",
    "workload.ycsb.scan",
    "workload.ycsb.read_modify_write",
    "workload.ycsb.requests",
    "workload.ycsb.read_all_fields",
    "workload.ycsb.write_all_fields",
    "workload.ycsb.scan_least",
    "workload.ycsb.scan_most",
    "workload.ycsb.scan_lengths",
    "workload.ycsb.hot_records",
    "workload.ycsb.hot_operations",
    "workload.ycsb.recent_records",
    "workload.ycsb.recent_operations",
    "workload.ycsb.operations_expected",
    "workload.ycsb.first",
    "workload.ycsb.records",
    "load.arrivals",
    "load.clients",
    "load.rate",
    "load.source_rate",
    "load.operations",
    "load.operations_per_client",
    "load.duration",
    "load.at_most",
    "load.warmup",
    "load.think",
    "load.drain",
    "load.samples",
    "load.cpus",
    "load.loops",
    "load.statements",
    "load.pipeline",
    "load.connect",
    "load.tolerated_failures",
    "load.count_connecting",
    "background.workload",
    "background.clients",
    "background.arrivals",
    "background.rate",
    "background.batch",
    "freshness.path",
    "freshness.tables",
    "freshness.groups",
    "freshness.readers",
    "freshness.run_as",
    "freshness.poll",
    "freshness.every",
    "freshness.look_back",
    "freshness.window",
    "freshness.results",
    "freshness.tolerated",
    "link.rate",
    "link.delay",
    "link.tunnel",
    "link.hosts",
    "link.server_rate",
    "disk.block",
    "disk.sync",
    "disk.file",
    "disk.writers",
    "recorder.path",
    "recorder.writers",
    "recorder.batch",
    "blocks.size",
    "blocks.rate",
    "blocks.process",
    "blocks.bound",
];

/// Largest numbers of rows, operations and seeds: what every store and JSON reader carries exactly.
pub(super) const LARGE: i64 = 1 << 53;

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
        disk: disk::read_disk(root, errors),
    }
}

/// Records in a transaction of the side that writes: measurements are made of whole transactions.
fn written_batch(workload: &WorkloadSettings, background: Option<&BackgroundSettings>) -> u64 {
    let beside = background.filter(|background| background.workload == "write");
    u64::from(beside.map_or(workload.batch, |background| background.batch))
}

/// The name under a key, checked against a list; the default when it is missing or wrong.
pub(super) fn read_name(
    section: &Section,
    key: &str,
    default: &str,
    list: &super::names::NameList,
    errors: &mut Errors,
) -> String {
    let Some(name) = section.text(key, errors) else { return default.to_owned() };
    if let (Err(sentence), Some(entry)) = (list.check(name), section.get(key)) {
        errors.push(entry.node.place, sentence);
    }
    name.to_owned()
}

fn read_database(root: &Table, names: &Names, errors: &mut Errors) -> DatabaseSettings {
    let section = Section::open(root, "database", DATABASE_KEYS, errors);
    let mut text = |key: &str| section.text(key, errors).map(str::to_owned);
    let (engine, url, path) = (text("engine"), text("url"), text("path"));
    let (binary, base) = (text("binary"), text("base"));
    DatabaseSettings {
        name: read_name(&section, "name", "sqlite", &names.databases, errors),
        engine,
        url,
        path,
        binary,
        base,
        socket: section.one_of("socket", &["unix", "tcp"], errors).map(str::to_owned),
        cpus: read_cpus(&section, errors),
        encryption: section.one_of("encryption", &["none", "aes128", "aes256"], errors).and_then(encryption),
        config: read_config(&section, errors),
    }
}

/// None where nothing is encrypted, so that leaving it out and saying so are the same case.
fn encryption(name: &str) -> Option<String> {
    (name != "none").then(|| name.to_owned())
}

/// The server's own settings, as text. Unquoted dots in names make tables, which are joined again.
fn read_config(section: &Section, errors: &mut Errors) -> BTreeMap<String, String> {
    fn collect(prefix: &str, table: &Table, out: &mut BTreeMap<String, String>, errors: &mut Errors) {
        for entry in &table.entries {
            let name = format!("{prefix}{}", entry.key);
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if name.is_empty() || !name.chars().all(is_name) {
                let remedy = "letters, digits, and the signs _ - . are possible";
                errors.push(entry.place, format!("database.config has the name {name:?}; {remedy}"));
                continue;
            }
            let text = match &entry.node.content {
                Content::Table(inner) => {
                    collect(&format!("{name}."), inner, out, errors);
                    continue;
                }
                Content::Text(text) if !text.chars().any(char::is_control) => text.clone(),
                Content::Integer(_) | Content::Float(_) | Content::Boolean(_) => entry.node.to_string(),
                _ => {
                    let must = "it must be text on one line, a number, or true or false";
                    errors.push(entry.node.place, format!("database.config.{name} is {}; {must}", entry.node));
                    continue;
                }
            };
            out.insert(name, text);
        }
    }
    let mut config = BTreeMap::new();
    if let Some(entry) = section.get("config") {
        match &entry.node.content {
            Content::Table(table) => collect("", table, &mut config, errors),
            _ => errors.push(
                entry.node.place,
                format!("database.config is {}; it must be a table {{ name = value }}", entry.node),
            ),
        }
    }
    config
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
    errors.push(entry.node.place, format!("{path} is {}; it must name CPUs, as in \"0\" or \"0,2-3\"", entry.node));
    None
}

fn read_layout(root: &Table, names: &Names, errors: &mut Errors) -> LayoutSettings {
    let section = Section::open(root, "layout", LAYOUT_KEYS, errors);
    let name = read_name(&section, "name", "star", &names.layouts, errors);
    let tables = section.one_of("tables", &["one", "per-client"], errors);
    LayoutSettings { name, indexes: read_indexes(&section, errors), tables_per_client: tables == Some("per-client") }
}

fn read_workload(root: &Table, names: &Names, errors: &mut Errors) -> WorkloadSettings {
    let section = Section::open(root, "workload", WORKLOAD_KEYS, errors);
    let name = read_name(&section, "name", "write", &names.workloads, errors);
    let statements = read_statements(&section, errors);
    let window = section.whole("window", 0..=LARGE, errors).map(i64::unsigned_abs);
    let mut queries = read_queries(&section, errors);
    queries.iter_mut().for_each(|query| query.window = window.filter(|records| *records > 0));
    WorkloadSettings {
        statements: if statements.is_empty() && name == "connect" { vec![shortest()] } else { statements },
        name,
        batch: section.count("batch", 1, 100_000, errors).unwrap_or(1),
        mix: read_mix(&section, errors),
        attribute: section.text("attribute", errors).map(str::to_owned),
        queries,
        window,
        query: section.text("query", errors).map(str::to_owned),
        explain: section.truth("explain", errors).unwrap_or(false),
        writes: section.truth("writes", errors).unwrap_or(false),
        evolve_s: section.seconds("evolve", errors).filter(|seconds| *seconds > 0.0),
        evolve_records: section.whole("evolve_records", 1..=LARGE, errors).map(i64::unsigned_abs),
        evolve: evolve::read_evolve(&section, errors),
        ycsb: ycsb_settings::read_ycsb(&section, errors),
    }
}

/// What `connect` asks where the study says nothing: the shortest query that there is in every database.
fn shortest() -> SqlStatement {
    let sql = "SELECT 1".to_owned();
    SqlStatement { sql, weight: 1.0, params: Vec::new(), allow_empty: false, then: Vec::new() }
}

/// The value that a setting has, as a study file would state it; none for settings that are absent or unknown.
/// Durations are in seconds.
pub fn setting_value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let Settings { database, record, layout, workload, .. } = settings;
    let text = |text: &Option<String>| text.as_deref().map(serde_json::Value::from);
    match setting {
        "database.name" => Some(database.name.as_str().into()),
        "database.engine" => text(&database.engine),
        "database.url" => text(&database.url),
        "database.path" => text(&database.path),
        "database.binary" => text(&database.binary),
        "database.base" => text(&database.base),
        "database.socket" => text(&database.socket),
        "database.cpus" => text(&database.cpus),
        "database.encryption" => Some(database.encryption.as_deref().unwrap_or("none").into()),
        "record.type" => Some(record.type_name.as_str().into()),
        "record.table" => Some(record.table.as_str().into()),
        "record.rows" => Some(record.rows.into()),
        "record.scale" => Some(record.scale.unwrap_or(1.0).into()),
        "record.seed" => Some(record.seed.into()),
        "record.per_measurement" => Some(record.per_measurement.into()),
        "record.permutation" => text(&record.permutation),
        "record.length" => record.length.map(serde_json::Value::from),
        "record.existing" => Some(record.existing.into()),
        "layout.name" => Some(layout.name.as_str().into()),
        "layout.indexes" => Some(layout.indexes.join(", ").into()),
        "layout.tables" => Some(if layout.tables_per_client { "per-client" } else { "one" }.into()),
        "workload.name" => Some(workload.name.as_str().into()),
        "workload.batch" => Some(workload.batch.into()),
        "workload.attribute" => text(&workload.attribute),
        "workload.window" => workload.window.map(serde_json::Value::from),
        "workload.query" => text(&workload.query),
        "workload.evolve" => workload.evolve_s.map(Into::into),
        "workload.evolve_records" => workload.evolve_records.map(Into::into),
        _ => match setting.strip_prefix("workload.mix.") {
            Some(part) => workload.mix.get(part).map(|share| (*share).into()),
            None => match setting.strip_prefix("database.config.") {
                Some(name) => database.config.get(name).map(|value| value.as_str().into()),
                None => load_value(settings, setting)
                    .or_else(|| evolve::value(settings, setting))
                    .or_else(|| background::value(settings, setting))
                    .or_else(|| recorder::value(settings, setting))
                    .or_else(|| blocks::value(settings, setting))
                    .or_else(|| super::freshness::value(settings, setting))
                    .or_else(|| link::value(settings, setting))
                    .or_else(|| disk::value(settings, setting))
                    .or_else(|| ycsb_settings::value(settings, setting)),
            },
        },
    }
}

/// The value of a setting of the load.
fn load_value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let load = &settings.load;
    let length = |operations: Option<u64>| operations.map(serde_json::Value::from);
    let text = |text: &Option<String>| text.as_deref().map(serde_json::Value::from);
    match setting {
        "load.arrivals" => serde_json::to_value(load.arrivals).ok(),
        "load.clients" => Some(load.clients.into()),
        "load.rate" => load.rate_per_s.map(Into::into),
        "load.source_rate" => load.source_rate_per_s.map(Into::into),
        "load.operations" => length(if let Length::Operations(count) = load.length { Some(count) } else { None }),
        "load.operations_per_client" => {
            length(if let Length::OperationsPerClient(count) = load.length { Some(count) } else { None })
        }
        "load.duration" => {
            if let Length::Seconds(seconds) = load.length {
                Some(seconds.into())
            } else {
                None
            }
        }
        "load.at_most" => load.at_most_s.map(Into::into),
        "load.warmup" => Some(load.warmup_s.into()),
        "load.think" => Some(load.think_s.into()),
        "load.drain" => Some(load.drain_s.into()),
        "load.samples" => Some(load.samples.into()),
        "load.cpus" => text(&load.cpus),
        "load.loops" => load.loops.map(Into::into),
        "load.count_connecting" => Some(load.count_connecting.into()),
        "load.tolerated_failures" => Some(load.tolerated_failures.into()),
        "load.statements" => Some(if load.statements_as_text { "text" } else { "prepared" }.into()),
        "load.pipeline" => Some(load.pipeline.into()),
        "load.connect" => Some(if load.connects_each_time { "each" } else { "once" }.into()),
        _ => None,
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
