//! The series that a selector takes, and their samples. Main functions: [`find`] and [`each`].

use std::collections::{BTreeMap, BTreeSet};

use super::labels::Labels;
use super::language::{NAME, Selector};
use super::names::{Metric, Names, Sources};
use super::reader::Asking;
use super::refusal::Refusal;
use crate::record::{Cell, Cells};

/// The sources whose samples one query reads.
const SOURCES_AT_ONCE: usize = 100;

/// A stretch of time in nanoseconds: after `after`, up to and including `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) after_ns: i64,
    pub(super) until_ns: i64,
}

/// A sample: its time in nanoseconds, and its value.
pub(super) type Sample = (i64, f64);

/// The sources of a measurement: labels without the metric's name, and the number in the table of identities.
type Numbered = Vec<(Labels, i64)>;

/// Returns the metrics that a selector takes, by name.
pub(super) fn metrics<'n>(selector: &Selector, names: &'n Names) -> Vec<(&'n str, &'n Metric)> {
    match selector.fixed(NAME) {
        Some(name) => {
            let found = names.metrics.get_key_value(name).filter(|(name, _)| selector.takes_name(name));
            found.into_iter().map(|(name, metric)| (name.as_str(), metric)).collect()
        }
        None => {
            let all = names.metrics.iter().filter(|(name, _)| selector.takes_name(name));
            all.map(|(name, metric)| (name.as_str(), metric)).collect()
        }
    }
}

/// Returns the labels of all series that a selector takes. The sources of measurements whose records repeat the tags are those within the stretch of time.
///
/// # Errors
/// The database's, or that there are too many.
pub(super) fn find(
    asking: &mut Asking<'_>,
    selector: &Selector,
    stretch: Stretch,
) -> Result<BTreeSet<Labels>, Refusal> {
    let names = asking.names()?;
    let mut found = BTreeSet::new();
    let mut known: BTreeMap<usize, Vec<Labels>> = BTreeMap::new();
    for (name, metric) in metrics(selector, &names) {
        if let std::collections::btree_map::Entry::Vacant(entry) = known.entry(metric.measurement) {
            let sources = names.sources(metric);
            let labels = match &sources.identities {
                Some(table) => {
                    numbered(asking, sources, table, selector)?.into_iter().map(|(labels, _)| labels).collect()
                }
                None => distinct(asking, sources, selector, stretch)?,
            };
            entry.insert(labels);
        }
        for labels in known.get(&metric.measurement).into_iter().flatten() {
            found.insert(named(labels, name));
            check_count(asking, found.len())?;
        }
    }
    Ok(found)
}

/// Calls a function for each series that a selector takes, with its labels and its samples in the order of time. A series without a sample may be left out.
///
/// # Errors
/// The database's and the function's, and that there are too many series or rows.
pub(super) fn each(
    asking: &mut Asking<'_>,
    selector: &Selector,
    stretch: Stretch,
    mut take: impl FnMut(Labels, &[Sample]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let names = asking.names()?;
    let mut count = 0;
    for (name, metric) in metrics(selector, &names) {
        let sources = names.sources(metric);
        let Some(table) = &sources.identities else {
            for (labels, samples) in repeated(asking, sources, metric, selector, stretch)? {
                count += 1;
                check_count(asking, count)?;
                asking.check_time()?;
                take(named(&labels, name), &samples)?;
            }
            continue;
        };
        let mut numbered = numbered(asking, sources, table, selector)?;
        count += numbered.len();
        check_count(asking, count)?;
        numbered.sort_unstable_by_key(|(_, number)| *number);
        for chunk in numbered.chunks(SOURCES_AT_ONCE) {
            let rows = samples_of(asking, sources, metric, chunk, stretch)?;
            let mut rows = rows.as_slice().chunks_exact(3).peekable();
            let mut samples: Vec<Sample> = Vec::new();
            for (labels, number) in chunk {
                samples.clear();
                while let Some(row) = rows.next_if(|row| row[0] == Cell::Int(*number)) {
                    samples.extend(sample(row[1], row[2]));
                }
                asking.check_time()?;
                take(named(labels, name), &samples)?;
            }
        }
    }
    Ok(())
}

fn check_count(asking: &Asking<'_>, count: usize) -> Result<(), Refusal> {
    let most = asking.series_max();
    if count <= most {
        return Ok(());
    }
    let remedy = "ask for fewer sources, or raise query.series";
    Err(Refusal::Execution(format!("the question has more than {most} series; {remedy}")))
}

fn named(labels: &Labels, name: &str) -> Labels {
    let own = labels.iter().cloned();
    Labels::new(own.chain([(NAME.to_owned(), name.to_owned())]).collect())
}

fn sample(time: Cell, value: Cell) -> Option<Sample> {
    let Cell::Int(time_ns) = time else { return None };
    match value {
        Cell::Int(value) => Some((time_ns, value as f64)),
        Cell::Float(value) => Some((time_ns, value)),
        Cell::Null | Cell::Text(_) | Cell::Blob(_) => None,
    }
}

/// Returns the sources in a table of identities that a selector takes.
fn numbered(asking: &mut Asking<'_>, sources: &Sources, table: &str, selector: &Selector) -> Result<Numbered, Refusal> {
    let mut columns = vec!["measurement".to_owned()];
    columns.extend(sources.labels.iter().map(|(_, column)| asking.quote(column)));
    let (conditions, values) = fixed(asking, sources, selector);
    let conditions = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let sql = format!("SELECT {} FROM {}{conditions}", columns.join(", "), asking.quote(table));
    let cells = asking.rows(&sql, &values)?;
    let mut found = Vec::new();
    for row in cells.as_slice().chunks_exact(columns.len()) {
        let labels = labels(sources, &row[1..], &cells);
        if let (Cell::Int(number), true) = (row[0], selector.takes(&labels)) {
            found.push((labels, number));
        }
    }
    Ok(found)
}

/// Returns conditions on columns that must equal a text, and the texts. A database may find more by them, because it may not tell letters from each other.
fn fixed<'s>(asking: &Asking<'_>, sources: &Sources, selector: &'s Selector) -> (Vec<String>, Vec<&'s str>) {
    let of = |(label, column): &(String, String)| Some((asking.quote(column) + " = ?", selector.fixed(label)?));
    sources.labels.iter().filter_map(of).unzip()
}

