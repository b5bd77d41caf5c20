//! The names of metrics and labels, which follow from the recorder's tables. Main types: [`Names`] and [`Metric`].
//!
//! The field `f` of the measurement `m` is the metric `m_f`, and its tags are the labels. Signs that Prometheus does not allow in a name become `_`.
//!
//! Invariant: of two fields, or two tags of a measurement, whose names become the same, the one that was stored first keeps it, and the other one gets a
//! number. So nobody who stores a field later takes a name from others.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::recorder::writer::{Catalogue, FieldKind, Measurement, Role, Shape, read_tables};

/// What can be asked.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The metrics by name.
    pub(super) metrics: BTreeMap<String, Metric>,
    /// The measurements that have metrics.
    pub(super) measurements: Vec<Sources>,
}

/// A metric: a field whose values are numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metric {
    /// The place of its measurement.
    pub(super) measurement: usize,
    /// The field's column.
    pub(super) column: String,
    /// True if the column is in the second table of the layout `star-hot`.
    pub(super) is_apart: bool,
}

/// Where the sources and records of a measurement are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sources {
    /// The table of the sources; `None` if every record repeats the tags.
    pub(super) identities: Option<String>,
    /// The table whose rows are the records.
    pub(super) records: String,
    /// The table of the fields that `star-hot` keeps apart.
    pub(super) apart: Option<String>,
    /// Labels, with the columns of their tags.
    pub(super) labels: Vec<(String, String)>,
}

impl Names {
    /// Names what a catalogue has. `order` lists fields in the order in which they were stored first: measurement and field.
    pub(super) fn of(catalogue: &Catalogue, order: &[(String, String)]) -> Self {
        let mut names = Names::default();
        let mut places = HashMap::new();
        for measurement in catalogue.measurements().iter().filter(|measurement| measurement.shape.has_field_columns()) {
            places.insert(measurement.name.as_str(), names.measurements.len());
            names.measurements.push(sources(measurement));
        }
        let mut taken = HashSet::new();
        for (measurement, field) in order {
            let Some((place, known)) = places.get(measurement.as_str()).copied().zip(find(catalogue, measurement))
            else {
                continue;
            };
            let column = known.fields.find(field).and_then(|place| known.fields.as_slice().get(place));
            let Some(column) = column.filter(|column| column.kind != FieldKind::Text) else { continue };
            let name = free(format!("{}_{}", plain(measurement, true), plain(field, true)), &mut taken);
            let is_apart = known.shape == Shape::StarHot && !column.hot;
            names.metrics.insert(name, Metric { measurement: place, column: column.column.clone(), is_apart });
        }
        names
    }

    /// Returns the measurement of a metric.
    pub(super) fn sources(&self, metric: &Metric) -> &Sources {
        &self.measurements[metric.measurement]
    }
}

fn find<'c>(catalogue: &'c Catalogue, name: &str) -> Option<&'c Measurement> {
    catalogue.find(name).and_then(|place| catalogue.measurements().get(place))
}

fn sources(measurement: &Measurement) -> Sources {
    let tables = read_tables(measurement);
    let mut taken = HashSet::new();
    let mut label = |name: &str| {
        let plain = plain(name, false);
        let plain = if plain.starts_with("__") { format!("tag{plain}") } else { plain };
        free(plain, &mut taken)
    };
    let tags = measurement.columns(Role::Tag).iter();
    let labels = tags.map(|column| (label(&column.name), column.column.clone())).collect();
    Sources { identities: tables.identities, records: tables.records, apart: tables.apart, labels }
}

/// Returns a name as Prometheus allows it; metrics may have colons.
fn plain(name: &str, is_metric: bool) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || (is_metric && c == ':');
    let first = name.starts_with(|c: char| c.is_ascii_digit()).then_some('_');
    first.into_iter().chain(name.chars().map(|c| if allowed(c) { c } else { '_' })).collect()
}

/// Returns the name, or the name with the first number that makes it free.
fn free(name: String, taken: &mut HashSet<String>) -> String {
    let mut names = std::iter::once(name.clone()).chain((2_u32..).map(|number| format!("{name}_{number}")));
    let free = names.find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_prometheus_allows_and_nobody_has_twice() {
        assert_eq!(plain("cpu.usage-idle", true), "cpu_usage_idle");
        assert_eq!(plain("5m:ä", true), "_5m:_");
        assert_eq!(plain("a:b", false), "a_b");
        let mut taken = HashSet::new();
        let names = ["a", "a_2", "a", "a"].map(|name| free(name.to_owned(), &mut taken));
        assert_eq!(names, ["a", "a_2", "a_3", "a_4"]);
    }
}
