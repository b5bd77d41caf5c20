//! Reports of open loops: overload, response time against the arrival rate, load lines; from synthetic measurements.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use std::collections::BTreeSet;

use loadline::finding::{Note, Outcome};
use loadline::measurement::Measurement;
use loadline::queueing::Timer;
use loadline::reason::Reason;
use loadline::report::analyse::group;
use loadline::report::points::curves;
use loadline::report::{analyse, html, terminal};
use loadline::study::{Goal, Study, goal};
use loadline::trial::Arrivals;
use serde_json::json;

#[path = "report/synthetic.rs"]
mod synthetic;

use synthetic::{environment, layouts_and_clients, measurements, study};

/// Trials of an open loop at 200, 800 and 1,500 arrivals per second, of which the database carries 1,000.
fn rising_rates() -> (Study, Vec<Measurement>) {
    let rates = [200.0, 800.0, 1500.0];
    let mut study = study(&[("load.rate", rates.map(|rate| json!(rate)).to_vec())]);
    for (case, rate) in study.cases.iter_mut().zip(rates) {
        (case.settings.load.arrivals, case.settings.load.rate_per_s) = (Arrivals::Poisson, Some(rate));
        *case = loadline::trial::Case::new(case.levels.clone(), case.settings.clone());
    }
    let mut trials = measurements(&study, 4);
    for trial in &mut trials {
        let rate = trial.trial.case.settings.load.rate_per_s.unwrap();
        let carried = (rate.min(1000.0) * trial.measured_s) as u64;
        let scheduled = (rate * trial.measured_s) as u64;
        trial.carried = Some(carried);
        let read = trial.operations.get_mut("insert").unwrap();
        (read.scheduled, read.completed, read.abandoned) = (scheduled, carried, scheduled - carried);
        (read.response_time, read.censored_time) = Default::default();
        (0..carried).for_each(|place| read.response_time.record(1_000_000 + place % 100 * (rate as u64) * 50));
        (carried..scheduled).for_each(|_| read.censored_time.record(900_000_000));
        let (done, arrived) = (carried / 50, scheduled / 50);
        trial.series.iter_mut().for_each(|interval| (interval.completed, interval.scheduled) = (done, arrived));
    }
    (study, trials)
}

#[test]
fn metrics_are_said_in_their_own_unit_and_overload_is_called_so() {
    let (study, trials) = rising_rates();
    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    assert_eq!(findings.cases.iter().map(|case| case.overloaded).collect::<Vec<_>>(), [false, false, true].map(Some));
    let said = findings.verdicts[0].to_string();
    assert!(said.starts_with("p99 of response time is at most 4."), "{said}");
    assert!(said.contains(" ms], n = 4 up to 800/s (1."), "{said}");
    assert!(said.ends_with("; at 1,500/s it is overloaded and carries 1,000/s [1,000, 1,000]"), "{said}");
    assert!(findings.verdicts.iter().all(|said| !said.to_string().contains("operations/s")), "{:?}", findings.verdicts);
    let text = terminal(&findings, &study);
    assert!(text.contains("overloaded") && text.contains("≥ 900 ms"), "{text}");
    let page = html(&findings, &study, &environment(), &trials);
    for part in ["Response time against arrival rate", "Backlog over time", "class=\"line dashed\""] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    assert!(page.contains("<td>2,500</td>"), "500/s are not carried for 5 s");
    let times = findings.cases[2].operations["insert"].response_time_s;
    assert!(times.p90.unwrap() > 0.89, "a third was abandoned after 0.9 s, so p90 is at least that: {times:?}");
    let (mut one_rate, one) = (study, &trials[..1]);
    one_rate.cases.truncate(1);
    one_rate.factors.clear();
    let said = analyse("runs/one", &one_rate, &environment(), one).verdicts[0].to_string();
    assert!(said.contains("response time p99 1.") && said.contains(" ms, n = 1"), "{said}");
}

