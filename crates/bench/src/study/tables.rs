//! `[[tables]]`: a study's own tables, written in the database's language, and the designs that they form.
//!
//! Main: [`TABLE`] and [`read_tables`]. Invariant: a table whose columns were read can be filled.

use super::chosen::{Chosen, DATABASES, DESIGN, text_at};
use super::fill::{FILL_OF_OWN, read_fill};
use super::names::Names;
use super::reading::LARGE;
use crate::data::Parameters;
use crate::fault::{Fault, fault};
use crate::trial::{Asked, ColumnFill, Fill, Settings, TableSettings};
use crate::workload::has_foreign_statements;
use crate::written::place::{Errors, Place};
use crate::written::section::Section;
use crate::written::tree::{Content, Entry, Node, Table};
use crate::written::{Absent, Kind, Part, Setting, closest};

/// A table of `[[tables]]`.
pub(super) static TABLE: Part = Part {
    name: "tables",
    help: "A table of the study's own. loadline creates it, fills it before each trial unless all statements are queries, and drops it at the end. If the table exists already, loadline does not touch it and refuses the trial.",
    settings: &[
        Setting::new(
            "name",
            Kind::Text,
            Absent::Refused,
            "Its name, as written in `create`: 1 to 60 letters, digits or underscores.",
        ),
        Setting::new(
            "create",
            Kind::Texts,
            Absent::Refused,
            "The SQL that creates it, in order: `CREATE TABLE`, and what belongs to it, such as partitions or types.",
        ),
        Setting::new(
            "rows",
            Kind::Whole(0, LARGE),
            Absent::Means("none; with `columns` it must be given"),
            "Number of rows with which it is filled.",
        ),
        Setting::new(
            "columns",
            Kind::Parts(&COLUMN),
            Absent::Means("none: it must be given with `rows`"),
            "The columns to fill, in order. The database makes the values of the others.",
        ),
        Setting::new(
            "then",
            Kind::Texts,
            Absent::Means("none"),
            "SQL to execute after filling, in order, such as `CREATE INDEX` and `ANALYZE`.",
        ),
        Setting::new(
            "drop",
            Kind::Texts,
            Absent::Means("`DROP TABLE` and its name"),
            "The SQL that removes it, in order, if more than the table must be removed.",
        ),
        DESIGN,
        DATABASES,
    ],
};

/// A column of such a table.
static COLUMN: Part = Part {
    name: "tables.columns",
    help: "A column to fill.",
    settings: &[
        Setting::new("name", Kind::Text, Absent::Refused, "Its name, as written in `create`."),
        Setting::new("fill", Kind::Own(&FILL_OF_OWN), Absent::Refused, "How its values are generated."),
    ],
};

/// Returns the nodes of `[[tables]]`.
fn nodes(root: &Table) -> Option<(&Entry, &[Node])> {
    let entry = root.get(TABLE.name)?;
    match &entry.node.content {
        Content::List(items) => Some((entry, items)),
        _ => Some((entry, &[])),
    }
}

/// Reads the tables of the case; those of other designs and databases are read too, and left out.
pub(super) fn read_tables(root: &Table, names: &Names, errors: &mut Errors) -> Vec<TableSettings> {
    let Some((entry, items)) = nodes(root) else { return Vec::new() };
    if items.is_empty() {
        errors.push(entry.place, fault!("tables is {}", entry.node; "write each table as [[tables]]"));
    }
    let chosen = Chosen::of(root, names);
    let mut tables: Vec<TableSettings> = Vec::new();
    for node in items {
        let Some((table, is_chosen)) = read_table(node, &chosen, errors) else { continue };
        if !is_chosen {
            continue;
        }
        if tables.iter().any(|other| other.name.eq_ignore_ascii_case(&table.name)) {
            let remedy = "give each a name of its own, or a design or databases that tell them apart";
            errors.push(
                node.place,
                fault!("two of [[tables]] are called \"{}\" and are for {chosen}", table.name; "{remedy}"),
            );
        }
        tables.push(table);
    }
    tables
}

/// Reads a table, and whether it is for the case.
fn read_table(node: &Node, chosen: &Chosen<'_>, errors: &mut Errors) -> Option<(TableSettings, bool)> {
    let section = Section::of_node(node, TABLE.name, &TABLE, errors)?;
    for (key, example) in [("name", "name = \"orders\""), ("create", "create = [\"CREATE TABLE orders (...)\"]")] {
        if section.get(key).is_none() {
            errors.push(section.place, fault!("a table of [[tables]] has no {key}"; "write {example}"));
        }
    }
    let name = section.text("name", errors);
    if let (Some(text), Some(entry)) = (name, section.get("name"))
        && !is_name(text)
    {
        let must = "it must be 1 to 60 letters, digits or underscores and not begin with a digit";
        errors.push(entry.node.place, fault!("tables.name is {}", entry.node; "{must}"));
    }
    let columns = read_columns(&section, errors);
    let rows: u64 = section.read("rows", errors);
    if let (true, true, Some(entry)) = (rows > 0, section.get("columns").is_none(), section.get("rows")) {
        let remedy = "say what the columns hold, as in columns = [ { name = \"id\", fill = { sequence = [1, 1] } } ]";
        errors.push(entry.place, fault!("tables.rows is {rows} and there are no tables.columns"; "{remedy}"));
    }
    if let (None, Some(entry)) = (section.get("rows"), section.get("columns")) {
        let remedy = "say how many rows they are for, as in rows = 100000";
        errors.push(entry.place, fault!("tables.columns are given and tables.rows is missing"; "{remedy}"));
    }
    let create = section.texts("create", errors);
    if let (true, Some(entry)) = (create.is_empty(), section.get("create")) {
        let remedy = "write the CREATE TABLE of the table";
        errors.push(entry.place, fault!("tables.create has no SQL"; "{remedy}"));
    }
    let (then, drop) = (section.texts("then", errors), section.texts("drop", errors));
    let is_chosen = chosen.has(&section, errors);
    Some((TableSettings { name: name?.to_owned(), create, rows, columns, then, drop }, is_chosen))
}

