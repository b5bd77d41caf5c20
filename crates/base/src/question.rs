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
    /// Figures of each column that [`Ask::Aggregate`] and [`Ask::Buckets`] ask for, in the order of the answer; empty for the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub figures: Vec<Figure>,
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
    /// Number and figures of the readings in a span.
    Aggregate,
    /// The same for each bucket of time that has readings, in the order of time.
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

/// A figure over the values of several readings. Its text is the name that studies give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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
    /// Value of the first reading by time; of readings of several sources at the same time, that of the source with the least number.
    First,
    /// Value of the last reading by time; of readings of several sources at the same time, that of the source with the largest number.
    Last,
    /// The least value to which at least this share of the readings is equal or less, in millionths: a reading's own value, as `PERCENTILE_DISC` of SQL has it.
    Quantile(u32),
}

/// A whole, in millionths.
pub const MILLIONTHS: u32 = 1_000_000;

impl Figure {
    /// Those by which sources can be ranked, by their names.
    pub const RANKS: [(&'static str, Figure); 4] =
        [("mean", Figure::Mean), ("sum", Figure::Sum), ("min", Figure::Min), ("max", Figure::Max)];

    /// The others that have one name each.
    const ENDS: [(&'static str, Figure); 2] = [("first", Figure::First), ("last", Figure::Last)];

    /// The figures of each column of an aggregate that names none, in the order of the answer.
    pub const OF_AGGREGATES: [Figure; 4] = [Figure::Sum, Figure::Mean, Figure::Min, Figure::Max];

    /// The figures of each column of a bucket that names none, in the order of the answer.
    pub const OF_BUCKETS: [Figure; 3] = [Figure::Mean, Figure::Min, Figure::Max];

    /// Returns the figure with a name: one of [`Figure::RANKS`], `first`, `last`, or a quantile such as `p95` or `p99.9`, between p0 and p100.
    pub fn named(name: &str) -> Option<Figure> {
        let known = Figure::RANKS.into_iter().chain(Figure::ENDS).find(|(known, _)| *known == name);
        known.map(|(_, figure)| figure).or_else(|| quantile(name))
    }

    /// Returns the kind of the figure over values of a kind.
    pub fn kind(self, of: ColumnKind) -> ColumnKind {
        match self {
            Figure::Mean => ColumnKind::Float64,
            Figure::Sum if is_whole(of) => ColumnKind::Int64,
            Figure::Sum => ColumnKind::Float64,
            Figure::Min | Figure::Max | Figure::First | Figure::Last | Figure::Quantile(_) => of,
        }
    }
}

/// Returns a share in millionths.
pub fn share(millionths: u32) -> f64 {
    f64::from(millionths) / f64::from(MILLIONTHS)
}

/// Returns the quantile with a name: `p`, and a percentage with at most four decimal places.
fn quantile(name: &str) -> Option<Figure> {
    let percent = name.strip_prefix('p')?;
    let (whole, rest) = percent.split_once('.').unwrap_or((percent, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(rest) || whole.len() > 2 || rest.len() > 4 {
        return None;
    }
    let millionths = format!("{whole}{rest:0<4}").parse().ok()?;
    (millionths > 0).then_some(Figure::Quantile(millionths))
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Figure::Quantile(millionths) => write!(f, "p{}", f64::from(*millionths) / 1e4),
            Figure::Mean => f.write_str("mean"),
            Figure::Sum => f.write_str("sum"),
            Figure::Min => f.write_str("min"),
            Figure::Max => f.write_str("max"),
            Figure::First => f.write_str("first"),
            Figure::Last => f.write_str("last"),
        }
    }
}

impl From<Figure> for String {
    fn from(figure: Figure) -> String {
        figure.to_string()
    }
}

impl TryFrom<String> for Figure {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Figure::named(&name).ok_or_else(|| format!("there is no figure \"{name}\""))
    }
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
    /// Returns the figures of each column in the answer to an aggregate or to buckets, in their order.
    pub fn figures(&self) -> &[Figure] {
        match self.ask {
            _ if !self.figures.is_empty() => &self.figures,
            Ask::Buckets => &Figure::OF_BUCKETS,
            _ => &Figure::OF_AGGREGATES,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_name_by_which_it_is_found() {
        for name in ["mean", "sum", "min", "max", "first", "last", "p50", "p99.9", "p0.0001", "p99.9999", "p5.05"] {
            assert_eq!(Figure::named(name).unwrap().to_string(), name);
        }
        assert_eq!(Figure::named("p95"), Some(Figure::Quantile(950_000)));
        assert_eq!(Figure::named("p95.0"), Figure::named("p95"));
        for name in ["", "p", "p0", "p0.0", "p100", "p-5", "p5.", "p.5", "p99.99999", "p1e1", "P95", "median", "Mean"] {
            assert_eq!(Figure::named(name), None, "{name}");
        }
    }
}
