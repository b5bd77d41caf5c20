//! Plans a study: which trials there are, in which order, and which ones remain.
//!
//! Main function: [`open_round`]. Invariant: the plan is a pure function of the study and of the outcomes so far,
//! so that an interrupted run continues as if it had never stopped.

use std::collections::{BTreeMap, BTreeSet};

use super::repeat::{Settled, are_settled};
use super::{RepeatRule, Study};
use crate::random::Stream;
use crate::statistics::noise::Series;
use crate::trial::{Case, DatabaseSettings, LayoutSettings, RecordSettings, Settings, TableSettings, Trial};
use crate::workload::keeps_records;

/// The outcomes of the finished trials, by trial id: for a valid trial the value that decides whether its case is
/// settled, `None` for an invalid trial.
pub type Outcomes = BTreeMap<String, Option<f64>>;

/// Returns the maximum number of rounds. With `discard_first`, round 0 is extra and counts in addition.
pub fn rounds_max(study: &Study) -> u32 {
    study.repeat.most + first_counted_round(study)
}

/// Returns a number of rounds after which nothing has been done yet: each round that was begun has a trial.
pub fn rounds_begun(study: &Study, outcomes: &Outcomes) -> u32 {
    rounds_max(study).min(u32::try_from(outcomes.len()).unwrap_or(u32::MAX).saturating_add(1))
}

/// Returns the first round whose trials count: 1 with `discard_first`, else 0.
pub fn first_counted_round(study: &Study) -> u32 {
    u32::from(study.repeat.discard_first)
}

/// Duration of a rehearsal in seconds, unless the minimum number of rounds takes longer.
pub const REHEARSAL_S: f64 = 60.0;

/// Returns whether a rehearsal ends before a round, because a round as long as the longest so far would end after
/// [`REHEARSAL_S`]. This depends only on the time and never on what was measured, so that it cannot favour a result.
pub fn is_rehearsed(study: &Study, round: u32, elapsed_s: f64, longest_round_s: f64) -> bool {
    let needed = study.repeat.least + first_counted_round(study);
    study.quick && study.goal.is_none() && round >= needed && elapsed_s + longest_round_s > REHEARSAL_S
}

/// Returns the trial of a case in a round. Its seed depends on the study's seed, the case and the round.
pub fn trial(study: &Study, case: &Case, round: u32) -> Trial {
    let case_number = u64::from_str_radix(&case.id, 16).unwrap_or(0);
    let mut random = Stream::seeded(study.seed);
    random = Stream::seeded(random.word() ^ case_number);
    random = Stream::seeded(random.word() ^ u64::from(round));
    // 53 bits, so that every reader of JSON gets the same number.
    Trial::new(case.clone(), round, random.word() >> 11)
}

/// Returns all trials of a round, one for each case, in seeded random order. Cases that need differently configured
/// private servers form blocks, so that a server is started once per block; within these, cases that can use each
/// other's tables form blocks, so that the tables are filled once per block. The blocks are in random order too.
pub fn round(study: &Study, round: u32) -> Vec<Trial> {
    let mut random = Stream::seeded(study.seed ^ 0x6f72_6465_7200_0000);
    random = Stream::seeded(random.word() ^ u64::from(round));
    let mut trials = Vec::with_capacity(study.cases.len());
    for cases in blocks(study.cases.iter().collect(), |case| Some(private_server(&case.settings.database)), &mut random)
    {
        for mut cases in blocks(cases, |case| filled(&case.settings), &mut random) {
            random.shuffle(&mut cases);
            trials.extend(cases.into_iter().map(|case| trial(study, case, round)));
        }
    }
    trials
}

/// Groups cases with the same key, the groups in random order. A case without a key is a block of its own.
fn blocks<'a, K: PartialEq>(
    cases: Vec<&'a Case>,
    key: impl Fn(&'a Case) -> Option<K>,
    random: &mut Stream,
) -> Vec<Vec<&'a Case>> {
    let mut blocks: Vec<(Option<K>, Vec<&Case>)> = Vec::new();
    for case in cases {
        let own = key(case);
        match blocks.iter_mut().find(|(of, _)| own.is_some() && *of == own) {
            Some((_, cases)) => cases.push(case),
            None => blocks.push((own, vec![case])),
        }
    }
    random.shuffle(&mut blocks);
    blocks.into_iter().map(|(_, cases)| cases).collect()
}

