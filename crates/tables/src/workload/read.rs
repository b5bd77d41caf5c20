//! The workload `read`: whole records by their key, each equally likely.

use super::{Client, Entry, Workload};
use crate::layout::Access;
use crate::operation::Operation;
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static READ: Entry = Entry {
    name: "read",
    summary: "every client reads single records by key, evenly over record.rows",
    needs_tables: true,
    keeps_records: true,
    access: |_, _| Ok(Access { read: true, ..Access::default() }),
    build: |settings, client| Ok(Box::new(Read::new(settings, client)?)),
};

/// Separates the random numbers of this workload from those of others.
const LANE: u64 = 0x7265_6164;

struct Read {
    stream: Stream,
    rows: u64,
}

impl Read {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        if settings.record.rows == 0 {
            return Err("workload \"read\" needs records to read; set record.rows to at least 1".to_owned());
        }
        let stream = Stream::new(client.seed, u64::from(client.number), LANE);
        Ok(Read { stream, rows: settings.record.rows })
    }
}

impl Workload for Read {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        Operation::Read { record: self.stream.below(self.rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_spread_over_all_records_and_differ_between_clients() {
        let mut settings = Settings::default();
        settings.record.rows = 10;
        let records = |number| {
            let mut read = Read::new(&settings, Client { number, of: 2, seed: 1 }).unwrap();
            (0..200).map(|_| read.next(&mut Cells::new())).collect::<Vec<_>>()
        };
        let first = records(0);
        assert!((0..10).all(|record| first.contains(&Operation::Read { record })));
        assert!(!first.contains(&Operation::Read { record: 10 }));
        assert_ne!(first, records(1));
        assert_eq!(first, records(0));
    }

    #[test]
    fn reading_nothing_is_refused() {
        let refusal = Read::new(&Settings::default(), Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal.contains("record.rows"));
    }
}
