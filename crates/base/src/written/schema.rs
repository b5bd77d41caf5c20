//! JSON Schemas (draft 2020-12) of files, generated from their tables, for editors and other programs.
//!
//! Main function: [`schema`]. Invariant: a file that is read without an error is valid; conditions that a schema cannot express, such as which
//! settings go together, are left to the reader.

use serde_json::{Map, Value as Json, json};

use super::setting::{Absent, Kind, Part, Setting, Span};

/// The dialect of the schemas.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the schema of a file with the given top.
pub fn schema(top: &'static Part, title: &str) -> Json {
    let mut document = object(top);
    let tables = top.all().into_iter().filter(|part| !std::ptr::eq(*part, top));
    let tables: Map<String, Json> = tables.map(|part| (part.name.to_owned(), object(part))).collect();
    document["$schema"] = DIALECT.into();
    document["title"] = title.into();
    document["$defs"] = Json::Object(tables);
    document
}

/// Returns the schema of a level of a setting, as one of a factor's values. `below` is the name of its table.
pub fn level(table: &str, setting: &Setting) -> Json {
    let whole = json!({ "$ref": format!("#/$defs/{table}/properties/{}", setting.key) });
    match setting.kind {
        Kind::Own(_) | Kind::Texts => json!({ "allOf": [whole, { "not": { "type": "array" } }] }),
        _ => whole,
    }
}

/// Returns the schema of a table.
fn object(part: &'static Part) -> Json {
    let properties: Map<String, Json> =
        part.settings.iter().map(|setting| (setting.key.to_owned(), property(setting))).collect();
    let required: Vec<&str> = part
        .settings
        .iter()
        .filter(|setting| matches!(setting.absent, Absent::Refused))
        .map(|setting| setting.key)
        .collect();
    let mut object = json!({
        "type": "object", "description": part.help, "properties": properties, "additionalProperties": false
    });
    if !required.is_empty() {
        object["required"] = required.into();
    }
    object
}

/// Returns the schema of a setting, with its description and its default.
fn property(setting: &Setting) -> Json {
    let mut schema = of_kind(setting.kind);
    let only = if setting.only.is_empty() { String::new() } else { format!(" Only for {}.", setting.only) };
    schema["description"] = format!("{}{only}", setting.help).into();
    let default = match setting.absent {
        Absent::Text(text) => Some(text.into()),
        Absent::Whole(number) => Some(number.into()),
        Absent::Number(number) => Some(number.into()),
        Absent::Truth(truth) => Some(truth.into()),
        Absent::Means(_) | Absent::Refused => None,
    };
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}

fn of_kind(kind: Kind) -> Json {
    let one_of = |choices: &[&str]| json!({ "enum": choices });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::OneOf(choices) => one_of(choices),
        Kind::Listed(choices) | Kind::Named(choices) => one_of(&choices()),
        Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::WholeOr(least, most, words) => or(json!({ "type": "integer", "minimum": least, "maximum": most }), words),
        Kind::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Kind::Truth => json!({ "type": "boolean" }),
        Kind::Duration(span) => duration(span),
        Kind::Size(_, _, words) => or(size(), words),
        Kind::Bytes(least, most) => {
            json!({ "anyOf": [size(), { "type": "integer", "minimum": least, "maximum": most }] })
        }
        Kind::BitRate(_, _, words) => {
            or(json!({ "type": "string", "pattern": measured(NUMBER, "(k|M|G)?(bit/s|bps)") }), words)
        }
        Kind::Texts => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
        Kind::Part(part) => json!({ "$ref": format!("#/$defs/{}", part.name) }),
        Kind::Parts(part) => json!({ "type": "array", "items": { "$ref": format!("#/$defs/{}", part.name) } }),
        Kind::Own(form) => (form.schema)(),
    }
}

/// Returns a schema that also accepts one of the words.
fn or(schema: Json, words: &[&str]) -> Json {
    if words.is_empty() { schema } else { json!({ "anyOf": [schema, { "enum": words }] }) }
}

/// The pattern of a number before a unit.
const NUMBER: &str = "([0-9]+[.]?[0-9]*|[.][0-9]+)";

/// The pattern of such a number that is not zero.
const ABOVE_ZERO: &str = "[0-9.]*[1-9][0-9.]*";

/// Returns the pattern of a number with a unit.
fn measured(number: &str, unit: &str) -> String {
    format!("^\\s*{number}\\s*({unit})\\s*$")
}

/// Returns the schema of a duration; durations as text have no bounds that a schema could express, except for zero.
pub fn duration(span: Span) -> Json {
    let number = match span {
        Span::AboveZero => ABOVE_ZERO,
        Span::Within(least, _) if least > 0.0 => ABOVE_ZERO,
        _ => NUMBER,
    };
    json!({ "type": "string", "pattern": measured(number, "ns|us|µs|ms|s|m|min|h|d") })
}

fn size() -> Json {
    json!({ "type": "string", "pattern": measured(NUMBER, "B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB|") })
}
