//! What the failures of a case have shown together.
//!
//! Main types: [`Tally`], [`CaseTallies`]. Invariant: what was never seen is bounded, not called impossible.

use super::life::Life;
use super::oracle::Judged;
use crate::database::Level;
use crate::finding::{DurabilityCase, HarmfulFailure, RecoveryTimes};
use crate::statistics::order::share_at_most;
use crate::statistics::summary::median;
use crate::trial::{FaultKind, Levels};

/// Confidence of the bound on what was not seen.
const CONFIDENCE: f64 = 0.95;

/// Failures that are told one by one, at most.
const TOLD_MOST: usize = 5;

/// All failures of one kind in one case.
#[derive(Debug, Clone)]
pub struct Tally {
    /// What failed.
    pub fault: FaultKind,
    /// How often.
    pub cuts: u64,
    /// Failures behind which acknowledged records were not as promised.
    pub cuts_with_loss: u64,
    /// What was found in all of them.
    pub judged: Judged,
    /// Records that were there and should not have been: twice, or left over.
    pub duplicated: u64,
    /// Failures behind which the database did not start.
    pub did_not_start: u64,
    /// Failures that could not be judged, which are not among the others.
    pub unjudged: u64,
    /// Failures at which the disk had something to lose.
    pub unsynced_cuts: u64,
    /// Longest time from an acknowledgement that is gone to the failure, in seconds.
    pub longest_lost_s: f64,
    /// Times to answer again, in seconds.
    pub recoveries_s: Vec<f64>,
    /// The first failures that did harm.
    pub found: Vec<HarmfulFailure>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(fault: FaultKind) -> Self {
        Tally {
            fault,
            cuts: 0,
            cuts_with_loss: 0,
            judged: Judged::default(),
            duplicated: 0,
            did_not_start: 0,
            unjudged: 0,
            unsynced_cuts: 0,
            longest_lost_s: 0.0,
            recoveries_s: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Adds a failure.
    pub fn add(&mut self, life: Life) {
        self.cuts += 1;
        self.cuts_with_loss += u64::from(life.is_harmed());
        self.judged = self.judged.and(life.judged);
        self.duplicated += life.duplicated;
        self.did_not_start += u64::from(life.did_not_start.is_some());
        self.unsynced_cuts += u64::from(life.unsynced > 0);
        self.longest_lost_s = self.longest_lost_s.max(life.lost_s.unwrap_or(0.0));
        self.recoveries_s.extend(life.recovery_s);
        if !life.is_harmed() && life.did_not_start.is_none() {
            return;
        }
        let (number, what, says) = (life.number, life.what, life.did_not_start.or(life.says));
        let told = HarmfulFailure { number, what, lost: life.judged.lost, changed: life.judged.changed, says };
        // What the database itself says is worth more than a further count.
        let is_new = told.says.is_some() && self.found.iter().all(|known| known.says.is_none());
        if self.found.len() < TOLD_MOST {
            self.found.push(told);
        } else if let (true, Some(last)) = (is_new, self.found.last_mut()) {
            *last = told;
        }
    }

    /// Failures behind which not all that was acknowledged could be had.
    pub fn harmed(&self) -> u64 {
        self.cuts_with_loss + self.did_not_start
    }

    /// Failures that tell something: a disk that has synced everything loses nothing by a cut, whatever the database promises.
    pub fn telling(&self) -> u64 {
        if self.fault == FaultKind::Power { self.unsynced_cuts.max(self.harmed()) } else { self.cuts }
    }

    /// Whether failures that could do harm did none.
    pub fn is_harmless(&self) -> bool {
        self.telling() > 0 && self.harmed() == 0
    }

    /// The largest share of telling failures that do harm which goes together with what was seen, at 95 %.
    pub fn share_at_most(&self) -> f64 {
        share_at_most(self.telling(), self.harmed(), CONFIDENCE)
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
    /// The level that its failures have proved; none where what failed does not tell.
    fn proved(&self) -> Option<Level> {
        let of = |fault| self.tallies.iter().find(|tally| tally.fault == fault);
        let (power, kill) = (of(FaultKind::Power), of(FaultKind::Kill));
        let is_harmed = |tally: Option<&Tally>| tally.is_some_and(|tally| tally.harmed() > 0);
        if power.is_some_and(Tally::is_harmless) {
            return Some(Level::PowerCut);
        }
        match (is_harmed(power), kill) {
            (_, Some(kill)) if kill.harmed() > 0 => Some(Level::Nothing),
            (true, Some(kill)) if kill.is_harmless() => Some(Level::Crash),
            _ => None,
        }
    }

    /// Whether less was found than its settings promise.
    fn breaks_promise(&self) -> bool {
        let is_harmed_by_cuts =
            || self.tallies.iter().any(|tally| tally.fault == FaultKind::Power && tally.harmed() > 0);
        match (self.promised, self.proved()) {
            (Some(promised), Some(proved)) => proved < promised,
            (promised, None) => promised == Some(Level::PowerCut) && is_harmed_by_cuts(),
            (None, _) => false,
        }
    }

    /// What is told of it: an entry for each kind of failure.
    pub fn told(&self) -> Vec<DurabilityCase> {
        self.tallies.iter().map(|tally| self.entry(tally)).collect()
    }

    fn entry(&self, tally: &Tally) -> DurabilityCase {
        let judged = &tally.judged;
        let max = tally.recoveries_s.iter().copied().reduce(f64::max);
        DurabilityCase {
            levels: self.levels.clone(),
            server: self.server.clone(),
            fault: tally.fault,
            cuts: tally.cuts,
            cuts_with_loss: tally.cuts_with_loss,
            cuts_unsynced: tally.unsynced_cuts,
            acknowledged: judged.acknowledged,
            lost: judged.lost,
            changed: judged.changed,
            unreadable: judged.unreadable,
            half_transactions: judged.half_transactions,
            reordered: judged.reordered,
            duplicated: tally.duplicated,
            did_not_start: tally.did_not_start,
            not_judged: tally.unjudged,
            loss_share_upper95: tally.share_at_most(),
            longest_lost_s: tally.longest_lost_s,
            recovery_s: RecoveryTimes { p50: median(&tally.recoveries_s), max },
            level: self.proved().map_or("unknown", Level::name).to_owned(),
            promised: self.promised.map(|level| level.name().to_owned()),
            breaks_promise: self.breaks_promise(),
            found: tally.found.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_that_find_everything_synced_prove_nothing() {
        let mut tally = Tally::new(FaultKind::Power);
        tally.add(Life::default());
        assert!(!tally.is_harmless() && tally.share_at_most() == 1.0);
        let mut killed = Tally::new(FaultKind::Kill);
        killed.add(Life::default());
        assert!(killed.is_harmless());
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
        assert_eq!((tally.cuts, tally.telling(), tally.harmed()), (400, 300, 0));
        assert!((tally.share_at_most() - 0.01).abs() < 1e-4);
        let judged = Judged { lost: 3, first_lost_ns: Some(5), ..Judged::default() };
        tally.add(Life { number: 9, judged, lost_s: Some(0.5), ..Life::default() });
        tally.add(Life { did_not_start: Some("why".to_owned()), ..Life::default() });
        assert_eq!((tally.cuts_with_loss, tally.did_not_start, tally.harmed()), (1, 1, 2));
        assert_eq!((tally.found[0].number, tally.found[1].says.as_deref()), (9, Some("why")));
        assert_eq!(tally.longest_lost_s, 0.5);
        assert!(tally.share_at_most() > 0.01);
    }
}
