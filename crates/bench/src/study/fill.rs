//! Reads the columns of a custom record, the statements of the workload `sql` and the shares of the workload `mix`.
//!
//! Main functions: [`read_columns`], [`read_statements`], [`read_mix`]. Invariant: a column that was read can hold what fills it.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::database::dialect::parameters_of;
use crate::fault::fault;
use crate::operation::KindNames;
use crate::trial::{CustomColumn, Fill, Settings, SqlPart, SqlStatement};
use crate::written::place::Errors;
use crate::written::section::{Section, number_of};
use crate::written::tree::{Content, Node};
use crate::written::{Absent, Form, Kind, Part, Setting, Told, closest};

const KINDS: &[&str] = &["smallint", "int", "bigint", "float", "text", "blob"];

const COLUMN: [Setting; 4] = [
    Setting::new("name", Kind::Text, Absent::Refused, "The column's name: 1 to 60 letters, digits or underscores."),
    Setting::new("kind", Kind::OneOf(KINDS), Absent::Refused, "What it holds."),
    Setting::new("fill", Kind::Own(&FILL), Absent::Refused, "How it gets its values."),
    Setting::new("hot", Kind::Truth, Absent::Truth(true), "Whether the layout `star-hot` keeps it in the main table."),
];

/// A column of `record.identity`.
pub static IDENTITY: Part =
    Part { name: "record.identity", help: "A column that says who measured.", settings: &COLUMN };

/// A column of `record.values`.
pub static VALUES: Part =
    Part { name: "record.values", help: "A column that says what was measured.", settings: &COLUMN };

const SQL: Setting = Setting::new(
    "sql",
    Kind::Text,
    Absent::Means("none: it must be given, unless there is a `transaction`"),
    "The statement, with `?` for each parameter; `??` is a question mark of its own, as in PostgreSQL's operators.",
);
const PARAMS: Setting =
    Setting::new("params", Kind::Own(&FILLS_OF_PARAMS), Absent::Means("none"), "How each parameter gets its value.");
const ALLOW_EMPTY: Setting =
    Setting::new("allow_empty", Kind::Truth, Absent::Truth(false), "Whether a query may find no row.");

/// A statement of `workload.statements`.
pub static STATEMENT: Part = Part {
    name: "workload.statements",
    help: "A statement, or a transaction of several.",
    settings: &[
        SQL,
        Setting::new(
            "name",
            Kind::Text,
            Absent::Means("its number, as in `statement-1`"),
            "What it is called in results: up to 40 letters, digits, `-`, `_`, `.` and spaces, a letter first.",
        ),
        Setting::new(
            "weight",
            Kind::Number(1e-9, 1e9),
            Absent::Number(1.0),
            "How often it is executed, relative to the others.",
        ),
        PARAMS,
        ALLOW_EMPTY,
        Setting::new(
            "transaction",
            Kind::Parts(&PART),
            Absent::Means("it is a statement of its own"),
            "Statements that are one transaction; `sql`, `params` and `allow_empty` then stand in them.",
        ),
    ],
};

/// A statement of a transaction.
static PART: Part = Part {
    name: "workload.statements.transaction",
    help: "A statement of a transaction.",
    settings: &[Setting { absent: Absent::Refused, ..SQL }, PARAMS, ALLOW_EMPTY],
};

const fn share(key: &'static str, help: &'static str, told: Told) -> Setting {
    Setting::new(key, Kind::Number(0.0, 1e9), Absent::Means("`0`"), help).factor(told)
}

/// The shares of `workload.mix`.
pub static MIX: Part = Part {
    name: "workload.mix",
    help: "The shares of the workloads that `mix` is made of, relative to each other.",
    settings: &[
        share("select", "Share of `select`.", |settings| mixed(settings, "select")),
        share("update", "Share of `update`.", |settings| mixed(settings, "update")),
        share("read", "Share of `read`.", |settings| mixed(settings, "read")),
        share("scan", "Share of `scan`.", |settings| mixed(settings, "scan")),
        share("write", "Share of `write`.", |settings| mixed(settings, "write")),
    ],
};

fn mixed(settings: &Settings, part: &str) -> Option<Json> {
    settings.workload.mix.get(part).map(|share| (*share).into())
}

/// The form of a fill.
pub static FILL: Form = Form {
    says: "one of `{ uniform = [low, high] }`, `{ zipf = [low, high, exponent] }`, `{ normal = [mean, deviation] }`, `{ sequence = [first, step] }`, \
           `{ random_text = length }`, `{ random_bytes = length }`, `{ text = \"...\" }`, `{ number = 1 }`, `{ one_of = [\"a\", \"b\"] }`; text and numbers \
           stand for themselves",
    schema: fill_schema,
    example: "{ random_text = 40 }",
};

