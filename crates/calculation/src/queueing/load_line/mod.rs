//! The search for the load line: the highest arrival rate whose quantile of response time stays below a bound.
//!
//! Main function: [`next`], a pure state machine: from the trials so far to the next arrival rate, or the answer. `evidence` decides what is known
//! of each rate, `place` where the next trial goes. Invariant: a line counts as verified only when its own trials show with 99 %
//! confidence that its quantile keeps the bound, and the upper end of its bracket is a rate that was refuted by undisturbed trials.

mod evidence;
mod place;
mod probe;

use evidence::{Decision, Lean, Of, Others, Rate, rates_of};
use place::{Curve, Length, rounded};

pub use place::TrialLength;
pub use probe::{Bound, Disturbance, Outcome, Probe};

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make a trial.
    Measure {
        /// Arrivals per second.
        rate_per_s: f64,
        /// Length of its measured phase in seconds, where that is longer than the study asks for.
        seconds: Option<f64>,
    },
    /// The search is over.
    Done(Answer),
}

/// The end of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Why the search ended.
    pub ending: Ending,
    /// The line; `None` where there is none.
    pub line: Option<Line>,
}

/// A load line: the highest rate that was confirmed, and the lowest rate above it that was refuted.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The highest confirmed rate, in arrivals per second.
    pub rate_per_s: f64,
    /// The lowest refuted rate above the line; `None` where none was refuted.
    pub refuted: Option<Refuted>,
    /// Whether the bound was confirmed at that rate.
    pub is_verified: bool,
    /// Trials that confirm the line: all usable ones, or only the undisturbed ones where all together do not confirm it.
    pub trials: usize,
    /// Measured seconds of these trials together.
    pub seconds: f64,
    /// Of these, trials in which the database fell behind.
    pub fallen_behind: usize,
    /// Of these, trials that lost the bound by themselves although the database did not fall behind: it stalls now and then.
    pub stalled: usize,
    /// Of the trials at the line, those that were disturbed and confirm it nevertheless.
    pub disturbed: usize,
    /// Disturbed trials above the line and below the refuted rate; with such trials the line may be higher.
    pub disturbed_above: usize,
    /// A lower rate that was refuted, where there is one: the server is slow when it is idle.
    pub slow_below_per_s: Option<f64>,
    /// A rate above the refuted one at which trials kept the bound, where there is one: the curve is not monotone.
    pub kept_again_per_s: Option<f64>,
}

impl Line {
    /// Returns the interval from the highest confirmed rate to the lowest refuted one.
    pub fn bracket(&self) -> Option<[f64; 2]> {
        self.refuted.filter(|_| self.is_verified).map(|refuted| [self.rate_per_s, refuted.rate_per_s])
    }
}

/// A rate at which the bound was certainly lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refuted {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// Trials at this rate.
    pub trials: usize,
    /// Of these, trials in which the database fell behind.
    pub fallen_behind: usize,
}

/// The reason why a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    /// The line lies between a confirmed and a refuted rate.
    Found,
    /// The quantile is above the bound even where nothing queues: the arrival rate, and the quantile there in seconds.
    NotReached(f64, f64),
    /// The quantile still kept the bound at this arrival rate, and the client's CPU was used up above it.
    AboveClient(f64),
    /// At the second arrival rate trials were not driven as they should be although the client's CPU was not used up; the quantile still
    /// kept the bound at the first.
    NotDriven(f64, f64),
    /// The quantile still kept the bound at this arrival rate when the trials allowed were used up.
    Unbounded(f64),
    /// Many trials were disturbed, and the undisturbed ones do not decide whether the bound is lost. The number of trials disturbed …
    Disturbed {
        /// … by other work on the machine,
        by_others: usize,
        /// … by a hypervisor,
        by_hypervisor: usize,
        /// … by a client that sent late.
        by_client: usize,
    },
    /// Trials were invalid again and again.
    Unusable,
    /// At this arrival rate a trial would have to last this many seconds for the quantile to be known: longer than the limit.
    TooShort(f64, f64),
    /// The trials allowed were used up before the line was confirmed.
    Unsettled,
}

