//! The ways in which a study fills a value: one row for each way.
//!
//! Main function: [`read_fill`]. Invariant: every way that can be read is in the schema, in messages and in the reference.

mod counting;

use serde_json::{Value as Json, json};

use crate::fault::fault;
use crate::trial::{Fill, Times};
use crate::units::parse_duration;
use crate::units::times::{offset_s, parse_time};
use crate::written::place::Errors;
use crate::written::section::number_of;
use crate::written::tree::{Content, Node};
use crate::written::{Form, closest};

use counting::{blocks, cycle, table_of};

/// The form of a column's fill.
pub static FILL: Form = Form {
    says: "one of `{ uniform = [low, high] }`, `{ zipf = [low, high, exponent] }`, `{ normal = [mean, deviation] }`, `{ drift = [low, high, step] }` (slowly changing \
           from reading to reading of a source or measurement), `{ quantiles = [0, 5, 100] }` (between any two neighbours as often), `{ sequence = [first, step] }`, `{ random_text = length }`, `{ random_bytes = length }`, `{ text = \"...\" }`, `{ number = 1 }`, \
           `{ one_of = [\"a\", \"b\"] }`, `{ times = [\"2026-01-01 00:00:00\", \"2026-02-01 00:00:00\"] }` (as quantiles), `{ weighted = [[\"a\", 9], [\"b\", 1]] }` (values or \
           fills, each with its weight); text and numbers stand for themselves",
    schema: || schema(false),
    example: "{ random_text = 40 }",
};

/// The form of `params`.
pub static FILLS_OF_PARAMS: Form = Form {
    says: "list of fills, as of a column, or `{ from = \"SELECT id, day FROM t LIMIT 1000\" }` (a row of what the database answers before each trial: its first value), `{ row_of = [1, \
           2] }` (of the row that parameter 1 has its value from, the second value), `{ answer_of = [1, 2] }` (in a transaction: of the first row that its first statement answered, the \
           second value), `{ sequence = [\"SELECT max(id) + 1 FROM t\", step] }`, `{ same = 1 }` (the value of parameter \
           1), `{ plus = [1, 99] }` (parameter 1 and so much more: a number, a fill, or for times a duration as in `\"1h\"`), `{ now = [\"-1h\", \"0s\"] }` (a time around the present \
           one; a third text, as in `\"+00:00\"`, is the zone that it is written in), `{ array = [3, { uniform = [1, 9] }] }` (three values as PostgreSQL's arrays are written), \
           `{ from_csv = \"ids.csv\" }` (a row of a CSV file whose first line names its columns: its first value), `{ blocks = [1, 1, 3] }` (1, 1, 1, 2, 2, 2, \
           ...), `{ cycle = [1, 1, 3] }` (1, 2, 3, 1, 2, 3, ...), `{ text_of = [8, { uniform = [1, 500] }] }` (one of 500 texts of 8 letters: equal numbers have equal ones), \
           `{ null = true }`",
    schema: || json!({ "type": "array", "items": schema(true) }),
    example: "[1]",
};

/// The form of the fill of a column in one of the study's own tables.
pub static FILL_OF_OWN: Form = Form {
    says: "a fill, as one of a statement's `params`: a row's columns are numbered from 1 in their order, and `from` is asked when the tables before this one are filled",
    schema: || schema(true),
    example: "{ sequence = [1, 1] }",
};

/// A way to fill a value.
struct Way {
    key: &'static str,
    /// Whether only parameters can be filled in this way.
    is_of_params: bool,
    /// The requirement on its value, for messages.
    must: &'static str,
    read: fn(&Node) -> Option<Fill>,
    schema: fn() -> Json,
}

const LONGEST_LIST: usize = 1_000;