/// The form of `params`.
static FILLS_OF_PARAMS: Form = Form {
    says: "list of fills, as of a column",
    schema: || json!({ "type": "array", "items": fill_schema() }),
    example: "[1]",
};

fn fill_schema() -> Json {
    let numbers =
        |count: usize| json!({ "type": "array", "items": { "type": "number" }, "minItems": count, "maxItems": count });
    let wholes = json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 });
    let length = json!({ "type": "integer", "minimum": 1, "maximum": 65_535 });
    let properties = json!({
        "uniform": numbers(2), "zipf": numbers(3), "normal": numbers(2), "sequence": wholes, "random_text": length,
        "random_bytes": length, "text": { "type": "string" }, "number": { "type": "number" },
        "one_of": { "type": "array", "items": { "type": "string" }, "minItems": 1 }
    });
    let table = json!({
        "type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": 1
    });
    json!({ "anyOf": [table, { "type": ["string", "number"] }] })
}

const FILLS: &[&str] =
    &["uniform", "zipf", "normal", "sequence", "random_text", "random_bytes", "text", "number", "one_of"];
const FILL_FORMS: &str = "write one of { uniform = [low, high] }, { zipf = [low, high, exponent] }, \
     { normal = [mean, deviation] }, { sequence = [first, step] }, { random_text = length }, { random_bytes = length }, \
     { text = \"...\" }, { number = 1 }, { one_of = [\"a\", \"b\"] }";
/// Columns that layouts add themselves.
const RESERVED_COLUMNS: &[&str] = &["record_id", "measurement"];

/// The columns under a key of `[record]`; empty when it is missing.
pub fn read_columns(record: &Section, key: &str, part: &'static Part, errors: &mut Errors) -> Vec<CustomColumn> {
    record.list(key, errors).iter().filter_map(|node| read_column(node, part, errors)).collect()
}

fn read_column(node: &Node, part: &'static Part, errors: &mut Errors) -> Option<CustomColumn> {
    let name = part.name;
    let section = Section::of_node(node, name, part, errors)?;
    for key in ["name", "kind", "fill"] {
        if section.get(key).is_none() {
            let example = "{ name = \"rtt_ms\", kind = \"float\", fill = { normal = [20.0, 5.0] } }";
            errors.push(section.place, fault!("a column of {name} has no {key}"; "write it as in {example}"));
        }
    }
    let column = section.text("name", errors);
    if let (Some(text), Some(entry)) = (column, section.get("name")) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if text.is_empty()
            || text.len() > 60
            || !text.chars().all(is_word)
            || text.starts_with(|c: char| c.is_ascii_digit())
        {
            let must = "it must be 1 to 60 letters, digits or underscores and not begin with a digit";
            errors.push(entry.node.place, fault!("{name}.name is {}", entry.node; "{must}"));
        }
        if RESERVED_COLUMNS.contains(&text.to_lowercase().as_str()) {
            errors.push(
                entry.node.place,
                fault!("{name}.name is {}", entry.node; "layouts use this name, choose another"),
            );
        }
    }
    let kind: Option<&str> = section.find("kind", errors);
    let fill = section.get("fill").and_then(|entry| {
        let fill = read_fill(&entry.node, &format!("{name}.fill"), errors)?;
        if let Some(Err(sentence)) = kind.map(|kind| fits(kind, &fill)) {
            errors.push(entry.node.place, format!("{name}.fill: {sentence}"));
        }
        Some(fill)
    });
    let hot = section.read("hot", errors);
    Some(CustomColumn { name: column?.to_owned(), kind: kind?.to_owned(), fill: fill?, hot })
}

/// The statements of `[workload]`; empty when there are none.
pub fn read_statements(workload: &Section, errors: &mut Errors) -> Vec<SqlStatement> {
    let nodes = workload.list("statements", errors);
    let statements: Vec<SqlStatement> = nodes.iter().filter_map(|node| read_statement(node, errors)).collect();
    let names: Vec<&str> = statements.iter().filter_map(|statement| statement.name.as_deref()).collect();
    let twice = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
    if let (Some((_, name)), Some(entry)) = (twice, workload.get("statements")) {
        errors
            .push(entry.place, fault!("two of {} are called {name:?}", STATEMENT.name; "give each a name of its own"));
    }
    statements
}

/// What a statement is called in results, where it has a name.
fn read_name(section: &Section, errors: &mut Errors) -> Option<String> {
    let (name, entry) = (section.text("name", errors)?, section.get("name")?);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_. ".contains(letter);
    let is_short = name.len() <= 40 && name.trim() == name;
    if !is_short || !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) || !name.chars().all(is_plain) {
        let remedy = "use up to 40 letters, digits, -, _, . and spaces, a letter first";
        errors.push(entry.node.place, fault!("workload.statements.name is {name:?}"; "{remedy}"));
    } else if KindNames::is_taken(name) {
        let remedy = "choose another name: loadline calls operations of its own so";
        errors.push(entry.node.place, fault!("workload.statements.name is {name:?}"; "{remedy}"));
    }
    Some(name.to_owned())
}