/// Searches the load lines of two layouts in imagined M/M/1 servers of 1,000/s and 500/s, from these measurements on. What is wrong with a
/// trial is told to it and its place.
fn searched(study: &Study, mut trials: Vec<Measurement>, wrong: impl Fn(usize, &mut Measurement)) -> Vec<Measurement> {
    let goal = study.goal.clone().unwrap();
    let template = measurements(study, 1).remove(0);
    for round in 0.. {
        let open = goal::open_round(study, &goal, round, &trials);
        if open.is_empty() {
            break;
        }
        for trial in open {
            let rate = trial.case.settings.load.rate_per_s.unwrap();
            let left = if trial.case.levels["layout.name"] == "wide" { 1000.0 } else { 500.0 } - rate;
            let measured_s = trial.sought.and_then(|sought| sought.seconds).unwrap_or(5.0);
            let arrived = (measured_s * rate) as u64;
            let mut seen = Measurement {
                trial,
                sequence: trials.len() as u64,
                carried: Some(arrived),
                measured_s,
                ..template.clone()
            };
            let read = seen.operations.get_mut("insert").unwrap();
            (read.scheduled, read.completed, read.response_time) = (arrived, arrived, Default::default());
            if left < 1.0 {
                (read.completed, read.abandoned) = (arrived / 2, arrived - arrived / 2);
                seen.carried = Some(arrived / 2);
            }
            // The quantiles of an exponential response time, a little different from round to round.
            let spread = 1.0 + 0.02 * f64::from(seen.trial.round % 5) - 0.04;
            let time_ns = |share: f64| -(1.0 - share).ln() / left.max(1.0) * spread * 1e9;
            (0..1000).for_each(|place| read.response_time.record(time_ns((f64::from(place) + 0.5) / 1000.0) as u64));
            wrong(trials.len(), &mut seen);
            trials.push(seen);
        }
    }
    trials
}

const LATE: &str = "loadline sent operations late: 900 µs on average, and the mean response time is 2 ms";

/// Nothing is wrong with any trial.
fn nothing(_: usize, _: &mut Measurement) {}

/// A search for the load lines of two layouts.
fn two_lines() -> Study {
    let mut study = study(&[("layout.name", vec![json!("wide"), json!("star")])]);
    study.goal = Some(Goal { quantile: 0.9, below_s: 0.01, within: 0.05 });
    study.repeat.least = 4;
    for case in &mut study.cases {
        case.settings.load.arrivals = Arrivals::Poisson;
        *case = loadline::trial::Case::new(case.levels.clone(), case.settings.clone());
    }
    study
}

#[test]
fn a_late_trial_that_was_repeated_well_says_nothing_against_a_search_and_a_failed_one_does() {
    let study = two_lines();
    let late = |place: usize, seen: &mut Measurement| {
        if place == 4 {
            seen.invalid_because = vec![Reason::SentLate { late_s: 0.000_9, mean_s: 0.002 }];
        }
    };
    let mut trials = searched(&study, Vec::new(), late);
    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    assert!(findings.valid && findings.load_lines.iter().all(|line| line.verified), "{:?}", findings.load_lines);
    assert_eq!(findings.cases.iter().map(|case| case.repeated).sum::<u64>(), 1);
    assert!(findings.notes.contains(&Note::Repeated { repeated: 1 }));
    let text = terminal(&findings, &goal::unfold(&study, &trials));
    assert!(text.contains("REPEATED: 1 of ") && text.contains(LATE) && !text.contains("INVALID"), "{text}");

    let retried = trials.iter().filter(|seen| seen.trial.case.id == trials[4].trial.case.id).count();
    assert!(retried >= 2, "the search has repeated it");
    trials[4].operations.get_mut("insert").unwrap().failed = 3;
    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    assert!(!findings.valid && findings.cases.iter().all(|case| case.repeated == 0));
    let without_goal = Study { goal: None, ..study };
    assert!(goal::repeated(&without_goal, &trials.iter().collect::<Vec<_>>()).is_empty());
}

