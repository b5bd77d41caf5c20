//! What the failures of a case have shown together.
//!
//! Main types: [`Tally`], [`CaseTallies`]. Invariant: what was never seen is bounded, not called impossible.

use super::life::Life;
use crate::database::Level;
use crate::finding::{DurabilityCase, HarmfulFailure, RecoveryTimes};
use crate::statistics::order::share_at_most;
use crate::statistics::summary::median;
use crate::trial::{FaultKind, Levels};

/// Confidence of the bound on what was not seen.
const CONFIDENCE: f64 = 0.95;

/// Failures that are told one by one, at most.
const TOLD_MOST: usize = 5;

/// All failures of one kind in one case: what is told of them, as far as it has come.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The counts.
    pub case: DurabilityCase,
    /// Times to answer again, in seconds.
    recoveries_s: Vec<f64>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(fault: FaultKind) -> Self {
        Tally { case: DurabilityCase { fault, ..DurabilityCase::default() }, recoveries_s: Vec::new() }
    }

    /// Adds a failure.
    pub fn add(&mut self, life: Life) {
        let (case, judged) = (&mut self.case, life.judged);
        case.cuts += 1;
        case.cuts_with_loss += u64::from(life.is_harmed());
        case.cuts_unsynced += u64::from(life.unsynced > 0);
        case.acknowledged += judged.acknowledged;
        case.lost += judged.lost;
        case.changed += judged.changed;
        case.unreadable += judged.unreadable;
        case.half_transactions += judged.half_transactions;
        case.reordered += judged.reordered;
        case.duplicated += life.duplicated;
        case.did_not_start += u64::from(life.did_not_start.is_some());
        case.longest_lost_s = case.longest_lost_s.max(life.lost_s.unwrap_or(0.0));
        self.recoveries_s.extend(life.recovery_s);
        if !life.is_harmed() && life.did_not_start.is_none() {
            return;
        }
        let (number, what, says) = (life.number, life.what, life.did_not_start.or(life.says));
        let told = HarmfulFailure { number, what, lost: judged.lost, changed: judged.changed, says };
        // What the database itself says is worth more than a further count.
        let is_new = told.says.is_some() && case.found.iter().all(|known| known.says.is_none());
        if case.found.len() < TOLD_MOST {
            case.found.push(told);
        } else if let (true, Some(last)) = (is_new, case.found.last_mut()) {
            *last = told;
        }
    }

    /// The largest share of telling failures that do harm which goes together with what was seen, at 95 %.
    pub fn share_at_most(&self) -> f64 {
        share_at_most(self.case.telling(), self.case.harmed(), CONFIDENCE)
    }
}

/// A case with its failures.
pub struct CaseTallies {
    /// Its levels.
    pub levels: Levels,
    /// The version of its server.
    pub server: String,
    /// Its failures, by what failed.
    pub tallies: Vec<Tally>,
    /// What its settings promise.
    pub promised: Option<Level>,
}

impl CaseTallies {
    /// What one kind of failure did; none where it was not tried.
    fn of(&self, fault: FaultKind) -> Option<&DurabilityCase> {
        self.tallies.iter().map(|tally| &tally.case).find(|case| case.fault == fault)
    }

    /// The level that its failures have proved; none where what failed does not tell.
    fn proved(&self) -> Option<Level> {
        let (power, kill) = (self.of(FaultKind::Power), self.of(FaultKind::Kill));
        if power.is_some_and(DurabilityCase::is_harmless) {
            return Some(Level::PowerCut);
        }
        match (self.is_harmed_by_cuts(), kill) {
            (_, Some(kill)) if kill.harmed() > 0 => Some(Level::Nothing),
            (true, Some(kill)) if kill.is_harmless() => Some(Level::Crash),
            _ => None,
        }
    }

    /// Whether a cut of the power did harm.
    fn is_harmed_by_cuts(&self) -> bool {
        self.of(FaultKind::Power).is_some_and(|case| case.harmed() > 0)
    }

    /// Whether less was found than its settings promise.
    fn breaks_promise(&self) -> bool {
        match (self.promised, self.proved()) {
            (Some(promised), Some(proved)) => proved < promised,
            (promised, None) => promised == Some(Level::PowerCut) && self.is_harmed_by_cuts(),
            (None, _) => false,
        }
    }

    /// What is told of it: an entry for each kind of failure.
    pub fn told(&self) -> Vec<DurabilityCase> {
        self.tallies.iter().map(|tally| self.entry(tally)).collect()
    }

    fn entry(&self, tally: &Tally) -> DurabilityCase {
        let max = tally.recoveries_s.iter().copied().reduce(f64::max);
        DurabilityCase {
            levels: self.levels.clone(),
            server: self.server.clone(),
            loss_share_upper95: tally.share_at_most(),
            recovery_s: RecoveryTimes { p50: median(&tally.recoveries_s), max },
            level: self.proved().map_or("unknown", Level::name).to_owned(),
            promised: self.promised.map(|level| level.name().to_owned()),
            breaks_promise: self.breaks_promise(),
            ..tally.case.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle::Judged;
    use super::*;

    #[test]
    fn cuts_that_find_everything_synced_prove_nothing() {
        let mut tally = Tally::new(FaultKind::Power);
        tally.add(Life::default());
        assert!(!tally.case.is_harmless() && tally.share_at_most() == 1.0);
        let mut killed = Tally::new(FaultKind::Kill);
        killed.add(Life::default());
        assert!(killed.case.is_harmless());
    }

    #[test]
    fn what_was_not_seen_is_bounded() {
        let mut tally = Tally::new(FaultKind::Power);
        for _ in 0..300 {
            tally.add(Life { unsynced: 1, ..Life::default() });
        }
        for _ in 0..100 {
            tally.add(Life::default());
        }
        assert_eq!((tally.case.cuts, tally.case.telling(), tally.case.harmed()), (400, 300, 0));
        assert!((tally.share_at_most() - 0.01).abs() < 1e-4);
        let judged = Judged { lost: 3, first_lost_ns: Some(5), ..Judged::default() };
        tally.add(Life { number: 9, judged, lost_s: Some(0.5), ..Life::default() });
        tally.add(Life { did_not_start: Some("why".to_owned()), ..Life::default() });
        assert_eq!((tally.case.cuts_with_loss, tally.case.did_not_start, tally.case.harmed()), (1, 1, 2));
        assert_eq!((tally.case.found[0].number, tally.case.found[1].says.as_deref()), (9, Some("why")));
        assert_eq!(tally.case.longest_lost_s, 0.5);
        assert!(tally.share_at_most() > 0.01);
    }
}