fn read_statement(node: &Node, errors: &mut Errors) -> Option<SqlStatement> {
    let name = STATEMENT.name;
    let section = Section::of_node(node, name, &STATEMENT, errors)?;
    let (called, weight) = (read_name(&section, errors), section.read("weight", errors));
    let Some(entry) = section.get("transaction") else {
        let SqlPart { sql, params, allow_empty } = read_part(&section, name, errors)?;
        return Some(SqlStatement { name: called, sql, weight, params, allow_empty, then: Vec::new() });
    };
    for key in PART.keys().filter(|key| section.get(key).is_some()) {
        let remedy = format!("write {key} into the statements of the transaction");
        errors.push(section.place, fault!("a statement of {name} has both {key} and transaction"; "{remedy}"));
    }
    let nodes = section.list("transaction", errors);
    let inner = PART.name;
    let read = |node: &Node| read_part(&Section::of_node(node, inner, &PART, errors)?, inner, errors);
    let parts: Vec<Option<SqlPart>> = nodes.iter().map(read).collect();
    if parts.is_empty() {
        errors.push(entry.place, fault!("{inner} has no statements"; "write transaction = [ {{ sql = \"...\" }} ]"));
    }
    let mut parts = parts.into_iter().collect::<Option<Vec<SqlPart>>>()?.into_iter();
    let SqlPart { sql, params, allow_empty } = parts.next()?;
    Some(SqlStatement { name: called, sql, weight, params, allow_empty, then: parts.collect() })
}

/// One statement, alone or of a transaction.
fn read_part(section: &Section, name: &str, errors: &mut Errors) -> Option<SqlPart> {
    if section.get("sql").is_none() {
        errors.push(section.place, fault!("a statement of {name} has no sql"; "write {{ sql = \"SELECT ...\" }}"));
    }
    let sql = section.text("sql", errors);
    let nodes = section.list("params", errors);
    let params: Vec<Fill> =
        nodes.iter().filter_map(|node| read_fill(node, "workload.statements.params", errors)).collect();
    if let (Some(sql), Some(entry)) = (sql, section.get("sql")) {
        let places = parameters_of(sql);
        if sql.trim().is_empty() {
            errors.push(entry.node.place, fault!("{name}.sql is empty"; "write a statement"));
        } else if places != nodes.len() {
            let place = section.get("params").map_or(entry.node.place, |params| params.place);
            let remedy = "params needs one fill for each ? outside quotes and comments";
            errors.push(place, fault!("{name}.sql has {places} parameters and {} fills", nodes.len(); "{remedy}"));
        }
    }
    let allow_empty = section.read("allow_empty", errors);
    Some(SqlPart { sql: sql?.to_owned(), params, allow_empty })
}

/// The shares of `workload.mix`, by name of the workload; empty when there are none.
pub fn read_mix(workload: &Section, errors: &mut Errors) -> BTreeMap<String, f64> {
    let section = workload.part("mix", errors);
    let mut share = |name: &str| Some((name.to_owned(), section?.find(name, errors)?));
    MIX.keys().filter_map(&mut share).collect()
}

fn read_fill(node: &Node, name: &str, errors: &mut Errors) -> Option<Fill> {
    let table = match &node.content {
        Content::Table(table) => table,
        Content::Text(text) => return Some(Fill::Text(text.clone())),
        Content::Integer(_) | Content::Float(_) => return finite(node, name, errors).map(Fill::Number),
        _ => {
            errors.push(node.place, fault!("{name} is {node}"; "{FILL_FORMS}"));
            return None;
        }
    };
    let [entry] = table.entries.as_slice() else {
        errors.push(node.place, fault!("{name} has {} keys instead of one", table.entries.len(); "{FILL_FORMS}"));
        return None;
    };
    let value = &entry.node;
    let path = format!("{name}.{}", entry.key);
    let fill = match entry.key.as_str() {
        "uniform" => numbers::<2>(value).filter(|[low, high]| low <= high).map(|[low, high]| Fill::Uniform(low, high)),
        "zipf" => zipf(value),
        "normal" => numbers::<2>(value).filter(|[_, sd]| *sd >= 0.0).map(|[mean, sd]| Fill::Normal(mean, sd)),
        "sequence" => wholes(value).and_then(|list| <[i64; 2]>::try_from(list).ok()).map(|[a, b]| Fill::Sequence(a, b)),
        "random_text" => length(value).map(Fill::RandomText),
        "random_bytes" => length(value).map(Fill::RandomBytes),
        "text" => {
            if let Content::Text(text) = &value.content {
                Some(Fill::Text(text.clone()))
            } else {
                None
            }
        }
        "number" => return finite(value, &path, errors).map(Fill::Number),
        "one_of" => texts(value).filter(|texts| !texts.is_empty()).map(Fill::OneOf),
        unknown => {
            let remedy = match closest(unknown, FILLS.iter().copied()) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => FILL_FORMS.to_owned(),
            };
            errors.push(entry.place, fault!("unknown fill \"{unknown}\" in {name}"; "{remedy}"));
            return None;
        }
    };
    if fill.is_none() {
        errors.push(value.place, fault!("{path} is {value}"; "{}", form_of(&entry.key)));
    }
    fill
}

