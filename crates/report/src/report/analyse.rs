//! Turns measurements into findings: groups trials by case, sets invalid ones aside, and computes figures over the rest.
//!
//! Main function: [`analyse`]. Invariant: a case with a trial appears in the findings, whatever became of its trials.

use std::collections::{BTreeMap, HashMap};

use crate::finding::{
    CaseFinding, Estimate, FewRows, Findings, Invalidity, LateFinding, Note, OperationFinding, ResourceFinding,
    TimeFinding, Unsettled,
};
use crate::histogram::Histogram;
use crate::imported::{StatedTimes, TimeKind};
use crate::measurement::{Environment, Measurement, OperationMeasurement};
use crate::metric::background_name;
use crate::metric::{CONTENT_BYTES, event_bytes};
use crate::report::answers::ROWS_LEAST;
use crate::report::case_trials::{CaseTrials, estimate, is_overloaded, time_finding};
use crate::report::claims::judge_claim;
use crate::report::client;
use crate::report::durability::{self, Durability};
use crate::report::instruments::INSTRUMENTS;
use crate::report::instruments::events;
use crate::report::limits;
use crate::report::load_lines::load_lines;
use crate::report::verdicts::verdicts;
use crate::report::warming;
use crate::statistics::noise::{CaseMean, Series, means};
use crate::statistics::summary::{Interval, mean};
use crate::study::repeat::{are_settled, stopping};
use crate::study::{Repeat, RepeatRule, Study, goal};
use crate::trial::{Arrivals, Case, Levels};
use crate::units::NS_PER_S;

/// Returns all findings on a run. Cases are in the study's order; those without a trial are left out and noted.
pub fn analyse(run_name: &str, study: &Study, environment: &Environment, measurements: &[Measurement]) -> Findings {
    let lines = load_lines(study, measurements);
    let durability = Durability::of(study, environment);
    // From here on, the rates that a search chose are levels of a factor.
    let unfolded = goal::unfold(study, measurements);
    let study = &unfolded;
    let groups = group(study, measurements);
    let measured: Vec<&Case> = groups.iter().map(|group| group.case).collect();
    let mut cases: Vec<CaseFinding> = groups
        .iter()
        .map(|group| CaseFinding { durability: durability.finding(group.case), ..case_finding(study, group) })
        .collect();
    judge_together(study, &groups, &mut cases);
    let valid = !cases.is_empty()
        && cases.iter().all(|case| case.valid_trials + case.repeated == case.trials)
        && lines.iter().all(|line| !line.disturbed);
    Findings {
        run: run_name.to_owned(),
        study: study.name.clone(),
        imported_from: measurements.iter().find_map(|trial| Some(trial.imported.as_ref()?.tool.clone())),
        question: study.question.clone(),
        seed: study.seed,
        valid,
        rehearsal: study.quick,
        verdicts: durability::told(verdicts(study, &groups, &lines), study, &cases),
        notes: [
            durability.stand_ins(&measured),
            notes(study, environment, &groups, &cases),
            attempts_lost(measurements).into_iter().collect(),
            durability.notes(&measured),
        ]
        .concat(),
        claims: study.claims.iter().map(|claim| judge_claim(study, claim, &groups, &lines)).collect(),
        load_lines: lines,
        cases,
    }
}

/// Groups trials by case, in the study's order; cases unknown to the study follow in the order of their ids. Attempts that were lost with an agent are
/// no trials.
pub fn group<'a>(study: &'a Study, measurements: &'a [Measurement]) -> Vec<CaseTrials<'a>> {
    let mut by_case: BTreeMap<&str, Vec<&Measurement>> = BTreeMap::new();
    for measurement in measurements.iter().filter(|measurement| measurement.trial.lost_attempt.is_none()) {
        by_case.entry(&measurement.trial.case.id).or_default().push(measurement);
    }
    let mut groups = Vec::new();
    for case in &study.cases {
        if let Some(trials) = by_case.remove(case.id.as_str()) {
            groups.push(case_trials(study, case, trials));
        }
    }
    groups.extend(by_case.into_values().map(|trials| case_trials(study, &trials[0].trial.case, trials)));
    groups
}

/// Notes the attempts that were lost with an agent.
fn attempts_lost(measurements: &[Measurement]) -> Option<Note> {
    let mut lost = measurements.iter().filter(|measurement| measurement.trial.lost_attempt.is_some());
    let first = lost.next()?.invalid_because.first()?.clone();
    Some(Note::AttemptsLost { attempts: 1 + lost.count(), first })
}

