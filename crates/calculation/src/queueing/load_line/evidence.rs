//! Evaluates what the trials at one arrival rate say about the bound.
//!
//! The quantile of response time keeps its bound exactly when at most a share 1 - q of the operations takes longer than it. That share is a
//! ratio of two counts over trials, so its error comes from the differences between trials (Cochran 1977, section 6.3), which
//! contain everything that the operations of one trial have in common. Invariant: a trial in which the database fell behind counts with
//! all its operations above the bound.

use super::{Bound, Outcome, Probe};
use crate::statistics::student::t_quantile;
use crate::statistics::summary::mean;

/// Confidence of each one-sided bound on the share of operations.
const CONFIDENCE: f64 = 0.995;
/// A rate is confirmed only if the trials exclude, with the error probability below, that the database falls behind in this share of trials.
const FALLS_BEHIND_MOST: f64 = 0.30;
const FALLS_BEHIND_ERROR: f64 = 0.03;
/// The error probability where a higher rate was lost in some trials and carried in others.
const FALLS_BEHIND_ERROR_FICKLE: f64 = 0.001;
/// A rate is refuted if the trials exclude, with the error probability below, that the database falls behind in at most this share of trials.
const FALLS_BEHIND_TOLERATED: f64 = 0.05;
const FALLS_BEHIND_REFUTED: f64 = 0.025;
/// Smallest number of trials whose spread is estimated from themselves.
const SPREAD_FROM: usize = 3;
/// The length of a trial may be this fraction of the length that the current model asks for.
const LENGTH_SLACK: f64 = 0.8;
/// A rate is given up after this multiple of the confirmations.
const STUCK: f64 = 1.5;
/// A trial stalled if its share of operations above the bound exceeds this multiple of the tolerated share.
const STALLS_FROM: f64 = 2.0;
/// A few stalled trials do not prevent confirmation if the bound on the share of the other trials is at most this fraction of the tolerated share …
const WITHOUT_STALLS: f64 = 0.5;
/// … and the observed share of all trials together is at most this fraction of it.
const STALLS_LEAVE: f64 = 0.7;
/// Multiple of the confirmations up to which trials are made where only a few stalled trials prevent confirmation.
const STUCK_STALLED: f64 = 3.0;
/// Surplus of disturbed trials at a rate over undisturbed ones after which the search does not wait for the latter.
const PATIENCE: usize = 6;

/// The decision about a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The quantile keeps the bound.
    Confirmed,
    /// The quantile does not keep the bound.
    Refuted,
    /// Neither is certain.
    Undecided,
}

/// The tendency of a rate that is not decided yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lean {
    /// The bound seems to be kept.
    Keeps,
    /// The bound seems to be lost.
    Loses,
    /// One more trial is needed.
    Open,
}

/// The counts and times of a usable trial.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    seconds: f64,
    operations: f64,
    above: f64,
    /// Quantile and mean of response time in seconds; `None` where the database fell behind.
    times_s: Option<[f64; 2]>,
    is_disturbed: bool,
}

impl Seen {
    fn keeps(&self, bound: &Bound) -> bool {
        self.above <= bound.tolerated() * self.operations
    }

    /// Returns whether more operations are late than the randomness of a queue explains.
    fn stalls(&self, bound: &Bound) -> bool {
        self.above > STALLS_FROM * bound.tolerated() * self.operations
    }

    fn is_lost(&self) -> bool {
        self.times_s.is_none()
    }
}

/// The trials that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Every usable trial.
    All,
    /// Usable trials that nothing disturbed.
    Undisturbed,
}

/// The evidence of other rates about one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Others {
    /// Operations at lower rates that mostly keep the bound, and the number of these operations above the bound.
    pub below: [f64; 2],
    /// Trials at lower rates in which the database fell behind.
    pub lost_below: usize,
    /// Whether this rate or a higher one was lost in some trials and carried in others.
    pub is_fickle: bool,
}

/// All trials at one arrival rate.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rate {
    pub rate_per_s: f64,
    seen: Vec<Seen>,
    pub not_driven: usize,
    pub saturated: usize,
}

