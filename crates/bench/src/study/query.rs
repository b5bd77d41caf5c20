//! Reads the queries of the workload `query`.
//!
//! Main function: [`read_queries`]. Invariant: a query that was read has a unique name and conditions that can be
//! compared; whether the record type has its columns is checked where cases are built.

use crate::fault::fault;
use crate::written::place::Errors;
use crate::written::section::Section;
use serde_json::json;

use super::reading::LARGE;
use crate::query::{Constant, Projection, Query, QueryCondition};
use crate::statement::Comparison;
use crate::written::tree::{Content, Node};
use crate::written::{Absent, Form, Kind, Part, Setting, closest};

const PROJECTIONS: &[&str] = &["identity", "hot", "all", "one-table"];

/// The form of `where`.
static CONDITIONS: Form = Form {
    says: "comparisons of a column with a number or text by `=`, `<>`, `<`, `<=`, `>`, `>=`, with `and` between them, as in `\"a > 5 and b = 'x'\"`",
    schema: || json!({ "type": "string" }),
    example: "\"ul_delay > 100\"",
};

/// The form of `columns`.
static COLUMNS: Form = Form {
    says: "`\"identity\"`, `\"hot\"`, `\"all\"`, `\"one-table\"`, or a list of columns",
    schema: || {
        let list = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
        json!({ "anyOf": [{ "enum": PROJECTIONS }, list] })
    },
    example: "\"hot\"",
};

/// A query of `workload.queries`.
pub static QUERY: Part = Part {
    name: "workload.queries",
    help: "A query over records, stated once and executed in every layout.",
    settings: &[
        Setting::new("name", Kind::Text, Absent::Refused, "The name of the query."),
        Setting::new("where", Kind::Own(&CONDITIONS), Absent::Means("all records"), "The condition on records."),
        Setting::new(
            "columns",
            Kind::Own(&COLUMNS),
            Absent::Text("all"),
            "The columns to read. `one-table` means those that need no join.",
        ),
        Setting::new(
            "order",
            Kind::Text,
            Absent::Means("none"),
            "The columns that order the answer, separated by commas, with `desc` after those in descending order.",
        ),
        Setting::new("limit", Kind::Whole(1, LARGE), Absent::Means("none"), "Maximum number of rows of an answer."),
        Setting::new(
            "rows",
            Kind::Whole(0, LARGE),
            Absent::Means("not compared"),
            "Number of rows that it finds according to its source, with `record.scale = 1`.",
        ),
        Setting::new(
            "straight_join",
            Kind::Truth,
            Absent::Truth(false),
            "Whether the database must join tables in the order in which the layout names them.",
        ),
        Setting::new(
            "cache",
            Kind::Truth,
            Absent::Means("the database is told nothing"),
            "Whether the database is told to keep the answer in its query cache, or told not to.",
        ),
    ],
};

/// Reads the queries of `[workload]`: the one that `workload.query` names, or else all; empty if there are none.
pub fn read_queries(workload: &Section, errors: &mut Errors) -> Vec<Query> {
    let mut queries: Vec<Query> = Vec::new();
    for node in workload.list("queries", errors) {
        let Some(query) = read_query(node, errors) else { continue };
        if queries.iter().any(|other| other.name == query.name) {
            let remedy = "give each a name of its own";
            errors
                .push(node.place, fault!("two queries of workload.queries are called \"{}\"", query.name; "{remedy}"));
        }
        queries.push(query);
    }
    keep_chosen(&mut queries, |query| &query.name, (workload, "query", "queries"), errors);
    queries
}