fn labels(sources: &Sources, row: &[Cell], cells: &Cells) -> Labels {
    let text = |cell: &Cell| match cell {
        Cell::Text(span) | Cell::Blob(span) => String::from_utf8_lossy(cells.bytes_of(*span)).into_owned(),
        Cell::Null | Cell::Int(_) | Cell::Float(_) => String::new(),
    };
    Labels::new(sources.labels.iter().zip(row).map(|((label, _), cell)| (label.clone(), text(cell))).collect())
}

/// Returns the samples of some sources: number, time and value, in the order of the numbers and of time.
fn samples_of(
    asking: &mut Asking<'_>,
    sources: &Sources,
    metric: &Metric,
    chunk: &[(Labels, i64)],
    stretch: Stretch,
) -> Result<Cells, Refusal> {
    let Stretch { after_ns, until_ns } = stretch;
    let numbers = chunk.iter().map(|(_, number)| number.to_string()).collect::<Vec<_>>().join(", ");
    let (records, column) = (asking.quote(&sources.records), asking.quote(&metric.column));
    let (from, value) = match sources.apart.as_ref().filter(|_| metric.is_apart) {
        Some(apart) => {
            let apart = asking.quote(apart);
            (format!("{records} r JOIN {apart} s ON s.record_id = r.record_id"), format!("s.{column}"))
        }
        None => (format!("{records} r"), format!("r.{column}")),
    };
    let sql = format!(
        "SELECT r.measurement, r.time_ns, {value} FROM {from} WHERE r.measurement IN ({numbers}) AND r.time_ns > {after_ns} \
         AND r.time_ns <= {until_ns} AND {value} IS NOT NULL ORDER BY r.measurement, r.time_ns, r.record_id"
    );
    asking.rows(&sql, &[])
}

/// Returns the series of a metric whose records repeat the tags.
fn repeated(
    asking: &mut Asking<'_>,
    sources: &Sources,
    metric: &Metric,
    selector: &Selector,
    stretch: Stretch,
) -> Result<BTreeMap<Labels, Vec<Sample>>, Refusal> {
    let column = asking.quote(&metric.column);
    let mut columns = vec!["time_ns".to_owned(), column.clone()];
    columns.extend(sources.labels.iter().map(|(_, column)| asking.quote(column)));
    let (mut conditions, values) = fixed(asking, sources, selector);
    conditions.extend(within(stretch));
    conditions.push(format!("{column} IS NOT NULL"));
    let sql = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY time_ns, record_id",
        columns.join(", "),
        asking.quote(&sources.records),
        conditions.join(" AND ")
    );
    let cells = asking.rows(&sql, &values)?;
    let mut found: BTreeMap<Labels, Vec<Sample>> = BTreeMap::new();
    for row in cells.as_slice().chunks_exact(columns.len()) {
        let labels = labels(sources, &row[2..], &cells);
        if let (Some(sample), true) = (sample(row[0], row[1]), selector.takes(&labels)) {
            found.entry(labels).or_default().push(sample);
        }
    }
    Ok(found)
}

/// Returns the sources of a measurement whose records repeat the tags.
fn distinct(
    asking: &mut Asking<'_>,
    sources: &Sources,
    selector: &Selector,
    stretch: Stretch,
) -> Result<Vec<Labels>, Refusal> {
    let mut columns: Vec<_> = sources.labels.iter().map(|(_, column)| asking.quote(column)).collect();
    if columns.is_empty() {
        columns.push("NULL".to_owned());
    }
    let (mut conditions, values) = fixed(asking, sources, selector);
    conditions.extend(within(stretch));
    let (table, columns_text) = (asking.quote(&sources.records), columns.join(", "));
    let sql = format!("SELECT DISTINCT {columns_text} FROM {table} WHERE {}", conditions.join(" AND "));
    let cells = asking.rows(&sql, &values)?;
    let rows = cells.as_slice().chunks_exact(columns.len()).map(|row| labels(sources, row, &cells));
    Ok(rows.filter(|labels| selector.takes(labels)).collect())
}

fn within(Stretch { after_ns, until_ns }: Stretch) -> [String; 2] {
    [format!("time_ns > {after_ns}"), format!("time_ns <= {until_ns}")]
}