const WAYS: &[Way] = &[
    Way {
        key: "uniform",
        is_of_params: false,
        must: "two numbers [low, high], the lower one first",
        read: |node| numbers::<2>(node).filter(|[low, high]| low <= high).map(|[low, high]| Fill::Uniform(low, high)),
        schema: || numbers_schema(2),
    },
    Way {
        key: "zipf",
        is_of_params: false,
        must: "[low, high, exponent]: two whole numbers, the lower one first, and a number from 0 to 10",
        read: zipf,
        schema: || numbers_schema(3),
    },
    Way {
        key: "normal",
        is_of_params: false,
        must: "two numbers [mean, deviation], the deviation zero or more",
        read: |node| numbers::<2>(node).filter(|[_, sd]| *sd >= 0.0).map(|[mean, sd]| Fill::Normal(mean, sd)),
        schema: || numbers_schema(2),
    },
    Way {
        key: "drift",
        is_of_params: false,
        must: "three numbers [low, high, step]: the lower bound first, and a step above zero that fits between them",
        read: |node| {
            numbers::<3>(node)
                .filter(|[low, high, step]| *step > 0.0 && high - low >= *step)
                .map(|[low, high, step]| Fill::Drift(low, high, step))
        },
        schema: || numbers_schema(3),
    },
    Way {
        key: "quantiles",
        is_of_params: false,
        must: "two to 1,000 numbers, none below the one before it",
        read: quantiles,
        schema: || json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": LONGEST_LIST }),
    },
    Way {
        key: "sequence",
        is_of_params: false,
        must: "two whole numbers [first, step]; of a parameter the first may be a query that gives it, or a time, and the step is then in seconds",
        read: sequence,
        schema: || json!({ "type": "array", "items": { "type": ["integer", "string"] }, "minItems": 2, "maxItems": 2 }),
    },
    Way {
        key: "random_text",
        is_of_params: false,
        must: "a length, a whole number from 1 to 65,535",
        read: |node| length(node).map(Fill::RandomText),
        schema: length_schema,
    },
    Way {
        key: "random_bytes",
        is_of_params: false,
        must: "a length, a whole number from 1 to 65,535",
        read: |node| length(node).map(Fill::RandomBytes),
        schema: length_schema,
    },
    Way {
        key: "text",
        is_of_params: false,
        must: "text in quotes",
        read: |node| text(node).map(|text| Fill::Text(text.to_owned())),
        schema: || json!({ "type": "string" }),
    },
    Way {
        key: "number",
        is_of_params: false,
        must: "a number",
        read: |node| number_of(node).filter(|number| number.is_finite()).map(Fill::Number),
        schema: || json!({ "type": "number" }),
    },
    Way {
        key: "one_of",
        is_of_params: false,
        must: "a list of texts [\"a\", \"b\"]",
        read: |node| {
            let texts: Option<Vec<String>> = items(node).iter().map(|item| text(item).map(str::to_owned)).collect();
            texts.filter(|texts| !texts.is_empty()).map(Fill::OneOf)
        },
        schema: || json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
    },
    Way {
        key: "times",
        is_of_params: false,
        must: "two to 1,000 points in time, as in [\"2026-01-01 00:00:00\", \"2026-02-01 00:00:00\"], none before the one in front of it, all in one zone or \
               none",
        read: times,
        schema: || json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": LONGEST_LIST }),
    },
    Way {
        key: "weighted",
        is_of_params: false,
        must: "a list of values or fills with their weights, [[\"a\", 9], [{ uniform = [1, 5] }, 1]], all numbers or all texts",
        read: weighted,
        schema: || json!({ "type": "array", "items": { "type": "array", "minItems": 2, "maxItems": 2 }, "minItems": 1, "maxItems": LONGEST_LIST }),
    },
    Way {
        key: "null",
        is_of_params: true,
        must: "true",
        read: |node| matches!(node.content, Content::Boolean(true)).then_some(Fill::Null),
        schema: || json!({ "const": true }),
    },
    Way {
        key: "now",
        is_of_params: true,
        must: "two durations from the present, the earlier one first, as in [\"-1h\", \"0s\"], and if needed the zone to write the time in, as in \"+00:00\"",
        read: now,
        schema: || json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 3 }),
    },
    Way {
        key: "same",
        is_of_params: true,
        must: "the number of an earlier parameter, from 1",
        read: |node| place(node).map(Fill::Same),
        schema: || json!({ "type": "integer", "minimum": 1 }),
    },
    Way {
        key: "plus",
        is_of_params: true,
        must: "the number of an earlier parameter, from 1, and what is added: a number, a duration as in \"1h\", or a fill of numbers",
        read: plus,
        schema: || json!({ "type": "array", "minItems": 2, "maxItems": 2 }),
    },
    Way {
        key: "from",
        is_of_params: true,
        must: "a query, as in \"SELECT id FROM orders LIMIT 1000\"",
        read: |node| query(node).map(Fill::From),
        schema: || json!({ "type": "string" }),
    },
    Way {
        key: "from_csv",
        is_of_params: true,
        must: "the path of a CSV file whose first line names its columns, as in \"ids.csv\"",
        read: |node| query(node).map(Fill::FromCsv),
        schema: || json!({ "type": "string" }),
    },
    Way {
        key: "blocks",
        is_of_params: true,
        must: "[first, step, times]: two whole numbers, or a time and a duration as in [\"2026-01-01 00:00:00\", \"10s\", 100], and for how many each stays, from 1",
        read: blocks,
        schema: || json!({ "type": "array", "items": { "type": ["integer", "string"] }, "minItems": 3, "maxItems": 3 }),
    },
    Way {
        key: "cycle",
        is_of_params: true,
        must: "[first, step, count]: three whole numbers, the count from 1",
        read: cycle,
        schema: || json!({ "type": "array", "items": { "type": "integer" }, "minItems": 3, "maxItems": 3 }),
    },
    Way {
        key: "text_of",
        is_of_params: true,
        must: "a length from 1 to 65,535 and a fill of whole numbers, as in [8, { uniform = [1, 500] }]",
        read: |node| match items(node) {
            [letters, number] => {
                let number = match table_of(number) {
                    Some(("blocks", value)) => blocks(value).filter(|fill| matches!(fill, Fill::Blocks(..)))?,
                    Some(("cycle", value)) => cycle(value)?,
                    _ => inner(number)?,
                };
                Some(Fill::TextOf(length(letters)?, Box::new(number)))
            }
            _ => None,
        },
        schema: || json!({ "type": "array", "minItems": 2, "maxItems": 2 }),
    },
    Way {
        key: "array",
        is_of_params: true,
        must: "how many values, from 1 to 10,000, and what each is: a value, or a fill",
        read: |node| match items(node) {
            [count, element] => Some(Fill::Array(place(count)?, Box::new(element_of_array(element)?))),
            _ => None,
        },
        schema: || json!({ "type": "array", "minItems": 2, "maxItems": 2 }),
    },
    Way {
        key: "answer_of",
        is_of_params: true,
        must: "the number of an earlier statement of the same transaction, and which value of the first row that it answers is meant, both from 1",
        read: |node| places(node).map(|[statement, value]| Fill::AnswerOf(statement, value)),
        schema: || json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 2, "maxItems": 2 }),
    },
    Way {
        key: "row_of",
        is_of_params: true,
        must: "the number of an earlier parameter that is filled by from, and which value of its row is meant, both from 1",
        read: |node| places(node).map(|[number, column]| Fill::RowOf(number, column)),
        schema: || json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 2, "maxItems": 2 }),
    },
];

