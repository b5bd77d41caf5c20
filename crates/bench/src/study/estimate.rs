//! Estimates how long a study takes before it is run.
//!
//! Main function: [`estimate`]. Invariant: the trials of the first rounds are processed in the order of the plan, as in
//! a run, so that tables that serve several trials, and servers that stay, count once.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::content::{content_of, is_kept};
use super::pace::{Basis, Paces};
use super::plan::{REHEARSAL_S, first_counted_round, private_server, round};
use super::rates::{self, START_S, own_row_s};
use super::subject::{Filling, Subject, operations_of};
use super::{Study, bound};
use crate::trial::{DatabaseSettings, Length, LoadSettings, Settings};
use crate::workload::{Work, keeps_records};

/// Guess: operations per second of all clients together, for trials that last as long as their operations take.
pub const GUESSED_OPERATIONS_PER_S: f64 = 1000.0;
/// Guess: the cost of looking at a record, as a share of the cost of writing it.
const LOOK_SHARE: f64 = 0.1;
/// Guess: the time that a trial takes besides its load, in seconds.
const AROUND_S: f64 = 0.2;
/// Number of rounds that are simulated: each later round is taken to be as long as the last of these.
const ROUNDS_GONE_THROUGH: u64 = 3;

/// The knowledge available before a study is run.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// How long things took on this machine.
    pub paces: Paces,
    /// Whether filled tables are kept for later trials and runs.
    pub keeps_tables: bool,
    /// Ids of cases whose tables an earlier run has filled and kept.
    pub filled: BTreeSet<String>,
}

/// An estimate of how long a study takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Minimum and maximum number of trials, the extra first ones included.
    pub trials: (u64, u64),
    /// Minimum and maximum duration, in seconds.
    pub elapsed_s: (f64, f64),
    /// Whether the duration of a length given in operations had to be guessed.
    pub is_guess: bool,
    /// The part of the time that filling tables takes.
    pub filling: Part,
    /// The part of the time that starting servers takes.
    pub starts: Part,
    /// Records of 61 columns per second from which a guess of the filling time starts.
    pub guessed_records_per_s: f64,
}

/// A part of the time that a study takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Part {
    /// Minimum, in seconds.
    pub least_s: f64,
    /// Maximum, in seconds.
    pub most_s: f64,
    /// The basis of the figures; `None` if this part takes no time.
    pub basis: Option<Basis>,
}

/// The costs of a case.
struct Costs {
    /// Duration of one trial, in seconds.
    trial_s: f64,
    filling_s: f64,
    filling_on: Option<Basis>,
    start_s: f64,
    start_on: Option<Basis>,
    /// Number of the setup that the case needs: cases with the same number share it.
    stage: usize,
    /// Number of the content of the case's tables; `None` if it has none that could serve another case.
    content: Option<usize>,
    /// Whether a trial leaves the tables as they were.
    leaves_tables: bool,
    /// Whether the tables are kept when another server takes the place of theirs.
    is_kept: bool,
}

/// The costs of a round besides its trials, in seconds.
#[derive(Clone, Copy, Default)]
struct Besides {
    filling_s: f64,
    starts_s: f64,
}

/// Estimates the number of trials and the duration of a study.
pub fn estimate(study: &Study, known: &Known) -> Estimate {
    let extra = u64::from(first_counted_round(study));
    let rounds = match &study.goal {
        None => (u64::from(study.repeat.least) + extra, u64::from(study.repeat.most) + extra),
        Some(goal) => bound::trials(study, goal),
    };
    let costs = costs(study, known);
    let round_s: f64 = costs.values().map(|cost| cost.trial_s).sum();
    let besides = go_through(study, known, &costs, rounds.1.min(ROUNDS_GONE_THROUGH));
    let sum = |rounds: u64, of: &dyn Fn(&Besides) -> f64| {
        let gone_through = besides.iter().take(rounds as usize).map(of).sum::<f64>();
        gone_through + rounds.saturating_sub(besides.len() as u64) as f64 * besides.last().map_or(0.0, of)
    };
    let part = |of: &dyn Fn(&Besides) -> f64, on: Option<Basis>| {
        let (least_s, most_s) = (sum(rounds.0, of), sum(rounds.1, of));
        Part { least_s, most_s, basis: on.filter(|_| most_s > 0.0) }
    };
    let filling = part(&|round| round.filling_s, costs.values().filter_map(|cost| cost.filling_on).max());
    let starts = part(&|round| round.starts_s, costs.values().filter_map(|cost| cost.start_on).max());
    let least_s = rounds.0 as f64 * round_s + filling.least_s + starts.least_s;
    let most_s = rounds.1 as f64 * round_s + filling.most_s + starts.most_s;
    let is_ended = study.quick && study.goal.is_none();
    let cases = study.cases.len() as u64;
    let guesses = |settings: &Settings| {
        let is_timed = settings.load.replay.is_some() || matches!(settings.load.length, Length::Seconds(_));
        !is_timed && measured_operations_s(settings, known).is_none()
    };
    Estimate {
        trials: (cases * rounds.0, cases * rounds.1),
        elapsed_s: (least_s, if is_ended { most_s.min(REHEARSAL_S).max(least_s) } else { most_s }),
        is_guess: study.cases.iter().any(|case| guesses(&case.settings)),
        filling,
        starts,
        guessed_records_per_s: 1.0 / rates::qos_record_s(&study.base.database, &study.base.layout),
    }
}

