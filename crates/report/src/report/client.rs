//! Notes on the client: how it sent transactions, whether it was kept from running, and whether it waited for answers that did not come.
//!
//! Main function: [`notes`]. Invariant: a note is given once, whatever the number of trials, and says to how many it applies.

use crate::finding::Note;
use crate::measurement::{Environment, Measurement, Standstill, Starvation, Waited, standstill, starvation};
use crate::report::case_trials::CaseTrials;
use crate::trial::Levels;

/// Returns notes on the client of the trials.
pub fn notes(environment: &Environment, groups: &[CaseTrials<'_>]) -> Vec<Note> {
    pipelined(groups)
        .into_iter()
        .chain(left_out(groups))
        .chain(unwatched(groups))
        .chain(kept_from_running(environment, groups))
        .chain(stood_still(groups))
        .collect()
}

/// Notes that transactions were sent in one round trip, if that is the same in all cases; as a factor it appears in the table.
fn pipelined(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let is_all = !groups.is_empty() && groups.iter().all(|group| group.case.settings.load.pipeline);
    is_all.then_some(Note::Pipelined {})
}

/// Notes that statements of a trace are left out because they change rows.
fn left_out(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let load = groups.first()?.case.settings.load.replay?;
    let left_out = groups.first()?.case.settings.workload.replay.as_ref()?.left_out;
    (left_out > 0).then_some(Note::WritesLeftOut { left_out, all: left_out + load.statements })
}

/// Notes that nothing is known of the server's machine.
fn unwatched(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let is_unknown = |trial: &&Measurement| trial.resources.as_ref().is_some_and(|used| used.server_unknown);
    let (unknown, all) = (
        groups.iter().flat_map(CaseTrials::valid).filter(is_unknown).count(),
        groups.iter().flat_map(CaseTrials::valid).count(),
    );
    let is_asked = groups.iter().any(|group| group.case.settings.database.watch.is_some());
    (unknown > 0).then_some(Note::ServerUnwatched { unknown, all, is_asked })
}

/// Notes the longest time without a completed operation, and the number of trials with such a time.
fn stood_still(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let of_group = |group: &CaseTrials<'_>| -> Vec<(Levels, u32, Standstill)> {
        let found = |trial: &Measurement| Some((group.case.levels.clone(), trial.trial.round, standstill(trial)?));
        group.valid().filter_map(found).collect()
    };
    let found: Vec<(Levels, u32, Standstill)> = groups.iter().flat_map(of_group).collect();
    let (trials, all) = (found.len(), groups.iter().flat_map(CaseTrials::valid).count());
    let (levels, round, longest) = found.into_iter().max_by(|a, b| a.2.lasted_s.total_cmp(&b.2.lasted_s))?;
    Some(Note::StoodStill { trials, all, round, levels, longest })
}

/// Notes the worst remark on trials whose client had to wait for a CPU, and the number of such trials.
fn kept_from_running(environment: &Environment, groups: &[CaseTrials<'_>]) -> Option<Note> {
    let cpus = f64::from(environment.cpus);
    let note = |trial: &&Measurement| {
        starvation(trial, cpus)
            .into_iter()
            .find_map(|found| if let Starvation::Note(waited) = found { Some(waited) } else { None })
    };
    let found: Vec<Waited> = groups.iter().flat_map(CaseTrials::valid).filter_map(|trial| note(&trial)).collect();
    let all = groups.iter().flat_map(CaseTrials::valid).count();
    let first = found.first()?.clone();
    Some(Note::ClientWaited { trials: found.len(), all, first })
}