fn numbers_schema(count: usize) -> Json {
    json!({ "type": "array", "items": { "type": "number" }, "minItems": count, "maxItems": count })
}

fn length_schema() -> Json {
    json!({ "type": "integer", "minimum": 1, "maximum": 65_535 })
}

fn ways(of_params: bool) -> impl Iterator<Item = &'static Way> {
    WAYS.iter().filter(move |way| of_params || !way.is_of_params)
}

fn schema(of_params: bool) -> Json {
    let properties: serde_json::Map<String, Json> =
        ways(of_params).map(|way| (way.key.to_owned(), (way.schema)())).collect();
    let table = json!({
        "type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": 1
    });
    json!({ "anyOf": [table, { "type": ["string", "number"] }] })
}

/// Returns the ways that can be written.
fn forms(of_params: bool) -> String {
    let keys: Vec<&str> = ways(of_params).map(|way| way.key).collect();
    format!("write a text, a number, or one of {} as in {{ uniform = [low, high] }}", keys.join(", "))
}

/// Reads the fill of a column or of a parameter.
pub fn read_fill(node: &Node, name: &str, of_params: bool, errors: &mut Errors) -> Option<Fill> {
    let table = match &node.content {
        Content::Table(table) => table,
        Content::Text(text) => return Some(Fill::Text(text.clone())),
        Content::Integer(_) | Content::Float(_) if number_of(node).is_some_and(f64::is_finite) => {
            return number_of(node).map(Fill::Number);
        }
        Content::Integer(_) | Content::Float(_) => {
            errors.push(node.place, fault!("{name} is {node}"; "it must be a number"));
            return None;
        }
        _ => {
            errors.push(node.place, fault!("{name} is {node}"; "{}", forms(of_params)));
            return None;
        }
    };
    let [entry] = table.entries.as_slice() else {
        let keys = table.entries.len();
        errors.push(node.place, fault!("{name} has {keys} keys instead of one"; "{}", forms(of_params)));
        return None;
    };
    let (path, value) = (format!("{name}.{}", entry.key), &entry.node);
    let Some(way) = WAYS.iter().find(|way| way.key == entry.key) else {
        let remedy = match closest(&entry.key, ways(of_params).map(|way| way.key)) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => forms(of_params),
        };
        errors.push(entry.place, fault!("unknown fill \"{}\" in {name}", entry.key; "{remedy}"));
        return None;
    };
    if way.is_of_params && !of_params {
        errors.push(entry.place, fault!("{path} is for parameters of statements"; "{}", forms(of_params)));
        return None;
    }
    let fill = (way.read)(value).filter(|fill| of_params || fill.parts().iter().all(|part| is_of_column(part)));
    if fill.is_none() {
        errors.push(value.place, fault!("{path} is {value}"; "it must be {}", way.must));
    }
    fill
}