/// The settings that decide what tables are filled with.
#[derive(PartialEq)]
struct Filled<'s> {
    database: &'s DatabaseSettings,
    record: &'s RecordSettings,
    layout: &'s LayoutSettings,
    own: &'s [TableSettings],
}

/// Returns what the tables are filled with if a case leaves them unchanged for the next one; `None` if each trial fills them anew.
fn filled(settings: &Settings) -> Option<Filled<'_>> {
    let Settings { database, record, layout, tables, .. } = settings;
    let is_kept = (record.rows > 0 || !tables.is_empty()) && keeps_records(settings);
    is_kept.then_some(Filled { database, record, layout, own: tables })
}

/// Returns the trials of a round that are still to be run: those of the cases that were open before the round, without
/// the finished ones. To be called for round 0, 1, ... below [`rounds_max`]; an empty answer for a round does not mean
/// that the next round is empty.
pub fn open_round(study: &Study, number: u32, outcomes: &Outcomes) -> Vec<Trial> {
    let standings = standings(study, number, outcomes);
    let open: BTreeSet<&str> = study
        .cases
        .iter()
        .zip(standings)
        .filter(|(_, standing)| standing.settled == Settled::No)
        .map(|(case, _)| case.id.as_str())
        .collect();
    let planned: Vec<Trial> =
        round(study, number).into_iter().filter(|trial| open.contains(trial.case.id.as_str())).collect();
    remaining(planned, outcomes)
}

/// Returns the planned trials that are not done: set subtraction of trial ids, in the order of the plan.
pub fn remaining(planned: Vec<Trial>, outcomes: &Outcomes) -> Vec<Trial> {
    planned.into_iter().filter(|trial| !outcomes.contains_key(&trial.id)).collect()
}

/// The state of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The values that decide whether the case is settled, of the valid trials that count.
    pub values: Series,
    /// Number of trials that count and are invalid.
    pub invalid: u32,
    /// Whether more trials are needed. A case is given up after [`super::Repeat::most`] trials, valid or not, and
    /// as soon as [`super::Repeat::least`] of them were invalid.
    pub settled: Settled,
}

/// Returns the state of every case before a round, in the study's order, by the outcomes of the rounds before it.
pub fn standings(study: &Study, before_round: u32, outcomes: &Outcomes) -> Vec<Standing> {
    let (mut series, mut invalid) = (Vec::new(), Vec::new());
    for case in &study.cases {
        let (mut values, mut failed) = (Series::new(), 0);
        for number in first_counted_round(study)..before_round {
            match outcomes.get(&trial(study, case, number).id) {
                Some(Some(value)) => values.push((number, *value)),
                Some(None) => failed += 1,
                None => {}
            }
        }
        series.push(values);
        invalid.push(failed);
    }
    let settled = are_settled(&study.repeat, &series);
    let standing = |((values, invalid), is_settled): ((Series, u32), bool)| {
        let attempts = u32::try_from(values.len()).unwrap_or(u32::MAX).saturating_add(invalid);
        let is_given_up = attempts >= study.repeat.most || invalid >= study.repeat.least;
        let settled = match is_settled {
            true => Settled::Yes,
            false if is_given_up => Settled::GaveUp,
            false => Settled::No,
        };
        Standing { values, invalid, settled }
    };
    series.into_iter().zip(invalid).zip(settled).map(standing).collect()
}

/// Returns the settings of the private server that a case needs: cases with equal settings share one. `None` for databases inside this process and
/// for servers that exist already. The storage engine is left out, since tables choose it, and so are the socket and the nodes that are
/// read from, since connections do.
pub fn private_server(database: &DatabaseSettings) -> Option<DatabaseSettings> {
    let is_server = crate::database::find(&database.name).is_none_or(|entry| entry.recipe.is_some());
    (is_server && database.url.is_none()).then(|| DatabaseSettings {
        engine: None,
        socket: None,
        read_from: None,
        connect_to: None,
        reconnect_to: None,
        ..database.clone()
    })
}

