//! Judges claims of a bound: that a metric, not a ratio, lies in a range in every case with given levels.
//!
//! Main function: [`judge_bound`]. Invariant: one case outside contradicts the claim; all cases must lie inside to reproduce it.

use super::{Member, against, of_trials, with_levels};
use crate::finding::{ClaimFinding, ClaimVerdict};
use crate::metric::Metric;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::statistics::noise::{Series, intervals};
use crate::statistics::summary::{Interval, mean};
use crate::study::repeat::stopping;
use crate::study::{Claim, ClaimedBound, Study};
use crate::trial::Levels;

/// Compares the range with each case's mean over its trials and the interval by the noise of all of the study's cases, as in verdicts.
/// The evidence is the case that is furthest from reproducing the claim.
pub(super) fn judge_bound(
    study: &Study,
    claim: &Claim,
    bound: &ClaimedBound,
    groups: &[CaseTrials<'_>],
) -> ClaimFinding {
    let metric = Metric::named(&claim.metric);
    let (verdict, evidence) = match metric {
        Some(metric) => judge(study, bound, metric, groups),
        None => (ClaimVerdict::Undecided, format!("there is no metric \"{}\"", claim.metric)),
    };
    let show = |value: f64| {
        metric.map_or(value.to_string(), |metric| format!("{}{}", metric.show(value), metric.unit_behind()))
    };
    ClaimFinding {
        says: claim.says.clone(),
        metric: claim.metric.clone(),
        between: Some((bound.low, bound.high)),
        claimed: match (bound.low, bound.high) {
            (low, None) => format!("at least {}", show(low)),
            (0.0, Some(high)) => format!("at most {}", show(high)),
            (low, Some(high)) => format!("{} to {}", show(low), show(high)),
        },
        verdict,
        evidence,
    }
}

fn judge(study: &Study, bound: &ClaimedBound, metric: &Metric, groups: &[CaseTrials<'_>]) -> (ClaimVerdict, String) {
    let mut all: Vec<Member<'_>> = study.cases.iter().map(|case| of_trials(case, metric, groups)).collect();
    let series: Vec<Series> = all.iter().map(Member::series).collect();
    all.iter_mut().zip(intervals(&series, stopping(study))).for_each(|(member, found)| member.interval = found);
    let members = match with_levels(study, &bound.of, &Levels::new(), &all) {
        Ok(members) => members,
        Err(reason) => return (ClaimVerdict::Undecided, reason),
    };
    let verdict_of = |member: &Member<'_>| verdict(member.interval, (bound.low, bound.high));
    let distance = |member: &Member<'_>| match verdict_of(member) {
        ClaimVerdict::Contradicted => 2,
        ClaimVerdict::Undecided => 1,
        ClaimVerdict::Reproduced => 0,
    };
    let sign = if bound.high.is_some() { 1.0 } else { -1.0 };
    let badness = |member: &Member<'_>| sign * mean(&member.values()).unwrap_or(f64::NEG_INFINITY);
    let worst = members.iter().max_by(|a, b| distance(a).cmp(&distance(b)).then(badness(a).total_cmp(&badness(b))));
    let Some(member) = worst else { return (ClaimVerdict::Undecided, "there is no case".to_owned()) };
    let levels = show_levels(&member.case.levels);
    if member.trials.len() < 2 {
        let n = member.trials.len();
        let title = metric.title;
        return (ClaimVerdict::Undecided, format!("{title} needs at least two valid trials a case; {levels} has {n}"));
    }
    let place =
        if members.len() > 1 { format!(" in the worst of {} cases ({levels})", members.len()) } else { String::new() };
    // The table shows the quantile of all trials together, to which the interval over trials does not apply.
    let of_trials = if metric.is_quantile() { ", mean of the trials'," } else { "" };
    let mean = mean(&member.values()).unwrap_or(f64::NAN);
    let shown = metric.show_mean(mean, member.interval, member.trials.len());
    (verdict_of(member), format!("{}{of_trials} {shown}{place}", metric.title))
}

/// Returns what the interval of a case's mean implies for a range.
fn verdict(interval: Option<Interval>, range: (f64, Option<f64>)) -> ClaimVerdict {
    // No metric is negative, and neither is its mean, however far an interval of few trials reaches.
    let interval = interval.map(|found| Interval { low: found.low.max(0.0), ..found });
    interval.map_or(ClaimVerdict::Undecided, |interval| against(range, interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_reaches_below_nothing_does_not_leave_an_upper_bound_undecided() {
        // Answers take 1 to 6 ms; their interval reaches from -4 to 10 ms.
        let answers_s = Some(Interval { low: -0.0045, high: 0.0104 });
        assert_eq!(verdict(answers_s, (0.0, Some(1.0))), ClaimVerdict::Reproduced);
        assert_eq!(verdict(answers_s, (1.0, None)), ClaimVerdict::Contradicted);
        assert_eq!(verdict(answers_s, (0.0, Some(0.005))), ClaimVerdict::Undecided);
        assert_eq!(verdict(None, (0.0, Some(1.0))), ClaimVerdict::Undecided);
    }
}
