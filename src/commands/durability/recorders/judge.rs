//! The judgement of what a recorder has stored: is each acknowledged record there, once, and behind the earlier ones of its source?
//!
//! Main function: [`judge`]. Invariant: it knows nothing of recorders and of stores, only numbers of records.

use std::collections::HashMap;

use super::super::oracle::Judged;

/// A request that a source has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The numbers of its records, in the order of its lines.
    pub records: Vec<u64>,
    /// When it was acknowledged, in nanoseconds of the caller's clock; `None` if it was not.
    pub acknowledged_ns: Option<u64>,
}

/// A record that the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The record's number; `None` for a record that carries none of ours.
    pub number: Option<u64>,
    /// The lane by which it was stored: records of different lanes have no common order.
    pub lane: i64,
}

/// What is there of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conserved {
    /// What is gone and what nobody sent, in the words of the oracle of databases.
    pub judged: Judged,
    /// Records that are there more often than once, each further time counted.
    pub duplicated: u64,
    /// Records that are stored behind a later one of their source, in their lane.
    pub out_of_order: u64,
}

/// Compares the requests of each source, in the order in which it sent them, with the stored records in the order of the store.
pub fn judge(sources: &[Vec<Sent>], stored: &[Stored]) -> Conserved {
    let mut conserved = Conserved::default();
    let judged = &mut conserved.judged;
    // For each record: its source, and how often it is there.
    let mut records: HashMap<u64, (usize, u64)> = HashMap::new();
    for (source, requests) in sources.iter().enumerate() {
        let numbers = requests.iter().flat_map(|request| &request.records);
        records.extend(numbers.map(|number| (*number, (source, 0))));
    }
    let mut newest: HashMap<(usize, i64), u64> = HashMap::new();
    for row in stored {
        let Some((number, (source, times))) = row.number.and_then(|number| Some((number, records.get_mut(&number)?)))
        else {
            judged.changed += 1;
            continue;
        };
        *times += 1;
        if *times > 1 {
            conserved.duplicated += 1;
            continue;
        }
        let newest = newest.entry((*source, row.lane)).or_insert(number);
        if number < *newest {
            conserved.out_of_order += 1;
        }
        *newest = number.max(*newest);
    }
    for request in sources.iter().flatten() {
        let is_there = |number: &&u64| records.get(*number).is_some_and(|(_, times)| *times > 0);
        let there = request.records.iter().filter(is_there).count() as u64;
        judged.there += there;
        let Some(acknowledged_ns) = request.acknowledged_ns else {
            judged.unacknowledged += there;
            continue;
        };
        let all = request.records.len() as u64;
        judged.acknowledged += all;
        judged.lost += all - there;
        if there < all {
            judged.first_lost_ns =
                Some(judged.first_lost_ns.map_or(acknowledged_ns, |first| first.min(acknowledged_ns)));
        }
    }
    conserved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(records: &[u64], acknowledged_ns: Option<u64>) -> Sent {
        Sent { records: records.to_vec(), acknowledged_ns }
    }

    fn stored(rows: &[(u64, i64)]) -> Vec<Stored> {
        rows.iter().map(|(number, lane)| Stored { number: Some(*number), lane: *lane }).collect()
    }

    #[test]
    fn what_is_there_once_and_in_order_is_conserved() {
        let sources = [vec![sent(&[0, 2], Some(5)), sent(&[4], None)], vec![sent(&[1, 3], Some(7))]];
        let found = judge(&sources, &stored(&[(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]));
        let judged = Judged { acknowledged: 4, unacknowledged: 1, there: 5, ..Judged::default() };
        assert_eq!(found, Conserved { judged, duplicated: 0, out_of_order: 0 });
        assert!(!found.judged.is_harmed());
    }

    #[test]
    fn each_kind_of_harm_is_counted_as_what_it_is() {
        let sources = [vec![sent(&[0, 2], Some(5)), sent(&[4, 6], Some(3)), sent(&[8], None)]];
        // 2 and 6 are gone, 4 is there twice, 0 is behind 4, and 99 was never sent.
        let mut rows = stored(&[(4, 1), (0, 1), (4, 1), (99, 1)]);
        rows.push(Stored { number: None, lane: 1 });
        let found = judge(&sources, &rows);
        let judged =
            Judged { acknowledged: 4, lost: 2, changed: 2, there: 2, first_lost_ns: Some(3), ..Judged::default() };
        assert_eq!(found, Conserved { judged, duplicated: 1, out_of_order: 1 });
    }

    #[test]
    fn records_of_two_lanes_have_no_common_order() {
        let sources = [vec![sent(&[0, 1, 2], Some(1))]];
        assert_eq!(judge(&sources, &stored(&[(2, 2), (0, 1), (1, 1)])).out_of_order, 0);
        assert_eq!(judge(&sources, &stored(&[(2, 1), (0, 1), (1, 1)])).out_of_order, 2);
    }
}