/// Returns whether a column can be filled in this way, as far as the form decides.
fn is_of_column(fill: &Fill) -> bool {
    !matches!(
        fill,
        Fill::Null
            | Fill::Now(..)
            | Fill::Same(_)
            | Fill::Plus(..)
            | Fill::From(_)
            | Fill::RowOf(..)
            | Fill::AnswerOf(..)
            | Fill::Array(..)
            | Fill::SequenceFrom(..)
            | Fill::TextOf(..)
            | Fill::Blocks(..)
            | Fill::TimeBlocks(_)
            | Fill::Cycle(..)
            | Fill::FromCsv(_)
    )
}

fn items(node: &Node) -> &[Node] {
    if let Content::List(items) = &node.content { items } else { &[] }
}

fn text(node: &Node) -> Option<&str> {
    if let Content::Text(text) = &node.content { Some(text) } else { None }
}

fn query(node: &Node) -> Option<String> {
    text(node).filter(|sql| !sql.trim().is_empty()).map(str::to_owned)
}

fn whole(node: &Node) -> Option<i64> {
    if let Content::Integer(number) = node.content { Some(number) } else { None }
}

/// Reads a number from 1 on that selects a parameter or a value.
fn place(node: &Node) -> Option<u32> {
    whole(node).and_then(|number| u32::try_from(number).ok()).filter(|number| (1..=10_000).contains(number))
}

/// Reads two such numbers.
fn places(node: &Node) -> Option<[u32; 2]> {
    items(node).iter().map(place).collect::<Option<Vec<u32>>>()?.try_into().ok()
}

fn numbers<const COUNT: usize>(node: &Node) -> Option<[f64; COUNT]> {
    all_numbers(node)?.try_into().ok()
}

fn all_numbers(node: &Node) -> Option<Vec<f64>> {
    items(node).iter().map(|item| number_of(item).filter(|number| number.is_finite())).collect()
}

fn zipf(node: &Node) -> Option<Fill> {
    let [_, _, exponent] = numbers::<3>(node)?;
    let (low, high) = (whole(&items(node)[0])?, whole(&items(node)[1])?);
    (low <= high && (0.0..=10.0).contains(&exponent)).then_some(Fill::Zipf(low, high, exponent))
}

fn quantiles(node: &Node) -> Option<Fill> {
    let bounds = all_numbers(node)?;
    let is_range = bounds.first().zip(bounds.last()).is_some_and(|(low, high)| (high - low).is_finite());
    ((2..=LONGEST_LIST).contains(&bounds.len()) && bounds.is_sorted() && is_range).then_some(Fill::Quantiles(bounds))
}

