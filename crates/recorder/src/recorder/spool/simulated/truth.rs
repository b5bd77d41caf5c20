//! The truth about what was given to a spool and what became of it. Main type: [`Truth`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loadline_segments::segments::simulated::Told;

use crate::recorder::spool::{Damage, Entry, Offer};

/// The fate of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its sender has no answer yet.
    Offered,
    /// Its sender was told that it is not stored.
    Refused,
    /// Its sender was told that it is stored.
    Acknowledged,
    /// It is in the database.
    Committed,
    /// It was discarded, or a discard was tried.
    MayBeDiscarded,
    /// It is gone, and was reported as lost.
    Lost,
}

/// The fates of all records, by the number that each carries.
#[derive(Debug, Default)]
pub struct Truth {
    fates: BTreeMap<u64, Fate>,
    ledgers: BTreeMap<u32, i64>,
    newest: u64,
    /// The number of records that were reported as lost and may be there all the same.
    told_too_much: u64,
}

/// Returns the lines of a body, each with its line end.
pub fn lines_of(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split_inclusive(|byte| *byte == b'\n')
}

/// Returns the numbers of the records in a body.
pub fn rows_of(body: &[u8]) -> Vec<u64> {
    let number = |line: &[u8]| std::str::from_utf8(line).ok()?.split(' ').next()?.parse().ok();
    lines_of(body).filter_map(number).collect()
}

impl Truth {
    pub fn next_row(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    pub fn rows(&self) -> u64 {
        self.newest
    }

    pub fn offered(&mut self, offer: &Offer) {
        self.set(offer, Fate::Offered);
    }

    pub fn set(&mut self, offer: &Offer, fate: Fate) {
        self.fates.extend(rows_of(&offer.body).into_iter().map(|row| (row, fate)));
    }

    pub fn ledger(&self, lane: u32) -> i64 {
        self.ledgers.get(&lane).copied().unwrap_or(0)
    }

    pub fn ledgers(&self) -> BTreeMap<u32, i64> {
        self.ledgers.clone()
    }

    /// Notes that a writer has committed entries, except for their records in quarantine.
    pub fn commit(&mut self, lane: u32, entries: &[Arc<Entry>], quarantined: &[(i64, i64)]) -> Result<(), Told> {
        for entry in entries {
            for (number, row) in rows_of(&entry.offer.body).into_iter().enumerate() {
                if quarantined.contains(&(entry.sequence, number as i64)) {
                    continue;
                }
                match self.fates.insert(row, Fate::Committed) {
                    Some(Fate::Acknowledged | Fate::Offered | Fate::MayBeDiscarded) => {}
                    fate => return Err(format!("record {row} is written, and was {fate:?}")),
                }
            }
            self.ledgers.insert(lane, entry.sequence);
        }
        Ok(())
    }

    pub fn may_be_discarded(&mut self, rows: &[u64]) {
        self.fates.extend(rows.iter().map(|row| (*row, Fate::MayBeDiscarded)));
    }

    pub fn must_be_there(&self, offer: &Offer) -> Result<(), Told> {
        let is_there = |row: &u64| {
            matches!(
                self.fates.get(row),
                Some(Fate::Acknowledged | Fate::Committed | Fate::MayBeDiscarded | Fate::Lost)
            )
        };
        match rows_of(&offer.body).iter().all(is_there) {
            true => Ok(()),
            false => Err(format!("{:?} is called a duplicate and is not there", offer.message_id)),
        }
    }

    pub fn must_not_be_there(&self, offer: &Offer) -> Result<(), Told> {
        let is_there = |row: &u64| matches!(self.fates.get(row), Some(Fate::Acknowledged | Fate::Committed));
        match rows_of(&offer.body).iter().any(is_there) {
            true => Err(format!("{:?} is there and not called a duplicate", offer.message_id)),
            false => Ok(()),
        }
    }

    /// Compares the contents of an opened spool with what it should have, and returns how many records are lost.
    pub fn compare(
        &mut self,
        waiting: &[Entry],
        quarantined: &[(u64, i64)],
        damage: &Damage,
        is_damaged: bool,
    ) -> Result<u64, Told> {
        let mut found: HashMap<u64, u64> = HashMap::new();
        for (row, _) in quarantined {
            *found.entry(*row).or_default() += 1;
        }
        for entry in waiting {
            let rows = rows_of(&entry.offer.body);
            if rows.len() != entry.offer.rows as usize {
                return Err(format!(
                    "entry {} has {} records and says {}",
                    entry.sequence,
                    rows.len(),
                    entry.offer.rows
                ));
            }
            for row in rows {
                // A record in quarantine is decided with its entry.
                if !quarantined.contains(&(row, entry.sequence)) {
                    *found.entry(row).or_default() += 1;
                }
            }
        }
        if let Some((row, times)) = found.iter().find(|(_, times)| **times > 1) {
            let holds = |entry: &&Entry| rows_of(&entry.offer.body).contains(row);
            let places: Vec<_> = waiting
                .iter()
                .filter(holds)
                .map(|entry| (entry.offer.lane, entry.sequence, rows_of(&entry.offer.body)))
                .collect();
            let refused: Vec<_> = quarantined.iter().filter(|(refused, _)| refused == row).collect();
            return Err(format!(
                "record {row} is there {times} times: in entries (lane, sequence, records) {places:?}, in quarantine (record, entry) {refused:?}"
            ));
        }
        let mut missing = 0;
        for (row, fate) in &mut self.fates {
            let is_there = found.contains_key(row);
            match (*fate, is_there) {
                (Fate::Offered, true) => *fate = Fate::Acknowledged,
                (Fate::Offered, false) => *fate = Fate::Refused,
                (Fate::Acknowledged, false) => {
                    *fate = Fate::Lost;
                    missing += 1;
                }
                // Another damage took the statement that an older version of its entry is superseded, so the record is found again.
                (Fate::Lost, true) => *fate = Fate::Acknowledged,
                (Fate::Committed | Fate::Refused, true) => {
                    return Err(format!("record {row} is there, and was {fate:?}"));
                }
                _ => {}
            }
        }
        if let Some(row) = found.keys().find(|row| !self.fates.contains_key(row)) {
            return Err(format!("record {row} is there and was never offered"));
        }
        if missing > damage.rows {
            return Err(format!("{missing} records are missing and {} told: {damage:?}", damage.rows));
        }
        if !is_damaged && !damage.is_none() {
            return Err(format!("nothing was damaged, and it says {damage:?}"));
        }
        self.told_too_much += damage.rows - missing;
        Ok(missing)
    }
}
