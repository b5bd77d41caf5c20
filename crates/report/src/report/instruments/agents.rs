//! Reports on agents, which drove a load together.
//!
//! Main item: [`INSTRUMENT`]. Invariant: the times of an agent are those of all valid trials of a case, merged.

use crate::finding::{AgentFinding, AgentsFinding, CaseFinding, Findings, HostUse, Note};
use crate::histogram::Histogram;
use crate::measurement::{AgentMeasurement, Measurement, OTHERS_BEFORE_MOST, Resources, outlying, starts_apart_s};
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels_short;
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::units::{NS_PER_S, show_number, show_seconds};

/// Headings of [`rows`].
const HEADINGS: [&str; 6] = ["Case", "agents", "each completes/s", "each p50", "each p99", "began apart, most"];
const HOST_HEADINGS: [&str; 8] = ["Case", "agent", "host", "CPUs", "busy", "by the agent", "by others", "stolen, most"];

/// Share of the response time for which operations may wait for a free client of their agent before it is noted.
const WAITING_MOST: f64 = 0.1;

/// The report on agents.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.agents = found(group),
    notes,
    tables: |findings| {
        vec![
            TextTable { title: "Agents", headings: &HEADINGS, rows: rows(findings), ..TextTable::default() },
            TextTable {
                title: "Hosts of agents",
                headings: &HOST_HEADINGS,
                rows: host_rows(findings),
                ..TextTable::default()
            },
        ]
    },
    ..Instrument::SILENT
};

/// Returns each agent's measurements over the valid trials of a case; empty where there were no agents.
fn of_agents<'a>(group: &CaseTrials<'a>) -> Vec<Vec<&'a AgentMeasurement>> {
    let most = group.valid().map(|trial| trial.agents.len()).max().unwrap_or(0);
    (0..most).map(|place| group.valid().filter_map(|trial| trial.agents.get(place)).collect()).collect()
}

fn times(measurements: &[&AgentMeasurement]) -> Histogram {
    let mut all = Histogram::new();
    measurements.iter().for_each(|measurement| all.merge(&measurement.response_time));
    all
}

fn found(group: &CaseTrials<'_>) -> Option<AgentsFinding> {
    let measured_s: f64 = group.valid().map(|trial| trial.measured_s).sum();
    let each: Vec<AgentFinding> = of_agents(group)
        .iter()
        .map(|measurements| {
            let sum =
                |figure: fn(&AgentMeasurement) -> f64| measurements.iter().map(|agent| figure(agent)).sum::<f64>();
            let times = times(measurements);
            let quantile_s = |quantile| (times.count() > 0).then(|| times.quantile_ns(quantile) as f64 / NS_PER_S);
            AgentFinding {
                host: measurements.iter().find_map(|agent| agent.host.clone()),
                clients: measurements.iter().map(|agent| agent.clients).max().unwrap_or(0),
                throughput_per_s: sum(|agent| agent.completed as f64) / measured_s,
                cpus: sum(|agent| agent.cpu_s) / measured_s,
                host_use: host_use(measurements),
                response_time_p50_s: quantile_s(0.5),
                response_time_p99_s: quantile_s(0.99),
            }
        })
        .collect();
    let starts_apart_s = group.valid().map(|trial| starts_apart_s(&trial.agents)).fold(0.0, f64::max);
    (!each.is_empty()).then_some(AgentsFinding { starts_apart_s, each })
}

/// Returns how an agent's host was used in its trials; `None` if the run's machine is its host.
fn host_use(measurements: &[&AgentMeasurement]) -> Option<HostUse> {
    let used: Vec<&Resources> = measurements.iter().filter_map(|agent| agent.resources.as_ref()).collect();
    let first = used.first()?;
    let mean = |figure: fn(&Resources) -> f64| used.iter().map(|used| figure(used)).sum::<f64>() / used.len() as f64;
    let others: Vec<f64> = used.iter().filter_map(|used| used.others_cpu).collect();
    let before = measurements.iter().filter_map(|agent| agent.others_cpu_before);
    Some(HostUse {
        cpus: first.cpus.unwrap_or_default(),
        busy_share: mean(|used| used.mean.user + used.mean.system),
        stolen_share_most: used.iter().map(|used| used.mean.stolen).fold(0.0, f64::max),
        client_cpus: mean(|used| used.mean.client_cpu),
        others_cpus: (!others.is_empty()).then(|| others.iter().sum::<f64>() / others.len() as f64),
        others_cpus_before_most: before.reduce(f64::max),
        client_memory_bytes: mean(|used| used.mean.client_memory_bytes),
        received_bytes_per_s: mean(|used| used.mean.received_bytes_per_s),
        sent_bytes_per_s: mean(|used| used.mean.sent_bytes_per_s),
    })
}

