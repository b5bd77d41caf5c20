//! The truth about what was sent, and what its senders were told. Main type: [`Truth`].
//!
//! A record is identified by its time stamp, which no other record has.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loadline_segments::segments::simulated::Told;

/// The fate of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its sender was told that it is stored.
    Acknowledged,
    /// Its sender was told that it is not stored.
    Refused,
    /// Its sender got no answer, or the answer that it is unknown.
    Unknown,
    /// It was discarded, or a discard was tried.
    MayBeDiscarded,
    /// It was acknowledged, and neither stored nor in the older copy of the spool that took the spool's place.
    MayBeGone,
}

/// The places where records are found.
#[derive(Debug, Default)]
pub struct Sighting {
    /// Each occurrence in the database: the writer that stored it, and the record, in the order in which each writer stored them.
    pub stored: Vec<(i64, i64)>,
    /// Records in the spool.
    pub waiting: Vec<i64>,
    /// Records in quarantine.
    pub quarantined: Vec<i64>,
}

/// A source and a measurement.
type Kin = (usize, u64);

/// A record that was sent.
#[derive(Debug, Clone, Copy)]
struct Record {
    fate: Fate,
    /// The record's source and measurement: records that have both in common keep their order.
    kin: Kin,
    /// Whether the record was sent more than once, so that its place in the order of its source is not known.
    is_again: bool,
}

/// All records that were sent.
#[derive(Debug, Default)]
pub struct Truth {
    records: BTreeMap<i64, Record>,
    newest: i64,
    /// The newest record of each source and measurement that was seen in the database.
    reached: HashMap<Kin, i64>,
    seen: BTreeSet<i64>,
    /// Records that the older copy of a spool has in quarantine although they were replayed and stored since.
    doubles: BTreeSet<i64>,
    /// Whether the order of records is checked.
    holds_order: bool,
}

/// Returns the time stamps of lines.
pub fn numbers_of(body: &[u8]) -> Vec<i64> {
    let number = |line: &[u8]| std::str::from_utf8(line).ok()?.rsplit(' ').next()?.trim().parse().ok();
    body.split_inclusive(|byte| *byte == b'\n').filter_map(number).collect()
}

impl Truth {
    /// Returns a truth without records. `holds_order` says whether the order of each source's records of a measurement is checked.
    pub fn new(holds_order: bool) -> Self {
        Truth { holds_order, ..Truth::default() }
    }

    /// Returns a truth whose records have numbers behind this one.
    pub fn after(self, number: i64) -> Self {
        Truth { newest: number, ..self }
    }

    /// Returns the number of another record, which a source is about to send.
    pub fn next(&mut self, kin: Kin) -> i64 {
        self.newest += 1;
        self.records.insert(self.newest, Record { fate: Fate::Unknown, kin, is_again: false });
        self.newest
    }

    /// Notes that records are sent again.
    pub fn again(&mut self, numbers: &[i64]) {
        for number in numbers {
            if let Some(record) = self.records.get_mut(number) {
                record.is_again = true;
                // Whatever the sender was told before, the record may be stored from now on.
                if record.fate == Fate::Refused {
                    record.fate = Fate::Unknown;
                }
            }
        }
    }

    pub fn set(&mut self, numbers: &[i64], fate: Fate) {
        for number in numbers {
            if let Some(record) = self.records.get_mut(number) {
                record.fate = fate;
            }
        }
    }

    /// Notes that a sender was told that nothing is stored; an earlier try may be stored all the same.
    pub fn refuse(&mut self, numbers: &[i64]) {
        for number in numbers {
            if let Some(record) = self.records.get_mut(number).filter(|record| !record.is_again) {
                record.fate = Fate::Refused;
            }
        }
    }

    fn is_any(&self, numbers: &[i64], is: impl Fn(Fate) -> bool) -> bool {
        numbers.iter().any(|number| self.records.get(number).is_some_and(|record| is(record.fate)))
    }

    /// Checks a request that was called new.
    pub fn must_be_new(&self, numbers: &[i64]) -> Result<(), Told> {
        match self.is_any(numbers, |fate| fate == Fate::Acknowledged) {
            true => Err(format!("{numbers:?} is stored and was not called a duplicate")),
            false => Ok(()),
        }
    }