/// Groups the trials by their rates, the lowest rate first; stolen and invalid trials are left out.
pub(super) fn rates_of(probes: &[Probe]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::new();
    for probe in probes {
        if matches!(probe.outcome, Outcome::Stolen | Outcome::Invalid) {
            continue;
        }
        let place = rates.iter().position(|rate| rate.rate_per_s == probe.rate_per_s).unwrap_or_else(|| {
            rates.push(Rate { rate_per_s: probe.rate_per_s, ..Rate::default() });
            rates.len() - 1
        });
        rates[place].add(probe);
    }
    rates.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    rates
}

impl Rate {
    fn add(&mut self, probe: &Probe) {
        let (seconds, is_disturbed) = (probe.seconds, probe.disturbed.is_some());
        let mut see = |operations: u64, above: u64, times_s| {
            let (operations, above) = (operations as f64, above as f64);
            self.seen.push(Seen { seconds, operations, above, times_s, is_disturbed });
        };
        match probe.outcome {
            Outcome::Answered { operations, above, quantile_s, mean_s } => {
                see(operations, above, Some([quantile_s, mean_s]));
            }
            Outcome::Overloaded { operations } => see(operations.max(1), operations.max(1), None),
            Outcome::NotDriven { is_saturated } => {
                self.not_driven += 1;
                self.saturated += usize::from(is_saturated);
            }
            Outcome::Stolen | Outcome::Invalid => {}
        }
    }

    fn of(&self, of: Of) -> Vec<Seen> {
        self.seen.iter().filter(|seen| of == Of::All || !seen.is_disturbed).copied().collect()
    }

    /// Returns the trials that locate the line approximately: the undisturbed ones where there are enough, otherwise all.
    fn telling(&self) -> Vec<Seen> {
        let undisturbed = self.of(Of::Undisturbed);
        if undisturbed.len() >= SPREAD_FROM { undisturbed } else { self.seen.clone() }
    }

    /// Returns the number of usable trials.
    pub fn trials(&self) -> usize {
        self.seen.len()
    }

    /// Returns the number of usable trials that were disturbed.
    pub fn disturbed(&self) -> usize {
        self.seen.iter().filter(|seen| seen.is_disturbed).count()
    }

    /// Returns the number of trials in which the database fell behind.
    pub fn lost(&self, of: Of) -> usize {
        self.of(of).iter().filter(|seen| seen.is_lost()).count()
    }

    /// Returns whether more trials lost the bound than kept it.
    pub fn mostly_loses(&self, bound: &Bound) -> bool {
        let seen = self.telling();
        2 * seen.iter().filter(|seen| seen.keeps(bound)).count() < seen.len()
    }

    /// Returns whether the database fell behind in some trials and clearly did not in others: less than half of their operations above the bound.
    pub fn is_fickle(&self, of: Of) -> bool {
        let clear = |seen: &Seen| !seen.is_lost() && seen.above < 0.5 * seen.operations;
        self.lost(of) > 0 && self.of(of).iter().any(clear)
    }

    /// Returns the mean response time over the trials that were carried, in seconds.
    pub fn mean_s(&self) -> Option<f64> {
        let means: Vec<f64> = self.telling().iter().filter_map(|seen| Some(seen.times_s?[1])).collect();
        mean(&means)
    }

    /// Returns an estimate of the quantile in seconds, for placing trials and for messages; infinite where the database mostly fell behind.
    pub fn quantile_s(&self) -> f64 {
        let quantile_s = |seen: &Seen| seen.times_s.map_or(f64::INFINITY, |[quantile_s, _]| quantile_s);
        let mut sorted: Vec<f64> = self.telling().iter().map(quantile_s).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
    }

    /// Returns whether more trials would not decide, because there are enough already or because the present ones show it.
    pub fn is_stuck(&self, bound: &Bound) -> bool {
        // Disturbed trials may confirm, but never refute.
        will_not_decide(&self.seen, bound, false)
            && (self.is_given_up() || will_not_decide(&self.of(Of::Undisturbed), bound, true))
    }