/// What the value of a fill must be.
fn form_of(fill: &str) -> &'static str {
    match fill {
        "uniform" => "it must be two numbers [low, high], the lower one first",
        "zipf" => "it must be [low, high, exponent]: two whole numbers, the lower one first, and a number from 0 to 10",
        "normal" => "it must be two numbers [mean, deviation], the deviation zero or more",
        "sequence" => "it must be two whole numbers [first, step]",
        "random_text" | "random_bytes" => "it must be a length, a whole number from 1 to 65,535",
        "text" => "it must be text in quotes",
        _ => "it must be a list of texts [\"a\", \"b\"]",
    }
}

fn items(node: &Node) -> &[Node] {
    if let Content::List(items) = &node.content { items } else { &[] }
}

fn numbers<const COUNT: usize>(node: &Node) -> Option<[f64; COUNT]> {
    let numbers: Option<Vec<f64>> =
        items(node).iter().map(|item| number_of(item).filter(|number| number.is_finite())).collect();
    numbers?.try_into().ok()
}

fn wholes(node: &Node) -> Option<Vec<i64>> {
    items(node)
        .iter()
        .map(|item| if let Content::Integer(number) = item.content { Some(number) } else { None })
        .collect()
}

fn texts(node: &Node) -> Option<Vec<String>> {
    let text = |item: &Node| if let Content::Text(text) = &item.content { Some(text.clone()) } else { None };
    items(node).iter().map(text).collect()
}

fn zipf(node: &Node) -> Option<Fill> {
    let [_, _, exponent] = numbers::<3>(node)?;
    let [low, high]: [i64; 2] = items(node)[..2]
        .iter()
        .map(|item| if let Content::Integer(number) = item.content { Some(number) } else { None })
        .collect::<Option<Vec<i64>>>()?
        .try_into()
        .ok()?;
    (low <= high && (0.0..=10.0).contains(&exponent)).then_some(Fill::Zipf(low, high, exponent))
}

fn length(node: &Node) -> Option<u32> {
    match node.content {
        Content::Integer(length) => u32::try_from(length).ok().filter(|length| (1..=65_535).contains(length)),
        _ => None,
    }
}

fn finite(node: &Node, name: &str, errors: &mut Errors) -> Option<f64> {
    let number = number_of(node).filter(|number| number.is_finite());
    if number.is_none() {
        errors.push(node.place, fault!("{name} is {node}"; "it must be a number"));
    }
    number
}

/// Whether a column of this kind can hold what the fill makes.
fn fits(kind: &str, fill: &Fill) -> Result<(), String> {
    let is_text = matches!(fill, Fill::RandomText(_) | Fill::Text(_) | Fill::OneOf(_));
    let is_bytes = matches!(fill, Fill::RandomBytes(_));
    let (low, high) = match kind {
        "text" if is_text => return Ok(()),
        "blob" if is_bytes => return Ok(()),
        "text" => return Err("a column of kind text takes random_text, text or one_of".to_owned()),
        "blob" => return Err("a column of kind blob takes random_bytes".to_owned()),
        _ if is_text || is_bytes => {
            return Err(format!("a column of kind {kind} takes uniform, zipf, normal, sequence or number"));
        }
        "smallint" => (f64::from(i16::MIN), f64::from(i16::MAX)),
        "int" => (f64::from(i32::MIN), f64::from(i32::MAX)),
        "bigint" => (i64::MIN as f64, i64::MAX as f64),
        _ => return Ok(()),
    };
    let inside = |numbers: &[f64]| numbers.iter().all(|number| (low..=high).contains(number));
    let fits = match fill {
        Fill::Uniform(from, to) => inside(&[*from, *to]) && from.fract() == 0.0 && to.fract() == 0.0,
        Fill::Zipf(from, to, _) => inside(&[*from as f64, *to as f64]),
        Fill::Sequence(first, _) => inside(&[*first as f64]),
        Fill::Number(number) => inside(&[*number]) && number.fract() == 0.0,
        Fill::Normal(mean, _) => inside(&[*mean]),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("a column of kind {kind} takes whole numbers from {low} to {high}")) }
}
