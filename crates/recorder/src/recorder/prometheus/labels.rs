//! The labels of a series. Main type: [`Labels`].

/// Labels with their values, sorted by name; none of them is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Labels(Vec<(String, String)>);

impl Labels {
    /// Creates labels from those that have a value.
    pub(super) fn new(mut labels: Vec<(String, String)>) -> Self {
        labels.retain(|(_, value)| !value.is_empty());
        labels.sort();
        Labels(labels)
    }

    /// Returns the value of a label; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    /// Returns those of the labels that have one of these names.
    pub(super) fn only(&self, names: &[String]) -> Self {
        Labels(self.0.iter().filter(|(name, _)| names.contains(name)).cloned().collect())
    }

    /// Iterates over names and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }
}
