//! Reads the settings that shape the data besides its columns: runs of several lengths with their scale, and secondary indexes.
//!
//! Main functions: [`read_runs`], [`read_indexes`]. Invariant: a run that was read has at least one record.

use crate::fault::fault;
use crate::written::Form;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Node};
use serde_json::json;

/// The form of `record.runs`.
pub static RUNS: Form = Form {
    says: "list of `[how many, records of each]`",
    schema: || {
        let pair = [
            json!({ "type": "integer", "minimum": 1, "maximum": RUNS_MAX }),
            json!({ "type": "integer", "minimum": 1, "maximum": RECORDS_MAX }),
        ];
        json!({ "type": "array", "items": { "type": "array", "prefixItems": pair, "items": false, "minItems": 2 } })
    },
    example: "[[2, 100]]",
};

/// The form of `layout.indexes`.
pub static INDEXES: Form = Form {
    says: "list of columns, or text with commas between them",
    schema: || json!({ "anyOf": [{ "type": "array", "items": { "type": "string", "minLength": 1 } }, { "type": "string" }] }),
    example: "[\"ul_delay\"]",
};

const RUNS_MAX: u64 = 1 << 30;
const RECORDS_MAX: u64 = 1 << 53;

/// Reads `record.runs` with `record.scale` applied to the lengths, and the scale if it was given.
pub fn read_runs(record: &Section, errors: &mut Errors) -> (Vec<(u64, u64)>, Option<f64>) {
    let scale = record.given("scale", errors);
    if let (Some(entry), None) = (record.get("scale"), record.get("runs")) {
        let remedy = "write runs = [ [how many, records of each], ... ], or leave it out";
        errors.push(
            entry.place,
            fault!("record.scale multiplies the lengths of record.runs, which are missing"; "{remedy}"),
        );
    }
    for key in ["rows", "per_measurement"] {
        if let (Some(entry), Some(_)) = (record.get(key), record.get("runs")) {
            let why = "record.runs says how many there are; leave one of them out";
            errors.push(entry.place, fault!("record.{key} and record.runs are both given"; "{why}"));
        }
    }
    let mut runs = Vec::new();
    for node in record.list("runs", errors) {
        match pair(node) {
            Some((count, records)) => {
                let scaled = (records as f64 * scale.unwrap_or(1.0)).round().max(1.0) as u64;
                runs.push((count, scaled));
            }
            None => {
                let must = "it must be [how many, records of each], two whole numbers above 0";
                errors.push(node.place, fault!("a run of record.runs is {node}"; "{must}"));
            }
        }
    }
    let total = runs.iter().try_fold(0_u64, |sum, (count, records)| sum.checked_add(count.checked_mul(*records)?));
    if let (Some(entry), true) = (record.get("runs"), total.is_none_or(|total| total > RECORDS_MAX)) {
        errors.push(entry.place, fault!("record.runs has more than 2^53 records"; "use fewer or shorter runs"));
        runs.clear();
    }
    (runs, scale)
}

fn pair(node: &Node) -> Option<(u64, u64)> {
    let Content::List(items) = &node.content else { return None };
    let [count, records] = items.as_slice() else { return None };
    let whole =
        |node: &Node| if let Content::Integer(number) = node.content { u64::try_from(number).ok() } else { None };
    let (count, records) = (whole(count)?, whole(records)?);
    ((1..=RUNS_MAX).contains(&count) && (1..=RECORDS_MAX).contains(&records)).then_some((count, records))
}

/// Reads `layout.indexes`: a list of columns, or, as the level of a factor, their names separated by commas.
pub fn read_indexes(layout: &Section, errors: &mut Errors) -> Vec<String> {
    let Some(entry) = layout.get("indexes") else { return Vec::new() };
    let name = |node: &Node| match &node.content {
        Content::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    };
    let names: Option<Vec<String>> = match &entry.node.content {
        Content::List(items) => items.iter().map(name).collect(),
        Content::Text(text) if text.trim().is_empty() => Some(Vec::new()),
        Content::Text(text) => Some(text.split(',').map(|part| part.trim().to_owned()).collect()),
        _ => None,
    };
    let names = names.filter(|names| !names.iter().any(String::is_empty));
    if let Some(twice) =
        names.iter().flatten().enumerate().find(|(at, name)| names.iter().flatten().take(*at).any(|n| n == *name))
    {
        errors.push(entry.node.place, fault!("layout.indexes names \"{}\" twice", twice.1; "remove one"));
    }
    names.unwrap_or_else(|| {
        let must = "it must be columns, as in [\"ul_delay\"] or \"ul_delay, ul_dupl\"";
        errors.push(entry.node.place, fault!("layout.indexes is {}", entry.node; "{must}"));
        Vec::new()
    })
}
