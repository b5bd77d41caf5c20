//! The right answers: [`Oracle`] computes them from the records, without a database.

use std::collections::{BTreeMap, TryReserveError};

use super::figures::{Figures, Number, Numbers};
use super::spot::Spot;
use crate::data::Timeline;
use crate::query::Place;
use crate::question::{Ask, Question, is_whole};
use crate::record::{Cell, Cells, Generator};

/// The readings of the records that are there from the start.
pub(super) struct Oracle {
    pub(super) timeline: Timeline,
    /// For each source its readings as (time in nanoseconds since 1970, record), in the order of time.
    readings: Vec<Vec<(i64, u64)>>,
    /// The values of the numeric columns that questions aggregate or compare, by their index among the values.
    numbers: BTreeMap<usize, Numbers>,
    /// For each question the columns that it reads.
    pub(super) columns: Vec<Vec<Place>>,
    /// Whether records are added during the trial.
    pub(super) grows: bool,
}

impl Oracle {
    /// Computes all readings of the first records.
    ///
    /// # Errors
    /// When the memory for them cannot be had.
    pub(super) fn new(
        questions: &[Question],
        generator: &dyn Generator,
        (timeline, records): (Timeline, u64),
        grows: bool,
    ) -> Result<Self, TryReserveError> {
        let columns: Vec<Vec<Place>> =
            questions.iter().map(|question| question.columns(generator.record_type())).collect();
        let mut numbers = BTreeMap::new();
        for (question, columns) in questions.iter().zip(&columns) {
            let needed = matches!(question.ask, Ask::Aggregate | Ask::Buckets | Ask::Top | Ask::Above);
            for place in columns.iter().filter(|_| needed) {
                if let Place::Value(value) = place
                    && !numbers.contains_key(value)
                {
                    numbers.insert(*value, numbers_of(*place, generator, records)?);
                }
            }
        }
        let sources = timeline.sources();
        let of_each = records.div_ceil(sources) as usize;
        let mut readings = Vec::new();
        readings.try_reserve_exact(sources as usize)?;
        for source in 0..sources {
            let mut own: Vec<(i64, u64)> = Vec::new();
            own.try_reserve_exact(of_each)?;
            own.extend((source..records).step_by(sources as usize).map(|record| (timeline.time_ns(record), record)));
            own.sort_unstable();
            readings.push(own);
        }
        Ok(Oracle { timeline, readings, numbers, columns, grows })
    }

    /// Returns the sources that a question concerns.
    fn sources(&self, question: &Question, spot: &Spot) -> std::ops::Range<u64> {
        if question.all_sources { 0..self.timeline.sources() } else { spot.source..spot.source + 1 }
    }

    /// Returns the readings of a source in a span.
    fn within(&self, source: u64, spot: &Spot) -> &[(i64, u64)] {
        let own = self.readings.get(source as usize).map_or(&[][..], Vec::as_slice);
        let from = own.partition_point(|(time, _)| *time < spot.from_ns);
        let to = own.partition_point(|(time, _)| *time < spot.to_ns);
        own.get(from..to.max(from)).unwrap_or_default()
    }

    /// Returns the newest readings of a source: all that have the same time.
    pub(super) fn newest(&self, source: u64) -> &[(i64, u64)] {
        let own = self.readings.get(source as usize).map_or(&[][..], Vec::as_slice);
        let first = own.last().map_or(0, |(newest, _)| own.partition_point(|(time, _)| time < newest));
        own.get(first..).unwrap_or_default()
    }

    /// Returns the number in a column of a record.
    fn number(&self, place: Option<&Place>, record: u64) -> Number {
        match place {
            Some(Place::Value(value)) => self.numbers.get(value).map_or(Number::Real(f64::NAN), |own| own.get(record)),
            _ => Number::Real(f64::NAN),
        }
    }

    /// Returns the readings that a question finds, as (time, source, record) in their order.
    pub(super) fn found(&self, question: &Question, columns: &[Place], spot: &Spot) -> Vec<(i64, u64, u64)> {
        let mut found = Vec::new();
        for source in self.sources(question, spot) {
            let is_found = |record: u64| {
                question.ask != Ask::Above || self.number(columns.first(), record).real() > question.above
            };
            let own = self.within(source, spot).iter().filter(|(_, record)| is_found(*record));
            found.extend(own.map(|(time, record)| (*time, source, *record)));
        }
        found.sort_unstable();
        found
    }

    /// Returns the number of readings in a span, and the figures of each column.
    pub(super) fn figures(&self, question: &Question, columns: &[Place], spot: &Spot) -> (u64, Vec<Figures>) {
        let mut all = (0, vec![Figures::of(question.figures()); columns.len()]);
        for source in self.sources(question, spot) {
            for (time_ns, record) in self.within(source, spot) {
                self.add(columns, (*time_ns, source, *record), &mut all);
            }
        }
        all
    }

    fn add(
        &self,
        columns: &[Place],
        (time_ns, source, record): (i64, u64, u64),
        (count, figures): &mut (u64, Vec<Figures>),
    ) {
        *count += 1;
        for (place, figures) in columns.iter().zip(figures) {
            figures.add(self.number(Some(place), record), (time_ns, source as i64));
        }
    }

    /// Returns the same for each bucket, by the time at which it begins.
    pub(super) fn buckets(
        &self,
        question: &Question,
        columns: &[Place],
        spot: &Spot,
    ) -> BTreeMap<i64, (u64, Vec<Figures>)> {
        let mut buckets = BTreeMap::new();
        let bucket_ns = question.bucket_ns.max(1);
        for source in self.sources(question, spot) {
            for (time_ns, record) in self.within(source, spot) {
                let begin = time_ns.div_euclid(bucket_ns) * bucket_ns;
                let empty = || (0, vec![Figures::of(question.figures()); columns.len()]);
                self.add(columns, (*time_ns, source, *record), buckets.entry(begin).or_insert_with(empty));
            }
        }
        buckets
    }

    /// Returns the figures of the first column for each source that has readings in the span.
    pub(super) fn ranks(&self, columns: &[Place], spot: &Spot) -> BTreeMap<u64, Figures> {
        let mut ranks = BTreeMap::new();
        for source in 0..self.timeline.sources() {
            let own = self.within(source, spot);
            if own.is_empty() {
                continue;
            }
            let mut figures = Figures::default();
            let at = |time_ns: i64| (time_ns, source as i64);
            own.iter().for_each(|(time_ns, record)| figures.add(self.number(columns.first(), *record), at(*time_ns)));
            ranks.insert(source, figures);
        }
        ranks
    }
}

/// Returns the numbers of a column of all records.
fn numbers_of(place: Place, generator: &dyn Generator, records: u64) -> Result<Numbers, TryReserveError> {
    let Place::Value(value) = place else { return Ok(Numbers::Real(Vec::new())) };
    let mut cells = Cells::new();
    let mut cell = |record: u64| {
        cells.clear();
        generator.value(record, value, &mut cells);
        cells.get(0)
    };
    if is_whole(place.column(generator.record_type()).kind) {
        let mut whole = Vec::new();
        whole.try_reserve_exact(records as usize)?;
        whole.extend((0..records).map(|record| if let Cell::Int(value) = cell(record) { value } else { 0 }));
        return Ok(Numbers::Whole(whole));
    }
    let mut real = Vec::new();
    real.try_reserve_exact(records as usize)?;
    real.extend((0..records).map(|record| if let Cell::Float(value) = cell(record) { value } else { f64::NAN }));
    Ok(Numbers::Real(real))
}