#[test]
fn trials_whose_cpus_a_hypervisor_took_away_speak_for_a_rate_and_never_against_one() {
    let mut study = two_lines();
    study.goal = Some(Goal { quantile: 0.99, ..study.goal.unwrap() });
    let found = |stolen: f64, others_cpu| {
        let trials = searched(&study, Vec::new(), |_, seen| {
            let used = seen.resources.as_mut().unwrap();
            (used.mean.stolen, used.cpus, used.others_cpu) = (stolen, Some(2), Some(others_cpu));
            (used.mean.idle, used.mean.iowait) = (0.1, 0.0);
            // What was not carried in the measured phase is answered after it.
            let inserts = seen.operations.get_mut("insert").unwrap();
            (inserts.completed, inserts.abandoned) = (inserts.scheduled, 0);
        });
        let findings = analyse("runs/synthetic", &study, &environment(), &trials);
        let unfolded = goal::unfold(&study, &trials);
        (findings.load_lines[0].clone(), findings.valid, terminal(&findings, &unfolded))
    };
    let (alone, ..) = found(0.0, 0.0);
    let [low, high] = alone.ci95.unwrap();
    assert!(alone.verified && !alone.disturbed && high < 1.3 * low, "{alone:?}");
    // The rates that half of the load is lost at are refuted, because nobody took half of a CPU.
    let (shared, _, told) = found(0.03, 0.0);
    let [low, high] = shared.ci95.unwrap();
    assert!(shared.verified && !shared.disturbed && low <= 540.0 && high >= 1000.0, "{shared:?}");
    // An end that is so far away is told with what keeps it there.
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("; between the two something else took CPU time in ") && told.contains("on a quiet machine"),
        "{told}"
    );
    // Whoever takes a whole CPU may have taken the one that was the limit.
    for (stolen, others_cpu, why) in [
        (0.5, 0.0, "the hypervisor gave more than 1 % of the CPU time to other machines in "),
        (0.0, 1.2, "other processes kept more than a quarter of a CPU busy in "),
    ] {
        let (line, is_valid, said) = found(stolen, others_cpu);
        assert!(line.verified && line.disturbed && !is_valid && line.ci95.is_none(), "{line:?}");
        assert!((0.8..1.0).contains(&(line.arrival_rate_per_s.unwrap() / (1000.0 - 100_f64.ln() / 0.01))), "{line:?}");
        let head = "the load line is at least ";
        let cause = format!("what is lost above it cannot be told: {why}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(head) && said.contains(&cause), "{said}");
    }
}

#[test]
fn a_line_that_undisturbed_trials_confirm_is_said_with_their_quantile() {
    let mut study = two_lines();
    study.goal = Some(Goal { quantile: 0.9, ..study.goal.unwrap() });
    let trials = searched(&study, Vec::new(), |place, seen| {
        let used = seen.resources.as_mut().unwrap();
        (used.cpus, used.others_cpu) = (Some(2), Some(0.0));
        // Every sixth trial is disturbed, and half of its operations take a second.
        if place % 6 == 5 {
            used.mean.stolen = 0.2;
            let inserts = seen.operations.get_mut("insert").unwrap();
            (0..1000).for_each(|_| inserts.response_time.record(1_000_000_000));
        }
    });
    let line = analyse("runs/synthetic", &study, &environment(), &trials).load_lines.remove(0);
    assert!(line.verified && line.quantile_s.unwrap() < 0.010 && line.trials >= 10, "{line:?}");
    let Outcome::Found { seen: Some(seen) } = &line.outcome else { panic!("{line:?}") };
    assert_eq!(seen.disturbed, 0, "the disturbed ones are not what confirms it: {line:?}");
}

#[test]
fn what_a_hypervisor_was_permitted_to_take_is_noted() {
    let (study, mut trials) = rising_rates();
    let used = trials[1].resources.as_mut().unwrap();
    (used.mean.stolen, used.stolen_permitted) = (0.2, Some(0.3));
    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    let note =
        "in 1 of 12 trials the client waited for a CPU; in the first of them the hypervisor gave 20 % of the CPU time";
    assert!(findings.notes.iter().any(|said| said.to_string().starts_with(note)), "{:?}", findings.notes);
}

#[test]
fn rates_of_a_search_are_settled_where_they_were_confirmed_and_what_was_seen_there_is_the_evidence() {
    let study = two_lines();
    let trials = searched(&study, Vec::new(), nothing);
    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    assert!(findings.cases.iter().all(|case| case.settled == (case.valid_trials >= 10)));
    assert!(findings.cases.iter().any(|case| case.settled) && findings.cases.iter().any(|case| !case.settled));
    assert!(!findings.notes.iter().any(|note| matches!(note, Note::CasesUnsettled { .. })), "{:?}", findings.notes);
    let said = &findings.verdicts[1];
    assert!(said.answer.ends_with("with p90 of response time below 10 ms"), "{said}");
    assert!(said.evidence.starts_with("p90 is ") && said.is_decided(), "{said}");
}

