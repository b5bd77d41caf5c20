//! Reports what records take on the disk, tables and indexes together: a line of text for each way to store them.
//!
//! Main items: [`INSTRUMENT`] and [`rows`]. Invariant: cases that differ only in their load share one line, with the least and the greatest
//! of their sizes; cases of unknown size are left out, and too many lines are left to the page.

use std::collections::BTreeMap;

use crate::finding::Findings;
use crate::metric::BYTES_PER_RECORD;
use crate::report::case_trials::estimate;
use crate::report::factors::show_levels_short;
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::trial::Levels;
use crate::units::show_bytes;

/// Headings of [`rows`].
const HEADINGS: [&str; 3] = ["Case", "a record", "trials"];

/// The report on bytes on the disk.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| {
        let sizes: Vec<f64> = group.valid().filter_map(|trial| BYTES_PER_RECORD.of(trial)).collect();
        finding.bytes_per_record = (!sizes.is_empty()).then(|| estimate(&sizes));
    },
    tables: |findings| {
        vec![TextTable { title: "On the disk", headings: &HEADINGS, rows: rows(findings), ..TextTable::default() }]
    },
    ..Instrument::SILENT
};

/// The most lines in the text; more are drawn only on the page.
const LINES_MOST: usize = 24;

/// The prefix of settings that determine how much is sent and not what; the size of a record hardly depends on them.
const OF_LOAD: &str = "load.";

/// The bytes that a record takes in cases that store it alike.
struct Taken {
    levels: Levels,
    least: f64,
    most: f64,
    trials: u64,
}

/// Returns the rows of the table; empty if no size is known, or if there are too many.
fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut taken: Vec<Taken> = Vec::new();
    for case in &findings.cases {
        let Some((bytes, trials)) = case.bytes_per_record.as_ref().and_then(|all| Some((all.mean?, all.n))) else {
            continue;
        };
        let mut levels = case.levels.clone();
        levels.retain(|setting, _| !setting.starts_with(OF_LOAD));
        let place = *places.entry(format!("{levels:?}")).or_insert(taken.len());
        match taken.get_mut(place) {
            Some(known) => {
                (known.least, known.most) = (known.least.min(bytes), known.most.max(bytes));
                known.trials += trials;
            }
            None => taken.push(Taken { levels, least: bytes, most: bytes, trials }),
        }
    }
    let row = |taken: &Taken| {
        let [least, most] = [taken.least, taken.most].map(show_bytes);
        let bytes = if least == most { least } else { format!("{least} to {most}") };
        vec![show_levels_short(&taken.levels), bytes, taken.trials.to_string()]
    };
    if taken.len() > LINES_MOST { Vec::new() } else { taken.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{CaseFinding, Estimate};

    fn case(layout: &str, clients: u64, bytes: Option<f64>) -> CaseFinding {
        let levels = [("layout.name", layout.into()), ("load.clients", clients.into())];
        CaseFinding {
            levels: levels.map(|(setting, level): (&str, serde_json::Value)| (setting.to_owned(), level)).into(),
            bytes_per_record: bytes.map(|bytes| Estimate { mean: Some(bytes), n: 3, ..Estimate::default() }),
            ..CaseFinding::default()
        }
    }

    #[test]
    fn cases_that_differ_in_their_load_stand_in_one_line() {
        let cases = vec![
            case("wide", 1, Some(400.0)),
            case("star", 1, Some(300.0)),
            case("wide", 8, Some(410.0)),
            case("star", 8, Some(300.04)),
            case("json", 8, None),
        ];
        let findings = Findings { cases, ..Findings::default() };
        assert_eq!(rows(&findings), [["wide", "400 B to 410 B", "6"], ["star", "300 B", "6"]]);
        let many = (0..25).map(|number| case(&format!("layout {number}"), 1, Some(9.0))).collect();
        assert_eq!(rows(&Findings { cases: many, ..Findings::default() }), Vec::<Vec<String>>::new());
    }
}
