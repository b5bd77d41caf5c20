//! `loadline schema`: the contents of files and the output of commands as JSON Schema; and the reference page of all settings.
//!
//! Main functions: [`document`] and [`reference()`]. Invariant: both come from the tables that read the files and from the types that are
//! printed; nothing is listed here.

use schemars::generate::SchemaSettings;
use serde_json::{Value as Json, json};

use super::durability::OTHER_RECORDER;
use super::output::{DOCUMENT_VERSION, print_json};
use super::{Failure, Status};
use crate::cli::Described;
use crate::finding::{DurabilityTest, Findings};
use crate::recorder::config::RECORDER_FILE;
use crate::study::STUDY;
use crate::written::reference::chapter;
use crate::written::schema::{DIALECT, schema};

/// Prints a schema.
///
/// # Errors
/// Fails if stdout cannot be written.
pub fn run(what: Described) -> Result<Status, Failure> {
    print_json(&document(what)).map(|()| Status::Valid)
}

/// Returns a schema (JSON Schema, draft 2020-12).
pub fn document(what: Described) -> Json {
    match what {
        Described::Study => schema(&STUDY, "Study file of loadline"),
        Described::Recorder => schema(&RECORDER_FILE, "Configuration of loadline record"),
        Described::OtherRecorder => schema(&OTHER_RECORDER, "File of another recorder for loadline durability"),
        Described::Results => results(),
    }
}

/// Returns the schema of `run --json` and `report --json`: the findings of one run or of several, or of a durability test.
fn results() -> Json {
    let generator = || SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut found = generator().into_root_schema_for::<Findings>();
    let mut test = generator().into_root_schema_for::<DurabilityTest>();
    let runs = json!({ "type": "array", "items": { "$ref": "#/$defs/Findings" } });
    let mut definitions = found.remove("$defs").unwrap_or_else(|| json!({}));
    if let (Some(all), Some(Json::Object(more))) = (definitions.as_object_mut(), test.remove("$defs")) {
        all.extend(more);
    }
    let mut document = json!({
        "$schema": DIALECT,
        "type": "object",
        "title": "What loadline run --json and loadline report --json print",
        "description": "One run is an object, several are the list runs of one. A study with [durability] prints a DurabilityTest, as loadline durability --json does. A figure that the evidence does not give is null, never 0. Durations are in seconds (_s), \
                        rates per second (_per_s), shares from 0 to 1.",
        "properties": { "version": { "const": DOCUMENT_VERSION, "description": "Raised when a member changes its meaning." } },
        "required": ["version"],
        "anyOf": [
            { "$ref": "#/$defs/Findings" },
            { "properties": { "runs": runs }, "required": ["runs"] },
            { "$ref": "#/$defs/DurabilityTest" }
        ],
        "$defs": definitions
    });
    for (name, mut schema) in [("Findings", found), ("DurabilityTest", test)] {
        schema.remove("$schema");
        schema.remove("title");
        document["$defs"][name] = schema.to_value();
        // The version is in the document of one run, and not in each of several.
        document["$defs"][name]["properties"]["version"] = true.into();
    }
    document
}

/// The beginning of the reference page.
const BEGINNING: &str = "\
# All settings

What can be written in a study file (`loadline run STUDY`) and in the recorder's file (`loadline record CONFIG.toml`), and in the file of another recorder (`loadline durability --recorder FILE`): TOML, one table here for each of theirs. \
This page is made from the tables that loadline reads files by.

- Durations are text with a unit: `\"250us\"`, `\"1.6ms\"`, `\"10s\"`, `\"2m\"`, `\"1h\"`, `\"7d\"`.
- Sizes are text with a unit: `\"512B\"`, `\"64KiB\"`, `\"100MB\"`, `\"4GiB\"`. Rates of links are text too: `\"384kbit/s\"`, `\"1Gbit/s\"`.
- A setting of a study that can be a factor takes several levels in `[factors]`, as in `\"load.clients\" = [1, 4, 16]`, or by `--set 'load.clients=[1,4,16]'`. \
Every setting of a study can be changed by `--set`.

`loadline help load.clients` prints what stands here of a setting, `loadline help load` of a table. \
`loadline schema study` and `loadline schema recorder` print the same as JSON Schema, for editors: write `#:schema study.schema.json` into the first line of a file, \
beside `study.schema.json` with what was printed.
";

/// Returns the page `docs/reference.md`.
pub fn reference() -> String {
    let (study, recorder) = (chapter("Study file", &STUDY), chapter("Recorder's file", &RECORDER_FILE));
    let other = chapter("File of another recorder", &OTHER_RECORDER);
    format!("{BEGINNING}\n{study}\n{recorder}\n{other}")
}
