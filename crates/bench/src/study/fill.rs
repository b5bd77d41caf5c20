//! Reads the columns of a custom record, the statements of the workload `sql` and the shares of the workload `mix`.
//!
//! Main functions: [`read_columns`], [`read_statements`], [`read_mix`]. Invariant: a column that was read can hold the values that fill it.

mod form;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::chosen::{Chosen, DATABASES, DESIGN};
use crate::database::dialect::parameters_of;
use crate::fault::fault;
use crate::operation::KindNames;
use crate::trial::{CustomColumn, Fill, Settings, SqlPart, SqlStatement};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Node;
use crate::written::{Absent, Kind, Part, Setting, Told};

use form::{FILL, FILLS_OF_PARAMS};

pub(super) use form::{FILL_OF_OWN, read_fill};

const KINDS: &[&str] = &["smallint", "int", "bigint", "float", "text", "blob"];

const COLUMN: [Setting; 4] = [
    Setting::new("name", Kind::Text, Absent::Refused, "The column's name: 1 to 60 letters, digits or underscores."),
    Setting::new("kind", Kind::OneOf(KINDS), Absent::Refused, "The type of its values."),
    Setting::new("fill", Kind::Own(&FILL), Absent::Refused, "How its values are generated."),
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
    "The statement, with `?` for each parameter. `??` is a literal question mark, as in PostgreSQL's operators.",
);
const PARAMS: Setting = Setting::new(
    "params",
    Kind::Own(&FILLS_OF_PARAMS),
    Absent::Means("none"),
    "How the value of each parameter is generated.",
);
const ALLOW_EMPTY: Setting =
    Setting::new("allow_empty", Kind::Truth, Absent::Truth(false), "Whether a query may find no row.");

const ROWS: Setting = Setting::new(
    "rows",
    Kind::Whole(0, 1_000_000_000),
    Absent::Means("any number, except as `allow_empty` says"),
    "Number of rows that a query must find, or another statement must change. With another number it has failed.",
);

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
            "Its name in results: a letter, then up to 39 letters, digits, `-`, `_`, `.` and spaces.",
        ),
        Setting::new(
            "weight",
            Kind::Number(1e-9, 1e9),
            Absent::Number(1.0),
            "How often it is executed, relative to the others.",
        ),
        PARAMS,
        ALLOW_EMPTY,
        ROWS,
        Setting::new(
            "with_writes",
            Kind::Truth,
            Absent::Truth(false),
            "Whether it is left out unless `workload.writes` is true.",
        ),
        DESIGN,
        DATABASES,
        Setting::new(
            "transaction",
            Kind::Parts(&PART),
            Absent::Means("it is a statement of its own"),
            "The statements of one transaction. `sql`, `params`, `allow_empty` and `rows` are then given in them.",
        ),
    ],
};

/// A statement of a transaction.
static PART: Part = Part {
    name: "workload.statements.transaction",
    help: "A statement of a transaction.",
    settings: &[Setting { absent: Absent::Refused, ..SQL }, PARAMS, ALLOW_EMPTY, ROWS],
};

const fn share(key: &'static str, help: &'static str, told: Told) -> Setting {
    Setting::new(key, Kind::Number(0.0, 1e9), Absent::Means("`0`"), help).factor(told)
}

/// The shares of `workload.mix`.
pub static MIX: Part = Part {
    name: "workload.mix",
    help: "The shares of the workloads that `mix` consists of, relative to each other.",
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

/// Names of columns that layouts add themselves.
const RESERVED_COLUMNS: &[&str] = &["record_id", "measurement"];

/// Reads the columns under a key of `[record]`; empty if it is missing.
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
        let fill = read_fill(&entry.node, &format!("{name}.fill"), false, errors)?;
        if let Some(Err(sentence)) = kind.map(|kind| fits(kind, &fill)) {
            errors.push(entry.node.place, format!("{name}.fill: {sentence}"));
        }
        Some(fill)
    });
    let hot = section.read("hot", errors);
    Some(CustomColumn { name: column?.to_owned(), kind: kind?.to_owned(), fill: fill?, hot })
}

/// Reads the statements of `[workload]`; empty if there are none. Statements with `with_writes` are left out unless
/// `is_writing`, and those of other designs and databases always.
pub fn read_statements(
    workload: &Section,
    is_writing: bool,
    chosen: &Chosen<'_>,
    errors: &mut Errors,
) -> Vec<SqlStatement> {
    let nodes = workload.list("statements", errors);
    let read: Vec<Read> = nodes.iter().filter_map(|node| read_statement(node, chosen, errors)).collect();
    let has_any = !read.is_empty();
    let own: Vec<Read> = read.into_iter().filter(|read| read.is_chosen).collect();
    if let (true, true, Some(entry)) = (has_any, own.is_empty(), workload.get("statements")) {
        let what = format!("none of {} is for {chosen}", STATEMENT.name);
        errors.push(
            entry.place,
            fault!("{what}"; "add one, or leave design and databases out of those that are for all"),
        );
        return Vec::new();
    }
    let kept = own.into_iter().filter(|read| is_writing || !read.with_writes).map(|read| read.statement);
    let statements: Vec<SqlStatement> = kept.collect();
    if let (true, true, Some(entry)) = (has_any, statements.is_empty(), workload.get("statements")) {
        let remedy = "write writes = true in [workload] if they may be executed";
        errors.push(
            entry.place,
            fault!("all of {} are with_writes and workload.writes is false", STATEMENT.name; "{remedy}"),
        );
    }
    let names: Vec<&str> = statements.iter().filter_map(|statement| statement.name.as_deref()).collect();
    let twice = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
    if let (Some((_, name)), Some(entry)) = (twice, workload.get("statements")) {
        errors
            .push(entry.place, fault!("two of {} are called {name:?}", STATEMENT.name; "give each a name of its own"));
    }
    statements
}

