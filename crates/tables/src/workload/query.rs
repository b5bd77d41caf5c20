//! The workload `query`: a study's queries over records, each equally likely, whatever the layout. The number of rows that each
//! must return is counted beforehand; an answer with another number is a failed operation.

use super::{Client, Entry, Workload};
use crate::data;
use crate::layout::Access;
use crate::operation::Operation;
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;

/// Registry entry.
pub(super) static QUERY: Entry = Entry {
    name: "query",
    summary: "every client executes queries over records, stated by conditions on their columns; rows are counted",
    needs_tables: true,
    keeps_records: true,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Queries::new(settings, client)?)),
};

/// Registry entry.
pub(super) static RECENT: Entry = Entry {
    name: "recent",
    summary: "the same over the last workload.window records only, while others write: SELECT ... FROM (... ORDER BY record_id DESC LIMIT ...)",
    ..QUERY
};

/// Separates the random numbers of this workload from those of others.
const LANE: u64 = 0x7175_6572;

struct Queries {
    stream: Stream,
    queries: u64,
}

impl Queries {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let queries = &settings.workload.queries;
        if settings.record.rows == 0 {
            let remedy = "set record.rows to at least 1, or record.runs";
            return Err(format!("workload \"{}\" needs records to find; {remedy}", settings.workload.name));
        }
        if queries.is_empty() || queries.len() > usize::from(u16::MAX) {
            let most = u16::MAX;
            return Err(format!("workload.queries has {} queries; write 1 to {most}", queries.len()));
        }
        let generator = data::build(&settings.record)?;
        queries.iter().try_for_each(|query| query.check(generator.record_type()))?;
        let stream = Stream::new(client.seed, u64::from(client.number), LANE);
        Ok(Queries { stream, queries: queries.len() as u64 })
    }
}

impl Workload for Queries {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        let query = if self.queries == 1 { 0 } else { self.stream.below(self.queries) };
        Operation::Query { query: query as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Constant, Projection, Query, QueryCondition};
    use crate::statement::Comparison;

    fn settings(columns: &[&str]) -> Settings {
        let mut settings = Settings::default();
        settings.record.rows = 10;
        (settings.record.type_name, settings.record.per_measurement) = ("qos".to_owned(), 1);
        let query = |column: &&str| Query {
            name: (*column).to_owned(),
            conditions: vec![QueryCondition {
                column: (*column).to_owned(),
                comparison: Comparison::Less,
                value: Constant::Int(1),
            }],
            columns: Projection::All,
            order: Vec::new(),
            limit: None,
            window: None,
            rows: None,
            straight_join: false,
            cache: None,
        };
        settings.workload.queries = columns.iter().map(query).collect();
        settings
    }

    #[test]
    fn all_queries_are_executed_about_as_often() {
        let settings = settings(&["ul_delay", "customerId", "ul_dupl"]);
        let mut queries = Queries::new(&settings, Client { number: 0, of: 1, seed: 1 }).unwrap();
        let mut counts = [0.0_f64; 3];
        for _ in 0..3000 {
            let Operation::Query { query } = queries.next(&mut Cells::new()) else { panic!() };
            counts[usize::from(query)] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 18.5, "chi-square {chi2} of {counts:?}; 18.5 with 2 degrees has a probability of 0.0001");
    }

    #[test]
    fn queries_that_cannot_be_asked_are_refused() {
        let refusal = |settings: &Settings| Queries::new(settings, Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal(&settings(&[])).contains("workload.queries has 0 queries"));
        let unknown = refusal(&settings(&["ul_dealy"]));
        assert!(
            unknown.starts_with("workload.queries, query \"ul_dealy\": record type \"qos\" has no column"),
            "{unknown}"
        );
        assert!(refusal(&settings(&["measurementEndTime"])).contains("cannot be compared"));
        let mut empty = settings(&["ul_delay"]);
        empty.record.rows = 0;
        assert!(refusal(&empty).contains("record.rows"));
        let mut text = settings(&["ul_delay"]);
        text.workload.queries[0].conditions[0].value = Constant::Text("x".to_owned());
        assert!(refusal(&text).ends_with("ul_delay is compared with 'x'; it is a number"));
    }
}
