//! The shares of the quarantine that senders hold, and when one is more than fair. Main types: [`Holders`], pure, and [`QuarantineView`], which
//! other threads read.
//!
//! The share is max-min fair: a level at which all holders, each cut to it, and one more that holds nothing yet take the whole bound. A single
//! holder may hold half of it, two a third each; a holder of less leaves the rest to the others. The level limits nobody before half of the
//! bound is used.

use std::collections::HashMap;

use crate::recorder::quote::shortened;
use crate::units::show_bytes;

/// The most senders that are told apart; beyond them the smallest is forgotten, as if it held nothing.
const HOLDERS_MAX: usize = 4_000;
/// The most characters of a reason that are kept here.
const REASON_MAX: usize = 300;
/// The number of largest holders that are shown.
const LARGEST: usize = 5;

/// Returns the key of a sender: its name in `[[access]]`, or the name it gives itself if it has none there. Control characters are escaped.
pub fn holder_of(sender: &str, source: &str) -> String {
    if sender.is_empty() { format!("source {source:?}") } else { format!("sender {sender:?}") }
}

/// What one sender holds of the quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// The number of records in quarantine.
    pub rows: u64,
    /// Bytes of those records.
    pub bytes: u64,
    /// Bytes of the sender's refused records that wait in the spool for room in quarantine.
    pub deferred_bytes: u64,
    /// The reason of the newest refusal.
    pub reason: String,
}

impl Held {
    /// Returns the bytes in quarantine and those that wait for room there.
    pub fn all_bytes(&self) -> u64 {
        self.bytes + self.deferred_bytes
    }
}

/// A change of what a sender holds.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub rows: i64,
    pub bytes: i64,
    pub deferred_bytes: i64,
    /// The reason of the newest refusal; empty if there was none.
    pub reason: String,
}

/// What all senders hold.
#[derive(Debug, Default)]
pub(super) struct Holders(HashMap<String, Held>);

impl Holders {
    /// Applies a change to what a sender holds.
    pub(super) fn change(&mut self, holder: &str, change: &Change) {
        if !self.0.contains_key(holder) {
            if change.bytes <= 0 && change.deferred_bytes <= 0 {
                return;
            }
            if self.0.len() >= HOLDERS_MAX {
                let smallest = self.0.iter().min_by_key(|(_, held)| held.all_bytes()).map(|(name, _)| name.clone());
                smallest.and_then(|smallest| self.0.remove(&smallest));
            }
        }
        let held = self.0.entry(holder.to_owned()).or_default();
        held.rows = held.rows.saturating_add_signed(change.rows);
        held.bytes = held.bytes.saturating_add_signed(change.bytes);
        held.deferred_bytes = held.deferred_bytes.saturating_add_signed(change.deferred_bytes);
        if !change.reason.is_empty() {
            held.reason = shortened(&change.reason, REASON_MAX).into_owned();
        }
        if held.all_bytes() == 0 {
            self.0.remove(holder);
        }
    }

    /// Returns the view of the shares, given the bytes in quarantine and its bound.
    pub(super) fn view(&self, bytes: u64, bound_bytes: u64) -> QuarantineView {
        let mut largest: Vec<_> = self.0.iter().collect();
        largest.sort_unstable_by(|a, b| b.1.all_bytes().cmp(&a.1.all_bytes()).then_with(|| a.0.cmp(b.0)));
        let (share_bytes, room_bytes) = (
            level(largest.iter().rev().map(|(_, held)| held.all_bytes()), bound_bytes),
            level(sorted(largest.iter().map(|(_, held)| held.bytes)), bound_bytes),
        );
        let chosen = |is_chosen: &dyn Fn(&Held) -> bool| {
            let chosen = largest.iter().filter(|(_, held)| is_chosen(held));
            chosen.map(|(name, held)| ((*name).clone(), (*held).clone())).collect::<HashMap<_, _>>()
        };
        QuarantineView {
            bound_bytes,
            share_bytes,
            is_full: bytes >= bound_bytes,
            closed: chosen(&|held| held.all_bytes() > share_bytes),
            deferring: chosen(&|held| held.bytes > room_bytes),
            largest: largest.iter().take(LARGEST).map(|(name, held)| ((*name).clone(), (*held).clone())).collect(),
        }
    }
}

fn sorted(values: impl Iterator<Item = u64>) -> impl ExactSizeIterator<Item = u64> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.into_iter()
}

/// Returns the level to which these holdings, ascending, must be cut so that they and one more holder fit in the bound; `u64::MAX` if they need no cut.
fn level(ascending: impl ExactSizeIterator<Item = u64>, bound_bytes: u64) -> u64 {
    let (count, mut left) = (ascending.len() as u64, bound_bytes);
    for (place, own) in (0..).zip(ascending) {
        let equal = left / (count - place + 1);
        if own > equal {
            return equal;
        }
        left -= own;
    }
    u64::MAX
}

/// How the quarantine is shared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuarantineView {
    bound_bytes: u64,
    share_bytes: u64,
    is_full: bool,
    /// Senders from which nothing more is taken in.
    closed: HashMap<String, Held>,
    /// Senders whose refused records wait in the spool.
    deferring: HashMap<String, Held>,
    /// The largest holders, the largest first.
    pub largest: Vec<(String, Held)>,
}