/// Keeps of a list the item that a key of the section names; all of them where it names none. `list` is the key of the list.
pub(super) fn keep_chosen<T>(
    items: &mut Vec<T>,
    name_of: impl Fn(&T) -> &str,
    (section, key, list): (&Section, &str, &str),
    errors: &mut Errors,
) {
    let Some(name) = section.text(key, errors) else { return };
    if items.iter().any(|item| name_of(item) == name) {
        items.retain(|item| name_of(item) == name);
        return;
    }
    let Some(entry) = section.get(key) else { return };
    let names = items.iter().map(&name_of);
    let remedy = match closest(name, names.clone()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    let (key, list) = (section.path(key), section.path(list));
    errors.push(entry.node.place, fault!("{key} is \"{name}\" and {list} has none"; "{remedy}"));
}

fn read_query(node: &Node, errors: &mut Errors) -> Option<Query> {
    let name = QUERY.name;
    let section = Section::of_node(node, name, &QUERY, errors)?;
    if section.get("name").is_none() {
        let example = "{ name = \"slow\", where = \"ul_delay > 100\", columns = \"all\" }";
        errors.push(section.place, fault!("a query of {name} has no name"; "write it as in {example}"));
    }
    let query_name = section.text("name", errors);
    if let (Some(""), Some(entry)) = (query_name, section.get("name")) {
        errors.push(entry.node.place, fault!("{name}.name is empty"; "write what the query is called"));
    }
    let conditions = match (section.text("where", errors), section.get("where")) {
        (Some(text), Some(entry)) => read_conditions(text).unwrap_or_else(|sentence| {
            errors.push(entry.node.place, format!("{name}.where: {sentence}"));
            Vec::new()
        }),
        _ => Vec::new(),
    };
    let order = section.text("order", errors).unwrap_or_default();
    Some(Query {
        name: query_name?.to_owned(),
        conditions,
        columns: read_columns(&section, errors),
        order: read_order(order, &section, errors),
        limit: section.read("limit", errors),
        window: None,
        rows: section.read("rows", errors),
        straight_join: section.read("straight_join", errors),
        cache: section.read("cache", errors),
    })
}

fn read_columns(section: &Section, errors: &mut Errors) -> Projection {
    let Some(entry) = section.get("columns") else { return Projection::All };
    let text = |node: &Node| if let Content::Text(text) = &node.content { Some(text.clone()) } else { None };
    if let Content::List(items) = &entry.node.content {
        let names: Option<Vec<String>> = items.iter().map(text).collect();
        if let Some(names) = names.filter(|names| !names.is_empty()) {
            return Projection::Columns(names);
        }
        let must = "it must be a list of names [\"a\", \"b\"]";
        errors.push(entry.node.place, fault!("workload.queries.columns is {}", entry.node; "{must}"));
        return Projection::All;
    }
    match section.one_of("columns", PROJECTIONS, errors) {
        Some("identity") => Projection::Identity,
        Some("hot") => Projection::Hot,
        Some("one-table") => Projection::OneTable,
        _ => Projection::All,
    }
}

/// Reads columns separated by commas, with `desc` after descending ones.
fn read_order(text: &str, section: &Section, errors: &mut Errors) -> Vec<(String, bool)> {
    let mut order = Vec::new();
    for part in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
        match part.split_whitespace().collect::<Vec<_>>()[..] {
            [column] => order.push((column.to_owned(), false)),
            [column, "asc"] => order.push((column.to_owned(), false)),
            [column, "desc"] => order.push((column.to_owned(), true)),
            _ => {
                let place = section.get("order").map_or(section.place, |entry| entry.node.place);
                let must = "it must be columns, as in \"ul_delay desc, customerId\"";
                errors.push(place, fault!("workload.queries.order is \"{text}\""; "{must}"));
            }
        }
    }
    order
}

/// Reads `column comparison constant`, with `and` between several; empty for an empty text.
fn read_conditions(text: &str) -> Result<Vec<QueryCondition>, String> {
    let mut words = Words { text, rest: text };
    let mut conditions = Vec::new();
    if words.is_over() {
        return Ok(conditions);
    }
    loop {
        let column = words.column()?;
        let comparison = words.comparison()?;
        let value = words.constant()?;
        conditions.push(QueryCondition { column, comparison, value });
        if words.is_over() {
            return Ok(conditions);
        }
        words.and()?;
    }
}