    /// Returns whether so many trials were disturbed that the search does not wait for undisturbed ones.
    pub fn is_given_up(&self) -> bool {
        2 * self.disturbed() >= self.trials() + PATIENCE
    }

    /// Returns which trials confirm the rate: all of them, or the undisturbed ones where all together do not confirm it.
    pub fn confirmed_by(&self, bound: &Bound, least_s: f64, others: impl Fn(Of) -> Others) -> Of {
        if self.is_confirmed(bound, Of::All, least_s, others(Of::All)) { Of::All } else { Of::Undisturbed }
    }

    /// Returns the number of usable trials among those counted.
    pub fn count(&self, of: Of) -> usize {
        self.of(of).len()
    }

    /// Returns the measured seconds of these trials together.
    pub fn seconds(&self, of: Of) -> f64 {
        self.of(of).iter().map(|seen| seen.seconds).sum()
    }

    /// Returns the decision; only trials of about `least_s` seconds or longer can confirm the rate.
    pub fn decision(&self, bound: &Bound, least_s: f64, others: impl Fn(Of) -> Others) -> Decision {
        if self.is_refuted(bound) {
            return Decision::Refuted;
        }
        let is_confirmed = |of| self.is_confirmed(bound, of, least_s, others(of));
        let is_disturbed = self.disturbed() > 0;
        match is_confirmed(Of::All) || is_disturbed && is_confirmed(Of::Undisturbed) {
            true => Decision::Confirmed,
            false => Decision::Undecided,
        }
    }

    fn is_confirmed(&self, bound: &Bound, of: Of, least_s: f64, others: Others) -> bool {
        self.confirmation(bound, of, least_s, others).is_some()
    }

    /// Returns the number of stalled trials if these trials confirm the rate, otherwise `None`.
    pub fn confirmation(&self, bound: &Bound, of: Of, least_s: f64, others: Others) -> Option<usize> {
        let seen = self.of(of);
        let (trials, lost) = (seen.len() + others.lost_below, self.lost(of) + others.lost_below);
        let long: Vec<Seen> = seen.into_iter().filter(|seen| seen.seconds >= LENGTH_SLACK * least_s).collect();
        let error = if others.is_fickle { FALLS_BEHIND_ERROR_FICKLE } else { FALLS_BEHIND_ERROR };
        let excludes = |lost| binomial(trials, FALLS_BEHIND_MOST, |count| count <= lost) <= error;
        let [operations, above] = sums(&long);
        // At a higher rate a server is late at least as often as at a lower one.
        let [with_operations, with_above] = [operations + others.below[0], above + others.below[1]];
        let tolerated = bound.tolerated();
        if long.len() < bound.confirmations || !excludes(lost) || with_above > tolerated * with_operations {
            return None;
        }
        if is_share_below(tolerated, &long) {
            return Some(0);
        }
        let (kept, late): (Vec<Seen>, Vec<Seen>) = long.iter().partition(|seen| !seen.stalls(bound));
        let stalled = late.iter().filter(|seen| !seen.is_lost()).count();
        let confirms = above <= STALLS_LEAVE * tolerated * operations
            && excludes(lost + stalled)
            && is_share_below(WITHOUT_STALLS * tolerated, &kept);
        confirms.then_some(stalled)
    }

    /// Returns the number of operations, and of those above the bound, of a rate at which most trials keep it.
    pub fn sums_where_kept(&self, bound: &Bound, of: Of) -> [f64; 2] {
        if self.mostly_loses(bound) { [0.0; 2] } else { sums(&self.of(of)) }
    }

    fn is_refuted(&self, bound: &Bound) -> bool {
        let seen = self.of(Of::Undisturbed);
        let (trials, lost) = (seen.len(), self.lost(Of::Undisturbed));
        // A single trial may have met a stall that has nothing to do with its rate.
        let falls_behind =
            lost >= 2 && binomial(trials, FALLS_BEHIND_TOLERATED, |count| count >= lost) <= FALLS_BEHIND_REFUTED;
        falls_behind || share(&seen, 0.0).is_some_and(|[low, _]| low > bound.tolerated())
    }

