//! An answer of a database, compared with the right one: [`check`].

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figures, Number, told};
use super::oracle::Oracle;
use super::spot::Spot;
use crate::query::Place;
use crate::question::{Ask, Question};
use crate::record::{Cell, Cells, Generator};

/// Checks the answer to a question, value by value.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(
    oracle: &Oracle,
    (number, question): (usize, &Question),
    spot: &Spot,
    rows: &Cells,
    generator: &dyn Generator,
) -> Result<(), String> {
    let columns = oracle.columns.get(number).map_or(&[][..], Vec::as_slice);
    let answer = Answer::new(rows, question, columns)?;
    match question.ask {
        Ask::Range | Ask::Above => answer.check_readings(&oracle.found(question, columns, spot), generator),
        Ask::Newest => answer.check_newest(oracle, spot, generator),
        Ask::Aggregate => answer.check_aggregate(&oracle.figures(question, columns, spot)),
        Ask::Buckets => answer.check_buckets(&oracle.buckets(question, columns, spot)),
        Ask::Top => answer.check_top(&oracle.ranks(columns, spot)),
    }
}

/// The rows of an answer.
struct Answer<'a> {
    cells: &'a Cells,
    question: &'a Question,
    columns: &'a [Place],
    width: usize,
}

impl<'a> Answer<'a> {
    /// Takes the cells of an answer as rows.
    ///
    /// # Errors
    /// When they are no whole rows.
    fn new(cells: &'a Cells, question: &'a Question, columns: &'a [Place]) -> Result<Self, String> {
        let of_source = usize::from(question.all_sources);
        let width = match question.ask {
            Ask::Range | Ask::Newest | Ask::Above => of_source + 1 + columns.len(),
            Ask::Aggregate => 1 + question.figures().len() * columns.len(),
            Ask::Buckets => 2 + question.figures().len() * columns.len(),
            Ask::Top => 2,
        };
        if !cells.len().is_multiple_of(width) {
            return Err(format!("{} values, which are no rows of {width}", cells.len()));
        }
        Ok(Answer { cells, question, columns, width })
    }

    fn rows(&self) -> usize {
        self.cells.len() / self.width
    }

    fn cell(&self, row: usize, column: usize) -> Cell {
        self.cells.get(row * self.width + column)
    }

    /// Returns a whole number of the answer.
    fn whole(&self, row: usize, column: usize) -> Option<i64> {
        match Number::of(self.cell(row, column), self.cells)? {
            Number::Whole(value) => i64::try_from(value).ok(),
            // A database may compute the beginning of a bucket as a floating-point number; it must still be whole.
            Number::Real(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
            Number::Real(_) => None,
        }
    }

    fn must_have(&self, rows: usize) -> Result<(), String> {
        let found = self.rows();
        if found == rows { Ok(()) } else { Err(format!("{found} rows instead of {rows}")) }
    }

    /// Checks readings, which are right as (time, source, record) in this order.
    fn check_readings(&self, right: &[(i64, u64, u64)], generator: &dyn Generator) -> Result<(), String> {
        self.must_have(right.len())?;
        let mut first = 0;
        // Readings with the same source and time may come in any order.
        for group in right.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            for row in first..first + group.len() {
                let (time_ns, source) = (group[0].0, group[0].1);
                self.check_time(row, source, time_ns)?;
                let wrong = |record: &u64| self.check_values(row, *record, generator);
                let mut outcomes = group.iter().map(|(_, _, record)| wrong(record));
                let first_wrong = outcomes.next().unwrap_or(Ok(()));
                if first_wrong.is_err() && !outcomes.any(|outcome| outcome.is_ok()) {
                    return first_wrong;
                }
            }
            first += group.len();
        }
        Ok(())
    }

