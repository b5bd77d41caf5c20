//! Tests of contests: the leading alternative, and the verdicts on it.

use super::*;
use crate::metric;

/// Returns the verdicts as sentences.
fn contest_sentences(contests: &[Contest], metric: &Metric) -> Vec<String> {
    contest_verdicts(contests, metric).iter().map(ToString::to_string).collect()
}

fn contest(setting: Option<&str>, labels: [&str; 2], of: &[f64], to: &[f64]) -> Contest {
    let trials = |values: &[f64]| -> Vec<TrialValue> {
        values.iter().map(|value| TrialValue { place: None, value: *value }).collect()
    };
    let (of, to) = (trials(of), trials(to));
    Contest {
        setting: setting.map(str::to_owned),
        before: String::new(),
        after: String::new(),
        labels: labels.map(str::to_owned).to_vec(),
        pairs: vec![(1, matched_ratio(&[(&of, &to)]).map(BestRatio::from).ok_or_else(String::new))],
        comparable: 1,
    }
}

#[test]
fn settings_are_told_apart_by_whether_they_pay() {
    let metric = metric::Metric::named("throughput").unwrap();
    let (slow, fast) = ([100.0, 101.0, 99.0, 100.5, 99.5], [300.0, 303.0, 297.0, 301.0, 299.0]);
    let uneven = [60.0, 150.0, 90.0, 130.0, 75.0];
    let contests = [
        contest(Some("pool"), ["pool = 512M", "pool = 16M"], &fast, &slow),
        contest(Some("threads"), ["threads = 16", "threads = 4"], &slow, &slow),
        contest(Some("flush"), ["flush = 2", "flush = 1"], &uneven, &slow),
    ];
    let sentences = contest_sentences(&contests, metric);
    assert_eq!(sentences.len(), 4);
    assert!(sentences[0].starts_with("settings of the server that pay: pool = 512M, 3.00 × pool = 16M ["));
    assert!(sentences[0].ends_with("]; no difference (equal within ±5 %) by threads; undecided about flush"));
    assert!(sentences[1].starts_with("pool = 512M is fastest: 3.00 × pool = 16M"));
}

#[test]
fn a_single_setting_and_other_alternatives_need_no_summary() {
    let metric = metric::Metric::named("throughput").unwrap();
    let (slow, fast) = ([100.0, 101.0, 99.0], [300.0, 303.0, 297.0]);
    let contests = [
        contest(Some("pool"), ["pool = 512M", "pool = 16M"], &fast, &slow),
        contest(None, ["star", "wide"], &fast, &slow),
    ];
    assert_eq!(contest_sentences(&contests, metric).len(), 2);
}

#[test]
fn the_best_is_chosen_by_what_ratios_are_made_of() {
    let metric = metric::Metric::named("throughput").unwrap();
    let choice = Factor { setting: "layout.name".to_owned(), levels: ["a", "b"].map(Into::into).to_vec() };
    let ramp = Factor { setting: "load.clients".to_owned(), levels: [4, 64].map(Into::into).to_vec() };
    let factors = Factors { choices: vec![choice.clone()], ramps: vec![ramp] };
    // The mean of b at 64 is above that at 4, because two of five trials went well.
    let of_b = [[14_000.0, 14_100.0, 13_900.0, 14_050.0, 13_950.0], [1_000.0, 1_100.0, 36_000.0, 950.0, 36_500.0]];
    let of_a = [[13_000.0, 13_100.0, 12_900.0, 13_050.0, 12_950.0], [28_000.0, 28_100.0, 27_900.0, 28_050.0, 27_950.0]];
    let levels = [("a", 4), ("a", 64), ("b", 4), ("b", 64)].map(|(name, clients)| {
        Levels::from([("layout.name".to_owned(), name.into()), ("load.clients".to_owned(), clients.into())])
    });
    let scored: Vec<Scored<'_>> = [of_a, of_b]
        .concat()
        .iter()
        .zip(&levels)
        .map(|(values, levels)| {
            Scored::new(levels, values.map(|value| TrialValue { place: None, value }).to_vec()).unwrap()
        })
        .collect();
    let said = contest_sentences(&contests(&factors, &choice, metric, &scored), metric);
    let best = said.iter().find(|sentence| sentence.contains("each at its best")).unwrap();
    assert!(best.contains("a is 2.00 × b") || best.starts_with("a is fastest: 2.00 × b"), "{said:?}");
    assert!(best.contains("(a at 64, b at 4)"), "{said:?}");
}

