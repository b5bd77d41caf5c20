//! What the server answers, as rows: points as lines of JSON, a line for each series, and figures. Main type: [`Reads`], which says what rows are made of.
//!
//! A row is put together from the points of several series with the same time and labels. Invariant: a row is given only where the series that every row has, has a point.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::rules::{FIRST_MS, whole};
use crate::database::error::{TOLD_MOST, shown};
use crate::record::{Cells, ColumnKind};

/// The label that tells the parts of an answer apart: the number of the series or figure, with a `t` in front for the time of a newest point.
pub(super) const PART: &str = "loadline_part";

/// Where a value of a row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// Its time, in nanoseconds.
    Time,
    /// Its time, as the number of a record.
    Number,
    /// The source in its labels.
    Source,
    /// The series with this index.
    Field(usize),
}

/// A column of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Out {
    pub from: From,
    pub kind: ColumnKind,
    /// Whether a row can be without it.
    pub nullable: bool,
}

/// How rows are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// Of the points of these series, that of the number first, in the order of time and then of sources.
    Points(Vec<String>),
    /// Of the newest points of so many series, a row for each source.
    Newest(usize),
    /// One row of figures.
    Aggregate,
    /// A row for each bucket of this length that has readings: its beginning, and figures.
    Buckets(i64),
    /// A row for each source with its figure, the largest first.
    Top,
}

/// What rows are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reads {
    pub form: Form,
    pub outs: Vec<Out>,
    /// The label with the source.
    pub source: Option<String>,
    /// The label with the round, where a reading comes in several.
    pub round: Option<String>,
}

/// A row's worth of what an answer said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub rows: u64,
    /// The first value that is none of its column's type.
    pub wrong: Option<String>,
    /// Whether a row was without a value that each has: the server shows the series of a row one by one.
    pub is_torn: bool,
}

/// The answer to a query.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Vector {
    pub result: Vec<Figures>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answered {
    data: Vector,
}

/// A series of figures: one at the time of the query, or several.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Figures {
    pub metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    values: Vec<(f64, String)>,
}

/// A series of points.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Points {
    metric: BTreeMap<String, String>,
    values: Vec<Option<f64>>,
    timestamps: Vec<i64>,
}

/// A value of a series at a time. Ordered as rows are.
#[derive(Debug, Clone, Copy)]
struct Entry {
    time_ms: i64,
    source: i64,
    round: i64,
    field: usize,
    value: f64,
}

impl Entry {
    fn row(&self) -> (i64, i64, i64) {
        (self.time_ms, self.source, self.round)
    }
}

impl Vector {
    /// Reads the body of an answer.
    ///
    /// # Errors
    /// A sentence: it is no such answer.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map(|answered: Answered| answered.data).map_err(|error| told(&error))
    }
}

impl Figures {
    /// Returns the figure, if it is a number.
    pub(super) fn figure(&self) -> Option<f64> {
        self.value.as_ref().and_then(|(_, value)| value.parse().ok())
    }

    fn part(&self) -> &str {
        self.metric.get(PART).map_or("", String::as_str)
    }
}

fn told(error: &serde_json::Error) -> String {
    shown(&error.to_string(), TOLD_MOST)
}

fn label(metric: &BTreeMap<String, String>, name: Option<&String>) -> Result<i64, String> {
    let Some(name) = name else { return Ok(0) };
    let value = metric.get(name).and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("a series has no number as its label {name}"))
}

impl Reads {
    /// Reads the body of an answer, and appends its rows.
    ///
    /// # Errors
    /// A sentence: it is no such answer.
    pub(super) fn read(&self, body: &[u8], kept: Option<&mut Cells>) -> Result<Taken, String> {
        let mut ignored = Cells::new();
        let kept = kept.unwrap_or(&mut ignored);
        match &self.form {
            Form::Points(series) => Ok(self.put_together(self.points(series, body)?, kept)),
            Form::Newest(series) => {
                let (entries, is_torn) = self.newest(*series, &Vector::read(body)?)?;
                let taken = self.put_together(entries, kept);
                Ok(Taken { is_torn: taken.is_torn || is_torn, ..taken })
            }
            Form::Aggregate => self.aggregate(&Vector::read(body)?, kept),
            Form::Buckets(bucket_ms) => self.buckets(*bucket_ms, &Vector::read(body)?, kept),
            Form::Top => self.top(&Vector::read(body)?, kept),
        }
    }

