//! Things that a database would not create, with its reasons, so that they are not tried again for every record. Main type: [`Impossible`].
//!
//! Invariant: the number of entries and their bytes are bounded, because clients make the names up.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use crate::recorder::quote::quoted;

/// Things that could not be created, with the reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible<K: Hash + Eq> {
    reasons: HashMap<K, String>,
    bytes: usize,
    most: usize,
    bytes_max: usize,
}

impl<K: Hash + Eq> Impossible<K> {
    pub(super) fn bounded(most: usize, bytes_max: usize) -> Self {
        Impossible { reasons: HashMap::new(), bytes: 0, most, bytes_max }
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&str>
    where
        K: Borrow<Q>,
    {
        self.reasons.get(key).map(String::as_str)
    }

    /// Remembers a key whose name has this many bytes, if there is room for it.
    pub(super) fn note(&mut self, key: K, name_bytes: usize, reason: &str) {
        if !self.is_full() {
            let reason = quoted(reason).into_owned();
            // The bytes that a map needs for an entry beside its texts.
            self.bytes += name_bytes + reason.len() + 64;
            self.reasons.insert(key, reason);
        }
    }

    /// Returns whether no more are remembered.
    pub(super) fn is_full(&self) -> bool {
        self.reasons.len() >= self.most || self.bytes >= self.bytes_max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.reasons.len()
    }

    pub(super) fn clear(&mut self) {
        self.reasons.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_their_bytes_are_bounded() {
        let mut few = Impossible::<String>::bounded(3, 1 << 20);
        let mut long = Impossible::<String>::bounded(1_000, 10_000);
        for number in 0..500 {
            few.note(number.to_string(), 3, "no");
            long.note(number.to_string(), 1_000, &"x".repeat(100_000));
        }
        assert_eq!((few.len(), few.get("2"), few.get("3")), (3, Some("no"), None));
        assert!(long.is_full() && long.len() < 10 && long.get("0").unwrap().len() < 300);
        long.clear();
        assert!(long.is_empty() && !long.is_full());
    }
}