/// Number of invalid trials after which the search is given up.
const INVALID_MOST: usize = 5;
/// Number of trials at one rate that the client could not drive, after which the rate counts as the client's limit.
const NOT_DRIVEN_MOST: usize = 3;
/// Number of undriven trials after which the search is given up: at one rate without a usable trial, and in all.
const NOT_DRIVEN_HERE_MOST: usize = 2 * NOT_DRIVEN_MOST;
const NOT_DRIVEN_IN_ALL_MOST: usize = 20;
/// Disturbances are the reason why a search did not settle from this number of disturbed trials on, if they are also this share of all.
const DISTURBED_LEAST: usize = 8;
const DISTURBED_SHARE: f64 = 1.0 / 3.0;
/// Share of a rate by which the search steps down at once where disturbances leave that rate undecided.
const DISTURBED_STEP: f64 = 0.15;
/// Number of stolen trials, beyond the number of usable ones, after which the search is given up: other machines come and go, so that
/// the search waits for them.
const STOLEN_MOST: usize = 24;
/// Mean number of running operations below which nothing queues.
const NO_QUEUE: f64 = 0.05;
/// How often a higher rate is tried where no rate has kept the bound, and the factor from one rate to the next.
const UPWARD_MOST: i32 = 4;
const UPWARD: f64 = 4.0;
/// Lowest arrival rate that is tried.
const RATE_LEAST: f64 = 0.01;

/// Returns the largest number of usable trials that a search may take by default.
pub fn trials_most(confirmations: usize) -> usize {
    20 + 10 * confirmations
}

/// Returns the next step after the trials so far.
pub fn next(bound: &Bound, probes: &[Probe]) -> Step {
    let count = |wanted: fn(&Outcome) -> bool| probes.iter().filter(|probe| wanted(&probe.outcome)).count();
    let rates = rates_of(probes);
    let search = Search::new(bound, &rates, disturbances(probes));
    if count(|outcome| *outcome == Outcome::Invalid) >= INVALID_MOST {
        // What was confirmed before stays true.
        return search.given_up(Ending::Unusable);
    }
    if count(|outcome| *outcome == Outcome::Stolen) >= STOLEN_MOST + search.usable {
        return search.given_up(search.disturbed);
    }
    let is_stuck = rates.iter().any(|rate| rate.trials() == 0 && rate.not_driven >= NOT_DRIVEN_HERE_MOST);
    if is_stuck || count(|outcome| matches!(outcome, Outcome::NotDriven { .. })) >= NOT_DRIVEN_IN_ALL_MOST {
        return search.given_up(Ending::Unusable);
    }
    // Unusable trials are treated as if they had not been made: the step is the same again.
    let is_known = |probe: &&Probe| !matches!(probe.outcome, Outcome::Invalid | Outcome::Stolen);
    let Some(last) = probes.iter().rfind(is_known) else { return search.measure(bound.start_per_s) };
    let not_driven = rates.iter().find(|rate| rate.rate_per_s == last.rate_per_s).map_or(0, |rate| rate.not_driven);
    let is_repeated = matches!(last.outcome, Outcome::NotDriven { .. }) && not_driven < NOT_DRIVEN_MOST;
    if is_repeated { search.measure(last.rate_per_s) } else { search.step() }
}

/// Returns the line as far as the trials have confirmed one, whether the search is over or not.
pub fn so_far(bound: &Bound, probes: &[Probe]) -> Option<Line> {
    match next(bound, probes) {
        Step::Done(answer) => answer.line,
        Step::Measure { .. } => {
            let rates = rates_of(probes);
            match Search::new(bound, &rates, disturbances(probes)).given_up(Ending::Unsettled) {
                Step::Done(answer) => answer.line,
                Step::Measure { .. } => None,
            }
        }
    }
}

/// Counts the disturbed trials by their disturbance, as an ending of the search.
fn disturbances(probes: &[Probe]) -> Ending {
    let count = |wanted| probes.iter().filter(|probe| probe.disturbed == Some(wanted)).count();
    Ending::Disturbed {
        by_others: count(Disturbance::Others),
        by_hypervisor: count(Disturbance::Hypervisor),
        by_client: count(Disturbance::Client),
    }
}