/// Returns the costs of each case, by its id.
fn costs<'s>(study: &'s Study, known: &Known) -> BTreeMap<&'s str, Costs> {
    let (mut stages, mut contents) = (Vec::new(), Vec::new());
    let mut costs = BTreeMap::new();
    for case in &study.cases {
        let settings = &case.settings;
        let has_tables = has_tables(settings);
        let content = has_tables.then(|| content(settings)).flatten();
        let is_kept = known.keeps_tables && has_tables && is_kept(settings);
        let server = private_server(&settings.database);
        let stage = (server.clone().unwrap_or_else(|| settings.database.clone()), content.clone().filter(|_| is_kept));
        let (filling_s, filling_on) = if has_tables { fill_s(settings, known) } else { (0.0, None) };
        let start_s = server.map(|server| start_s(&server, known));
        let cost = Costs {
            trial_s: trial_s(settings, known),
            filling_s,
            filling_on,
            start_s: start_s.map_or(0.0, |(start_s, _)| start_s),
            start_on: start_s.map(|(_, basis)| basis),
            stage: place_of(&mut stages, stage),
            content: content.map(|content| place_of(&mut contents, content)),
            leaves_tables: keeps_records(settings),
            is_kept,
        };
        costs.insert(case.id.as_str(), cost);
    }
    costs
}

/// Returns the place of a value in a list; appends the value if it is not there.
fn place_of<T: PartialEq>(list: &mut Vec<T>, wanted: T) -> usize {
    list.iter().position(|known| *known == wanted).unwrap_or_else(|| {
        list.push(wanted);
        list.len() - 1
    })
}

/// Simulates the first `rounds` rounds as a run carries them out, and returns the costs of each besides its trials.
fn go_through(study: &Study, known: &Known, costs: &BTreeMap<&str, Costs>, rounds: u64) -> Vec<Besides> {
    let mut kept: BTreeSet<usize> = study
        .cases
        .iter()
        .filter(|case| known.filled.contains(&case.id))
        .filter_map(|case| costs.get(case.id.as_str())?.content)
        .collect();
    let (mut stage, mut content) = (None, None);
    let mut gone_through = Vec::new();
    for number in 0..u32::try_from(rounds).unwrap_or(u32::MAX) {
        let mut besides = Besides::default();
        for trial in round(study, number) {
            let Some(cost) = costs.get(trial.case.id.as_str()) else { continue };
            if stage != Some(cost.stage) {
                besides.starts_s += cost.start_s;
                stage = Some(cost.stage);
                content = cost.content.filter(|content| cost.is_kept && kept.contains(content));
            }
            if cost.filling_s > 0.0 && (cost.content.is_none() || content != cost.content) {
                besides.filling_s += cost.filling_s;
                kept.extend(cost.content.filter(|_| cost.is_kept));
            }
            content = cost.content.filter(|_| cost.leaves_tables);
        }
        gone_through.push(besides);
    }
    gone_through
}

/// Returns whether tables are filled for a case. The tables behind a recorder begin empty.
fn has_tables(settings: &Settings) -> bool {
    let is_filled = settings.record.rows > 0 || settings.tables.iter().any(|table| table.rows > 0);
    is_filled && !settings.record.existing && settings.recorded().is_none()
}

/// Returns what the tables of a case hold, and in which engine.
fn content(settings: &Settings) -> Option<(DatabaseSettings, String)> {
    let work = Work::new(settings).ok()?;
    let database = DatabaseSettings { socket: None, ..settings.database.clone() };
    Some((database, content_of(settings, &work).ok()?))
}

fn trial_s(settings: &Settings, known: &Known) -> f64 {
    let around_s = known.paces.lasts_s(&Subject::around(settings), 1).unwrap_or(AROUND_S);
    around_s + settings.load.warmup_s + measured_s(settings, known)
}

