//! The workload `scan`: whole records in the order of their keys, beginning with the key of a random record; `workload.batch` is their
//! number.

use super::{Client, Entry, Workload};
use crate::layout::Access;
use crate::operation::Operation;
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static SCAN: Entry = Entry {
    name: "scan",
    summary: "every client reads workload.batch records in the order of their keys, from a random one of record.rows on",
    needs_tables: true,
    keeps_records: true,
    access: |_, _| Ok(Access { scan: true, ..Access::default() }),
    build: |settings, client| Ok(Box::new(Scan::new(settings, client)?)),
};

/// Separates the random numbers of this workload from those of others.
const LANE: u64 = 0x7363_616e;

struct Scan {
    stream: Stream,
    rows: u64,
    records: u32,
}

impl Scan {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        if settings.record.rows == 0 {
            return Err("workload \"scan\" needs records to read; set record.rows to at least 1".to_owned());
        }
        let stream = Stream::new(client.seed, u64::from(client.number), LANE);
        Ok(Scan { stream, rows: settings.record.rows, records: settings.workload.batch.max(1) })
    }
}

impl Workload for Scan {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        Operation::Scan { first: self.stream.below(self.rows), records: self.records }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_begin_at_all_records_and_are_as_long_as_asked() {
        let mut settings = Settings::default();
        (settings.record.rows, settings.workload.batch) = (10, 7);
        let mut scan = Scan::new(&settings, Client { number: 0, of: 1, seed: 1 }).unwrap();
        let scans: Vec<_> = (0..200).map(|_| scan.next(&mut Cells::new())).collect();
        assert!((0..10).all(|first| scans.contains(&Operation::Scan { first, records: 7 })));
    }

    #[test]
    fn scanning_nothing_is_refused() {
        let refusal = Scan::new(&Settings::default(), Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal.contains("record.rows"));
    }
}