    /// Checks source and time of a reading.
    fn check_time(&self, row: usize, source: u64, time_ns: i64) -> Result<(), String> {
        let of_source = usize::from(self.question.all_sources);
        if self.question.all_sources && self.whole(row, 0) != Some(source as i64 + 1) {
            let found = told(Number::of(self.cell(row, 0), self.cells));
            return Err(format!("row {} is of source {found} instead of {}", row + 1, source + 1));
        }
        if self.whole(row, of_source) != Some(time_ns) {
            let found = told(Number::of(self.cell(row, of_source), self.cells));
            return Err(format!("row {} has the time {found} instead of {time_ns}", row + 1));
        }
        Ok(())
    }

    /// Checks the columns that are read with a reading.
    fn check_values(&self, row: usize, record: u64, generator: &dyn Generator) -> Result<(), String> {
        let first = usize::from(self.question.all_sources) + 1;
        let mut right = Cells::new();
        for (column, place) in self.columns.iter().enumerate() {
            right.clear();
            match place {
                Place::Value(value) => generator.value(record, *value, &mut right),
                Place::Identity(identity) => {
                    generator.identity(generator.measurement_of(record), 1, &mut right);
                    right.keep_one(0, *identity);
                }
            }
            let (found, right_cell) = (self.cell(row, first + column), right.get(0));
            if !is_same((found, self.cells), (right_cell, &right)) {
                let name = &place.column(generator.record_type()).name;
                let (found, right) = (self.cells.to_json(found), right.to_json(right_cell));
                return Err(format!("row {}: {name} is {found} instead of {right}", row + 1));
            }
        }
        Ok(())
    }

    /// Checks the newest reading of a source, or of each. A reading that is stored twice may come twice where all sources are asked for. While records are
    /// added, a newer reading is right if it is one of that source.
    fn check_newest(&self, oracle: &Oracle, spot: &Spot, generator: &dyn Generator) -> Result<(), String> {
        let all = self.question.all_sources;
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        for row in 0..self.rows() {
            let source = if all { self.whole(row, 0).unwrap_or(0) - 1 } else { spot.source as i64 };
            let source = u64::try_from(source).unwrap_or(u64::MAX);
            let newest = oracle.newest(source);
            let times = seen.entry(source).or_default();
            *times += 1;
            if !oracle.grows && *times > newest.len() {
                let times = newest.len();
                return Err(format!(
                    "row {} is of source {}, which was there {times} times before",
                    row + 1,
                    source.wrapping_add(1)
                ));
            }
            self.check_newest_row(row, source, newest, oracle, generator)?;
        }
        let asked = if all { 0..oracle.timeline.sources() } else { spot.source..spot.source + 1 };
        match asked.into_iter().find(|source| !oracle.newest(*source).is_empty() && !seen.contains_key(source)) {
            Some(source) => Err(format!("no row for source {}", source + 1)),
            None if !all && self.rows() > 1 => self.must_have(1),
            None => Ok(()),
        }
    }

    fn check_newest_row(
        &self,
        row: usize,
        source: u64,
        newest: &[(i64, u64)],
        oracle: &Oracle,
        generator: &dyn Generator,
    ) -> Result<(), String> {
        let time_ns = self.whole(row, usize::from(self.question.all_sources)).unwrap_or(i64::MIN);
        let known_ns = newest.first().map_or(i64::MIN, |(time, _)| *time);
        let candidates: Vec<u64> = if oracle.grows && time_ns > known_ns {
            let rounds = oracle.timeline.rounds_of(time_ns);
            let records = rounds.map(|round| round * oracle.timeline.sources() + source);
            records.filter(|record| oracle.timeline.time_ns(*record) == time_ns).collect()
        } else {
            self.check_time(row, source, known_ns)?;
            newest.iter().map(|(_, record)| *record).collect()
        };
        let mut outcomes = candidates.iter().map(|record| self.check_values(row, *record, generator));
        let nothing = || Err(format!("row {}: source {} has no reading at {time_ns}", row + 1, source + 1));
        let first = outcomes.next().unwrap_or_else(nothing);
        if first.is_ok() || outcomes.any(|outcome| outcome.is_ok()) { Ok(()) } else { first }
    }

