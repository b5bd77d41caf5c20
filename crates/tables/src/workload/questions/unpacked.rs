//! Answers made by the client from packed readings, in the form in which a database answers where each reading is a row: [`unpack`].

use std::collections::BTreeMap;

use super::figures::{Figures, Number};
use super::spot::Spot;
use crate::layout::gorilla::Packing;
use crate::query::Place;
use crate::question::{Ask, Figure, Question};
use crate::record::{Cell, Cells};

/// Makes the answer to a question from the rows whose readings may belong to it. Returns it with its number of rows.
///
/// # Errors
/// When a row cannot be unpacked.
pub(super) fn unpack(
    packing: &Packing,
    (question, columns): (&Question, &[Place]),
    spot: &Spot,
    rows: &Cells,
) -> Result<(Cells, u64), String> {
    let mut unpacked = Unpacked::new((question, columns), rows);
    for row in 0..rows.len() / unpacked.width {
        unpacked.add(packing, row, spot)?;
    }
    Ok(unpacked.answer())
}

/// A reading that belongs to an answer.
#[derive(Debug, Clone, Copy)]
struct Reading {
    time_ns: i64,
    /// Number of the source, from 1.
    source: i64,
    /// The row that it came with.
    row: usize,
    /// The place of its values among the cells of each column.
    cell: usize,
}

impl Reading {
    /// Returns where it stands among the readings of an answer.
    fn at(&self) -> (i64, i64) {
        (self.time_ns, self.source)
    }
}

/// The readings of an answer.
struct Unpacked<'a> {
    question: &'a Question,
    columns: &'a [Place],
    rows: &'a Cells,
    /// Number of cells in a row.
    width: usize,
    readings: Vec<Reading>,
    /// The values of each column, of all rows so far; empty for columns of the identity.
    values: Vec<Cells>,
    /// Number of cells in each of `values`.
    cells: usize,
}

impl<'a> Unpacked<'a> {
    fn new((question, columns): (&'a Question, &'a [Place]), rows: &'a Cells) -> Self {
        let identities = columns.iter().filter(|place| matches!(place, Place::Identity(_))).count();
        let width = usize::from(question.all_sources) + 1 + identities + 1;
        let values = columns.iter().map(|_| Cells::new()).collect();
        Unpacked { question, columns, rows, width, readings: Vec::new(), values, cells: 0 }
    }

    /// Adds the readings of a row that belong to the answer.
    fn add(&mut self, packing: &Packing, row: usize, spot: &Spot) -> Result<(), String> {
        let cell = |place: usize| self.rows.get(row * self.width + place);
        let damaged = || format!("row {}: the packed readings are damaged", row + 1);
        let (Cell::Blob(span) | Cell::Text(span)) = cell(self.width - 1) else { return Err(damaged()) };
        let packed = packing.open(self.rows.bytes_of(span)).ok_or_else(damaged)?;
        let source = match cell(0) {
            Cell::Int(source) if self.question.all_sources => source,
            _ => spot.source as i64 + 1,
        };
        let mut times = Vec::new();
        packed.times(&mut times).ok_or_else(damaged)?;
        let reading =
            |(number, time_ns): (usize, &i64)| Reading { time_ns: *time_ns, source, row, cell: self.cells + number };
        let mut own: Vec<Reading> = times.iter().enumerate().map(reading).collect();
        match self.question.ask {
            Ask::Newest => own = own.into_iter().max_by_key(|reading| reading.time_ns).into_iter().collect(),
            _ => own.retain(|reading| (spot.from_ns..spot.to_ns).contains(&reading.time_ns)),
        }
        if own.is_empty() {
            return Ok(());
        }
        for (place, out) in self.columns.iter().zip(&mut self.values) {
            let Place::Value(column) = place else { continue };
            if packing.is_source(*column) {
                times.iter().for_each(|_| out.int(source));
            } else if packing.is_time(*column) {
                times.iter().for_each(|time_ns| out.int(*time_ns));
            } else {
                packed.column(*column, out).ok_or_else(damaged)?;
            }
        }
        self.cells += packed.readings();
        if self.question.ask == Ask::Above {
            own.retain(|reading| self.number(0, reading).is_some_and(|value| value.real() > self.question.above));
        }
        self.readings.extend(own);
        Ok(())
    }

