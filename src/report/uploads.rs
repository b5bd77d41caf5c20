//! Blocks that were uploaded: what was offered and carried, what came over the network, and how near that is to what the disk takes.
//!
//! Main functions: [`uploads`], from the trials of a case to a finding; [`rows`], of its table. Invariant: without uploads there is nothing to
//! show; bytes are those of blocks, the network's have headers and acknowledgements besides.

use crate::finding::{CaseFinding, Findings, UploadFinding};
use crate::measurement::Measurement;
use crate::report::analyse::estimate;
use crate::report::factors::show_levels;
use crate::report::metric::{disk_share, intake};
use crate::trial::Arrivals;
use crate::units::{show_bit_rate, show_bytes, show_seconds};

/// Headings of [`rows`].
pub const HEADINGS: [&str; 8] =
    ["Case", "a block", "offered", "taken in", "network", "disk takes", "share of it", "longest answer"];

/// What the trials of a case say; none where nothing was uploaded.
pub fn uploads(valid: &[&Measurement], all: &[&Measurement]) -> Option<UploadFinding> {
    all.iter().find(|trial| trial.recorded.is_some_and(|recorded| recorded.block_bytes > 0.0))?;
    let each = |figure: &dyn Fn(&Measurement) -> Option<f64>| {
        estimate(&valid.iter().filter_map(|trial| figure(trial)).collect::<Vec<f64>>())
    };
    let recorded = || all.iter().filter_map(|trial| trial.recorded.as_ref());
    let block_bytes = each(&|trial| Some(trial.recorded?.block_bytes)).mean;
    let is_open = valid.iter().any(|trial| trial.trial.case.settings.load.arrivals != Arrivals::Closed);
    let offered = each(&|trial| Some(trial.offered_per_s())).mean.filter(|_| is_open);
    Some(UploadFinding {
        block_bytes: block_bytes.unwrap_or(0.0),
        offered_bytes_per_s: offered.zip(block_bytes).map(|(blocks_per_s, bytes)| blocks_per_s * bytes),
        intake_bytes_per_s: each(&intake),
        received_bytes_per_s: each(&|trial| Some(trial.resources.as_ref()?.mean.received_bytes_per_s)),
        disk_bytes_per_s: each(&|trial| trial.recorded?.disk_bytes_per_s),
        disk_share: each(&disk_share),
        answer_max_s: recorded().filter_map(|one| one.answer_max_s).fold(0.0, f64::max),
        unanswered: recorded().map(|one| one.unanswered).sum(),
    })
}

/// A row for each case.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let of_cases = findings.cases.iter().filter_map(|case| Some((case, case.uploads.as_ref()?)));
    let bits = |bytes_per_s: f64| show_bit_rate(8.0 * bytes_per_s);
    let row = |(case, found): (&CaseFinding, &UploadFinding)| {
        let answer = match found.unanswered {
            0 => show_seconds(found.answer_max_s),
            missing => format!("{}, {missing} missing", show_seconds(found.answer_max_s)),
        };
        vec![
            show_levels(&case.levels),
            show_bytes(found.block_bytes),
            found.offered_bytes_per_s.map_or("-".to_owned(), bits),
            found.intake_bytes_per_s.show(bits),
            found.received_bytes_per_s.show(bits),
            found.disk_bytes_per_s.mean.map_or("-".to_owned(), bits),
            found.disk_share.mean.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            answer,
        ]
    };
    of_cases.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{OperationMeasurement, RecordedMeasurement};
    use crate::trial::{Case, Levels, Settings, Trial};

    fn trial(blocks: u64) -> Measurement {
        let mut settings = Settings::default();
        settings.load.arrivals = Arrivals::Sources;
        settings.load.clients = 10;
        settings.load.source_rate_per_s = Some(2.0);
        let recorded = RecordedMeasurement {
            block_bytes: 1e6,
            disk_bytes_per_s: Some(40e6),
            answer_max_s: Some(0.25),
            ..RecordedMeasurement::default()
        };
        let insert = OperationMeasurement { completed: blocks, records: blocks, ..OperationMeasurement::default() };
        Measurement {
            measured_s: 1.0,
            carried: Some(blocks),
            operations: [("insert".to_owned(), insert)].into(),
            recorded: Some(recorded),
            ..Measurement::unmeasured(&Trial::new(Case::new(Levels::new(), settings), 0, 1))
        }
    }

    #[test]
    fn what_is_taken_in_is_told_in_bits_and_as_a_share_of_the_disk() {
        let trials = [trial(9), trial(11)];
        let all: Vec<&Measurement> = trials.iter().collect();
        let found = uploads(&all, &all).unwrap();
        assert_eq!((found.intake_bytes_per_s.mean, found.disk_share.mean), (Some(10e6), Some(0.25)));
        assert_eq!(found.offered_bytes_per_s, Some(trials[0].offered_per_s() * 1e6));
        let mut without = trial(1);
        without.recorded = None;
        assert_eq!(uploads(&[&without], &[&without]), None);
    }
}