    /// Checks a request that was called a duplicate: records without an answer are acknowledged by it.
    pub fn is_stored_already(&mut self, numbers: &[i64]) -> Result<(), Told> {
        if self.is_any(numbers, |fate| fate == Fate::Refused) {
            return Err(format!("{numbers:?} is called a duplicate, and its sender was told that it is not stored"));
        }
        for number in numbers {
            if let Some(record) = self.records.get_mut(number).filter(|record| record.fate == Fate::Unknown) {
                record.fate = Fate::Acknowledged;
            }
        }
        Ok(())
    }

    /// Notes that an older copy has taken the place of the spool: acknowledged records that are not among `kept` may be gone, and `doubles` may be stored again.
    pub fn go_back(&mut self, kept: &BTreeSet<i64>, doubles: BTreeSet<i64>) {
        for (number, record) in &mut self.records {
            if record.fate == Fate::Acknowledged && !kept.contains(number) {
                record.fate = Fate::MayBeGone;
            }
        }
        self.doubles.extend(doubles);
        // What waits in the copy is older than what was stored since.
        self.holds_order = false;
    }

    /// Returns the number of acknowledged records.
    pub fn acknowledged(&self) -> u64 {
        self.records.values().filter(|record| record.fate == Fate::Acknowledged).count() as u64
    }

    /// Compares what was found with what was promised. With `at_end`, nothing may wait any more.
    pub fn compare(&mut self, found: &Sighting, at_end: bool) -> Result<(), Told> {
        let stored: BTreeSet<i64> = found.stored.iter().map(|(_, number)| *number).collect();
        let quarantined: BTreeSet<i64> = found.quarantined.iter().copied().collect();
        let waiting: BTreeSet<i64> = found.waiting.iter().copied().collect();
        if stored.len() != found.stored.len() {
            let times = |number: i64| found.stored.iter().filter(|(_, own)| *own == number).count();
            let is_wrong = |number: i64| !self.doubles.contains(&number) && times(number) > 1;
            let twice: Vec<_> = found.stored.iter().filter(|(_, number)| is_wrong(*number)).collect();
            if !twice.is_empty() {
                return Err(format!("records are in the database more than once: (writer, record) {twice:?}"));
            }
        }
        if quarantined.len() != found.quarantined.len() {
            return Err(format!("records are in quarantine more than once: {:?}", found.quarantined));
        }
        if let Some(both) = stored.intersection(&quarantined).find(|number| !self.doubles.contains(*number)) {
            return Err(format!("record {both} is in the database and in quarantine"));
        }
        if at_end && !waiting.is_empty() {
            return Err(format!("records wait at the end: {waiting:?}"));
        }
        for number in stored.iter().chain(&waiting).chain(&quarantined) {
            match self.records.get(number).map(|record| record.fate) {
                None => return Err(format!("record {number} is there, and was never sent")),
                Some(Fate::Refused) => {
                    return Err(format!("record {number} is there, and its sender was told that it is not stored"));
                }
                Some(_) => {}
            }
        }
        for (number, record) in &self.records {
            let is_there = stored.contains(number) || waiting.contains(number) || quarantined.contains(number);
            if record.fate == Fate::Acknowledged && !is_there {
                let was = if self.seen.contains(number) {
                    "it had been in the database"
                } else {
                    "it was not in the database"
                };
                return Err(format!("record {number} was acknowledged and is gone; {was}"));
            }
        }
        self.hold_order(found)?;
        self.seen.extend(stored);
        Ok(())
    }

    /// Checks that new records in the database come behind the earlier ones of their source, and in order.
    fn hold_order(&mut self, found: &Sighting) -> Result<(), Told> {
        if !self.holds_order {
            return Ok(());
        }
        let mut newly: HashMap<Kin, BTreeSet<i64>> = HashMap::new();
        let mut last: HashMap<(Kin, i64), i64> = HashMap::new();
        for (writer, number) in found.stored.iter().filter(|(_, number)| !self.seen.contains(number)) {
            let Some(record) = self.records.get(number).filter(|record| !record.is_again) else { continue };
            newly.entry(record.kin).or_default().insert(*number);
            let before = last.insert((record.kin, *writer), *number).unwrap_or(0);
            if before > *number {
                return Err(format!("record {number} of {:?} is stored behind {before}", record.kin));
            }
        }
        for (kin, newly) in newly {
            let reached = self.reached.entry(kin).or_insert(0);
            if let Some(first) = newly.first().filter(|first| *first < reached) {
                return Err(format!("record {first} of {kin:?} is stored behind {reached}, which was there before"));
            }
            *reached = newly.last().copied().unwrap_or(*reached);
        }
        Ok(())
    }
}
