//! Reports uploaded blocks: what was offered and carried, what came over the network, and how near that is to the disk's limit.
//!
//! Main functions: `uploads`, from the trials of a case to a finding; [`rows`], of its table; `verdicts`, on the highest intake and on the
//! share of the offered data. Invariant: without uploads there is nothing to show; bytes are those of blocks, to which the network adds
//! headers and acknowledgements.

use crate::finding::{CaseFinding, Findings, Found, UploadFinding, Verdict};
use crate::measurement::Measurement;
use crate::metric::{disk_share, intake};
use crate::report::case_trials::{CaseTrials, estimate};
use crate::report::factors::{show_levels, show_levels_short};
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::trial::{Arrivals, Levels};
use crate::units::{show_bit_rate, show_bytes, show_number, show_seconds};

/// The setting with the number of cameras.
const CAMERAS: &str = "load.clients";
/// The time in seconds above which a recorder's answer to a status request counts as missing.
const ANSWERS_WITHIN_S: f64 = 1.0;

/// Headings of [`rows`].
pub const HEADINGS: [&str; 8] =
    ["Case", "a block", "offered", "taken in", "network", "disk takes", "share of it", "longest answer"];

/// The report on uploads.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.uploads = uploads(&group.valid().collect::<Vec<_>>(), &group.trials),
    verdicts: |said| verdicts(said.groups),
    tables: |findings| {
        vec![TextTable { title: "Blocks", headings: &HEADINGS, rows: rows(findings), ..TextTable::default() }]
    },
    ..Instrument::SILENT
};

/// Returns the finding on the trials of a case; `None` if nothing was uploaded.
fn uploads(valid: &[&Measurement], all: &[&Measurement]) -> Option<UploadFinding> {
    all.iter().find(|trial| trial.recorded.as_ref().is_some_and(|recorded| recorded.block_bytes > 0.0))?;
    let each = |figure: &dyn Fn(&Measurement) -> Option<f64>| {
        estimate(&valid.iter().filter_map(|trial| figure(trial)).collect::<Vec<f64>>())
    };
    let recorded = || all.iter().filter_map(|trial| trial.recorded.as_ref());
    let block_bytes = each(&|trial| Some(trial.recorded.as_ref()?.block_bytes)).mean;
    let is_open = valid.iter().any(|trial| trial.trial.case.settings.load.arrivals != Arrivals::Closed);
    let offered = each(&|trial| Some(trial.offered_per_s())).mean.filter(|_| is_open);
    Some(UploadFinding {
        block_bytes: block_bytes.unwrap_or(0.0),
        offered_bytes_per_s: offered.zip(block_bytes).map(|(blocks_per_s, bytes)| blocks_per_s * bytes),
        intake_bytes_per_s: each(&intake),
        received_bytes_per_s: each(&|trial| Some(trial.resources.as_ref()?.mean.received_bytes_per_s)),
        disk_bytes_per_s: each(&|trial| trial.recorded.as_ref()?.disk_bytes_per_s),
        disk_share: each(&disk_share),
        answer_max_s: recorded().filter_map(|one| one.answer_max_s).fold(0.0, f64::max),
        unanswered: recorded().map(|one| one.unanswered).sum(),
    })
}

fn bits(bytes_per_s: f64) -> String {
    show_bit_rate(8.0 * bytes_per_s)
}

/// A case with the finding on the uploads of its valid trials.
struct Uploaded<'g, 'a> {
    group: &'g CaseTrials<'a>,
    finding: UploadFinding,
}

impl Uploaded<'_, '_> {
    fn levels_without_cameras(&self) -> Levels {
        let mut levels = self.group.case.levels.clone();
        levels.remove(CAMERAS);
        levels
    }

    fn cameras(&self) -> u32 {
        self.group.case.settings.load.clients
    }
}