/// Returns how long the measured phase of a trial takes, in seconds.
fn measured_s(settings: &Settings, known: &Known) -> f64 {
    let load = &settings.load;
    if let Length::Seconds(seconds) = load.length {
        return seconds;
    }
    if load.replay.is_some() {
        return replayed_s(load);
    }
    let guess_s = || operations_of(settings).unwrap_or_default() as f64 * guessed_operation_s(settings);
    let lasts_s = measured_operations_s(settings, known).unwrap_or_else(guess_s);
    load.at_most_s.map_or(lasts_s, |most_s| lasts_s.min(most_s))
}

/// Returns how long the operations of a case took on this machine, in seconds; `None` if that was not measured.
fn measured_operations_s(settings: &Settings, known: &Known) -> Option<f64> {
    known.paces.lasts_s(&Subject::operations(settings)?, operations_of(settings)?)
}

fn guessed_operation_s(settings: &Settings) -> f64 {
    let Settings { record, workload, .. } = settings;
    let record_s = rates::record_s(&Filling::of(&settings.database, &settings.layout, record));
    // A query looks at all records, unless an index finds the ones asked for.
    let asks_all = ["query", "recent"].contains(&workload.name.as_str()) && settings.layout.indexes.is_empty();
    let read_s = if asks_all { record.rows as f64 * LOOK_SHARE * record_s } else { 0.0 };
    1.0 / GUESSED_OPERATIONS_PER_S + f64::from(workload.batch) * record_s + read_s
}

/// Returns how long a replay takes, in seconds.
fn replayed_s(load: &LoadSettings) -> f64 {
    load.replay.map_or(0.0, |replay| replay.least_s.unwrap_or_else(|| replay.lasts_s(load.rate_per_s)))
}

/// Returns how long filling the tables of a case takes (the layout's and the study's own), in seconds, and the basis of that figure.
fn fill_s(settings: &Settings, known: &Known) -> (f64, Option<Basis>) {
    let Settings { database, layout, record, tables, .. } = settings;
    let (mut sum_s, mut on) = (0.0, None);
    if record.rows > 0 {
        let (lasts_s, basis) = known.paces.filling_s(&Filling::of(database, layout, record), record.rows);
        (sum_s, on) = (lasts_s, Some(basis));
    }
    for table in tables.iter().filter(|table| table.rows > 0) {
        let measured_s = known.paces.lasts_s(&Subject::own_table(database, table), table.rows);
        let guess_s = || table.rows as f64 * own_row_s(table.columns.len());
        sum_s += measured_s.unwrap_or_else(guess_s);
        on = on.max(Some(if measured_s.is_some() { Basis::Measured } else { Basis::Guessed }));
    }
    (sum_s, on)
}