#[test]
fn nobody_is_faster_at_finding_nothing() {
    let metric = metric::Metric::named("throughput").unwrap();
    let names = ["star", "wide"];
    let factor = Factor { setting: "layout.name".to_owned(), levels: names.map(Into::into).to_vec() };
    let factors = Factors { choices: vec![factor.clone()], ramps: Vec::new() };
    let levels = names.map(|name| Levels::from([("layout.name".to_owned(), name.into())]));
    let scored = |place: usize, values: [f64; 3], rows| {
        let trials = values.map(|value| TrialValue { place: None, value }).to_vec();
        Scored { rows: Some(rows), ..Scored::new(&levels[place], trials).unwrap() }
    };
    let said = |rows_of_star| {
        let all = [scored(0, [817.0, 820.0, 815.0], rows_of_star), scored(1, [1.0, 1.1, 0.9], 12.0)];
        contest_sentences(&contests(&factors, &factor, metric, &all), metric)
    };
    let why = "queries found nothing there (0.00 and 12 rows each)";
    assert_eq!(said(0.0), [format!("undecided which is fastest: star is not compared with wide, because {why}")]);
    assert!(said(12.4)[0].starts_with("star is fastest: 820 × wide"), "{:?}", said(12.4));
}

#[test]
fn a_case_that_had_hardly_begun_is_compared_with_nothing() {
    let metric = metric::Metric::named("throughput").unwrap();
    let choice = Factor { setting: "layout.name".to_owned(), levels: ["a", "b", "c"].map(Into::into).to_vec() };
    let ramp = Factor { setting: "load.clients".to_owned(), levels: [1, 4, 64].map(Into::into).to_vec() };
    let factors = Factors { choices: vec![choice.clone()], ramps: vec![ramp.clone()] };
    let all: Vec<(Levels, f64)> = [("a", 300.0), ("b", 200.0), ("c", 100.0)]
        .into_iter()
        .flat_map(|(name, mean)| [(name, 1, mean), (name, 4, 2.0 * mean), (name, 64, 3.0 * mean)])
        .map(|(name, clients, mean)| {
            let levels = [("layout.name".to_owned(), name.into()), ("load.clients".to_owned(), clients.into())];
            (Levels::from(levels), mean)
        })
        .collect();
    // With 64 clients b had hardly begun, so that its best is unknown.
    let scored = |cold: usize| -> Vec<Scored<'_>> {
        let trials =
            |mean: f64| [0.99, 1.0, 1.01].map(|share| TrialValue { place: None, value: mean * share }).to_vec();
        let cases = all.iter().enumerate();
        cases
            .map(|(place, (levels, mean))| Scored {
                is_cold: place == cold,
                ..Scored::new(levels, trials(*mean)).unwrap()
            })
            .collect()
    };
    let said = |cold: usize| contest_sentences(&contests(&factors, &choice, metric, &scored(cold)), metric);
    let warm = said(usize::MAX);
    assert!(warm[0].starts_with("a is fastest: 1.50 × b") && !warm.concat().contains("begun"), "{warm:?}");
    let cold = said(5);
    assert!(
        cold[0].starts_with(
            "undecided which is fastest: a is not compared with b, because the load had hardly begun when "
        ),
        "{cold:?}"
    );
    assert!(cold[0].contains("load.clients = 64") && cold[0].contains("; 3.00 × c"), "{cold:?}");
    assert!(
        cold[1].contains("geometric mean of 2 ratios; without 1 of 3, where the load had hardly begun"),
        "{cold:?}"
    );

    let along = |cold: usize| {
        let found = crate::report::ramps::verdicts(&factors, &ramp, metric, &scored(cold));
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(along(usize::MAX)[1].starts_with("b: throughput is highest at load.clients = 64"), "{:?}", along(9));
    let of_b = &along(5)[1];
    assert!(
        of_b.starts_with("b: undecided at which load.clients throughput is highest: the load had hardly begun"),
        "{of_b}"
    );
}

#[test]
fn a_ramp_of_agents_says_whether_they_were_the_limit() {
    let metric = metric::Metric::named("throughput").unwrap();
    let ramp = Factor { setting: "load.agents".to_owned(), levels: [1, 2, 4].map(Into::into).to_vec() };
    let factors = Factors { choices: Vec::new(), ramps: vec![ramp.clone()] };
    let said = |means: [f64; 3]| {
        let levels = [1, 2, 4].map(|agents: i32| Levels::from([("load.agents".to_owned(), agents.into())]));
        let trials =
            |mean: f64| [0.99, 1.0, 1.01].map(|share| TrialValue { place: None, value: mean * share }).to_vec();
        let cases = levels.iter().zip(means).map(|(levels, mean)| Scored::new(levels, trials(mean)).unwrap());
        let found = crate::report::ramps::verdicts(&factors, &ramp, metric, &cases.collect::<Vec<_>>());
        found.iter().map(ToString::to_string).collect::<String>()
    };
    let growing = said([100.0, 200.0, 390.0]);
    assert!(growing.contains("at load.agents = 4") && growing.contains("more than 4 may drive more"), "{growing}");
    let bounded = said([100.0, 200.0, 201.0]);
    assert!(
        bounded.contains("more than 2 agents do not certainly drive more: from there on the database"),
        "{bounded}"
    );
    let flat = said([200.0, 199.0, 201.0]);
    assert!(flat.contains("more agents than 1 do not certainly drive more: the database"), "{flat}");
    // A single agent drives most, because several disturb each other.
    let falling = said([200.0, 150.0, 100.0]);
    assert!(falling.contains("more agents than 1 do not certainly"), "{falling}");
}