    /// Returns the tendency: few trials vote, more trials are pooled.
    pub fn lean(&self, bound: &Bound, decision: Decision) -> Lean {
        match decision {
            Decision::Confirmed => return Lean::Keeps,
            Decision::Refuted => return Lean::Loses,
            Decision::Undecided => {}
        }
        let seen = self.telling();
        let kept = seen.iter().filter(|seen| seen.keeps(bound)).count();
        if seen.len() > SPREAD_FROM {
            let [operations, above] = sums(&seen);
            return if above <= bound.tolerated() * operations { Lean::Keeps } else { Lean::Loses };
        }
        match (kept, seen.len() - kept) {
            (0, 1) | (1, 1) => Lean::Open,
            (kept, lost) if kept > lost => Lean::Keeps,
            _ => Lean::Loses,
        }
    }
}

/// Returns whether trials like these do not decide, up to the largest number of trials: neither for the rate nor, where they may refute, against it.
fn will_not_decide(seen: &[Seen], bound: &Bound, may_refute: bool) -> bool {
    let (trials, most) = (seen.len() as f64, STUCK * bound.confirmations as f64);
    if trials < STUCK_STALLED * bound.confirmations as f64 && only_stalls(seen, bound) {
        return false;
    }
    let known = SPREAD_FROM.max(4 * bound.confirmations / 5);
    if seen.len() >= known && trials < most {
        let [low, high] = [share_after(seen, 0.0, most), share_after(seen, 1.0, most)];
        let is_below = high.is_some_and(|[_, high]| high <= bound.tolerated());
        let is_above = low.is_some_and(|[low, _]| low > bound.tolerated());
        return !(is_below || may_refute && is_above);
    }
    // Where the share is certain and only the number of trials is too small, more trials do decide.
    let is_certain = share(seen, 1.0).is_some_and(|[_, high]| high <= bound.tolerated());
    trials >= if is_certain { 2.0 * most } else { most }
}

/// Returns whether only a few stalled trials prevent confirmation: further trials without a stall, up to the largest number, will then confirm the rate.
fn only_stalls(seen: &[Seen], bound: &Bound) -> bool {
    let (kept, late): (Vec<Seen>, Vec<Seen>) = seen.iter().partition(|seen| !seen.stalls(bound));
    let (trials, tolerated) = (STUCK_STALLED * bound.confirmations as f64, bound.tolerated());
    let [operations, above] = sums(seen);
    let operations_then = operations * trials / seen.len() as f64;
    !late.is_empty()
        && binomial(trials as usize, FALLS_BEHIND_MOST, |count| count <= late.len()) <= FALLS_BEHIND_ERROR
        && above <= STALLS_LEAVE * tolerated * operations_then
        && share_after(&kept, 1.0, trials).is_some_and(|[_, high]| high <= WITHOUT_STALLS * tolerated)
}

/// Returns whether the one-sided upper bound on the share of operations above the bound is at most `most`.
fn is_share_below(most: f64, seen: &[Seen]) -> bool {
    share(seen, 1.0).is_some_and(|[_, high]| high <= most)
}

fn sums(seen: &[Seen]) -> [f64; 2] {
    [seen.iter().map(|seen| seen.operations).sum(), seen.iter().map(|seen| seen.above).sum()]
}

/// Returns both one-sided bounds on the share of operations above the bound, each with [`CONFIDENCE`]; `None` for fewer than three trials. The
/// limits are computed on the logarithm, because the share of a few is skewed; `more` operations are added to those above, so that a
/// count of zero does not prove a share of zero.
fn share(seen: &[Seen], more: f64) -> Option<[f64; 2]> {
    share_after(seen, more, seen.len() as f64)
}

/// Returns what [`share`] will be after `trials` trials, if the further ones are like these.
fn share_after(seen: &[Seen], more: f64, trials: f64) -> Option<[f64; 2]> {
    let count = seen.len() as f64;
    if seen.len() < SPREAD_FROM {
        return None;
    }
    let [operations, above] = sums(seen);
    let ratio = above / operations;
    let squares: f64 = seen.iter().map(|seen| (seen.above - ratio * seen.operations).powi(2)).sum();
    let between = count / (count - 1.0) * squares / operations.powi(2);
    // `more` is added once in total, however many trials follow.
    let counted = (above + more * count / trials) / operations;
    // Counts spread at least as much as Poisson counts, even where a few trials agree by chance.
    let error = (between.max(counted / operations) * count / trials).sqrt() / counted;
    let reach = t_quantile(CONFIDENCE, trials - 1.0) * error;
    (counted > 0.0).then(|| [counted * (-reach).exp(), counted * reach.exp()])
}

