//! The workload `select`: single records by their key, each equally likely, in all columns or one. On `wisconsin`
//! records it is the query of Kihl, Cedersjö, Robertsson and Aspernäs 2011 (section 5.1), with
//! `workload.attribute = "unique3"`.

use super::{Client, Entry, Workload, attribute};
use crate::data;
use crate::layout::Access;
use crate::operation::{Fields, Operation};
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static SELECT: Entry = Entry {
    name: "select",
    summary: "every client selects single records by key, evenly over record.rows; workload.attribute names one column",
    needs_tables: true,
    keeps_records: true,
    access: |settings, record_type| {
        Ok(Access { select: vec![attribute::selected(settings, record_type)?], ..Access::default() })
    },
    build: |settings, client| Ok(Box::new(Select::new(settings, client)?)),
};

/// Separates the random numbers of this workload from those of others.
const LANE: u64 = 0x7365_6c00;

struct Select {
    stream: Stream,
    rows: u64,
    fields: Fields,
}

impl Select {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        if settings.record.rows == 0 {
            return Err("workload \"select\" needs records to select from; set record.rows to at least 1".to_owned());
        }
        let fields = attribute::selected(settings, data::build(&settings.record)?.record_type())?;
        let stream = Stream::new(client.seed, u64::from(client.number), LANE);
        Ok(Select { stream, rows: settings.record.rows, fields })
    }
}

impl Workload for Select {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        Operation::Select { record: self.stream.below(self.rows), fields: self.fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_spread_evenly_over_all_records() {
        let mut settings = Settings::default();
        settings.record.rows = 10;
        (settings.record.type_name, settings.record.per_measurement) = ("qos".to_owned(), 1);
        let mut select = Select::new(&settings, Client { number: 0, of: 1, seed: 1 }).unwrap();
        let mut counts = [0.0_f64; 10];
        for _ in 0..10_000 {
            let Operation::Select { record, fields: Fields::All } = select.next(&mut Cells::new()) else { panic!() };
            counts[record as usize] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 33.7, "chi-square {chi2} of {counts:?}; 33.7 with 9 degrees has a probability of 0.0001");
    }

    #[test]
    fn selecting_from_nothing_is_refused() {
        let refusal = Select::new(&Settings::default(), Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal.contains("record.rows"));
    }
}