/// Notes the trials with fewer agents than their case names.
fn fewer(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let (mut found, mut all) = (Vec::new(), 0);
    for trial in groups.iter().flat_map(CaseTrials::valid) {
        let wanted = trial.trial.case.settings.load.agents.unwrap_or_default() as usize;
        all += 1;
        found.extend((trial.agents.len() < wanted).then_some(trial.agents.len()));
    }
    let least = found.iter().copied().min()?;
    Some(Note::FewerAgents { trials: found.len(), all, least })
}

/// Notes the host on which others kept most CPUs busy before the load began.
fn busy_host(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let trials = groups.iter().flat_map(CaseTrials::valid);
    let of_trial = |trial: &'_ Measurement| {
        let agents = (1..).zip(trial.agents.clone());
        let found = agents.filter_map(|(number, agent): (usize, AgentMeasurement)| {
            let busy_cpus = agent.others_cpu_before.filter(|busy_cpus| *busy_cpus > OTHERS_BEFORE_MOST)?;
            Some((number, agent.host?, agent.resources?.cpus?, busy_cpus))
        });
        found.collect::<Vec<_>>()
    };
    let found = trials.flat_map(of_trial).max_by(|a, b| a.3.total_cmp(&b.3))?;
    let (agent, host, cpus, busy_cpus) = found;
    Some(Note::AgentHostBusy { agent, host, cpus, busy_cpus })
}

/// Returns what is remarkable about agents: the one that differs most from the others of its case, and the cases in which agents' queues were long.
fn notes(groups: &[CaseTrials<'_>]) -> Vec<Note> {
    let mut differing: Vec<(&CaseTrials<'_>, usize, f64)> = Vec::new();
    let (mut cases, mut most) = (Vec::new(), 0.0_f64);
    for group in groups {
        let merged: Vec<Histogram> = of_agents(group).iter().map(|measurements| times(measurements)).collect();
        differing.extend(outlying(merged.iter()).map(|(place, ratio)| (group, place, ratio)));
        if let Some(share) = waiting_share(group).filter(|share| merged.len() > 1 && *share > WAITING_MOST) {
            cases.push(group.case.levels.clone());
            most = most.max(share);
        }
    }
    let distance = |(_, _, ratio): &(&CaseTrials<'_>, usize, f64)| ratio.ln().abs();
    let farthest = differing.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)));
    let differs = farthest.map(|(group, place, ratio)| Note::AgentDiffers {
        levels: group.case.levels.clone(),
        agent: place + 1,
        host: of_agents(group)[*place].iter().find_map(|agent| agent.host.clone()),
        ratio: *ratio,
        further: differing.len() - 1,
    });
    let queue = (!cases.is_empty()).then_some(Note::AgentsQueue { cases, waiting_share: most });
    differs.into_iter().chain(queue).chain(fewer(groups)).chain(busy_host(groups)).collect()
}

/// Returns the share of the response time for which operations waited for a free client, in open loops that the database carried: in others, every client
/// is busy. The time that a free client took until it sent is the generator's own lateness, and no queue.
fn waiting_share(group: &CaseTrials<'_>) -> Option<f64> {
    let trials: Vec<&Measurement> =
        group.valid().filter(|trial| trial.carried.is_some() && !trial.is_overloaded()).collect();
    let sum = |figure: fn(&crate::measurement::OperationMeasurement) -> u128| -> f64 {
        let operations = trials.iter().flat_map(|trial| trial.operations.values());
        operations.map(|operation| figure(operation) as f64).sum()
    };
    let late: f64 = trials.iter().map(|trial| trial.generator_late.sum_ns() as f64).sum();
    let response = sum(|operation| operation.response_time.sum_ns());
    (response > 0.0).then(|| (sum(|operation| operation.schedule_lag.sum_ns()) - late).max(0.0) / response)
}