/// Returns verdicts on the case with the highest intake, and, for each combination of the other levels, on the share that is taken in from
/// the greatest number of cameras; then on whether the recorder answered meanwhile.
fn verdicts(groups: &[CaseTrials<'_>]) -> Vec<Verdict> {
    let found = groups.iter().filter_map(|group| {
        let valid: Vec<&Measurement> = group.valid().collect();
        let finding = uploads(&valid, &valid)?;
        Some(Uploaded { group, finding })
    });
    let found: Vec<Uploaded<'_, '_>> = found.collect();
    let (open, closed): (Vec<&Uploaded<'_, '_>>, Vec<_>) =
        found.iter().partition(|one| one.finding.offered_bytes_per_s.is_some());
    let intake = |one: &Uploaded<'_, '_>| one.finding.intake_bytes_per_s.mean.unwrap_or(0.0);
    let most = closed.iter().max_by(|a, b| intake(a).total_cmp(&intake(b))).map(|one| {
        let (levels, intake_bytes_per_s) = (one.group.case.levels.clone(), one.finding.intake_bytes_per_s);
        let answer = format!("most is taken in with {}", show_levels(&levels));
        let evidence = format!("{}, n = {}", intake_bytes_per_s.show(bits), intake_bytes_per_s.n);
        Verdict::new(Found::MostTakenIn { levels, intake_bytes_per_s }, answer).because(evidence)
    });
    let mut most_cameras: Vec<&Uploaded<'_, '_>> = Vec::new();
    for one in open {
        match most_cameras.iter_mut().find(|known| known.levels_without_cameras() == one.levels_without_cameras()) {
            Some(known) if known.cameras() < one.cameras() => *known = one,
            Some(_) => {}
            None => most_cameras.push(one),
        }
    }
    most.into_iter().chain(most_cameras.into_iter().filter_map(of_what_is_offered)).chain(answers(&found)).collect()
}

fn of_what_is_offered(one: &Uploaded<'_, '_>) -> Option<Verdict> {
    let (offered, taken) = (one.finding.offered_bytes_per_s?, &one.finding.intake_bytes_per_s);
    let levels = one.levels_without_cameras();
    let lead = if levels.is_empty() { String::new() } else { format!("{}: ", show_levels(&levels)) };
    let cameras = match one.cameras() {
        1 => "a camera offers".to_owned(),
        count => format!("{} cameras offer", show_number(f64::from(count))),
    };
    let percent = |bytes_per_s: f64| format!("{:.1} %", 100.0 * bytes_per_s / offered);
    // This is a constant multiple of the intake, and has as many significant digits.
    let share = taken.show_mean(percent);
    let (shown, n) = (bits(offered), taken.n);
    let answer = format!("{lead}of the {shown} that {cameras} {} are taken in ({share}), n = {n}", taken.show(bits));
    let found =
        Found::TakenIn { levels, cameras: one.cameras(), offered_bytes_per_s: offered, intake_bytes_per_s: *taken };
    Some(Verdict::new(found, answer))
}

/// Returns a verdict on whether the recorder answered status requests meanwhile; `None` if there were none.
fn answers(found: &[Uploaded<'_, '_>]) -> Option<Verdict> {
    let longest = |one: &&Uploaded<'_, '_>| one.finding.answer_max_s;
    let asked = || found.iter().filter(|one| one.finding.answer_max_s > 0.0);
    let slowest = asked().max_by(|a, b| longest(a).total_cmp(&longest(b)))?;
    let (late, all) = (asked().filter(|one| longest(one) > ANSWERS_WITHIN_S).count(), asked().count());
    let cases = if all == 1 { "in the only case".to_owned() } else { format!("in all of {all} cases") };
    let at_most = show_seconds(longest(&slowest));
    let found = Found::RecorderAnswers { answer_max_s: longest(&slowest), late, cases: all };
    Some(match late {
        0 => Verdict::new(found, "the recorder answers meanwhile")
            .because(format!("it took at most {at_most} to say how it does, {cases}")),
        _ => Verdict::new(found, "the recorder stops answering").because(format!(
            "it took more than {} to say how it does in {late} of {all} cases, at most {at_most} with {}",
            show_seconds(ANSWERS_WITHIN_S),
            show_levels(&slowest.group.case.levels)
        )),
    })
}

/// Returns a row for each case.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let of_cases = findings.cases.iter().filter_map(|case| Some((case, case.uploads.as_ref()?)));
    let row = |(case, found): (&CaseFinding, &UploadFinding)| {
        let answer = match found.unanswered {
            0 => show_seconds(found.answer_max_s),
            missing => format!("{}, {missing} missing", show_seconds(found.answer_max_s)),
        };
        vec![
            show_levels_short(&case.levels),
            show_bytes(found.block_bytes),
            found.offered_bytes_per_s.map_or("-".to_owned(), bits),
            found.intake_bytes_per_s.show(bits),
            found.received_bytes_per_s.show(bits),
            found.disk_bytes_per_s.show_mean(bits),
            found.disk_share.show_mean(|share| format!("{:.1} %", 100.0 * share)),
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

    fn shown(groups: &[CaseTrials<'_>]) -> Vec<String> {
        verdicts(groups).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_closed_loop_tells_where_most_is_taken_in_and_whether_the_recorder_answers() {
        let slow = |blocks, answer_s| {
            let mut one = trial(blocks);
            one.carried = None;
            let case = std::sync::Arc::make_mut(&mut one.trial.case);
            case.settings.load.arrivals = Arrivals::Closed;
            case.levels = Levels::from([("link.rate".to_owned(), format!("{blocks}Mbit/s").into())]);
            one.recorded.as_mut().unwrap().answer_max_s = Some(answer_s);
            one
        };
        let told = |trials: &[Measurement]| {
            let of =
                |one: &'static Measurement| CaseTrials { case: &one.trial.case, discarded: None, trials: vec![one] };
            shown(&trials.iter().map(|one| of(Box::leak(Box::new(one.clone())))).collect::<Vec<_>>())
        };
        let most = "most is taken in with link.rate = 20Mbit/s: 160 Mbit/s, n = 1";
        let answers = "the recorder answers meanwhile: it took at most 300 ms to say how it does, in all of 2 cases";
        assert_eq!(told(&[slow(10, 0.3), slow(20, 0.2)]), [most, answers]);
        let stops = "the recorder stops answering: it took more than 1 s to say how it does in 1 of 2 cases, at most 2.50 s with \
                     link.rate = 10Mbit/s";
        assert_eq!(told(&[slow(10, 2.5), slow(20, 0.2)]), [most, stops]);
    }

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
            operations: [("insert".to_owned(), Box::new(insert))].into(),
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
        let of = CaseTrials { case: &trials[0].trial.case, discarded: None, trials: all.clone() };
        let offered = bits(found.offered_bytes_per_s.unwrap());
        let taken = found.intake_bytes_per_s.show(bits);
        let share = 100.0 * 10e6 / found.offered_bytes_per_s.unwrap();
        let says = format!("of the {offered} that 10 cameras offer {taken} are taken in ({share:.1} %), n = 2");
        let answers = "the recorder answers meanwhile: it took at most 250 ms to say how it does, in the only case";
        assert_eq!(shown(&[of]), [says, answers.to_owned()]);
        let mut without = trial(1);
        without.recorded = None;
        assert_eq!(uploads(&[&without], &[&without]), None);
    }
}
