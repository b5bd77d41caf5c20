//! The workload `write`: whole measurements, record by record, as measuring clients send them.

use super::{Client, Entry, Workload};
use crate::layout::Access;
use crate::operation::Operation;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static WRITE: Entry = Entry {
    name: "write",
    summary: "every client writes its own measurements, workload.batch records in a transaction",
    needs_tables: true,
    keeps_records: false,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Write::new(settings, client)?)),
};

/// Maximum number of records in one operation.
pub(super) const BATCH_MAX: u32 = 100_000;

/// Of the measurements behind the existing rows, client c of n takes c, c + n, c + 2n ...
struct Write {
    measurement: u64,
    written: u64,
    clients: u64,
    batch: u32,
    per_measurement: u64,
}

impl Write {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let (batch, per_measurement) = (settings.workload.batch, settings.record.per_measurement);
        if batch == 0 || batch > BATCH_MAX {
            return Err(format!("workload.batch is {batch}; write 1 to {BATCH_MAX}"));
        }
        if per_measurement == 0 || !per_measurement.is_multiple_of(u64::from(batch)) {
            return Err(format!(
                "workload.batch = {batch} does not divide record.per_measurement = {per_measurement}; transactions would \
                 reach over the end of a measurement"
            ));
        }
        let free = settings.record.rows.div_ceil(per_measurement);
        let clients = u64::from(client.of.max(1));
        Ok(Write { measurement: free + u64::from(client.number), written: 0, clients, batch, per_measurement })
    }
}

impl Workload for Write {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        let first = self.measurement * self.per_measurement + self.written;
        self.written += u64::from(self.batch);
        if self.written == self.per_measurement {
            self.written = 0;
            self.measurement += self.clients;
        }
        Operation::Insert { first, records: self.batch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rows: u64, per_measurement: u64, batch: u32) -> Settings {
        let mut settings = Settings::default();
        settings.record.rows = rows;
        settings.record.per_measurement = per_measurement;
        settings.workload.batch = batch;
        settings
    }

    fn first_records(settings: &Settings, number: u32, of: u32, count: usize) -> Vec<u64> {
        let mut write = Write::new(settings, Client { number, of, seed: 1 }).unwrap();
        let mut next = || match write.next(&mut Cells::new()) {
            Operation::Insert { first, .. } => first,
            other => panic!("{other:?} does not write"),
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn clients_write_whole_measurements_of_their_own() {
        let settings = settings(0, 10, 5);
        assert_eq!(first_records(&settings, 0, 2, 5), [0, 5, 20, 25, 40]);
        assert_eq!(first_records(&settings, 1, 2, 5), [10, 15, 30, 35, 50]);
    }

    #[test]
    fn all_clients_together_write_every_record_once() {
        let settings = settings(95, 10, 1);
        let mut written: Vec<_> = (0..3).flat_map(|client| first_records(&settings, client, 3, 40)).collect();
        written.sort_unstable();
        assert_eq!(written, (100..220).collect::<Vec<_>>());
    }

    #[test]
    fn batches_that_reach_over_a_measurement_are_refused() {
        let refusal = |batch| Write::new(&settings(0, 10, batch), Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal(3).starts_with("workload.batch = 3 does not divide record.per_measurement = 10"));
        assert!(refusal(20).contains("does not divide"));
        assert!(refusal(0).contains("workload.batch is 0"));
    }
}