fn sequence(node: &Node) -> Option<Fill> {
    match items(node) {
        [first, step] => match query(first) {
            Some(sql) => Some(Fill::SequenceFrom(sql, whole(step)?)),
            None => Some(Fill::Sequence(whole(first)?, whole(step)?)),
        },
        _ => None,
    }
}

fn length(node: &Node) -> Option<u32> {
    whole(node).and_then(|length| u32::try_from(length).ok()).filter(|length| (1..=65_535).contains(length))
}

fn times(node: &Node) -> Option<Fill> {
    let times: Option<Vec<_>> = items(node).iter().map(|item| parse_time(text(item)?)).collect();
    let times = times.filter(|times| (2..=LONGEST_LIST).contains(&times.len()))?;
    let zone = times[0].zone;
    let bounds_us: Vec<i64> = times.iter().map(|time| time.us).collect();
    let is_one_zone = times.iter().all(|time| time.zone == zone);
    (is_one_zone && bounds_us.is_sorted()).then(|| Fill::Times(Times { bounds_us, zone: zone.to_owned() }))
}

/// Reads the seconds of a duration that may be negative.
fn signed_s(node: &Node) -> Option<f64> {
    let text = text(node)?.trim();
    let (sign, duration) = text.strip_prefix('-').map_or((1.0, text), |duration| (-1.0, duration));
    parse_duration(duration).ok().map(|duration| sign * duration.as_secs_f64())
}

fn now(node: &Node) -> Option<Fill> {
    let (from, to, zone) = match items(node) {
        [from, to] => (from, to, String::new()),
        [from, to, zone] => {
            (from, to, text(zone).filter(|zone| !zone.is_empty() && offset_s(zone).is_some())?.to_owned())
        }
        _ => return None,
    };
    let (from, to) = (signed_s(from)?, signed_s(to)?);
    (from <= to).then_some(Fill::Now(from, to, zone))
}

fn plus(node: &Node) -> Option<Fill> {
    let [earlier, more] = items(node) else { return None };
    let more = signed_s(more).map(Fill::Number).or_else(|| inner(more))?;
    let is_number = !matches!(more, Fill::Text(_) | Fill::OneOf(_) | Fill::RandomText(_) | Fill::RandomBytes(_));
    Some(Fill::Plus(place(earlier)?, Box::new(more))).filter(|_| is_number)
}

fn weighted(node: &Node) -> Option<Fill> {
    let choice = |item: &Node| match items(item) {
        [value, weight] => {
            Some((inner(value)?, number_of(weight).filter(|weight| *weight > 0.0 && weight.is_finite())?))
        }
        _ => None,
    };
    let choices: Option<Vec<_>> = items(node).iter().map(choice).collect();
    choices.filter(|choices| (1..=LONGEST_LIST).contains(&choices.len())).map(Fill::Weighted)
}

/// Reads a fill inside another one: it must be complete in itself and contain no further fill.
fn inner(node: &Node) -> Option<Fill> {
    let table = match &node.content {
        Content::Table(table) => table,
        Content::Text(text) => return Some(Fill::Text(text.clone())),
        _ => return number_of(node).filter(|number| number.is_finite()).map(Fill::Number),
    };
    let [entry] = table.entries.as_slice() else { return None };
    let way = WAYS.iter().find(|way| way.key == entry.key)?;
    let fill = (way.read)(&entry.node)?;
    let is_plain = !matches!(fill, Fill::Weighted(_) | Fill::Drift(..))
        && (is_of_column(&fill) || matches!(fill, Fill::Null | Fill::Now(..)));
    is_plain.then_some(fill)
}

/// Reads the fill of an array's elements: any fill that can be inside another one, or a value of the database.
fn element_of_array(node: &Node) -> Option<Fill> {
    let from = || match &node.content {
        Content::Table(table) => table.entries.iter().find(|entry| entry.key == "from" && table.entries.len() == 1),
        _ => None,
    };
    inner(node).or_else(|| query(&from()?.node).map(Fill::From))
}