fn done(ending: Ending, line: Option<Line>) -> Step {
    Step::Done(Answer { ending, line })
}

/// The state of a search, from which the next step follows.
struct Search<'s> {
    bound: &'s Bound,
    /// Every rate with a trial, the lowest first.
    rates: &'s [Rate],
    curve: Option<Curve>,
    /// Number of usable trials.
    usable: usize,
    /// The ending of the search where disturbances are the reason.
    disturbed: Ending,
}

impl<'s> Search<'s> {
    fn new(bound: &'s Bound, rates: &'s [Rate], disturbed: Ending) -> Self {
        let usable = rates.iter().map(Rate::trials).sum();
        Search { bound, rates, curve: Curve::of(rates), usable, disturbed }
    }

    /// Returns whether disturbances may be the reason why the search does not settle.
    fn is_disturbed(&self) -> bool {
        let disturbed: usize = self.rates.iter().map(Rate::disturbed).sum();
        disturbed >= DISTURBED_LEAST && disturbed as f64 >= DISTURBED_SHARE * self.usable as f64
    }

    fn is_used_up(&self) -> bool {
        self.usable >= self.bound.trials_most
    }

    /// Returns how long trials at a rate must last.
    fn length(&self, rate_per_s: f64) -> Length {
        let loses = |rate: &&Rate| rate.rate_per_s > rate_per_s && rate.mostly_loses(self.bound);
        let lost_per_s = self.rates.iter().find(loses).map_or(f64::INFINITY, |rate| rate.rate_per_s);
        Length::of(self.bound, self.curve, lost_per_s, rate_per_s)
    }

    fn decision(&self, rate: &Rate) -> Decision {
        rate.decision(self.bound, self.length(rate.rate_per_s).least_s, |of| self.others(rate, of))
    }

    fn others(&self, rate: &Rate, of: Of) -> Others {
        let lost_below = self.lost_below(rate, of);
        Others { below: self.late_below(rate, of), lost_below, is_fickle: self.is_fickle_above(rate, of) }
    }

    /// Returns the number of operations at lower rates, down to half of this rate, and of those above the bound.
    fn late_below(&self, rate: &Rate, of: Of) -> [f64; 2] {
        let lower = self.rates.iter().filter(|lower| (0.5..1.0).contains(&(lower.rate_per_s / rate.rate_per_s)));
        let sums = lower.map(|lower| lower.sums_where_kept(self.bound, of));
        sums.fold([0.0; 2], |all, these| [all[0] + these[0], all[1] + these[1]])
    }

    fn lean(&self, rate: &Rate) -> Lean {
        rate.lean(self.bound, self.decision(rate))
    }

    /// Returns the number of trials at lower rates in which the database fell behind: they are evidence against this rate too.
    fn lost_below(&self, rate: &Rate, of: Of) -> usize {
        self.rates.iter().filter(|lower| lower.rate_per_s < rate.rate_per_s).map(|lower| lower.lost(of)).sum()
    }

    /// Returns whether some trials at this rate or at one and the same higher rate were lost and others were not: it may be so at this rate too.
    fn is_fickle_above(&self, rate: &Rate, of: Of) -> bool {
        self.rates.iter().any(|higher| higher.rate_per_s >= rate.rate_per_s && higher.is_fickle(of))
    }

    /// Makes a trial that shows where the search should go on.
    fn measure(&self, rate_per_s: f64) -> Step {
        let rate_per_s = rounded(rate_per_s);
        Step::Measure { rate_per_s, seconds: Length::glance_s(self.bound, rate_per_s) }
    }

    /// Makes a trial that is meant to decide about its rate.
    fn decide(&self, rate_per_s: f64) -> Step {
        let rate_per_s = rounded(rate_per_s);
        Step::Measure { rate_per_s, seconds: self.length(rate_per_s).longer_s() }
    }