/// Reads the name of a statement in results, if it has one.
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

/// A statement that was read.
struct Read {
    statement: SqlStatement,
    /// Whether the statement is left out unless `workload.writes` is true.
    with_writes: bool,
    /// Whether the statement is for the design and the database of the case.
    is_chosen: bool,
}

fn read_statement(node: &Node, chosen: &Chosen<'_>, errors: &mut Errors) -> Option<Read> {
    let name = STATEMENT.name;
    let section = Section::of_node(node, name, &STATEMENT, errors)?;
    let (called, weight) = (read_name(&section, errors), section.read("weight", errors));
    let with_writes = section.read("with_writes", errors);
    let is_chosen = chosen.has(&section, errors);
    let read = |statement| Some(Read { statement, with_writes, is_chosen });
    let Some(entry) = section.get("transaction") else {
        let SqlPart { sql, params, allow_empty, rows } = read_part(&section, name, errors)?;
        let then = Vec::new();
        return read(SqlStatement { name: called, sql, weight, params, allow_empty, rows, then });
    };
    for key in PART.keys().filter(|key| section.get(key).is_some()) {
        let remedy = format!("write {key} into the statements of the transaction");
        errors.push(section.place, fault!("a statement of {name} has both {key} and transaction"; "{remedy}"));
    }
    let nodes = section.list("transaction", errors);
    let inner = PART.name;
    let read_inner = |node: &Node| read_part(&Section::of_node(node, inner, &PART, errors)?, inner, errors);
    let parts: Vec<Option<SqlPart>> = nodes.iter().map(read_inner).collect();
    if parts.is_empty() {
        errors.push(entry.place, fault!("{inner} has no statements"; "write transaction = [ {{ sql = \"...\" }} ]"));
    }
    let mut parts = parts.into_iter().collect::<Option<Vec<SqlPart>>>()?.into_iter();
    let SqlPart { sql, params, allow_empty, rows } = parts.next()?;
    read(SqlStatement { name: called, sql, weight, params, allow_empty, rows, then: parts.collect() })
}

/// Reads one statement, which stands alone or in a transaction.
fn read_part(section: &Section, name: &str, errors: &mut Errors) -> Option<SqlPart> {
    if section.get("sql").is_none() {
        errors.push(section.place, fault!("a statement of {name} has no sql"; "write {{ sql = \"SELECT ...\" }}"));
    }
    let sql = section.text("sql", errors);
    let nodes = section.list("params", errors);
    let params: Vec<Fill> =
        nodes.iter().filter_map(|node| read_fill(node, "workload.statements.params", true, errors)).collect();
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
    let (allow_empty, rows) = (section.read("allow_empty", errors), section.find("rows", errors));
    if let (true, Some(rows), Some(entry)) = (allow_empty, rows, section.get("rows")) {
        let remedy = "leave one of them out";
        errors.push(entry.node.place, fault!("{name}.rows is {rows} and allow_empty is true"; "{remedy}"));
    }
    Some(SqlPart { sql: sql?.to_owned(), params, allow_empty, rows })
}

/// Reads the shares of `workload.mix`, by name of the workload; empty if there are none.
pub fn read_mix(workload: &Section, errors: &mut Errors) -> BTreeMap<String, f64> {
    let section = workload.part("mix", errors);
    let mut share = |name: &str| Some((name.to_owned(), section?.find(name, errors)?));
    MIX.keys().filter_map(&mut share).collect()
}

/// Checks that a column of this kind can hold the values of the fill.
fn fits(kind: &str, fill: &Fill) -> Result<(), String> {
    if let Fill::Weighted(choices) = fill {
        return choices.iter().try_for_each(|(fill, _)| fits(kind, fill));
    }
    let is_text = matches!(fill, Fill::RandomText(_) | Fill::Text(_) | Fill::OneOf(_) | Fill::Times(_));
    let is_bytes = matches!(fill, Fill::RandomBytes(_));
    let (low, high) = match kind {
        "text" if is_text => return Ok(()),
        "blob" if is_bytes => return Ok(()),
        "text" => return Err("a column of kind text takes random_text, text, one_of or times".to_owned()),
        "blob" => return Err("a column of kind blob takes random_bytes".to_owned()),
        _ if is_text || is_bytes => {
            return Err(format!(
                "a column of kind {kind} takes uniform, zipf, normal, drift, quantiles, sequence or number"
            ));
        }
        "smallint" => (f64::from(i16::MIN), f64::from(i16::MAX)),
        "int" => (f64::from(i32::MIN), f64::from(i32::MAX)),
        "bigint" => (i64::MIN as f64, i64::MAX as f64),
        _ => return Ok(()),
    };
    let inside = |numbers: &[f64]| numbers.iter().all(|number| (low..=high).contains(number));
    let fits = match fill {
        Fill::Uniform(from, to) => inside(&[*from, *to]) && from.fract() == 0.0 && to.fract() == 0.0,
        Fill::Drift(from, to, step) => {
            inside(&[*from, *to]) && [from, to, step].iter().all(|number| number.fract() == 0.0)
        }
        Fill::Quantiles(bounds) => inside(bounds) && bounds.iter().all(|bound| bound.fract() == 0.0),
        Fill::Zipf(from, to, _) => inside(&[*from as f64, *to as f64]),
        Fill::Sequence(first, _) => inside(&[*first as f64]),
        Fill::Number(number) => inside(&[*number]) && number.fract() == 0.0,
        Fill::Normal(mean, _) => inside(&[*mean]),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("a column of kind {kind} takes whole numbers from {low} to {high}")) }
}
