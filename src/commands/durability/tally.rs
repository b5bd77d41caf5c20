//! The combined result of all failures of a case.
//!
//! Main types: [`Tally`], [`CaseTallies`]. Invariant: an outcome that was never seen is bounded, not called impossible.

use super::life::Life;
use crate::database::Level;
use crate::finding::{DurabilityCase, HarmfulFailure, RecoveryTimes};
use crate::statistics::order::share_at_most;
use crate::statistics::summary::median;
use crate::trial::{FaultKind, Levels};

/// Confidence of the bound on outcomes that were not seen.
const CONFIDENCE: f64 = 0.95;

/// Largest number of failures that are listed one by one.
const TOLD_MOST: usize = 5;

/// All failures of one kind in one case so far.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The counts.
    pub case: DurabilityCase,
    /// Times until the database answered again, in seconds.
    recoveries_s: Vec<f64>,
}

impl Tally {
    /// Creates a tally without failures.
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
        case.out_of_order += life.out_of_order;
        case.did_not_start += u64::from(life.did_not_start.is_some());
        case.longest_lost_s = case.longest_lost_s.max(life.lost_s.unwrap_or(0.0));
        self.recoveries_s.extend(life.recovery_s);
        if !life.is_harmed() && life.did_not_start.is_none() {
            return;
        }
        let (number, what, says) = (life.number, life.what, life.did_not_start.or(life.says));
        let told = HarmfulFailure { number, what, lost: judged.lost, changed: judged.changed, says };
        // A message from the database itself is worth more than one more count.
        let is_new = told.says.is_some() && case.found.iter().all(|known| known.says.is_none());
        if case.found.len() < TOLD_MOST {
            case.found.push(told);
        } else if let (true, Some(last)) = (is_new, case.found.last_mut()) {
            *last = told;
        }
    }

    /// Returns the largest share of harmful failures among the telling ones that is consistent with what was seen, at 95 % confidence.
    pub fn share_at_most(&self) -> f64 {
        share_at_most(self.case.telling(), self.case.harmed(), CONFIDENCE)
    }
}

/// A case and its failures.
pub struct CaseTallies {
    /// The levels of the case.
    pub levels: Levels,
    /// The version of the server.
    pub server: String,
    /// The failures, one tally for each kind.
    pub tallies: Vec<Tally>,
    /// The level that the settings promise; `None` if they promise none.
    pub promised: Option<Level>,
}

impl CaseTallies {
    /// Returns the result of one kind of failure; `None` if it was not tried.
    fn of(&self, fault: FaultKind) -> Option<&DurabilityCase> {
        self.tallies.iter().map(|tally| &tally.case).find(|case| case.fault == fault)
    }

    /// Returns the level that the failures have proved; `None` if they do not decide it.
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

    /// Returns whether a power cut did harm.
    fn is_harmed_by_cuts(&self) -> bool {
        self.of(FaultKind::Power).is_some_and(|case| case.harmed() > 0)
    }

    /// Returns whether the proved level is below the promised one.
    fn breaks_promise(&self) -> bool {
        match (self.promised, self.proved()) {
            (Some(promised), Some(proved)) => proved < promised,
            (promised, None) => promised == Some(Level::PowerCut) && self.is_harmed_by_cuts(),
            (None, _) => false,
        }
    }

    /// Returns the results, one entry for each kind of failure.
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