    fn step(&self) -> Step {
        let leans: Vec<(&Rate, Lean)> =
            self.rates.iter().filter(|rate| rate.trials() > 0).map(|rate| (rate, self.lean(rate))).collect();
        if let Some((rate, _)) = leans.iter().find(|(_, lean)| *lean == Lean::Open)
            && !self.is_used_up()
        {
            return self.measure(rate.rate_per_s);
        }
        let lowest = leans.iter().position(|(_, lean)| *lean == Lean::Keeps);
        let Some(lowest) = lowest else { return self.nothing_keeps(&leans) };
        let from = &leans[lowest..];
        let lost = from.iter().position(|(_, lean)| *lean == Lean::Loses);
        match lost {
            None => self.upward(from[from.len() - 1].0),
            Some(place) => self.between(from[place - 1].0, from[place].0),
        }
    }

    /// Goes up while nothing has exceeded the bound: to twice the rate; after the first rate at once to half of the most that one server could do.
    fn upward(&self, highest: &Rate) -> Step {
        let rate_per_s = highest.rate_per_s;
        let ceiling = self
            .rates
            .iter()
            .find(|rate| rate.rate_per_s > rate_per_s && rate.not_driven >= NOT_DRIVEN_MOST && rate.trials() == 0);
        if let Some(ceiling) = ceiling {
            let is_clients = 2 * ceiling.saturated > ceiling.not_driven;
            return match is_clients {
                true => done(Ending::AboveClient(rate_per_s), None),
                false => done(Ending::NotDriven(rate_per_s, ceiling.rate_per_s), None),
            };
        }
        if self.is_used_up() {
            return done(Ending::Unbounded(rate_per_s), None);
        }
        let half_per_s = if self.rates.len() == 1 { 0.5 / highest.mean_s().unwrap_or(f64::INFINITY) } else { 0.0 };
        self.measure((2.0 * rate_per_s).max(half_per_s))
    }

    /// Goes on where no rate has kept the bound yet. A server may be slow when it is idle, so that higher rates are tried before the bound is called
    /// out of reach; where the database fell behind, lower rates are tried.
    fn nothing_keeps(&self, leans: &[(&Rate, Lean)]) -> Step {
        let (Some((lowest, _)), Some((highest, _))) = (leans.first(), leans.last()) else {
            return done(Ending::Unusable, None);
        };
        let refused = self.rates.iter().any(|rate| rate.not_driven >= NOT_DRIVEN_MOST);
        let ups = (highest.rate_per_s / self.bound.start_per_s).ln() / UPWARD.ln();
        let may_rise = highest.lost(Of::All) == 0 && !refused && ups < f64::from(UPWARD_MOST) - 0.5;
        if may_rise && !self.is_used_up() {
            return self.measure(UPWARD * highest.rate_per_s);
        }
        let queued = lowest.mean_s().map(|mean_s| mean_s * lowest.rate_per_s);
        let is_idle = queued.is_some_and(|running| running < NO_QUEUE);
        if is_idle && self.decision(lowest) != Decision::Refuted && !lowest.is_stuck(self.bound) && !self.is_used_up() {
            return self.decide(lowest.rate_per_s);
        }
        if is_idle || self.is_used_up() || lowest.rate_per_s < RATE_LEAST {
            // Disturbed trials never lead to the result that the bound is out of reach.
            if lowest.disturbed() > 0 && self.decision(lowest) != Decision::Refuted {
                return done(self.disturbed, None);
            }
            return done(Ending::NotReached(lowest.rate_per_s, lowest.quantile_s()), None);
        }
        self.measure(lowest.rate_per_s / if queued.is_none() { 4.0 } else { 2.0 })
    }

    /// Goes on between a rate that seems to keep the bound and the next one, which seems to lose it: first the two come closer, then both get as
    /// many trials as certainty takes.
    fn between(&self, keeps: &Rate, loses: &Rate) -> Step {
        let within = self.bound.within;
        if self.is_used_up() {
            return self.used_up();
        }
        let gap = loses.rate_per_s / keeps.rate_per_s;
        let confirmed = self.confirmed_below(loses.rate_per_s);
        // Rates above a confirmed one that could not be decided are not tried for ever.
        let is_closed = confirmed.is_some_and(|line| self.has_stuck(line.rate_per_s, loses.rate_per_s));
        if gap > 1.0 + 1.2 * within && !is_closed {
            return self.measure(place::inside(self.bound, self.curve, self.rates, [keeps, loses]));
        }
        if self.decision(keeps) != Decision::Confirmed && !is_closed {
            return self.confirm(keeps, loses);
        }
        let Some(line) = confirmed else { return self.confirm(keeps, loses) };
        self.refute(line, loses)
    }

