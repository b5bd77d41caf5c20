//! Questions that measurement data is asked: by time and by source, whatever the layout. Main type: [`Question`].
//!
//! Invariant: the records alone decide the right answer to a question. Every layout and every database must give it.

use serde::{Deserialize, Serialize};

use crate::query::{Place, place_of};
use crate::record::{ColumnKind, RecordType};

/// A question of the workload `questions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Name, under which its operations are reported.
    pub name: String,
    /// What is asked.
    pub ask: Ask,
    /// Columns of the record type that are read or aggregated.
    pub of: Vec<String>,
    /// Whether it concerns all sources together. Otherwise each execution concerns one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub all_sources: bool,
    /// Length of the span of time that it looks at, in nanoseconds; `None` for all times. Unused by [`Ask::Newest`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub span_ns: Option<i64>,
    /// Length of the buckets of [`Ask::Buckets`], in nanoseconds; 0 for others.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub bucket_ns: i64,
    /// Bound of [`Ask::Above`]; 0 for others.
    #[serde(skip_serializing_if = "is_nought", default)]
    pub above: f64,
    /// Number of sources in the answer to [`Ask::Top`]; 0 for others.
    #[serde(skip_serializing_if = "is_none", default)]
    pub most: u64,
    /// Figure by which [`Ask::Top`] ranks the sources.
    #[serde(default)]
    pub by: Figure,
    /// Where spans lie.
    #[serde(default)]
    pub places: Places,
    /// How often it is asked, relative to the other questions.
    pub weight: f64,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

fn is_none(value: &u64) -> bool {
    *value == 0
}

fn is_nought(value: &f64) -> bool {
    *value == 0.0
}

/// What a question asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// The readings in a span, in the order of time.
    Range,
    /// The newest reading of a source, or of each.
    Newest,
    /// Number, sum, mean, least and largest value of the readings in a span.
    Aggregate,
    /// Number, mean, least and largest value in each bucket of time that has readings, in the order of time.
    Buckets,
    /// The sources with the largest figures in a span, the largest first.
    Top,
    /// The readings in a span whose value is above a bound, in the order of time.
    Above,
}

impl Ask {
    /// All of them, by the name that studies give.
    pub const NAMES: [(&'static str, Ask); 6] = [
        ("range", Ask::Range),
        ("newest", Ask::Newest),
        ("aggregate", Ask::Aggregate),
        ("buckets", Ask::Buckets),
        ("top", Ask::Top),
        ("above", Ask::Above),
    ];

    /// Returns whether the answer consists of readings rather than of figures over them.
    pub fn is_of_readings(self) -> bool {
        matches!(self, Ask::Range | Ask::Newest | Ask::Above)
    }
}

/// A figure over the values of several readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Sum.
    Sum,
    /// Least value.
    Min,
    /// Largest value.
    Max,
}

impl Figure {
    /// All of them, by the name that studies give.
    pub const NAMES: [(&'static str, Figure); 4] =
        [("mean", Figure::Mean), ("sum", Figure::Sum), ("min", Figure::Min), ("max", Figure::Max)];
}

/// Where the spans of a question lie in the times of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Places {
    /// The span that ends with the newest records, as a dashboard asks for.
    Newest,
    /// Recent spans more often: how far a span lies behind the newest one is exponentially distributed, with a tenth of the whole time as mean.
    #[default]
    Recent,
    /// Every span equally often.
    Uniform,
}

impl Places {
    /// All of them, by the name that studies give.
    pub const NAMES: [(&'static str, Places); 3] =
        [("newest", Places::Newest), ("recent", Places::Recent), ("uniform", Places::Uniform)];
}

impl Question {
    /// Returns the columns that the question reads, in the order of [`Question::of`].
    pub fn columns(&self, record_type: &RecordType) -> Vec<Place> {
        self.of.iter().filter_map(|name| place_of(record_type, name)).collect()
    }

    /// Checks the question against a record type.
    ///
    /// # Errors
    /// A sentence that names the question, the error and the valid choices.
    pub fn check(&self, record_type: &RecordType) -> Result<(), String> {
        let at = format!("workload.questions, question \"{}\"", self.name);
        if record_type.series.is_none() {
            return Err(format!("{at}: the records have no sources and times; set record.sources"));
        }
        for name in &self.of {
            let Some(place) = place_of(record_type, name) else {
                let columns = record_type.identity.iter().chain(&record_type.values);
                let names: Vec<_> = columns.map(|column| column.name.as_str()).collect();
                let type_name = &record_type.name;
                return Err(format!(
                    "{at}: record type \"{type_name}\" has no column \"{name}\"; it has {}",
                    names.join(", ")
                ));
            };
            if place == Place::Identity(record_type.identity_end.unwrap_or(usize::MAX)) {
                return Err(format!(
                    "{at}: {name} is written when a measurement ends, and layouts differ in what it is before"
                ));
            }
            let column = place.column(record_type);
            let is_number = is_whole(column.kind) || column.kind == ColumnKind::Float64;
            let is_reading = matches!(place, Place::Value(_)) && !column.nullable;
            if self.needs_numbers() && !(is_number && is_reading) {
                return Err(format!("{at}: {name} is no number that is measured each time; name such a column"));
            }
        }
        Ok(())
    }

    /// Returns whether the columns must be numbers.
    fn needs_numbers(&self) -> bool {
        matches!(self.ask, Ask::Aggregate | Ask::Buckets | Ask::Top | Ask::Above)
    }
}

/// Returns whether values of a kind are whole numbers.
pub fn is_whole(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64)
}