#[test]
fn a_search_finds_the_load_line_of_every_case_and_goes_on_where_it_was_interrupted() {
    let study = two_lines();
    let trials = searched(&study, Vec::new(), nothing);
    let ids = |trials: &[Measurement]| trials.iter().map(|seen| seen.trial.id.clone()).collect::<BTreeSet<String>>();
    assert_eq!(ids(&trials).len(), trials.len(), "every trial has an id of its own");
    let interrupted = trials[..trials.len() / 2].to_vec();
    assert_eq!(ids(&searched(&study, interrupted, nothing)), ids(&trials));

    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    for (line, mu) in findings.load_lines.iter().zip([1000.0, 500.0]) {
        let (truth, rate) = (mu - 10_f64.ln() / 0.01, line.arrival_rate_per_s.unwrap());
        assert!(line.verified && rate <= 1.02 * truth && rate >= 0.92 * truth, "{line:?} {truth}");
        assert_eq!((line.quantile, line.below_s), (0.9, 0.01));
    }
    assert!(
        findings.verdicts[0].to_string().starts_with("wide is able to carry the most load: 2."),
        "{:?}",
        findings.verdicts
    );
    assert!(
        findings.verdicts[1].to_string().starts_with("layout.name = wide: the load line is 7"),
        "{:?}",
        findings.verdicts
    );
    let unfolded = goal::unfold(&study, &trials);
    assert!(terminal(&findings, &unfolded).contains("rate"));
    let page = html(&findings, &unfolded, &environment(), &trials);
    assert!(page.contains("load line 7") && page.contains("p90 below 10 ms"));
    let early = analyse("runs/early", &study, &environment(), &trials[..2]);
    assert!(matches!(early.load_lines[0].outcome, Outcome::NotFinished { .. }), "{:?}", early.load_lines);
    assert!(!early.load_lines[0].verified && early.load_lines[0].arrival_rate_per_s.is_none());
    // A search that is cut before its last trials says what was confirmed until then.
    let cut = (2..trials.len()).rev().map(|count| analyse("runs/cut", &study, &environment(), &trials[..count]));
    let unfinished =
        |findings: &loadline::finding::Findings| matches!(findings.load_lines[0].outcome, Outcome::NotFinished { .. });
    let cut = cut.into_iter().find(|findings| unfinished(findings) && findings.load_lines[0].verified).unwrap();
    let line = &cut.load_lines[0];
    assert!(line.arrival_rate_per_s.unwrap() <= 1.02 * (1000.0 - 10_f64.ln() / 0.01), "{line:?}");
    let said = cut.verdicts.iter().map(ToString::to_string).find(|said| said.contains("not finished")).unwrap();
    assert!(said.contains("the load line is") && said.contains("the next trial is at"), "{said}");
}

#[test]
fn the_points_of_a_run_have_errors_from_trials_or_from_batches_within_them() {
    let (study, trials) = rising_rates();
    let all = curves(&group(&study, &trials), Timer::Intended, Some(0.95), &Default::default());
    assert_eq!(all.len(), 1, "one curve, because nothing but the rate was varied");
    let points = &all[0].points.0;
    let rates: Vec<f64> = points.iter().map(|point| point.arrival_rate_per_s.unwrap()).collect();
    assert_eq!(rates, [200.0, 800.0, 1500.0]);
    assert_eq!((points[2].workers, points[2].throughput_per_s), (Some(4), Some(1000.0)));
    let quantiles: Vec<f64> = points[0].quantiles.iter().map(|seen| seen.quantile).collect();
    assert_eq!(quantiles, [0.5, 0.9, 0.95, 0.99]);
    // Times of 1 ms to 1.99 ms, evenly.
    assert!((points[0].mean_s.unwrap() - 1.495e-3).abs() < 1e-6 && points[0].se_s.is_some(), "{:?}", points[0]);
    let alone = curves(&group(&study, &trials[..1]), Timer::Sent, None, &Default::default());
    assert_eq!(alone[0].points.0[0].se_s, None, "batches are of response times");
    let closed = layouts_and_clients();
    let curves = curves(&group(&closed, &measurements(&closed, 3)), Timer::Intended, None, &Default::default());
    assert_eq!(curves.iter().map(|curve| curve.points.0.len()).collect::<Vec<_>>(), [6, 6, 6]);
    assert!(curves[0].points.0.iter().all(|point| point.arrival_rate_per_s.is_none()));
}