/// The rest of a condition that is being read.
struct Words<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn is_over(&self) -> bool {
        self.rest.trim().is_empty()
    }

    fn expected(&self, what: &str) -> String {
        let at = match self.rest.trim() {
            "" => "at the end".to_owned(),
            rest => format!("at \"{rest}\""),
        };
        format!("\"{}\" {at}: expected {what}", self.text)
    }

    /// Removes and returns the leading characters for which `is_part` holds; may be empty.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let (taken, rest) = rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn column(&mut self) -> Result<String, String> {
        let before = self.rest;
        let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(word.to_owned());
        }
        self.rest = before;
        Err(self.expected("the name of a column"))
    }

    fn comparison(&mut self) -> Result<Comparison, String> {
        let before = self.rest;
        match self.take(|c| "<>=!".contains(c)) {
            "=" => Ok(Comparison::Equal),
            "<>" => Ok(Comparison::NotEqual),
            "<" => Ok(Comparison::Less),
            "<=" => Ok(Comparison::LessOrEqual),
            ">" => Ok(Comparison::Greater),
            ">=" => Ok(Comparison::GreaterOrEqual),
            _ => {
                self.rest = before;
                Err(self.expected("one of = <> < <= > >="))
            }
        }
    }

    fn constant(&mut self) -> Result<Constant, String> {
        let what = "a number, or a text as in 'abc'";
        let before = self.rest;
        if let Some(mut rest) = self.rest.trim_start().strip_prefix('\'') {
            let mut text = String::new();
            loop {
                let Some((part, behind)) = rest.split_once('\'') else { return Err(self.expected("the closing '")) };
                text += part;
                match behind.strip_prefix('\'') {
                    Some(more) => {
                        text.push('\'');
                        rest = more;
                    }
                    None => {
                        self.rest = behind;
                        return Ok(Constant::Text(text));
                    }
                }
            }
        }
        let word = self.take(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
        let number = word.replace('_', "");
        let constant = number.parse().map(Constant::Int).ok().or_else(|| {
            let is_number = number.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            number.parse().ok().filter(|value: &f64| is_number && value.is_finite()).map(Constant::Float)
        });
        constant.ok_or_else(|| {
            self.rest = before;
            self.expected(what)
        })
    }

    fn and(&mut self) -> Result<(), String> {
        let before = self.rest;
        if self.take(|c| c.is_ascii_alphabetic()).eq_ignore_ascii_case("and") {
            return Ok(());
        }
        self.rest = before;
        Err(self.expected("and"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_sql_has_them() {
        let read = read_conditions("customerId > 56 AND ul_delay<100.5 and note <> 'it''s'").unwrap();
        let shown: Vec<_> =
            read.iter().map(|condition| (condition.column.as_str(), condition.comparison, &condition.value)).collect();
        let expected = [
            ("customerId", Comparison::Greater, &Constant::Int(56)),
            ("ul_delay", Comparison::Less, &Constant::Float(100.5)),
            ("note", Comparison::NotEqual, &Constant::Text("it's".to_owned())),
        ];
        assert_eq!(shown, expected);
        assert_eq!(read_conditions("a >= 50_000").unwrap()[0].value, Constant::Int(50_000));
        assert_eq!(read_conditions(" ").unwrap(), []);
    }

    #[test]
    fn what_cannot_be_read_is_shown_with_what_was_expected() {
        let refusal = |text| read_conditions(text).unwrap_err();
        assert_eq!(refusal("a"), "\"a\" at the end: expected one of = <> < <= > >=");
        assert_eq!(refusal("a != 1"), "\"a != 1\" at \"!= 1\": expected one of = <> < <= > >=");
        assert_eq!(refusal("a < b"), "\"a < b\" at \"b\": expected a number, or a text as in 'abc'");
        assert_eq!(refusal("a < nan"), "\"a < nan\" at \"nan\": expected a number, or a text as in 'abc'");
        assert_eq!(refusal("a = 1 or b = 2"), "\"a = 1 or b = 2\" at \"or b = 2\": expected and");
        assert_eq!(refusal("1 = a"), "\"1 = a\" at \"1 = a\": expected the name of a column");
        assert_eq!(refusal("a = 'b"), "\"a = 'b\" at \"'b\": expected the closing '");
        assert_eq!(refusal("a = 1 and"), "\"a = 1 and\" at the end: expected the name of a column");
    }
}
