//! Operations during schema changes and outside of them: [`Asides`], a part of a tally.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::changing::Changing;
use crate::measurement::AsideMeasurement;
use crate::operation::OperationKind;

/// What is counted aside; nothing where no schema is changed.
#[derive(Debug, Clone, Default)]
pub struct Asides {
    changing: Option<Arc<Changing>>,
    kinds: Vec<(OperationKind, [AsideMeasurement; 2])>,
}

impl Asides {
    /// Counts by these changes.
    pub fn new(changing: Option<Arc<Changing>>) -> Self {
        Asides { changing, kinds: Vec::new() }
    }

    /// Counts an operation that ends now: its response time, or none where it failed.
    #[inline]
    pub fn count(&mut self, kind: OperationKind, intended_ns: u64, response_ns: Option<u64>) {
        let Some(changing) = &self.changing else { return };
        let part = usize::from(changing.was_met_since(intended_ns));
        let aside = &mut self.of(kind)[part];
        match response_ns {
            Some(response_ns) => {
                aside.completed += 1;
                aside.response_time.record(response_ns);
            }
            None => aside.failed += 1,
        }
    }

    fn of(&mut self, kind: OperationKind) -> &mut [AsideMeasurement; 2] {
        let place = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.kinds.push((kind, Default::default()));
            self.kinds.len() - 1
        });
        &mut self.kinds[place].1
    }

    /// Adds what another loop saw.
    pub fn merge(&mut self, other: &Asides) {
        for (kind, theirs) in &other.kinds {
            let mine = self.of(*kind);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
        }
    }

    /// Per kind of operation that occurred there: those during changes (`true`), or outside of them.
    pub fn part(&self, during: bool) -> BTreeMap<String, AsideMeasurement> {
        let parts = self.kinds.iter().map(|(kind, parts)| (kind.to_string(), parts[usize::from(during)].clone()));
        parts.filter(|(_, part)| part.completed + part.failed > 0).collect()
    }
}