    /// Makes more trials at a rate that seems to keep the bound, or at a lower one where that rate cannot be decided.
    fn confirm(&self, keeps: &Rate, loses: &Rate) -> Step {
        let length = self.length(keeps.rate_per_s);
        if length.is_too_long() && length.is_for_count {
            return done(Ending::TooShort(keeps.rate_per_s, length.least_s), None);
        }
        if !keeps.is_stuck(self.bound) && !length.is_too_long() {
            return self.decide(keeps.rate_per_s);
        }
        // With disturbances, any line comes first, and then higher ones as long as there are trials.
        let mut steps = if keeps.is_given_up() { DISTURBED_STEP } else { self.bound.within / 2.0 };
        let mut lower = rounded(keeps.rate_per_s * (1.0 - steps));
        while let Some(known) = self.near(lower) {
            if self.decision(known) == Decision::Confirmed {
                return self.refute(known, loses);
            }
            if !known.is_stuck(self.bound) && !self.length(known.rate_per_s).is_too_long() {
                return self.decide(known.rate_per_s);
            }
            // The further away the rate is, the fewer trials decide.
            steps *= 2.0;
            lower = rounded(known.rate_per_s.min(lower) * (1.0 - steps.min(0.5)));
        }
        self.decide(lower)
    }

    /// Makes more trials at a rate that seems to lose the bound, or at a higher one where it cannot be decided; ends the search where one is refuted.
    fn refute(&self, line: &Rate, loses: &Rate) -> Step {
        let found = |refuted| done(Ending::Found, Some(self.line(line, Some(refuted))));
        if let Some(refuted) = self.refuted_above(line.rate_per_s).filter(|rate| rate.rate_per_s <= loses.rate_per_s) {
            return found(refuted);
        }
        if !loses.is_stuck(self.bound) {
            return self.decide(loses.rate_per_s);
        }
        if loses.is_given_up() {
            return self.refute_far_above(line, loses);
        }
        let mut steps = self.bound.within / 2.0;
        let mut higher = rounded(loses.rate_per_s * (1.0 + steps));
        while let Some(known) = self.near(higher).filter(|known| known.is_stuck(self.bound)) {
            steps *= 2.0;
            higher = rounded(known.rate_per_s.max(higher) * (1.0 + steps));
        }
        match self.refuted_above(line.rate_per_s).filter(|rate| rate.rate_per_s <= higher) {
            Some(refuted) => found(refuted),
            None => self.decide(self.near(higher).map_or(higher, |known| known.rate_per_s)),
        }
    }

    /// Goes on where disturbances may be why a rate lost the bound: the upper end is a rate that was refuted on the way up, or one twice as high, where
    /// the disturbances do not explain the loss. Without such a rate the line has no upper end.
    fn refute_far_above(&self, line: &Rate, loses: &Rate) -> Step {
        if let Some(refuted) = self.refuted_above(line.rate_per_s) {
            return done(Ending::Found, Some(self.line(line, Some(refuted))));
        }
        let twice = rounded(2.0 * loses.rate_per_s);
        let is_over = |rate: &Rate| rate.is_stuck(self.bound) || rate.not_driven >= NOT_DRIVEN_MOST;
        if self.rates.iter().any(|rate| rate.rate_per_s == twice && is_over(rate)) || self.is_used_up() {
            return done(self.disturbed, Some(self.line(line, None)));
        }
        self.decide(twice)
    }

