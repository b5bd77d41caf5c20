//! The workload `turnover`: every client adds records of its own, singly and `workload.batch` in a transaction, updates and deletes them. `additions` only adds them, for
//! databases that do nothing else. The content of the database after each operation follows from the seed alone: from the acknowledged operations it is known what must
//! be there.
//!
//! Invariant: a client touches no record of another client.

use std::collections::VecDeque;

use super::{Client, Entry, Workload, write};
use crate::data;
use crate::layout::Access;
use crate::operation::{Fields, Operation};
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static TURNOVER: Entry = Entry {
    name: "turnover",
    summary: "every client adds records of its own, singly and workload.batch in a transaction, updates and deletes them",
    needs_tables: true,
    keeps_records: false,
    access: |settings, _| {
        Ok(Access { update: vec![Fields::All], delete: settings.record.per_measurement == 1, ..Access::default() })
    },
    build: |settings, client| Ok(Box::new(Turnover::new(settings, client, true)?)),
};

/// Registry entry.
pub(super) static ADDITIONS: Entry = Entry {
    name: "additions",
    summary: "every client adds records of its own, singly and workload.batch in a transaction",
    needs_tables: true,
    keeps_records: false,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Turnover::new(settings, client, false)?)),
};

/// Separates the random numbers of this workload from those of others.
const LANE: u64 = 0x7475_726e;

/// Percentage of operations that update, and that delete if records can be deleted; the others add.
const UPDATES: u64 = 25;
const DELETES: u64 = 15;

/// Maximum number of records that may be updated or deleted: a client's newest.
const LIVING_MOST: usize = 4096;

/// Updates set the values of a random record among this many.
const LIKES: u64 = 1_000_000;

struct Turnover {
    stream: Stream,
    client: Client,
    batch: u64,
    /// Number of consecutive records that belong to one client.
    chunk: u64,
    /// The chunk that the next record belongs to, and the number of its records that exist.
    next: (u64, u64),
    updates: bool,
    deletes: bool,
    living: VecDeque<u64>,
}

impl Turnover {
    /// Creates the workload of a client; without changes it only adds.
    fn new(settings: &Settings, client: Client, changes: bool) -> Result<Self, String> {
        let batch = u64::from(settings.workload.batch);
        if batch == 0 || batch > u64::from(write::BATCH_MAX) {
            return Err(format!("workload.batch is {batch}; write 1 to {}", write::BATCH_MAX));
        }
        let generator = data::build(&settings.record)?;
        let per_measurement = generator.records_per_measurement();
        if !per_measurement.is_multiple_of(batch) && !batch.is_multiple_of(per_measurement) {
            return Err(format!(
                "workload.batch = {batch} and record.per_measurement = {per_measurement}: one of them must divide the other, so that a client's transactions \
                 begin and end with its own measurements"
            ));
        }
        let chunk = per_measurement.max(batch);
        let free = settings.record.rows.div_ceil(chunk);
        Ok(Turnover {
            stream: Stream::new(client.seed, u64::from(client.number), LANE),
            client,
            batch,
            chunk,
            next: (free + u64::from(client.number), 0),
            updates: changes,
            deletes: changes && per_measurement == 1,
            living: VecDeque::new(),
        })
    }

    fn add(&mut self) -> Operation {
        let (chunk, there) = self.next;
        let first = chunk * self.chunk + there;
        let records = if self.stream.below(2) == 0 { 1 } else { self.batch.min(self.chunk - there) };
        self.next.1 += records;
        if self.next.1 == self.chunk {
            self.next = (chunk + u64::from(self.client.of.max(1)), 0);
        }
        self.living.extend(first..first + records);
        let too_many = self.living.len().saturating_sub(LIVING_MOST);
        self.living.drain(..too_many);
        // At most the batch, which is a 32-bit number.
        Operation::Insert { first, records: records as u32 }
    }
}

impl Workload for Turnover {
    fn next(&mut self, _: &mut Cells) -> Operation {
        let drawn = self.stream.below(100);
        let place = match self.living.len() {
            0 => return self.add(),
            living => self.stream.below(living as u64) as usize,
        };
        match self.living.get(place).copied() {
            Some(record) if self.updates && drawn < UPDATES => {
                Operation::Update { record, like: self.stream.below(LIKES), fields: Fields::All }
            }
            Some(record) if self.deletes && drawn < UPDATES + DELETES => {
                self.living.swap_remove_back(place);
                Operation::Delete { record }
            }
            _ => self.add(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn settings(per_measurement: u64, batch: u32) -> Settings {
        let mut settings = Settings::default();
        settings.record.type_name = "sensor".to_owned();
        (settings.record.per_measurement, settings.workload.batch) = (per_measurement, batch);
        settings
    }

    fn operations(settings: &Settings, number: u32, count: usize) -> Vec<Operation> {
        let mut turnover = Turnover::new(settings, Client { number, of: 3, seed: 7 }, true).unwrap();
        (0..count).map(|_| turnover.next(&mut Cells::new())).collect()
    }

    #[test]
    fn clients_add_each_record_once_and_change_only_what_is_there() {
        for (per_measurement, batch) in [(1, 1), (1, 10), (10, 1), (10, 5), (20, 20)] {
            let settings = settings(per_measurement, batch);
            let mut all = BTreeSet::new();
            for client in 0..3 {
                let mut living = BTreeSet::new();
                for operation in operations(&settings, client, 2000) {
                    match operation {
                        Operation::Insert { first, records } => {
                            for record in first..first + u64::from(records) {
                                assert!(all.insert(record), "{record} was added twice");
                                living.insert(record);
                            }
                        }
                        Operation::Update { record, .. } => assert!(living.contains(&record)),
                        Operation::Delete { record } => {
                            assert!(per_measurement == 1 && living.remove(&record));
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            assert!(all.len() > 3 * 1000);
        }
    }

    #[test]
    fn all_kinds_of_operation_occur_and_the_seed_decides_them() {
        let settings = settings(1, 8);
        let all = operations(&settings, 1, 1000);
        let count = |is: fn(&Operation) -> bool| all.iter().filter(|operation| is(operation)).count();
        assert!((200..300).contains(&count(|operation| matches!(operation, Operation::Update { .. }))));
        assert!((100..200).contains(&count(|operation| matches!(operation, Operation::Delete { .. }))));
        assert!(count(|operation| matches!(operation, Operation::Insert { records: 2.., .. })) > 100);
        assert_eq!(all, operations(&settings, 1, 1000));
    }

    #[test]
    fn without_changes_records_are_only_added() {
        let mut additions = Turnover::new(&settings(1, 8), Client { number: 1, of: 3, seed: 7 }, false).unwrap();
        let all: Vec<_> = (0..1000).map(|_| additions.next(&mut Cells::new())).collect();
        assert!(all.iter().all(|operation| matches!(operation, Operation::Insert { .. })));
        assert!(all.iter().any(|operation| matches!(operation, Operation::Insert { records: 1, .. })));
        assert!(all.iter().any(|operation| matches!(operation, Operation::Insert { records: 8, .. })));
    }

    #[test]
    fn batches_that_reach_into_measurements_of_others_are_refused() {
        let refusal = |per_measurement, batch| {
            let client = Client { number: 0, of: 1, seed: 1 };
            Turnover::new(&settings(per_measurement, batch), client, true).err().unwrap()
        };
        assert!(refusal(10, 3).contains("workload.batch = 3"));
        assert!(refusal(1, 0).contains("workload.batch is 0"));
    }
}