    /// Checks the figures over all readings of a span.
    fn check_aggregate(&self, (count, figures): &(u64, Vec<Figures>)) -> Result<(), String> {
        self.must_have(1)?;
        self.check_figures((0, 0), *count, figures)
    }

    /// Checks the figures of each bucket, which are right in the order of time; buckets without readings are not in the answer.
    fn check_buckets(&self, right: &BTreeMap<i64, (u64, Vec<Figures>)>) -> Result<(), String> {
        self.must_have(right.len())?;
        for (row, (begin, (count, figures))) in right.iter().enumerate() {
            if self.whole(row, 0) != Some(*begin) {
                let found = told(Number::of(self.cell(row, 0), self.cells));
                return Err(format!("row {} is of the bucket {found} instead of {begin}", row + 1));
            }
            self.check_figures((row, 1), *count, figures)?;
        }
        Ok(())
    }

    /// Checks the number of readings in a column of a row, and the figures behind it.
    fn check_figures(&self, (row, first): (usize, usize), count: u64, figures: &[Figures]) -> Result<(), String> {
        if self.whole(row, first) != Some(count as i64) {
            let found = told(Number::of(self.cell(row, first), self.cells));
            return Err(format!("row {} counts {found} readings instead of {count}", row + 1));
        }
        if count == 0 {
            // Figures over nothing are null, 0 or no number, by the database.
            return Ok(());
        }
        let mut column = first + 1;
        for (figures, name) in figures.iter().zip(&self.question.of) {
            for figure in self.question.figures() {
                let wrong = |why: String| format!("row {}: the {figure} of {name} is {why}", row + 1);
                figures.check(*figure, self.cell(row, column), self.cells).map_err(wrong)?;
                column += 1;
            }
        }
        Ok(())
    }

    /// Checks the sources with the largest figures, which come first. Figures that differ by less than their rounding may come in any order.
    fn check_top(&self, right: &BTreeMap<u64, Figures>) -> Result<(), String> {
        let by = self.question.by;
        let mut ranked: Vec<f64> = right.values().filter_map(|own| own.get(by)).map(Number::real).collect();
        ranked.sort_unstable_by(|one, other| other.total_cmp(one));
        self.must_have(ranked.len().min(self.question.most as usize))?;
        let mut seen = BTreeSet::new();
        for (row, at) in ranked.iter().take(self.rows()).enumerate() {
            let source = self.whole(row, 0).unwrap_or(0);
            let own = u64::try_from(source - 1).ok().and_then(|source| right.get(&source));
            let Some(own) = own.filter(|_| seen.insert(source)) else {
                return Err(format!(
                    "row {} is of source {source}, which has no readings there or was there before",
                    row + 1
                ));
            };
            let wrong = |why: String| format!("row {}: the {by} of source {source} is {why}", row + 1);
            own.check(by, self.cell(row, 1), self.cells).map_err(wrong)?;
            let found = own.get(by).map_or(f64::NAN, Number::real);
            if (found - at).abs() > 2.0 * own.tolerance(by) {
                return Err(format!(
                    "row {} has source {source} with {found}, and the figure of that rank is {at}",
                    row + 1
                ));
            }
        }
        Ok(())
    }
}

/// Returns whether a value that was read is the one that was written.
fn is_same((found, of_found): (Cell, &Cells), (right, of_right): (Cell, &Cells)) -> bool {
    match (found, right) {
        (Cell::Null, Cell::Null) => true,
        (Cell::Text(found) | Cell::Blob(found), Cell::Text(right) | Cell::Blob(right)) => {
            of_found.bytes_of(found) == of_right.bytes_of(right)
        }
        _ => match (Number::of(found, of_found), Number::of(right, of_right)) {
            (Some(found), Some(right)) => found.is(right),
            _ => false,
        },
    }
}