fn is_name(text: &str) -> bool {
    text.len() <= 60
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn read_columns(section: &Section, errors: &mut Errors) -> Vec<ColumnFill> {
    let nodes = section.list("columns", errors);
    let columns: Vec<ColumnFill> = nodes.iter().filter_map(|node| read_column(node, errors)).collect();
    if let Some(entry) = section.get("columns")
        && columns.len() == nodes.len()
    {
        let twice = columns.iter().enumerate().find(|(place, column)| {
            columns[..*place].iter().any(|other| other.name.eq_ignore_ascii_case(&column.name))
        });
        if let Some((_, column)) = twice {
            errors.push(entry.place, fault!("tables.columns names \"{}\" twice", column.name; "leave one out"));
        }
        if let Err(why) = Parameters::new(columns.iter().map(|column| &column.fill), &Asked::default()) {
            errors.push(entry.place, why.replacen("params, number", "tables.columns, number", 1));
        }
    }
    columns
}

fn read_column(node: &Node, errors: &mut Errors) -> Option<ColumnFill> {
    let section = Section::of_node(node, COLUMN.name, &COLUMN, errors)?;
    for key in ["name", "fill"] {
        if section.get(key).is_none() {
            let example = "{ name = \"id\", fill = { sequence = [1, 1] } }";
            errors.push(section.place, fault!("a column of tables.columns has no {key}"; "write it as in {example}"));
        }
    }
    let name = section.text("name", errors);
    if let (Some(""), Some(entry)) = (name, section.get("name")) {
        errors.push(entry.node.place, fault!("tables.columns.name is empty"; "name the column"));
    }
    let fill = section.get("fill").and_then(|entry| read_fill(&entry.node, "tables.columns.fill", true, errors));
    if let (Some(Fill::AnswerOf(..)), Some(entry)) = (&fill, section.get("fill")) {
        let remedy = "a query that gives values is { from = \"SELECT ...\" }";
        errors
            .push(entry.place, fault!("tables.columns.fill.answer_of is for statements of a transaction"; "{remedy}"));
    }
    Some(ColumnFill { name: name?.to_owned(), fill: fill? })
}

/// Returns the settings that cannot be combined with tables, with the place of each.
pub(super) fn check_tables(settings: &Settings, root: &Table) -> Vec<(Place, Fault)> {
    let mut found = Vec::new();
    let Settings { workload, database, .. } = settings;
    let place_of = |setting: &str| root.find(setting).map_or(Place::Line(1), |entry| entry.node.place);
    let designs = designs(root);
    if let Some(design) = workload.design.as_deref().filter(|design| !designs.contains(design)) {
        let remedy = match (closest(design, designs.iter().copied()), designs.as_slice()) {
            (Some(meant), _) => format!("did you mean \"{meant}\"?"),
            (None, []) => "write design into [[tables]], or leave it out".to_owned(),
            (None, _) => format!("there are: {}", designs.join(", ")),
        };
        let what = fault!("no table and no statement is of workload.design \"{design}\""; "{remedy}");
        found.push((place_of("workload.design"), what));
    }
    if let (None, Some(first)) = (&workload.design, designs.first()) {
        let remedy =
            format!("write design = \"{first}\" in [workload], or make it a factor: \"workload.design\" = [...]");
        let place = root.get("workload").or_else(|| root.get(TABLE.name)).map_or(Place::Line(1), |entry| entry.place);
        found.push((place, fault!("there are designs ({}) and no workload.design", designs.join(", "); "{remedy}")));
    }
    let Some((entry, _)) = nodes(root) else { return found };
    if !has_foreign_statements(settings) {
        let what = fault!("[[tables]] are for statements of your own and workload.name is \"{}\"", workload.name; "write name = \"sql\", or leave them out");
        found.push((entry.place, what));
    }
    let is_foreign = database.url.is_some() || database.path.is_some();
    if is_foreign && !workload.writes {
        let remedy = "write writes = true in [workload] if they may be made, filled and dropped there";
        found.push((entry.place, fault!("[[tables]] change a database that is not loadline's own"; "{remedy}")));
    }
    if let Some(engine) = root.find("database.engine") {
        let remedy = "leave it out, and write ENGINE = ... into tables.create";
        let what = fault!("database.engine is {} and [[tables]] say theirs themselves", engine.node; "{remedy}");
        found.push((engine.node.place, what));
    }
    found
}

/// Returns the designs that tables and statements name, each once, in order.
fn designs(root: &Table) -> Vec<&str> {
    let statements = root.find("workload.statements").map(|entry| &entry.node.content);
    let statements = if let Some(Content::List(items)) = statements { items.as_slice() } else { &[] };
    let tables = nodes(root).map_or(&[][..], |(_, items)| items);
    let mut found = Vec::new();
    for node in tables.iter().chain(statements) {
        if let Content::Table(table) = &node.content
            && let Some(design) = text_at(table, "design")
            && !found.contains(&design)
        {
            found.push(design);
        }
    }
    found
}
