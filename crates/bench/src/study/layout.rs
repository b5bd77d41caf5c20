//! The settings of `[layout]`: how records become tables. Main function: [`read_layout`].

use super::names::Names;
use super::reading::read_name;
use super::series::nanoseconds;
use super::shape::{INDEXES, read_indexes};
use crate::fault::fault;
use crate::layout::gorilla::{READINGS_DEFAULT, READINGS_MAX};
use crate::trial::{LayoutSettings, TimeIndex};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

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
            "Columns with a secondary index each. As a level of a factor they are written as text.",
        )
        .factor(|settings| Some(settings.layout.indexes.join(", ").into())),
        Setting::new(
            "time_index",
            Kind::Listed(|| TimeIndex::NAMES.map(|(name, _)| name).to_vec()),
            Absent::Means("`\"source-time\"`"),
            "The index on `source_id` and `time_ns`, source first or time first; with `-covering` the columns that questions name stand behind them, so that the index alone answers; with `-key` they begin the primary key instead, in whose order InnoDB and ClickHouse keep a table. In `gorilla` the time is the largest of a row, followed by the least.",
        )
        .only("`record.sources`")
        .factor(|settings| settings.layout.time_index.and_then(|index| serde_json::to_value(index).ok())),
        Setting::new(
            "partition",
            Kind::Duration(Span::Any),
            Absent::Means("none: the table is one piece"),
            "How much of the data's time a partition holds, for tables in partitions by `time_ns`, which becomes a part of the primary key. Partitions for readings to come are made while they come; a database refuses readings for which none is there yet, as when many partitions a second are needed. 0 is none, as a level to compare the others with.",
        )
        .only("`record.sources` and `name = \"wide\"`")
        .factor(|settings| Some(settings.layout.partition_ns.map_or(0.0, |span_ns| span_ns as f64 / 1e9).into())),
        Setting::new(
            "readings_per_row",
            Kind::Whole(1, READINGS_MAX as i64),
            Absent::Whole(READINGS_DEFAULT as i64),
            "How many readings of a source a row holds at most. A row holds those that one operation brings: `workload.batch` over `record.sources` of them, and of `record.rows` as many as this.",
        )
        .only("`name = \"gorilla\"`")
        .factor(|settings| settings.layout.readings_per_row.map(Into::into)),
        Setting::new(
            "tables",
            Kind::OneOf(&[ONE, PER_CLIENT, RECORDER]),
            Absent::Text(ONE),
            "Whether all clients write into the same tables (`one`), each client into its own (`per-client`), or all into the tables that `loadline record` makes, where each transaction also updates the recorder's row of its writer (`recorder`).",
        )
        .factor(|settings| Some(tables_of(&settings.layout).into())),
        Setting::new(
            "recorded_index",
            Kind::Truth,
            Absent::Truth(true),
            "Whether the tables that `loadline record` makes have an index on source and time.",
        )
        .only("`tables = \"recorder\"` and `[recorder]`")
        .factor(|settings| Some(settings.layout.recorded_index.into())),
    ],
};

const ONE: &str = "one";
const PER_CLIENT: &str = "per-client";
const RECORDER: &str = "recorder";

fn tables_of(layout: &LayoutSettings) -> &'static str {
    match layout {
        LayoutSettings { tables_per_client: true, .. } => PER_CLIENT,
        LayoutSettings { tables_as_recorded: true, .. } => RECORDER,
        _ => ONE,
    }
}

fn layout_names() -> Vec<&'static str> {
    crate::layout::REGISTRY.iter().map(|entry| entry.name).collect()
}

/// Reads the section; a missing setting has its default.
pub fn read_layout(root: &Table, names: &Names, errors: &mut Errors) -> LayoutSettings {
    let section = Section::open(root, &LAYOUT, errors);
    let tables = section.find("tables", errors);
    let has_recorder = tables == Some(RECORDER) || root.get("recorder").is_some();
    let recorded_index: bool = section.read("recorded_index", errors);
    if let Some(entry) = section.get("recorded_index").filter(|_| !has_recorder) {
        let remedy = "write layout.tables = \"recorder\" or a [recorder], or leave it out";
        errors.push(entry.place, fault!("layout.recorded_index is for the tables that a recorder makes"; "{remedy}"));
    }
    let name = read_name(&section, "name", &names.layouts, errors);
    let packs = crate::layout::find(&name).is_some_and(|entry| entry.packs);
    let readings_per_row: u32 = section.read("readings_per_row", errors);
    LayoutSettings {
        name,
        readings_per_row: packs.then_some(readings_per_row),
        indexes: read_indexes(&section, errors),
        time_index: read_time_index(&section, root, errors),
        partition_ns: section.find("partition", errors).map(nanoseconds).filter(|span_ns| *span_ns > 0),
        tables_per_client: tables == Some(PER_CLIENT),
        tables_as_recorded: tables == Some(RECORDER),
        recorded_index: recorded_index && has_recorder,
    }
}

/// Reads the index on sources and times; `None` where records have none.
fn read_time_index(section: &Section, root: &Table, errors: &mut Errors) -> Option<TimeIndex> {
    let name = section.text("time_index", errors);
    if root.find("record.sources").is_none() {
        if let Some(entry) = section.get("time_index") {
            let remedy = "write record.sources, or leave it out";
            errors.push(entry.node.place, fault!("layout.time_index is set and record.sources is not"; "{remedy}"));
        }
        return None;
    }
    let named = TimeIndex::NAMES.into_iter().find(|(known, _)| Some(*known) == name);
    Some(named.map_or(TimeIndex::default(), |(_, index)| index))
}
