//! Lists everything in a spool. Main function: [`inventory`].

use crate::recorder::spool::entry::DEFERRED_LANE;
use crate::recorder::spool::fact::StoredRefusal;
use crate::recorder::spool::{APART_LANES, Entry, GREEDY_LANES, Offer, Reader, SpoolError};

/// The contents of a spool.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The waiting entries of all lanes.
    pub waiting: Vec<Entry>,
    /// The records in quarantine, each with its entry.
    pub quarantined: Vec<(i64, Offer)>,
    /// The number of entries and records in quarantine that cannot be read.
    pub unreadable: u64,
}

/// Returns everything in this many lanes of sources, in all other lanes, and in quarantine.
///
/// # Errors
/// Returns an error if the disk fails.
pub fn inventory(reader: &Reader, lanes: u32) -> Result<Inventory, SpoolError> {
    let mut all = Inventory::default();
    for lane in (0..lanes).chain(GREEDY_LANES).chain(APART_LANES).chain([DEFERRED_LANE]) {
        for found in reader.read(lane, (i64::MIN, i64::MAX), usize::MAX, u64::MAX)? {
            match found {
                Ok(entry) => all.waiting.push(entry),
                Err(_) => all.unreadable += 1,
            }
        }
    }
    let places: Vec<_> = {
        let index = reader.shelf.index();
        let place = |(id, refusal): (i64, &super::super::index::RefusalRef)| {
            (id, refusal.entry, refusal.place, index.segment(refusal.place.log, refusal.place.segment).epoch)
        };
        index.refusals(0).filter(|(_, refusal)| !refusal.is_damage).map(place).collect()
    };
    for (id, entry, place, epoch) in places {
        let stored = reader.shelf.read(&place, epoch).ok().and_then(|bytes| StoredRefusal::of(&bytes));
        match stored.filter(|refusal| refusal.id == id) {
            Some(refusal) => all.quarantined.push((entry, refusal.offer.unpacked().unwrap_or_else(|packed| packed))),
            None => all.unreadable += 1,
        }
    }
    Ok(all)
}