    /// Appends the value of a reading's column.
    fn copy(&self, column: usize, reading: &Reading, out: &mut Cells) {
        match self.columns[column] {
            Place::Value(_) => out.copy_from(&self.values[column], self.values[column].get(reading.cell)),
            Place::Identity(_) => {
                let before = self.columns[..column].iter().filter(|place| matches!(place, Place::Identity(_))).count();
                let place = usize::from(self.question.all_sources) + 1 + before;
                out.copy_from(self.rows, self.rows.get(reading.row * self.width + place));
            }
        }
    }

    fn number(&self, column: usize, reading: &Reading) -> Option<Number> {
        let values = self.values.get(column)?;
        Number::of(values.get(reading.cell), values)
    }

    /// Adds a reading to the figures of each column.
    fn count(&self, reading: &Reading, (count, figures): &mut (u64, Vec<Figures>)) {
        *count += 1;
        figures.resize(self.columns.len(), Figures::of(self.question.figures()));
        for (column, figures) in figures.iter_mut().enumerate() {
            self.number(column, reading).into_iter().for_each(|value| figures.add(value, reading.at()));
        }
    }

    fn answer(mut self) -> (Cells, u64) {
        let mut out = Cells::new();
        let rows = match self.question.ask {
            Ask::Range | Ask::Above | Ask::Newest => {
                self.readings.sort_by_key(|reading| (reading.time_ns, reading.source));
                for reading in &self.readings {
                    if self.question.all_sources {
                        out.int(reading.source);
                    }
                    out.int(reading.time_ns);
                    (0..self.columns.len()).for_each(|column| self.copy(column, reading, &mut out));
                }
                self.readings.len()
            }
            Ask::Aggregate => {
                let mut all = (0, vec![Figures::of(self.question.figures()); self.columns.len()]);
                self.readings.iter().for_each(|reading| self.count(reading, &mut all));
                append_figures(&all, self.question.figures(), &mut out);
                1
            }
            Ask::Buckets => {
                let bucket_ns = self.question.bucket_ns.max(1);
                let mut buckets: BTreeMap<i64, (u64, Vec<Figures>)> = BTreeMap::new();
                for reading in &self.readings {
                    let begin = reading.time_ns.div_euclid(bucket_ns).wrapping_mul(bucket_ns);
                    self.count(reading, buckets.entry(begin).or_default());
                }
                for (begin, figures) in &buckets {
                    out.int(*begin);
                    append_figures(figures, self.question.figures(), &mut out);
                }
                buckets.len()
            }
            Ask::Top => self.rank(&mut out),
        };
        (out, rows as u64)
    }

    /// Appends the sources with the largest figures of the first column, the largest first. Returns their number.
    fn rank(&self, out: &mut Cells) -> usize {
        let mut sources: BTreeMap<i64, Figures> = BTreeMap::new();
        for reading in &self.readings {
            let own = sources.entry(reading.source).or_default();
            self.number(0, reading).into_iter().for_each(|value| own.add(value, reading.at()));
        }
        let by = self.question.by;
        let figure = |(source, own): (&i64, &Figures)| Some((*source, own.get(by)?));
        let mut ranked: Vec<(i64, Number)> = sources.iter().filter_map(figure).collect();
        ranked.sort_by(|(_, one), (_, other)| other.real().total_cmp(&one.real()));
        ranked.truncate(self.question.most as usize);
        for (source, figure) in &ranked {
            out.int(*source);
            append(Some(*figure), out);
        }
        ranked.len()
    }
}

/// Appends a number of readings, and these figures of each column.
fn append_figures((count, columns): &(u64, Vec<Figures>), names: &[Figure], out: &mut Cells) {
    out.int(*count as i64);
    for own in columns {
        names.iter().for_each(|figure| append(own.get(*figure), out));
    }
}

/// Appends a number, or null without one.
fn append(number: Option<Number>, out: &mut Cells) {
    match number {
        None => out.null(),
        Some(Number::Real(value)) => out.float(value),
        Some(Number::Whole(value)) => match i64::try_from(value) {
            Ok(value) => out.int(value),
            Err(_) => out.text(&value.to_string()),
        },
    }
}
