//! The workload `delete`: every client deletes records of its own, one after another, and writes each again, so that the tables
//! stay as they were. Deletions and insertions are reported separately.

use super::{Client, Entry, Workload};
use crate::data;
use crate::layout::Access;
use crate::operation::Operation;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static DELETE: Entry = Entry {
    name: "delete",
    summary: "every client deletes single records of its own and writes each again",
    needs_tables: true,
    // A trial may end between a deletion and the insertion that follows.
    keeps_records: false,
    access: |_, _| Ok(Access { delete: true, ..Access::default() }),
    build: |settings, client| Ok(Box::new(Delete::new(settings, client)?)),
};

/// Of the existing records, client c of n has c, c + n, c + 2n ...
struct Delete {
    record: u64,
    is_deleted: bool,
    client: Client,
    rows: u64,
}

impl Delete {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let rows = settings.record.rows;
        if rows < u64::from(client.of.max(1)) {
            return Err(format!(
                "workload \"delete\" needs a record for each client; record.rows is {rows} and load.clients {}; set \
                 record.rows higher",
                client.of
            ));
        }
        let per_measurement = data::build(&settings.record)?.records_per_measurement();
        if per_measurement != 1 {
            return Err(format!(
                "workload \"delete\" writes single records again, and record.per_measurement is {per_measurement}; set it to 1"
            ));
        }
        Ok(Delete { record: u64::from(client.number), is_deleted: false, client, rows })
    }
}

impl Workload for Delete {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        self.is_deleted = !self.is_deleted;
        let record = self.record;
        if self.is_deleted {
            return Operation::Delete { record };
        }
        self.record += u64::from(self.client.of.max(1));
        if self.record >= self.rows {
            self.record = u64::from(self.client.number);
        }
        Operation::Insert { first: record, records: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rows: u64, per_measurement: u64) -> Settings {
        let mut settings = Settings::default();
        settings.record.type_name = "qos".to_owned();
        (settings.record.rows, settings.record.per_measurement) = (rows, per_measurement);
        settings
    }

    #[test]
    fn clients_delete_records_of_their_own_and_write_each_again() {
        let mut delete = Delete::new(&settings(5, 1), Client { number: 1, of: 2, seed: 1 }).unwrap();
        let operations: Vec<_> = (0..6).map(|_| delete.next(&mut Cells::new())).collect();
        let pair = |record| [Operation::Delete { record }, Operation::Insert { first: record, records: 1 }];
        assert_eq!(operations, [pair(1), pair(3), pair(1)].concat());
    }

    #[test]
    fn what_cannot_be_written_again_is_refused() {
        let refusal = |rows, per_measurement| {
            let client = Client { number: 0, of: 3, seed: 1 };
            Delete::new(&settings(rows, per_measurement), client).err().unwrap()
        };
        assert!(refusal(2, 1).contains("record.rows is 2"));
        assert!(refusal(9, 5).contains("record.per_measurement is 5"));
    }
}