impl QuarantineView {
    /// Returns the quarantine's bound, in bytes.
    pub fn bound_bytes(&self) -> u64 {
        self.bound_bytes
    }

    /// Returns whether nothing more is taken in from any sender.
    pub fn closes_any(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Returns the senders from which nothing more is taken in.
    pub fn closed(&self) -> impl Iterator<Item = (&String, &Held)> {
        self.closed.iter()
    }

    /// Returns whether refused records of a sender are to wait in the spool, because it holds more than its share or the quarantine is full.
    pub fn defers(&self, holder: &str) -> bool {
        self.is_full || self.deferring.contains_key(holder)
    }

    /// Returns why nothing more is taken in from a sender and what to do about it; `None` if its records are taken in.
    pub fn why_closed(&self, holder: &str) -> Option<String> {
        let held = self.closed.get(holder)?;
        let shown = |bytes: u64| show_bytes(bytes as f64);
        let reason = if held.reason.is_empty() { "the quarantine has it" } else { &held.reason };
        Some(format!(
            "the database refuses records of {holder}, and with {} it holds more of the quarantine than its share of {} (quarantine.bound is {}); the \
             newest reason: {reason}; send what the database takes, and have what is in quarantine replayed or discarded: loadline record CONFIG.toml \
             --quarantine list",
            shown(held.all_bytes()),
            shown(self.share_bytes),
            shown(self.bound_bytes)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(held: &[(&str, u64, u64)]) -> Holders {
        let mut holders = Holders::default();
        for (name, bytes, deferred_bytes) in held {
            let (bytes, deferred_bytes) = (*bytes as i64, *deferred_bytes as i64);
            holders.change(name, &Change { rows: 1, bytes, deferred_bytes, reason: format!("no {name}") });
        }
        holders
    }

    fn closed(held: &[(&str, u64, u64)]) -> Vec<String> {
        let bytes = held.iter().map(|(_, bytes, _)| bytes).sum();
        let mut closed: Vec<_> = holders(held).view(bytes, 1_000).closed.into_keys().collect();
        closed.sort();
        closed
    }

    #[test]
    fn the_share_is_max_min_fair_and_leaves_room_for_one_more() {
        assert_eq!(closed(&[("a", 500, 0)]), [""; 0]);
        assert_eq!(closed(&[("a", 501, 0)]), ["a"]);
        assert_eq!(closed(&[("a", 333, 0), ("b", 333, 0)]), [""; 0]);
        assert_eq!(closed(&[("a", 334, 0), ("b", 334, 0)]), ["a", "b"]);
        // A small holder leaves the rest to the others.
        assert_eq!(closed(&[("a", 494, 0), ("b", 10, 0)]), [""; 0]);
        assert_eq!(closed(&[("a", 496, 0), ("b", 10, 0)]), ["a"]);
        // Records that wait for room count as held, too.
        assert_eq!(closed(&[("a", 300, 9_000), ("b", 10, 0)]), ["a"]);
        assert_eq!(
            holders(&[]).view(0, 1_000),
            QuarantineView { bound_bytes: 1_000, share_bytes: u64::MAX, ..<_>::default() }
        );
    }

    #[test]
    fn nobody_holds_too_much_before_half_of_the_bound_is_used() {
        let mut random = 1_u64;
        for _ in 0..2_000 {
            let mut next = |below: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % below
            };
            let names: Vec<_> = (0..1 + next(6)).map(|number| (number.to_string(), next(300))).collect();
            let held: Vec<_> = names.iter().map(|(name, bytes)| (name.as_str(), *bytes, 0)).collect();
            let bytes: u64 = held.iter().map(|(_, bytes, _)| bytes).sum();
            assert!(bytes >= 499 || closed(&held).is_empty(), "{held:?}");
        }
    }

    #[test]
    fn records_wait_for_room_only_where_the_quarantine_itself_is_used_up() {
        let view = holders(&[("a", 400, 9_000), ("b", 10, 0)]).view(410, 1_000);
        assert!(view.why_closed("a").is_some_and(|why| why.contains("no a") && why.contains("quarantine.bound")));
        assert!(view.why_closed("b").is_none() && !view.defers("a") && !view.defers("b"));
        let view = holders(&[("a", 600, 0), ("b", 10, 0)]).view(610, 1_000);
        assert!(view.defers("a") && !view.defers("b") && !view.defers("c"));
        let view = holders(&[("a", 600, 0), ("b", 400, 0)]).view(1_000, 1_000);
        assert!(view.defers("b") && view.defers("c") && view.why_closed("c").is_none());
        assert_eq!(view.largest[0].0, "a");
    }

    #[test]
    fn what_is_given_back_is_held_no_more_and_memory_is_bounded() {
        let mut holders = holders(&[("a", 600, 5)]);
        holders.change("a", &Change { rows: -1, bytes: -600, deferred_bytes: -5, ..Change::default() });
        holders.change("b", &Change { bytes: -5, ..Change::default() });
        assert!(holders.0.is_empty());
        (0..9_000)
            .for_each(|number| holders.change(&number.to_string(), &Change { bytes: number, ..Change::default() }));
        assert!(holders.0.len() <= HOLDERS_MAX && holders.0.contains_key("8999") && !holders.0.contains_key("1"));
        assert_eq!(holder_of("", "a\nb"), "source \"a\\nb\"");
        assert_eq!(holder_of("n", "a"), "sender \"n\"");
    }
}