fn start_s(server: &DatabaseSettings, known: &Known) -> (f64, Basis) {
    match known.paces.lasts_s(&Subject::start(server), 1) {
        Some(start_s) => (start_s, Basis::Measured),
        None => (START_S, Basis::Guessed),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::Pace;
    use super::super::plan::tests::study;
    use super::*;
    use crate::trial::{Case, ColumnFill, Fill, Levels, TableSettings};

    /// A study of three sizes on one database, with two rounds at least and four at most.
    fn of_sizes(database: &str, workload: &str, rows: [u64; 3]) -> Study {
        let mut study = study(3);
        for (case, rows) in study.cases.iter_mut().zip(rows) {
            let mut settings = case.settings.clone();
            (settings.database.name, settings.workload.name) = (database.to_owned(), workload.to_owned());
            (settings.record.type_name, settings.record.table) = ("qos".to_owned(), "qos".to_owned());
            (settings.record.rows, settings.record.per_measurement) = (rows, 1);
            (settings.workload.batch, settings.layout.name) = (1, "wide".to_owned());
            *case = Case::new(Levels::from([("record.rows".to_owned(), rows.into())]), settings);
        }
        study
    }

    /// The knowledge on a machine where filling was measured at a million records per second.
    fn measured(study: &Study) -> Known {
        let mut paces = Paces::default();
        paces.add(Pace { subject: Subject::filling(&study.cases[0].settings), amount: 1_000, lasted_s: 1e-3 });
        Known { paces, ..Known::default() }
    }

    fn assert_near(value: f64, wanted: f64) {
        assert!((value / wanted - 1.0).abs() < 1e-9, "{value} instead of {wanted}");
    }

    #[test]
    fn tables_are_filled_once_a_round_where_they_serve_all_its_trials() {
        let million = 1_000_000;
        let several = of_sizes("sqlite", "update", [million, 2 * million, 3 * million]);
        let filling = estimate(&several, &measured(&several)).filling;
        assert_eq!(filling.basis, Some(Basis::Measured));
        // A round that begins with the content that the last one ended with fills one table less.
        assert!((2.0 * 3.0 + 3.0..=12.0).contains(&filling.least_s), "{filling:?}");
        let one = of_sizes("sqlite", "update", [million; 3]);
        let filling = estimate(&one, &measured(&one)).filling;
        assert_near(filling.least_s, 1.0);
        assert_near(filling.most_s, 1.0);
        let written = of_sizes("sqlite", "delete", [million; 3]);
        assert_near(estimate(&written, &measured(&written)).filling.least_s, 2.0 * 3.0);
        assert_near(estimate(&written, &measured(&written)).filling.most_s, 4.0 * 3.0);
    }

    #[test]
    fn tables_that_are_kept_are_filled_once_in_all_and_not_at_all_where_they_are_there() {
        let study = of_sizes("postgres", "select", [100_000, 200_000, 300_000]);
        let known = Known { keeps_tables: true, ..measured(&study) };
        let first = estimate(&study, &known);
        assert_near(first.filling.least_s, 0.6);
        assert_near(first.filling.most_s, 0.6);
        let one_server = estimate(&study, &measured(&study)).starts.least_s;
        assert!(first.starts.least_s > 3.0 * one_server, "each has a server of its own: {:?}", first.starts);
        let filled = study.cases.iter().skip(1).map(|case| case.id.clone()).collect();
        let again = estimate(&study, &Known { filled, ..known });
        assert_near(again.filling.most_s, 0.1);
    }

    #[test]
    fn tables_that_are_there_already_are_not_filled() {
        let mut study = of_sizes("sqlite", "select", [1_000_000; 3]);
        study.cases.iter_mut().for_each(|case| case.settings.record.existing = true);
        let estimate = estimate(&study, &Known::default());
        assert_eq!((estimate.filling.most_s, estimate.filling.basis), (0.0, None));
        assert_eq!((estimate.starts.most_s, estimate.starts.basis), (0.0, None), "nor is a server started");
    }

    #[test]
    fn tables_of_the_studys_own_count_and_are_known_by_what_they_are() {
        let mut study = of_sizes("sqlite", "sql", [0; 3]);
        let column = ColumnFill { name: "k".to_owned(), fill: Fill::Sequence(1, 1) };
        let table =
            TableSettings { name: "t".to_owned(), rows: 500_000, columns: vec![column], ..TableSettings::default() };
        study.cases.iter_mut().for_each(|case| case.settings.tables = vec![table.clone()]);
        let guessed = estimate(&study, &Known::default()).filling;
        assert!(guessed.least_s > 0.0 && guessed.basis == Some(Basis::Guessed), "{guessed:?}");
        let subject = Subject::own_table(&study.cases[0].settings.database, &TableSettings { rows: 7, ..table });
        let paces = Paces(vec![Pace { subject, amount: 1_000, lasted_s: 0.1 }]);
        let measured = estimate(&study, &Known { paces, ..Known::default() }).filling;
        assert_eq!(measured.basis, Some(Basis::Measured));
        assert_near(measured.least_s / guessed.least_s, 1e-4 / own_row_s(1));
    }

    #[test]
    fn operations_that_were_measured_are_not_guessed() {
        let mut study = of_sizes("sqlite", "write", [0; 3]);
        study.cases.iter_mut().for_each(|case| case.settings.load.length = Length::Operations(5_000));
        let guessed = estimate(&study, &Known::default());
        assert!(guessed.is_guess);
        let mut paces = Paces::default();
        for case in &study.cases {
            paces.add(Pace { subject: Subject::operations(&case.settings).unwrap(), amount: 10, lasted_s: 1.0 });
            paces.add(Pace { subject: Subject::around(&case.settings), amount: 1, lasted_s: 2.0 });
        }
        let known = Known { paces, ..Known::default() };
        let measured = estimate(&study, &known);
        assert!(!measured.is_guess);
        assert_near(measured.elapsed_s.0, 2.0 * 3.0 * (500.0 + 2.0));
        study.cases.iter_mut().for_each(|case| case.settings.load.at_most_s = Some(30.0));
        assert_near(estimate(&study, &known).elapsed_s.0, 2.0 * 3.0 * (30.0 + 2.0));
    }

    #[test]
    fn a_server_starts_once_where_all_cases_have_the_same_and_else_in_every_round() {
        let mut study = of_sizes("postgres", "write", [0; 3]);
        let starts_s = |study: &Study| estimate(study, &Known::default()).starts.most_s;
        assert_near(starts_s(&study), START_S);
        for (number, case) in study.cases.iter_mut().enumerate() {
            case.settings.database.config = [("work_mem".to_owned(), format!("{}MB", number + 1))].into();
        }
        assert!((8.0 * START_S..=12.0 * START_S).contains(&starts_s(&study)), "{}", starts_s(&study));
    }
}