/// Returns the rows of the table: a line for each case with agents.
fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let row = |case: &CaseFinding| {
        let agents = case.agents.as_ref()?;
        let span = |figure: fn(&AgentFinding) -> Option<f64>, show: fn(f64) -> String| {
            let figures: Vec<f64> = agents.each.iter().filter_map(figure).collect();
            let least = figures.iter().copied().reduce(f64::min);
            let most = figures.iter().copied().reduce(f64::max);
            match least.map(show).zip(most.map(show)) {
                Some((least, most)) if least == most => least,
                Some((least, most)) => format!("{least} to {most}"),
                None => "-".to_owned(),
            }
        };
        Some(vec![
            show_levels_short(&case.levels),
            agents.each.len().to_string(),
            span(|agent| Some(agent.throughput_per_s), show_number),
            span(|agent| agent.response_time_p50_s, show_seconds),
            span(|agent| agent.response_time_p99_s, show_seconds),
            show_seconds(agents.starts_apart_s),
        ])
    };
    findings.cases.iter().filter_map(row).collect()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Returns the rows of the table of hosts: a line for each agent on another machine.
fn host_rows(findings: &Findings) -> Vec<Vec<String>> {
    let cpus = |cpus: f64| format!("{cpus:.2}");
    let mut rows = Vec::new();
    for case in &findings.cases {
        let agents = case.agents.iter().flat_map(|agents| (1..).zip(&agents.each));
        for (number, agent) in agents {
            let (Some(host), Some(used)) = (&agent.host, &agent.host_use) else { continue };
            let number: usize = number;
            rows.push(vec![
                show_levels_short(&case.levels),
                number.to_string(),
                host.clone(),
                used.cpus.to_string(),
                percent(used.busy_share),
                cpus(used.client_cpus),
                used.others_cpus.map_or("-".to_owned(), cpus),
                percent(used.stolen_share_most),
            ]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Case, Trial};

    /// A trial of two seconds whose agents had these median response times, in microseconds, 100 operations each.
    fn trial(case: &Case, medians_us: &[u64]) -> Measurement {
        let agent = |median_us: &u64| {
            let mut response_time = Histogram::new();
            response_time.record_many(1_000 * median_us, 100);
            AgentMeasurement { clients: 8, completed: 100, cpu_s: 0.5, response_time, ..AgentMeasurement::default() }
        };
        let agents = medians_us.iter().map(agent).collect();
        Measurement { measured_s: 2.0, agents, ..Measurement::unmeasured(&Trial::new(case.clone(), 0, 0)) }
    }

    #[test]
    fn only_the_wait_for_a_client_is_a_queue() {
        let case = Case::new([("load.agents".to_owned(), 2.into())].into(), Default::default());
        let waiting = |lag_us: u64, late_us: u64| {
            let mut operation =
                crate::measurement::OperationMeasurement { scheduled: 100, completed: 100, ..Default::default() };
            operation.response_time.record_many(1_000_000, 100);
            operation.schedule_lag.record_many(1_000 * lag_us, 100);
            let mut trial = trial(&case, &[1_000, 1_000]);
            trial.generator_late.record_many(1_000 * late_us, 100);
            (trial.carried, trial.operations) = (Some(100), [("read".to_owned(), Box::new(operation))].into());
            let group = CaseTrials { case: &case, discarded: None, trials: vec![&trial] };
            notes(&[group]).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(waiting(300, 300), Vec::<String>::new(), "the client itself was late");
        let said = waiting(300, 100);
        assert!(said.len() == 1 && said[0].contains("operations waited up to 20 %"), "{said:?}");
    }

    #[test]
    fn the_times_of_an_agent_are_those_of_all_its_trials_and_one_that_differs_is_named() {
        let case = Case::new([("load.agents".to_owned(), 3.into())].into(), Default::default());
        let (one, two) = (trial(&case, &[1_000, 1_000, 3_000]), trial(&case, &[1_000, 1_000, 5_000]));
        let group = CaseTrials { case: &case, discarded: None, trials: vec![&one, &two] };
        let agents = found(&group).unwrap();
        assert_eq!((agents.each.len(), agents.each[0].clients, agents.each[0].throughput_per_s), (3, 8, 50.0));
        assert!((agents.each[2].response_time_p99_s.unwrap() - 5e-3).abs() < 1e-4, "{agents:?}");
        let [Note::AgentDiffers { agent: 3, ratio, further: 0, .. }] = &notes(std::slice::from_ref(&group))[..] else {
            panic!("{:?}", notes(&[group]))
        };
        assert!((ratio - 3.0).abs() < 0.05, "{ratio}");
        let alone = Measurement::unmeasured(&Trial::new(case.clone(), 0, 0));
        let group = CaseTrials { case: &case, discarded: None, trials: vec![&alone] };
        assert_eq!((found(&group), notes(&[group]).len()), (None, 0));
    }
}