fn case_trials<'a>(study: &Study, case: &'a Case, mut trials: Vec<&'a Measurement>) -> CaseTrials<'a> {
    trials.sort_by_key(|trial| (trial.trial.round, trial.sequence));
    let first = trials.first().is_some_and(|trial| trial.trial.round == 0);
    let discarded = (study.repeat.discard_first && first).then(|| trials.remove(0));
    CaseTrials { case, discarded, trials }
}

/// Returns the name under which a kind of operation is reported: `query delays` if a case runs several of the study's queries, whose names
/// say more than their numbers.
pub fn kind_name(case: &Case, kind: &str) -> String {
    let queries = &case.settings.workload.queries;
    let number = kind.strip_prefix("query-").and_then(|number| number.parse::<usize>().ok());
    match number.and_then(|number| queries.get(number.checked_sub(1)?)) {
        Some(query) if queries.len() > 1 => format!("query {}", query.name),
        _ => kind.to_owned(),
    }
}

/// Sets the figures that depend on the noise of all cases: which cases are settled, and the intervals of their rates.
fn judge_together(study: &Study, groups: &[CaseTrials<'_>], cases: &mut [CaseFinding]) {
    let series = |value: fn(&Measurement) -> Option<f64>| -> Vec<Series> {
        let of_trial = |trial: &Measurement| Some((trial.trial.round, value(trial)?));
        groups.iter().map(|group| group.valid().filter_map(of_trial).collect()).collect()
    };
    let settled = are_settled(&study.repeat, &series(|trial| Some(trial.settles_by())));
    let found = |value| means(&series(value), stopping(study));
    let throughputs = found(|trial| Some(trial.throughput_per_s()));
    let records = found(Measurement::known_records_per_s);
    let contents = found(|trial| CONTENT_BYTES.of(trial));
    let events = found(event_bytes);
    for (number, case) in cases.iter_mut().enumerate() {
        case.settled = settled[number];
        show_interval(&mut case.throughput_per_s, throughputs[number]);
        show_interval(&mut case.records_per_s, records[number]);
        if let Some(content) = &mut case.content_bytes_per_s {
            show_interval(content, contents[number]);
        }
        if let Some(bytes) = &mut case.event_bytes_per_s {
            show_interval(bytes, events[number]);
        }
    }
}

/// Gives an estimate its interval by the noise of all cases, if there is one. A rate cannot be negative.
fn show_interval(estimate: &mut Estimate, found: Option<CaseMean>) {
    if let Some(Interval { low, high }) = found.map(|found| found.interval) {
        estimate.ci95 = Some([low.max(0.0), high]);
        estimate.cut_off = low < 0.0;
    }
}

fn case_finding(study: &Study, group: &CaseTrials<'_>) -> CaseFinding {
    let valid: Vec<&Measurement> = group.valid().collect();
    let throughputs: Vec<f64> = valid.iter().map(|trial| trial.throughput_per_s()).collect();
    let records: Vec<f64> = valid.iter().filter_map(|trial| trial.known_records_per_s()).collect();
    let contents: Vec<f64> = valid.iter().filter_map(|trial| CONTENT_BYTES.of(trial)).collect();
    let mut operations: BTreeMap<String, OperationMeasurement> = BTreeMap::new();
    let (mut late, mut errors) = (Histogram::new(), BTreeMap::new());
    for trial in &valid {
        late.merge(&trial.generator_late);
        // All reads of a kind are merged, including those of read-modify-writes, as YCSB reports them.
        for (kind, operation) in trial.operations.iter().chain(&trial.parts) {
            operations.entry(kind_name(group.case, kind)).or_default().merge(operation);
        }
        for (kind, operation) in &trial.background {
            operations.entry(background_name(kind)).or_default().merge(operation);
        }
    }
    for (message, count) in group.trials.iter().flat_map(|trial| &trial.errors) {
        *errors.entry(message.clone()).or_insert(0) += count;
    }
    let completed: u64 = valid.iter().map(|trial| trial.completed()).sum();
    let client_cpu_s: Option<f64> = valid.iter().map(|trial| trial.known_client_cpu_s()).sum();
    let is_open = group.case.settings.load.arrivals != Arrivals::Closed;
    let empty_known = valid.iter().all(|trial| trial.imported.as_ref().is_none_or(|from| from.empty_known));
    let offered: Vec<f64> = valid.iter().map(|trial| trial.offered_per_s()).collect();
    let mut finding = CaseFinding {
        id: group.case.id.clone(),
        levels: group.case.levels.clone(),
        trials: group.trials.len() as u64,
        valid_trials: valid.len() as u64,
        repeated: goal::repeated(study, &group.trials).len() as u64,
        discarded: u64::from(group.discarded.is_some()),
        settled: false,
        throughput_per_s: estimate(&throughputs),
        records_per_s: estimate(&records),
        content_bytes_per_s: (!contents.is_empty()).then(|| estimate(&contents)),
        operations: operations
            .iter()
            .map(|(kind, merged)| (kind.clone(), operation_finding(merged, empty_known)))
            .collect(),
        offered_per_s: mean(&offered).filter(|_| is_open),
        overloaded: is_open.then(|| is_overloaded(&valid)),
        generator_late_s: LateFinding {
            p99: (late.count() > 0).then(|| late.quantile_ns(0.99) as f64 / NS_PER_S),
            max: (late.count() > 0).then(|| late.max_ns() as f64 / NS_PER_S),
        },
        client_cpu_s_per_operation: client_cpu_s.filter(|_| completed > 0).map(|cpu_s| cpu_s / completed as f64),
        resources: resources(&valid),
        errors,
        invalid_because: reasons(&group.trials),
        ..CaseFinding::default()
    };
    INSTRUMENTS.iter().for_each(|instrument| (instrument.find)(group, &mut finding));
    finding
}

fn operation_finding(merged: &OperationMeasurement, empty_known: bool) -> OperationFinding {
    let times = |kind| match merged.stated.get(&kind) {
        Some(stated) => stated_finding(stated),
        None => time_finding(&merged.times(kind)),
    };
    OperationFinding {
        count: merged.completed,
        failed: merged.failed,
        empty: empty_known.then_some(merged.empty),
        rows: merged.rows.filter(|_| merged.completed > 0).map(|rows| rows as f64 / merged.completed as f64),
        wrong: merged.wrong,
        abandoned: merged.abandoned,
        response_time_s: times(TimeKind::ResponseTime),
        response_time_at_least: merged.abandoned > 0,
        residence_time_s: times(TimeKind::ResidenceTime),
        schedule_lag_s: times(TimeKind::ScheduleLag),
    }
}

/// Returns the times that another tool states, in seconds.
fn stated_finding(stated: &StatedTimes) -> TimeFinding {
    let quantile = |quantile| stated.quantile_s(quantile);
    TimeFinding {
        mean: stated.mean_s,
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: stated.max_s,
    }
}

fn resources(valid: &[&Measurement]) -> Option<ResourceFinding> {
    let means: Vec<_> = valid.iter().filter_map(|trial| trial.resources.as_ref()).map(|used| used.mean).collect();
    if means.is_empty() {
        return None;
    }
    let over = |figure: fn(&crate::measurement::ResourceSample) -> f64| {
        means.iter().map(figure).sum::<f64>() / means.len() as f64
    };
    Some(ResourceFinding {
        server_cpu: over(|mean| mean.server_cpu),
        client_cpu: valid.iter().filter_map(|trial| trial.client_cpus()).sum::<f64>() / means.len() as f64,
        user: over(|mean| mean.user),
        system: over(|mean| mean.system),
        iowait: over(|mean| mean.iowait),
        idle: over(|mean| mean.idle),
        write_requests_per_s: over(|mean| mean.write_requests_per_s),
        written_bytes_per_s: over(|mean| mean.written_bytes_per_s),
        server_written_bytes_per_s: over(|mean| mean.server_written_bytes_per_s),
        memory_used_bytes: over(|mean| mean.memory_used_bytes),
        server_memory_bytes: over(|mean| mean.server_memory_bytes),
        client_memory_bytes: over(|mean| mean.client_memory_bytes),
        received_bytes_per_s: over(|mean| mean.received_bytes_per_s),
        sent_bytes_per_s: over(|mean| mean.sent_bytes_per_s),
        context_switches_per_s: over(|mean| mean.context_switches_per_s),
    })
}

/// Returns the reasons for which trials are invalid, grouped by equal reasons.
fn reasons(trials: &[&Measurement]) -> Vec<Invalidity> {
    let mut found: Vec<Invalidity> = Vec::new();
    let mut place_of: HashMap<String, usize> = HashMap::new();
    for trial in trials {
        for reason in &trial.invalid_because {
            let place = *place_of.entry(reason.to_string()).or_insert_with(|| {
                found.push(Invalidity { rounds: Vec::new(), reason: reason.clone() });
                found.len() - 1
            });
            found[place].rounds.push(trial.trial.round);
        }
    }
    found
}

fn notes(study: &Study, environment: &Environment, groups: &[CaseTrials<'_>], cases: &[CaseFinding]) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(study.quick.then_some(Note::Rehearsal {}));
    notes.extend(events::is_on_own_disk(groups).then_some(Note::OnPowerDisk {}));
    notes.extend(
        study.left_out_by_reason().into_iter().map(|(cases, why)| Note::LeftOut { cases, why: why.to_owned() }),
    );
    let (missing, all) = (study.cases.len().saturating_sub(cases.len()), cases.len());
    notes.extend((missing > 0).then_some(Note::CasesMissing { missing, all: study.cases.len() }));
    let unusable = cases.iter().filter(|case| case.valid_trials == 0);
    let unusable: Vec<Levels> = unusable.map(|case| case.levels.clone()).collect();
    if !unusable.is_empty() {
        notes.push(Note::CasesInvalid { cases: unusable, all });
    }
    let is_unsettled = |case: &&CaseFinding| study.goal.is_none() && case.valid_trials > 0 && !case.settled;
    let unsettled = |case: &CaseFinding| Unsettled { levels: case.levels.clone(), n: case.valid_trials };
    let unsettled: Vec<Unsettled> = cases.iter().filter(is_unsettled).map(unsettled).collect();
    if !unsettled.is_empty() {
        notes.push(Note::CasesUnsettled { cases: unsettled, all, rule: show_rule(&study.repeat) });
    }
    notes.extend(groups.iter().filter_map(|group| {
        let reason = group.discarded?.invalid_because.first()?.clone();
        Some(Note::DiscardedInvalid { levels: group.case.levels.clone(), reason })
    }));
    notes.extend(imported(groups));
    let repeated: u64 = cases.iter().map(|case| case.repeated).sum();
    notes.extend((repeated > 0).then_some(Note::Repeated { repeated }));
    let governor = environment.governor.clone().filter(|governor| governor != "performance");
    notes.extend(governor.map(|governor| Note::Governor { governor }));
    notes.extend(found_nothing(cases));
    notes.extend(answers_checked(groups));
    notes.extend(warming::note(groups));
    notes.extend(limits::notes(environment, groups, cases));
    notes.extend(client::notes(environment, groups));
    notes.extend(INSTRUMENTS.iter().flat_map(|instrument| (instrument.notes)(groups)));
    notes
}

/// Returns the notes made on importing other tools' output, each once.
fn imported(groups: &[CaseTrials<'_>]) -> Vec<Note> {
    let mut told: Vec<(&String, &String)> = Vec::new();
    let trials = groups.iter().flat_map(|group| group.discarded.iter().chain(&group.trials));
    for from in trials.filter_map(|trial| trial.imported.as_ref()) {
        for note in &from.notes {
            if !told.contains(&(&from.tool, note)) {
                told.push((&from.tool, note));
            }
        }
    }
    told.into_iter().map(|(tool, told)| Note::Imported { tool: tool.clone(), told: told.clone() }).collect()
}

/// Notes how many answers were compared with the records, in valid and invalid trials.
fn answers_checked(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let operations = groups.iter().flat_map(|group| &group.trials).flat_map(|trial| trial.operations.values());
    let checked = operations.filter_map(|operation| Some((operation.completed + operation.wrong?, operation.wrong?)));
    let (checked, wrong) = checked.fold((0, 0), |(all, wrong), (own, own_wrong)| (all + own, wrong + own_wrong));
    (checked > 0).then_some(Note::AnswersChecked { checked, wrong })
}

/// Notes queries that mostly found nothing: they are fast, and their figures are those of a search without result.
fn found_nothing(cases: &[CaseFinding]) -> Option<Note> {
    let few = |case: &CaseFinding| {
        let rows = case.rows_of_queries().filter(|rows| *rows < ROWS_LEAST)?;
        Some(FewRows { levels: case.levels.clone(), rows })
    };
    let cases: Vec<FewRows> = cases.iter().filter_map(few).collect();
    (!cases.is_empty()).then_some(Note::FoundNothing { cases })
}

/// Formats the repeat rule in words.
pub fn show_rule(repeat: &Repeat) -> String {
    let share = format!("{} %", crate::units::show_number(repeat.within * 100.0));
    match repeat.rule {
        RepeatRule::Interval => {
            format!(
                "half-width of the 95 % interval at most {share} of the mean, {} to {} trials",
                repeat.least, repeat.most
            )
        }
        RepeatRule::StandardError => {
            format!("standard error below {share} of the mean, {} to {} trials", repeat.least, repeat.most)
        }
        RepeatRule::Fixed => format!("{} trials each", repeat.least),
    }
}