/// Returns the minimum and maximum number of trials of each case, in words.
pub fn show_rule(study: &Study) -> String {
    let repeat = &study.repeat;
    let percent = repeat.within * 100.0;
    if let Some(goal) = &study.goal {
        let (least, most) = super::bound::trials(study, goal);
        let percent = goal.within * 100.0;
        return format!(
            "{least} to {most} trials of each case, until its load line is confirmed and known within {percent} %"
        );
    }
    let trials = format!("{} to {} trials of each case", repeat.least, repeat.most);
    match repeat.rule {
        RepeatRule::Fixed if repeat.least == 1 => "1 trial of each case".to_owned(),
        RepeatRule::Fixed => format!("{} trials of each case", repeat.least),
        RepeatRule::Interval => format!("{trials}, until its 95 % interval is within {percent} % of the mean"),
        RepeatRule::StandardError => format!("{trials}, until the standard error is below {percent} % of the mean"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::estimate::{Known, estimate};
    use super::super::{Factor, Repeat};
    use super::*;
    use crate::trial::{Length, Levels};

    /// Makes a study of this many cases, whose trials last a second.
    pub fn study(cases: u32) -> Study {
        let case = |clients| {
            let mut settings = Settings::default();
            settings.load.clients = clients;
            settings.load.length = Length::Seconds(1.0);
            Case::new(Levels::from([("load.clients".to_owned(), clients.into())]), settings)
        };
        Study {
            name: "s".to_owned(),
            question: String::new(),
            source: String::new(),
            base: Settings::default(),
            factors: vec![Factor { setting: "load.clients".to_owned(), levels: Vec::new() }],
            repeat: Repeat { rule: RepeatRule::Interval, within: 0.05, least: 2, most: 4, discard_first: false },
            goal: None,
            durability: None,
            claims: Vec::new(),
            quick: false,
            shrunk: Default::default(),
            left_out: Vec::new(),
            patience: crate::study::Patience::default(),
            seed: 7,
            cases: (1..=cases).map(case).collect(),
        }
    }

    #[test]
    fn a_rehearsal_ends_where_a_round_would_not_end_in_its_time() {
        let rehearsal = Study { quick: true, ..study(3) };
        assert!(!is_rehearsed(&rehearsal, 1, 600.0, 300.0), "the rounds that are needed take what they take");
        assert!(is_rehearsed(&rehearsal, 2, 600.0, 300.0));
        assert!(!is_rehearsed(&rehearsal, 2, 40.0, 20.0));
        assert!(is_rehearsed(&rehearsal, 3, 41.0, 20.0));
        assert!(!is_rehearsed(&study(3), 3, 600.0, 300.0), "a run ends by its rule");
        let long = |quick| {
            let mut long = Study { quick, ..study(30) };
            long.repeat.most = 10;
            estimate(&long, &Known::default()).elapsed_s.1
        };
        assert!(long(false) > 300.0 && (60.0..80.0).contains(&long(true)), "{} and {}", long(false), long(true));
    }

    fn ids(trials: &[Trial]) -> Vec<&str> {
        trials.iter().map(|trial| trial.case.id.as_str()).collect()
    }

    #[test]
    fn every_round_has_every_case_once_in_an_order_of_its_own() {
        let study = study(12);
        let (first, second) = (round(&study, 0), round(&study, 1));
        assert_ne!(ids(&first), ids(&second));
        assert_eq!(round(&study, 0), first, "the same seed gives the same plan");
        let mut sorted = ids(&first);
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 12);
        let other_seed = Study { seed: 8, ..study.clone() };
        assert_ne!(ids(&round(&other_seed, 0)), ids(&first));
    }

    #[test]
    fn seeds_differ_between_cases_and_rounds_and_fit_into_53_bits() {
        let study = study(5);
        let seeds: BTreeSet<u64> = (0..4).flat_map(|number| round(&study, number)).map(|trial| trial.seed).collect();
        assert_eq!(seeds.len(), 20);
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
    }

    #[test]
    fn cases_of_one_private_server_stand_together() {
        let mut study = study(12);
        for (number, case) in study.cases.iter_mut().enumerate() {
            let mut settings = case.settings.clone();
            settings.database.name = "a server".to_owned();
            settings.database.config = [("threads".to_owned(), (number % 3).to_string())].into();
            *case = Case::new(case.levels.clone(), settings);
        }
        let orders: BTreeSet<Vec<String>> = (0..8)
            .map(|number| {
                let mut servers: Vec<String> = round(&study, number)
                    .iter()
                    .map(|trial| trial.case.settings.database.config["threads"].clone())
                    .collect();
                assert_eq!(servers.len(), 12);
                servers.dedup();
                assert_eq!(servers.len(), 3, "one block for each server");
                servers
            })
            .collect();
        assert!(orders.len() > 1, "the blocks are in random order");
    }

    #[test]
    fn cases_whose_tables_serve_each_other_stand_together() {
        let mut study = study(12);
        for (number, case) in study.cases.iter_mut().enumerate() {
            let mut settings = case.settings.clone();
            settings.workload.name = if number % 2 == 0 { "select" } else { "update" }.to_owned();
            settings.record.rows = 100_000 * (1 + number as u64 % 3);
            *case = Case::new(case.levels.clone(), settings);
        }
        let rows_of = |study: &Study, number| {
            let trials = round(study, number);
            let mut rows: Vec<_> = trials.iter().map(|trial| trial.case.settings.record.rows).collect();
            rows.dedup();
            rows
        };
        let orders: BTreeSet<Vec<u64>> = (0..8).map(|number| rows_of(&study, number)).collect();
        assert!(orders.iter().all(|rows| rows.len() == 3), "each size is filled once a round: {orders:?}");
        assert!(orders.len() > 1, "the sizes are in random order");
        study.cases.iter_mut().for_each(|case| case.settings.workload.name = "write".to_owned());
        assert!((0..8).any(|number| rows_of(&study, number).len() > 3));
    }

    #[test]
    fn settled_cases_rest_while_the_others_go_on() {
        let mut study = study(2);
        study.repeat.rule = RepeatRule::StandardError;
        let mut outcomes = Outcomes::new();
        for number in 0..2 {
            for trial in open_round(&study, number, &outcomes) {
                let steady = trial.case.settings.load.clients == 1;
                let throughput = if steady { 100.0 } else { 100.0 + 50.0 * f64::from(number) };
                outcomes.insert(trial.id, Some(throughput));
            }
        }
        let open = open_round(&study, 2, &outcomes);
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].case.settings.load.clients, 2);
        assert_eq!(standings(&study, 2, &outcomes)[0].settled, Settled::Yes);
        assert!(rounds_max(&study) == 4 && open_round(&study, 3, &outcomes).len() == 1);
    }

    #[test]
    fn resuming_runs_what_is_missing_and_nothing_else() {
        let study = study(4);
        let planned = open_round(&study, 0, &Outcomes::new());
        let done: Outcomes = planned[..3].iter().map(|trial| (trial.id.clone(), Some(1.0))).collect();
        assert_eq!(open_round(&study, 0, &done), planned[3..]);
    }

    #[test]
    fn a_case_that_is_always_invalid_is_given_up() {
        let study = study(1);
        let done: Outcomes = (0..2).map(|number| (trial(&study, &study.cases[0], number).id, None)).collect();
        assert_eq!(standings(&study, 2, &done)[0].settled, Settled::GaveUp);
        assert!(open_round(&study, 2, &done).is_empty());
    }

    #[test]
    fn a_discarded_first_trial_is_extra() {
        let mut study = study(1);
        study.repeat.discard_first = true;
        assert_eq!((rounds_max(&study), estimate(&study, &Known::default()).trials), (5, (3, 5)));
        let done: Outcomes = (0..2).map(|number| (trial(&study, &study.cases[0], number).id, Some(1.0))).collect();
        assert_eq!(standings(&study, 2, &done)[0].values, [(1, 1.0)]);
    }
}
