//! The workload `update`: one value column of single records, found by their key, each equally likely. The new value is
//! that of a random record.

use super::{Client, Entry, Workload, attribute};
use crate::data;
use crate::layout::Access;
use crate::operation::{Fields, Operation};
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static UPDATE: Entry = Entry {
    name: "update",
    summary: "every client updates one column of single records by key, evenly over record.rows; workload.attribute names it",
    needs_tables: true,
    keeps_records: true,
    access: |settings, record_type| {
        Ok(Access { update: vec![attribute::updated(settings, record_type)?], ..Access::default() })
    },
    build: |settings, client| Ok(Box::new(Update::new(settings, client)?)),
};

/// Separates the random numbers of this workload from those of others.
const LANE: u64 = 0x7570_6400;

struct Update {
    stream: Stream,
    rows: u64,
    fields: Fields,
}

impl Update {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        if settings.record.rows == 0 {
            return Err("workload \"update\" needs records to update; set record.rows to at least 1".to_owned());
        }
        let fields = attribute::updated(settings, data::build(&settings.record)?.record_type())?;
        let stream = Stream::new(client.seed, u64::from(client.number), LANE);
        Ok(Update { stream, rows: settings.record.rows, fields })
    }
}

impl Workload for Update {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        let (record, like) = (self.stream.below(self.rows), self.stream.below(self.rows));
        Operation::Update { record, like, fields: self.fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_reach_all_records_and_take_values_of_all() {
        let mut settings = Settings::default();
        settings.record.rows = 5;
        (settings.record.type_name, settings.record.per_measurement) = ("qos".to_owned(), 1);
        let mut update = Update::new(&settings, Client { number: 3, of: 4, seed: 1 }).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..500 {
            let Operation::Update { record, like, .. } = update.next(&mut Cells::new()) else { panic!() };
            seen.insert((record, like));
        }
        assert_eq!(seen.len(), 25, "{seen:?}");
        assert!(seen.iter().all(|(record, like)| *record < 5 && *like < 5));
    }

    #[test]
    fn updating_nothing_is_refused() {
        let refusal = Update::new(&Settings::default(), Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal.contains("record.rows"));
    }
}