    fn points(&self, series: &[String], body: &[u8]) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let points: Points = serde_json::from_slice(line).map_err(|error| told(&error))?;
            let name = points.metric.get("__name__").map_or("", String::as_str);
            let Some(field) = series.iter().position(|known| known == name) else {
                return Err(format!("it has a series that was not asked for, {}", shown(name, 80)));
            };
            if points.values.len() != points.timestamps.len() {
                return Err("a series has more values than times, or fewer".to_owned());
            }
            let source = label(&points.metric, self.source.as_ref())?;
            let round = label(&points.metric, self.round.as_ref())?;
            entries.extend(points.timestamps.iter().zip(&points.values).map(|(time_ms, value)| Entry {
                time_ms: *time_ms,
                source,
                round,
                field,
                value: value.unwrap_or(f64::NAN),
            }));
        }
        entries.sort_unstable_by_key(|entry| (entry.row(), entry.field));
        Ok(entries)
    }

    /// Returns the values of the newest row of each source, and whether one of them was shown while it was written.
    fn newest(&self, series: usize, vector: &Vector) -> Result<(Vec<Entry>, bool), String> {
        type Found = Vec<(Option<f64>, Option<i64>)>;
        let mut sources: BTreeMap<(i64, i64), Found> = BTreeMap::new();
        for found in &vector.result {
            let key = (label(&found.metric, self.source.as_ref())?, label(&found.metric, self.round.as_ref())?);
            let value = found.figure().ok_or("a figure is no number")?;
            let (is_time, part) = match found.part().strip_prefix('t') {
                Some(part) => (true, part),
                None => (false, found.part()),
            };
            let part = part.parse::<usize>().ok().filter(|part| *part < series);
            let part = part.ok_or("it has a part that was not asked for")?;
            let row = sources.entry(key).or_insert_with(|| vec![(None, None); series]);
            // Times are in seconds, with three digits behind the point.
            if is_time { row[part].1 = Some((value * 1e3).round() as i64) } else { row[part].0 = Some(value) }
        }
        let (mut entries, mut is_torn) = (Vec::<Entry>::new(), false);
        for ((source, round), found) in sources {
            let newest = found.iter().filter_map(|(_, time_ms)| *time_ms).max();
            let Some(time_ms) = newest.filter(|newest| found[0].1 == Some(*newest)) else {
                is_torn = true;
                continue;
            };
            match entries.last() {
                Some(last) if last.source == source && last.time_ms >= time_ms => continue,
                Some(last) if last.source == source => entries.retain(|entry| entry.source != source),
                _ => {}
            }
            let entry = |field, value| Entry { time_ms, source, round, field, value };
            entries.push(entry(0, f64::NAN));
            let fields = found.iter().enumerate().skip(1).filter(|(_, (_, own))| *own == Some(time_ms));
            entries.extend(fields.filter_map(|(field, (value, _))| Some(entry(field, (*value)?))));
        }
        Ok((entries, is_torn))
    }

    /// Appends a row for each number's point.
    fn put_together(&self, entries: Vec<Entry>, kept: &mut Cells) -> Taken {
        let mut taken = Taken::default();
        for row in entries.chunk_by(|a, b| a.row() == b.row()) {
            let (first, is_twice) = (row[0], row.windows(2).any(|pair| pair[0].field == pair[1].field));
            if is_twice {
                taken.wrong.get_or_insert_with(|| format!("a point of the time {} ms is there twice", first.time_ms));
            }
            if first.field != 0 {
                taken.is_torn = true;
                continue;
            }
            taken.rows += 1;
            for out in &self.outs {
                let cell = match out.from {
                    From::Time => kept_whole(first.time_ms.saturating_mul(1_000_000), kept),
                    From::Number => kept_whole(first.time_ms.saturating_sub(FIRST_MS), kept),
                    From::Source => kept_whole(first.source, kept),
                    From::Field(field) => match row.iter().find(|entry| entry.field == field) {
                        Some(entry) => keep(out.kind, entry.value, kept),
                        None => {
                            taken.is_torn |= !out.nullable;
                            kept.null();
                            Ok(())
                        }
                    },
                };
                note(&mut taken.wrong, cell);
            }
        }
        taken
    }

    fn aggregate(&self, vector: &Vector, kept: &mut Cells) -> Result<Taken, String> {
        let mut figures = vec![None; self.outs.len()];
        for found in &vector.result {
            let part: usize = found.part().parse().map_err(|_| "a figure has no number")?;
            let figure = found.figure().ok_or("a figure is no number")?;
            *figures.get_mut(part).ok_or("it has a figure that was not asked for")? = Some(figure);
        }
        // Nothing is counted where there is nothing.
        figures.first_mut().into_iter().for_each(|count| *count = Some(count.unwrap_or(0.0)));
        let mut taken = Taken { rows: 1, ..Taken::default() };
        self.keep_figures(&figures, 0, kept, &mut taken);
        Ok(taken)
    }

    fn buckets(&self, bucket_ms: i64, vector: &Vector, kept: &mut Cells) -> Result<Taken, String> {
        let width = self.outs.len().saturating_sub(1);
        let mut buckets: BTreeMap<i64, Vec<Option<f64>>> = BTreeMap::new();
        for found in &vector.result {
            let part: usize = found.part().parse().map_err(|_| "a figure has no number")?;
            for (seconds, value) in &found.values {
                let figure = value.parse().map_err(|_| "a figure is no number")?;
                // A bucket is told by the last time that is in it.
                let begin_ms = ((seconds * 1e3).round() as i64).saturating_add(1).saturating_sub(bucket_ms);
                let bucket = buckets.entry(begin_ms).or_insert_with(|| vec![None; width]);
                *bucket.get_mut(part).ok_or("it has a figure that was not asked for")? = Some(figure);
            }
        }
        let mut taken = Taken::default();
        for (begin_ms, figures) in buckets {
            taken.rows += 1;
            kept.int(begin_ms.saturating_mul(1_000_000));
            self.keep_figures(&figures, 1, kept, &mut taken);
        }
        Ok(taken)
    }

    fn top(&self, vector: &Vector, kept: &mut Cells) -> Result<Taken, String> {
        let ranked = vector.result.iter().map(|found| {
            let figure = found.figure().ok_or("a figure is no number")?;
            Ok::<_, String>((label(&found.metric, self.source.as_ref())?, figure))
        });
        let mut ranked: Vec<(i64, f64)> = ranked.collect::<Result<_, _>>()?;
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut taken = Taken { rows: ranked.len() as u64, ..Taken::default() };
        for (source, figure) in ranked {
            kept.int(source);
            self.keep_figures(&[Some(figure)], 1, kept, &mut taken);
        }
        Ok(taken)
    }

    /// Appends figures, which are the columns of the answer from `first` on.
    fn keep_figures(&self, figures: &[Option<f64>], first: usize, kept: &mut Cells, taken: &mut Taken) {
        for (out, figure) in self.outs.iter().skip(first).zip(figures) {
            match figure {
                Some(figure) => note(&mut taken.wrong, keep(out.kind, *figure, kept)),
                None => kept.null(),
            }
        }
    }
}

fn note(wrong: &mut Option<String>, cell: Result<(), String>) {
    if let Err(why) = cell {
        wrong.get_or_insert(why);
    }
}

fn kept_whole(value: i64, kept: &mut Cells) -> Result<(), String> {
    kept.int(value);
    Ok(())
}

/// Appends a value as one of a type.
///
/// # Errors
/// A sentence: it is none; a null was appended.
fn keep(kind: ColumnKind, value: f64, kept: &mut Cells) -> Result<(), String> {
    let is_whole = matches!(kind, ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64);
    match whole(value) {
        Some(value) if is_whole => kept.int(value),
        _ if kind == ColumnKind::Float64 && value.is_finite() => kept.float(value),
        _ => {
            kept.null();
            return Err(format!("{value} is no value of the type {kind:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
