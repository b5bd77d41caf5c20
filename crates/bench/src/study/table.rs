//! The table of a study file: all settings that exist.
//!
//! Main: [`STUDY`]. Invariant: this table and the tables that it names are the only definition of what a study may contain.

use std::sync::OnceLock;

use serde_json::{Map, Value as Json, json};

use super::background::BACKGROUND;
use super::blocks::BLOCKS;
use super::claim_table::CLAIM;
use super::database::DATABASE;
use super::disk::DISK;
use super::durability::DURABILITY;
use super::events::EVENT;
use super::freshness::FRESHNESS;
use super::header::{GOAL, NAME, QUESTION, REPEAT, SOURCE, WHERE_POSSIBLE};
use super::layout::LAYOUT;
use super::link::LINK;
use super::load::LOAD;
use super::record::RECORD;
use super::recorder::RECORDER;
use super::retention::RETENTION;
use super::tables::TABLE;
use super::workload::WORKLOAD;
use crate::written::schema::level;
use crate::written::{Absent, Form, Kind, Part, Setting};

const ABSENT: Absent = Absent::Means("see below");

const fn table(key: &'static str, part: &'static Part, help: &'static str) -> Setting {
    Setting::new(key, Kind::Part(part), ABSENT, help)
}

/// A study file.
pub static STUDY: Part = Part {
    name: "",
    help: "What to measure: database, records, layout, workload and load, what is varied, and how often each case is repeated.",
    settings: &[
        NAME,
        QUESTION,
        SOURCE,
        WHERE_POSSIBLE,
        table("database", &DATABASE, "Which database."),
        table("record", &RECORD, "The data."),
        table("layout", &LAYOUT, "How records become tables."),
        table("workload", &WORKLOAD, "What clients do."),
        table("load", &LOAD, "When they do it, and for how long."),
        table("background", &BACKGROUND, "A second load beside it."),
        table("retention", &RETENTION, "What becomes of old readings."),
        table("freshness", &FRESHNESS, "Who reads what the workload `freshness` writes."),
        table("link", &LINK, "The network between load and server."),
        table("disk", &DISK, "A thread that writes to the disk beside the load."),
        table("recorder", &RECORDER, "The way of records to the database."),
        table("blocks", &BLOCKS, "What cameras upload."),
        Setting::new(
            "tables",
            Kind::Parts(&TABLE),
            Absent::Means("none"),
            "The study's own tables, written in the database's SQL. loadline creates, fills and drops them.",
        )
        .only("workloads `sql`, `connect` and `replay`"),
        Setting::new(
            "events",
            Kind::Parts(&EVENT),
            Absent::Means("none"),
            "What happens to the server on purpose while it is measured: it is killed, stopped or paused, its power or its link is cut, or its disk is slow or full.",
        )
        .only("private servers"),
        Setting::new(
            "factors",
            Kind::Own(&FACTORS),
            Absent::Means("none: the study has one case"),
            "The settings to vary, each with its levels. Every combination is a case. The tables below say which settings can be a factor.",
        ),
        table("repeat", &REPEAT, "How often each case is repeated."),
        table("goal", &GOAL, "The load line to search for."),
        table("durability", &DURABILITY, "How the databases are made to fail."),
        Setting::new(
            "claims",
            Kind::Parts(&CLAIM),
            Absent::Means("none"),
            "What the source claims. The report says whether it was reproduced.",
        ),
    ],
};

/// The form of `[factors]`.
static FACTORS: Form = Form {
    says: "table of dotted settings with a list of levels each, as in `\"load.clients\" = [1, 2, 4]`",
    schema: factors_schema,
    example: "{ \"load.clients\" = [1, 2] }",
};

/// Returns every setting with a single value by its dotted name: these can be factors. The server's own settings, `database.config.*`, can be too.
pub fn factors() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| STUDY.factors().into_iter().map(|(name, _)| name).collect())
}

/// Returns whether a setting can be a factor.
pub fn is_factor(setting: &str) -> bool {
    let is_config = setting.strip_prefix("database.config.").is_some_and(|name| !name.is_empty());
    is_config || STUDY.find_path(setting).is_some_and(|setting| setting.factor.is_some())
}

/// Returns the sections that make up the settings of a trial.
pub fn sections() -> impl Iterator<Item = &'static str> {
    let has_factors = |setting: &&Setting| matches!(setting.kind, Kind::Part(part) if !part.factors().is_empty());
    STUDY.settings.iter().filter(has_factors).map(|setting| setting.key)
}

/// Returns the schema of dotted settings, and of the tables that unquoted dots make of them.
fn factors_schema() -> Json {
    let levels = |level: Json| json!({ "type": "array", "items": level, "minItems": 1, "uniqueItems": true });
    let scalar = levels(json!({ "type": ["string", "number", "boolean"] }));
    let mut dotted = Map::new();
    for (name, setting) in STUDY.factors() {
        let (table, _) = name.rsplit_once('.').unwrap_or_default();
        dotted.insert(name.clone(), levels(level(table, setting)));
    }
    let mut nested = Map::new();
    for (name, levels) in &dotted {
        put(&mut nested, name, levels);
    }
    put(&mut nested, "database.config", &json!({ "type": "object" }));
    dotted.extend(nested);
    json!({
        "type": "object", "properties": dotted, "patternProperties": { "^database[.]config[.].+$": scalar },
        "additionalProperties": false
    })
}

/// Puts a schema under a dotted name into nested tables.
fn put(properties: &mut Map<String, Json>, name: &str, schema: &Json) {
    match name.split_once('.') {
        None => drop(properties.insert(name.to_owned(), schema.clone())),
        Some((table, rest)) => {
            let empty = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
            let table = properties.entry(table).or_insert_with(empty);
            if let Some(Json::Object(inner)) = table.get_mut("properties") {
                put(inner, rest, schema);
            }
        }
    }
}
