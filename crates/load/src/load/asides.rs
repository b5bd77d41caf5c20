//! Operations during schema changes and outside of them: [`Asides`], a part of a tally.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::changing::Changing;
use crate::measurement::AsideMeasurement;
use crate::operation::{KindNames, OperationKind};

/// Separate counts for schema changes; empty if no schema is changed.
#[derive(Debug, Clone, Default)]
pub struct Asides {
    changing: Option<Arc<Changing>>,
    parts: Vec<(&'static str, OperationKind, AsideMeasurement)>,
}

impl Asides {
    /// Makes counts for these changes.
    pub fn new(changing: Option<Arc<Changing>>) -> Self {
        Asides { changing, parts: Vec::new() }
    }

    /// Counts an operation that ends now with its response time; `None` if it failed.
    #[inline]
    pub fn count(&mut self, kind: OperationKind, intended_ns: u64, response_ns: Option<u64>) {
        let Some(changing) = &self.changing else { return };
        let part = changing.part_at(intended_ns);
        if let Some(response_ns) = response_ns {
            changing.completed(intended_ns + response_ns);
        }
        let aside = self.of(part, kind);
        match response_ns {
            Some(response_ns) => {
                aside.completed += 1;
                aside.response_time.record(response_ns);
            }
            None => aside.failed += 1,
        }
    }

    /// Returns whether a load that lasts as long as the changes was over at a time.
    #[inline]
    pub fn is_over(&self, time_ns: u64) -> bool {
        self.changing.as_ref().is_some_and(|changing| time_ns >= changing.over_ns())
    }

    fn of(&mut self, part: &'static str, kind: OperationKind) -> &mut AsideMeasurement {
        let place = self.parts.iter().position(|known| (known.0, known.1) == (part, kind)).unwrap_or_else(|| {
            self.parts.push((part, kind, AsideMeasurement::default()));
            self.parts.len() - 1
        });
        &mut self.parts[place].2
    }

    /// Adds the observations of another loop.
    pub fn merge(&mut self, other: &Asides) {
        other.parts.iter().for_each(|(part, kind, theirs)| self.of(part, *kind).merge(theirs));
    }

    /// Returns, for each kind of change and for `outside` of all, the operations intended then, by kind of operation.
    pub fn parts(&self, names: &KindNames) -> BTreeMap<String, BTreeMap<String, AsideMeasurement>> {
        let mut parts: BTreeMap<String, BTreeMap<String, AsideMeasurement>> = BTreeMap::new();
        for (part, kind, aside) in &self.parts {
            parts.entry((*part).to_owned()).or_default().insert(names.name(*kind), aside.clone());
        }
        parts
    }
}