/// Returns the probability that a binomial count of `trials` trials satisfies `wanted`.
fn binomial(trials: usize, share: f64, wanted: impl Fn(usize) -> bool) -> f64 {
    let mut probability = (1.0 - share).powi(i32::try_from(trials).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for count in 0..=trials {
        if wanted(count) {
            sum += probability;
        }
        probability *= share / (1.0 - share) * (trials - count) as f64 / (count + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_trials_without_a_loss_exclude_that_three_in_ten_are_lost() {
        let confirms = |trials, lost| binomial(trials, FALLS_BEHIND_MOST, |count| count <= lost) <= FALLS_BEHIND_ERROR;
        assert!(confirms(10, 0) && !confirms(9, 0) && confirms(16, 1) && !confirms(15, 1));
        let refutes =
            |trials, lost| binomial(trials, FALLS_BEHIND_TOLERATED, |count| count >= lost) <= FALLS_BEHIND_REFUTED;
        assert!(refutes(2, 2) && refutes(5, 2) && !refutes(6, 2), "one or two stalls in many trials are none");
    }

    /// Trials of 1,000 operations each, with the given numbers of operations above the bound.
    fn trials(above: &[f64]) -> Vec<Seen> {
        let one = |above: &f64| Seen {
            seconds: 1.0,
            operations: 1000.0,
            above: *above,
            times_s: Some([1e-3; 2]),
            is_disturbed: false,
        };
        above.iter().map(one).collect()
    }

    #[test]
    fn one_stall_in_thirty_trials_is_borne_and_two_are_not() {
        let bound = Bound {
            quantile: 0.99,
            below_s: 0.02,
            within: 0.1,
            confirmations: 10,
            trials_most: 120,
            start_per_s: 1.0,
            length: crate::queueing::load_line::TrialLength::Seconds(1.0),
        };
        let confirmation = |stalled: usize, of: usize, below: [f64; 2]| {
            let above: Vec<f64> = (0..of).map(|trial| if trial < stalled { 200.0 } else { 1.0 }).collect();
            let rate = Rate { rate_per_s: 1.0, seen: trials(&above), ..Rate::default() };
            let others = Others { below, lost_below: 0, is_fickle: false };
            rate.confirmation(&bound, Of::All, 1.0, others)
        };
        assert_eq!(confirmation(0, 10, [0.0; 2]), Some(0));
        assert_eq!(confirmation(1, 40, [0.0; 2]), Some(1), "0.6 % of the operations are late, and 1 % may be");
        assert_eq!(confirmation(1, 20, [0.0; 2]), None, "1.1 % are late");
        assert_eq!(confirmation(2, 40, [0.0; 2]), None, "1.1 % are late");
        assert_eq!(confirmation(0, 10, [20_000.0, 400.0]), None, "1.4 % are late here and at lower rates");
    }

    #[test]
    fn the_bounds_of_a_share_widen_with_what_differs_between_trials() {
        let seen = trials;
        let [low, high] = share(&seen(&[50.0; 9]), 0.0).unwrap();
        assert!(low > 0.041 && high < 0.061, "Poisson counts of 450: {low} {high}");
        let [low, high] = share(&seen(&[0.0, 10.0, 20.0, 100.0, 200.0, 30.0, 40.0, 20.0, 30.0]), 0.0).unwrap();
        assert!(low < 0.02 && high > 0.12, "{low} {high}");
        let [_, high] = share(&seen(&[0.0; 9]), 1.0).unwrap();
        assert!(high > 0.001 && high < 0.004, "none of 9,000: {high}");
        assert_eq!(share(&seen(&[0.0; 2]), 1.0), None);
    }
}