    /// Returns a rate with trials that is so near that it counts as the same in this search.
    fn near(&self, rate_per_s: f64) -> Option<&'s Rate> {
        let distance = |rate: &Rate| (rate.rate_per_s / rate_per_s - 1.0).abs();
        let near = self.rates.iter().filter(|rate| rate.trials() > 0 && distance(rate) < self.bound.within / 5.0);
        near.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn has_stuck(&self, low_per_s: f64, high_per_s: f64) -> bool {
        let between = |rate: &&Rate| rate.rate_per_s > low_per_s && rate.rate_per_s <= high_per_s;
        let is_left = |rate: &&Rate| rate.is_stuck(self.bound) || self.length(rate.rate_per_s).is_too_long();
        let mut left = self.rates.iter().filter(between).filter(is_left).peekable();
        let most = 1.0 + 3.0 * self.bound.within;
        let is_near = high_per_s / low_per_s <= most;
        left.peek().is_some() && is_near
            || high_per_s / low_per_s <= most.max(1.0 / (1.0 - DISTURBED_STEP).powi(2))
                && left.any(|rate| rate.is_given_up())
    }

    fn confirmed_below(&self, rate_per_s: f64) -> Option<&'s Rate> {
        let mut below = self.rates.iter().filter(|rate| rate.rate_per_s < rate_per_s);
        below.rfind(|rate| self.decision(rate) == Decision::Confirmed)
    }

    fn refuted_above(&self, rate_per_s: f64) -> Option<&'s Rate> {
        let above = self.rates.iter().filter(|rate| rate.rate_per_s > rate_per_s);
        above.into_iter().find(|rate| self.decision(rate) == Decision::Refuted)
    }

    /// Ends the search because the trials allowed are used up, with the result that is certain by then.
    fn used_up(&self) -> Step {
        self.given_up(if self.is_disturbed() { self.disturbed } else { Ending::Unsettled })
    }

    /// Ends the search with the result that is certain by then: a line between two rates, or the given ending, with a line where one was confirmed.
    fn given_up(&self, ending: Ending) -> Step {
        let keeps = |rate: &&Rate| rate.trials() > 0 && self.lean(rate) == Lean::Keeps;
        let first_kept = self.rates.iter().find(keeps).map_or(0.0, |rate| rate.rate_per_s);
        let refuted_per_s = self.refuted_above(first_kept).map_or(f64::INFINITY, |rate| rate.rate_per_s);
        let Some(line) = self.confirmed_below(refuted_per_s) else {
            return done(ending, None);
        };
        let refuted = self.refuted_above(line.rate_per_s);
        let ending = if refuted.is_some() { Ending::Found } else { ending };
        done(ending, Some(self.line(line, refuted)))
    }

    fn line(&self, at: &Rate, refuted: Option<&Rate>) -> Line {
        let mut below = self.rates.iter().filter(|rate| rate.rate_per_s < at.rate_per_s);
        let slow = below.rfind(|rate| self.decision(rate) == Decision::Refuted);
        let end_per_s = refuted.map_or(f64::INFINITY, |rate| rate.rate_per_s);
        let least_s = self.length(at.rate_per_s).least_s;
        let of = at.confirmed_by(self.bound, least_s, |of| self.others(at, of));
        let between = |rate: &&Rate| rate.rate_per_s > at.rate_per_s && rate.rate_per_s < end_per_s;
        let again = |rate: &&Rate| rate.rate_per_s > end_per_s && rate.trials() > 0 && self.lean(rate) == Lean::Keeps;
        Line {
            rate_per_s: at.rate_per_s,
            refuted: refuted.map(|rate| Refuted {
                rate_per_s: rate.rate_per_s,
                trials: rate.trials(),
                fallen_behind: rate.lost(Of::All),
            }),
            is_verified: true,
            trials: at.count(of),
            seconds: at.seconds(of),
            fallen_behind: at.lost(of),
            stalled: at.confirmation(self.bound, of, least_s, self.others(at, of)).unwrap_or(0),
            disturbed: if of == Of::All { at.disturbed() } else { 0 },
            disturbed_above: self.rates.iter().filter(between).map(Rate::disturbed).sum(),
            slow_below_per_s: slow.map(|rate| rate.rate_per_s),
            kept_again_per_s: self.rates.iter().find(again).map(|rate| rate.rate_per_s),
        }
    }
}

#[cfg(test)]
mod tests;
