//! Searches against simulated servers whose line is known from theory. `SEEDS=300` in the environment makes the tests longer.

use super::*;
use crate::statistics::random::Random;

mod stalls;

const BOUND: Bound = Bound {
    quantile: 0.9,
    below_s: 0.010,
    within: 0.05,
    confirmations: 10,
    trials_most: 120,
    start_per_s: 100.0,
    length: TrialLength::Seconds(2.0),
};

/// A simulated server.
#[derive(Clone, Copy)]
struct Server {
    servers: usize,
    /// Mean service time of one server, in seconds.
    service_s: f64,
    is_constant: bool,
    /// A delay added to each answer at some arrival rates, in seconds.
    delay_s: fn(f64) -> f64,
    /// Share of the trials in which service takes ten times as long, by arrival rate.
    fails: fn(f64) -> f64,
    /// Seconds of each tenth of a second for which the client sends nothing.
    pause_s: f64,
    /// Mean seconds between stalls, which come at random, and duration of each in seconds, in which nothing is served.
    stalls_s: [f64; 2],
}

const MM1: Server = Server {
    servers: 1,
    service_s: 1e-3,
    is_constant: false,
    delay_s: |_| 0.0,
    fails: |_| 0.0,
    pause_s: 0.0,
    stalls_s: [f64::INFINITY, 0.0],
};

fn exponential(mean: f64, random: &mut Random) -> f64 {
    -(1.0 - random.unit()).ln() * mean
}

/// Simulates a trial: arrivals are served in the order in which servers become free (Kiefer and Wolfowitz 1955), after a warm-up of a tenth of it.
fn trial(bound: &Bound, server: &Server, rate_per_s: f64, seconds: f64, random: &mut Random) -> Probe {
    let slow = if random.unit() < (server.fails)(rate_per_s) { 10.0 } else { 1.0 };
    let delay_s = (server.delay_s)(rate_per_s);
    let (begin_s, end_s) = (0.1 * seconds, 1.1 * seconds);
    let mut free_s = vec![0.0_f64; server.servers];
    let (mut at_s, mut times, mut waiting) = (exponential(1.0 / rate_per_s, random), Vec::new(), [0_u64; 2]);
    let [apart_s, stall_s] = server.stalls_s;
    let mut stall_at_s = if stall_s > 0.0 { exponential(apart_s, random) } else { f64::INFINITY };
    while at_s < end_s {
        while stall_at_s < at_s {
            free_s.iter_mut().for_each(|free_s| *free_s = free_s.max(stall_at_s) + stall_s);
            stall_at_s += exponential(apart_s, random);
        }
        let first = (0..free_s.len()).min_by(|a, b| free_s[*a].total_cmp(&free_s[*b])).unwrap();
        let service_s =
            slow * if server.is_constant { server.service_s } else { exponential(server.service_s, random) };
        let since_s = at_s % 0.1;
        let sent_s = if since_s < server.pause_s { at_s - since_s + server.pause_s } else { at_s };
        free_s[first] = free_s[first].max(sent_s) + service_s;
        let done_s = free_s[first] + delay_s;
        waiting[0] += u64::from(at_s < begin_s && done_s >= begin_s);
        waiting[1] += u64::from(done_s >= end_s);
        if at_s >= begin_s {
            times.push(done_s - at_s);
        }
        at_s += exponential(1.0 / rate_per_s, random);
    }
    times.sort_by(f64::total_cmp);
    let operations = times.len() as u64;
    let grown = waiting[1] as f64 - waiting[0] as f64;
    let is_behind = grown > 0.02 * operations as f64 + 2.33 * (2.0 * operations as f64).sqrt();
    let outcome = if is_behind || times.is_empty() {
        Outcome::Overloaded { operations }
    } else {
        Outcome::Answered {
            operations,
            above: times.iter().filter(|time| **time > bound.below_s).count() as u64,
            quantile_s: times[((times.len() as f64 * bound.quantile) as usize).min(times.len() - 1)],
            mean_s: times.iter().sum::<f64>() / times.len() as f64,
        }
    };
    Probe { rate_per_s, seconds, outcome, disturbed: None }
}

/// Runs a search. Returns the answer, and the trials that it took.
fn search(bound: &Bound, mut measure: impl FnMut(f64, f64) -> Probe) -> (Answer, Vec<Probe>) {
    let mut probes = Vec::new();
    let TrialLength::Seconds(own_s) = bound.length else { panic!("these tests have trials of some seconds") };
    loop {
        match next(bound, &probes) {
            Step::Measure { rate_per_s, seconds } => probes.push(measure(rate_per_s, seconds.unwrap_or(own_s))),
            Step::Done(answer) => return (answer, probes),
        }
        let most = 2 * trials_most(bound.confirmations) + STOLEN_MOST + NOT_DRIVEN_IN_ALL_MOST;
        assert!(probes.len() <= most, "{probes:?}");
    }
}

fn seeds(least: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(least)
}

/// The results of many searches.
#[derive(Debug, Default)]
struct Tally {
    seeds: u64,
    verified: u64,
    holds: u64,
    /// Number of brackets below the line, of brackets above it, and of lines without an upper end.
    misses: [u64; 3],
    too_high: u64,
    /// Number of lines that are more than a tenth below the true one.
    too_low: u64,
    width: f64,
    distance: f64,
    trials: usize,
    seconds: f64,
    others: std::collections::BTreeMap<String, u64>,
}

/// Runs searches with many seeds; `lines` are the rates at which the server's curve crosses the bound.
fn tally(bound: &Bound, server: &Server, lines: &[f64], least: u64) -> Tally {
    let mut tally = Tally { seeds: seeds(least), ..Tally::default() };
    for seed in 0..tally.seeds {
        let mut random = Random::new(1000 + seed);
        let (answer, probes) = search(bound, |rate, seconds| trial(bound, server, rate, seconds, &mut random));
        tally.trials += probes.len();
        tally.seconds += probes.iter().map(|probe| probe.seconds).sum::<f64>();
        let line = answer.line.as_ref().filter(|line| line.is_verified);
        let Some(line) = line else {
            *tally.others.entry(format!("{:?}", answer.ending)).or_default() += 1;
            continue;
        };
        tally.verified += 1;
        let nearest = lines
            .iter()
            .copied()
            .min_by(|a, b| (a / line.rate_per_s - 1.0).abs().total_cmp(&(b / line.rate_per_s - 1.0).abs()));
        let truth = nearest.unwrap();
        tally.too_high += u64::from(line.rate_per_s > truth * (1.0 + bound.within));
        tally.too_low += u64::from(line.rate_per_s < 0.9 * truth);
        tally.distance += line.rate_per_s / truth;
        if let Some([low, high]) = line.bracket() {
            tally.holds += u64::from(low <= truth && truth <= high);
            tally.misses[0] += u64::from(high < truth);
            tally.misses[1] += u64::from(low > truth);
            tally.width += high / low - 1.0;
        } else {
            tally.misses[2] += 1;
        }
    }
    let verified = tally.verified.max(1) as f64;
    (tally.width, tally.distance) = (tally.width / verified, tally.distance / verified);
    (tally.trials, tally.seconds) = (tally.trials / tally.seeds as usize, tally.seconds / tally.seeds as f64);
    println!("{tally:?}");
    tally
}

/// Asserts that at most one bracket of ten misses the line, as in the long runs, and that no verified line is too high.
fn assert_right(bound: &Bound, server: &Server, lines: &[f64]) {
    let tally = tally(bound, server, lines, 10);
    assert!(tally.holds * 100 >= 89 * tally.seeds, "{tally:?}");
    assert!(tally.too_high * 100 <= 10 * tally.seeds, "{tally:?}");
}

/// Returns the rate at which a share of operations above the bound, which grows with the rate, reaches the tolerated share.
fn crossing(bound: &Bound, capacity_per_s: f64, share: impl Fn(f64) -> f64) -> f64 {
    crate::queueing::search::last_that_holds(0.0, capacity_per_s, |rate| share(rate) <= bound.tolerated())
}

#[test]
fn the_bracket_of_a_single_server_holds_its_line() {
    let truth = crossing(&BOUND, 1000.0, |rate| (-(1000.0 - rate) * BOUND.below_s).exp());
    assert!((truth - (1000.0 - 10_f64.ln() / BOUND.below_s)).abs() < 1e-6);
    assert_right(&BOUND, &MM1, &[truth]);
}

#[test]
fn so_does_that_of_a_quantile_of_few_operations() {
    let bound = Bound { quantile: 0.99, below_s: 0.050, ..BOUND };
    let truth = 1000.0 - 100_f64.ln() / bound.below_s;
    assert_right(&bound, &MM1, &[truth]);
}

#[test]
fn so_does_that_of_four_servers() {
    let (bound, mu) = (Bound { below_s: 0.020, ..BOUND }, 250.0);
    let server = Server { servers: 4, service_s: 1.0 / mu, ..MM1 };
    // Gross and Harris 1998, section 2.3: the wait is exponential with probability C, and 0 otherwise.
    let share = |rate: f64| {
        let load = rate / mu;
        let terms: Vec<f64> = (0..4)
            .scan(1.0, |term, n| {
                let this = *term;
                *term *= load / f64::from(n + 1);
                Some(this)
            })
            .collect();
        let last = load.powi(4) / 24.0 / (1.0 - load / 4.0);
        let waits = last / (terms.iter().sum::<f64>() + last);
        let left = 4.0 * mu - rate;
        let (slow, fast) = ((-left * bound.below_s).exp(), (-mu * bound.below_s).exp());
        (1.0 - waits) * fast + waits * (mu * slow - left * fast) / (mu - left)
    };
    assert_right(&bound, &server, &[crossing(&bound, 999.0, share)]);
}

#[test]
fn so_does_that_of_constant_service_times() {
    let (bound, service_s) = (Bound { below_s: 0.005, ..BOUND }, 1e-3);
    let server = Server { is_constant: true, ..MM1 };
    // Erlang 1909: the distribution of the wait of M/D/1.
    let share = |rate: f64| {
        let waited_s = bound.below_s - service_s;
        let sum: f64 = (0..=4)
            .map(|k| {
                let left = rate * (f64::from(k) * service_s - waited_s);
                left.powi(k) / (1..=k).map(f64::from).product::<f64>() * (-left).exp()
            })
            .sum();
        1.0 - (1.0 - rate * service_s) * sum
    };
    assert_right(&bound, &server, &[crossing(&bound, 999.0, share)]);
}

#[test]
fn a_cliff_is_found_from_both_sides() {
    let server = Server { service_s: 1e-4, fails: |rate| f64::from(rate > 700.0), ..MM1 };
    let server = Server { service_s: 2e-4, ..server };
    assert_right(&BOUND, &server, &[700.0]);
}

#[test]
fn a_rate_at_which_trials_are_lost_now_and_then_is_above_the_line() {
    for fails in [|rate| if rate > 500.0 { 0.3 } else { 0.0 }, |rate| if rate > 500.0 { 0.5 } else { 0.0 }] {
        assert_right(&BOUND, &Server { fails, ..MM1 }, &[500.0]);
    }
}

#[test]
fn a_dip_ends_the_line_or_is_passed_over() {
    let delay_s = |rate| if (300.0..600.0).contains(&rate) { 0.03 } else { 0.0 };
    assert_right(&BOUND, &Server { delay_s, ..MM1 }, &[300.0, 1000.0 - 10_f64.ln() / 0.01]);
}

#[test]
fn a_server_that_is_slow_when_idle_has_a_line_above() {
    let delay_s = |rate| if rate < 150.0 { 0.02 } else { 0.0 };
    let bound = Bound { start_per_s: 50.0, ..BOUND };
    assert_right(&bound, &Server { delay_s, ..MM1 }, &[1000.0 - 10_f64.ln() / 0.01]);
}

#[test]
fn a_coarse_search_ends_within_the_trials_of_a_rehearsal() {
    let bound = Bound { within: 0.5, trials_most: 50, length: TrialLength::Seconds(0.4), ..BOUND };
    let cliff = Server { service_s: 2e-4, fails: |rate| f64::from(rate > 700.0), ..MM1 };
    for (server, line) in [(MM1, 1000.0 - 10_f64.ln() / bound.below_s), (cliff, 700.0)] {
        let tally = tally(&bound, &server, &[line], 20);
        assert!(tally.verified * 100 >= 95 * tally.seeds && tally.holds * 100 >= 89 * tally.seeds, "{tally:?}");
        assert!(tally.trials <= 35 && tally.width < 1.5, "{tally:?}");
    }
}

#[test]
fn one_stall_does_not_cap_the_search() {
    let mut random = Random::new(7);
    let mut trials = 0;
    let (answer, _) = search(&BOUND, |rate, seconds| {
        trials += 1;
        let fails: fn(f64) -> f64 = if trials == 3 { |_| 1.0 } else { |_| 0.0 };
        trial(&BOUND, &Server { fails, ..MM1 }, rate, seconds, &mut random)
    });
    let [low, high] = answer.line.unwrap().bracket().unwrap();
    assert!(low < 770.0 && low > 690.0 && high < 850.0, "{low} {high}");
}

#[test]
fn a_queue_that_relaxes_slowly_is_given_longer_trials() {
    let bound = Bound { below_s: 0.030, ..BOUND };
    let mut random = Random::new(3);
    let (answer, probes) = search(&bound, |rate, seconds| trial(&bound, &MM1, rate, seconds, &mut random));
    let line = answer.line.unwrap();
    let own = probes.iter().filter(|probe| probe.rate_per_s == line.rate_per_s);
    assert!(own.filter(|probe| probe.seconds > 4.0).count() >= 10, "rho is above 0.9 there: {line:?}");
}

#[test]
fn a_quantile_of_too_few_operations_is_not_verified() {
    let bound = Bound { quantile: 0.999, below_s: 0.9, start_per_s: 10.0, ..BOUND };
    let server = Server { service_s: 0.1, ..MM1 };
    let mut random = Random::new(3);
    let (answer, _) = search(&bound, |rate, seconds| trial(&bound, &server, rate, seconds, &mut random));
    assert!(matches!(answer.ending, Ending::TooShort(..)) && answer.line.is_none(), "{answer:?}");
}

#[test]
fn a_bound_below_the_time_without_load_is_not_reached() {
    let bound = Bound { below_s: 0.001, ..BOUND };
    let mut random = Random::new(3);
    let (answer, _) = search(&bound, |rate, seconds| trial(&bound, &MM1, rate, seconds, &mut random));
    let Ending::NotReached(rate, quantile_s) = answer.ending else { panic!("{answer:?}") };
    assert!(rate < 60.0 && quantile_s > 0.002 && answer.line.is_none(), "{rate} {quantile_s}");
}

#[test]
fn the_client_is_named_only_where_its_cpu_was_used_up() {
    let mut random = Random::new(3);
    let mut answer = |is_saturated| {
        let measure = |rate: f64, seconds| match rate {
            rate if rate < 300.0 => trial(&BOUND, &MM1, rate, seconds, &mut random),
            _ => Probe { rate_per_s: rate, seconds, outcome: Outcome::NotDriven { is_saturated }, disturbed: None },
        };
        search(&BOUND, measure).0.ending
    };
    assert!(matches!(answer(true), Ending::AboveClient(rate) if rate < 300.0));
    assert!(matches!(answer(false), Ending::NotDriven(low, high) if low < 300.0 && high >= 300.0));
}

#[test]
fn trials_that_cannot_be_used_end_the_search() {
    let of = |outcome| {
        search(&BOUND, |rate_per_s, seconds| {
            let disturbed = (outcome == Outcome::Stolen).then_some(Disturbance::Hypervisor);
            Probe { rate_per_s, seconds, outcome, disturbed }
        })
    };
    let (answer, probes) = of(Outcome::Invalid);
    assert_eq!((answer.ending, probes.len()), (Ending::Unusable, INVALID_MOST));
    let (answer, probes) = of(Outcome::Stolen);
    assert_eq!(
        (answer.ending, probes.len()),
        (Ending::Disturbed { by_others: 0, by_hypervisor: STOLEN_MOST, by_client: 0 }, STOLEN_MOST)
    );
}

#[test]
fn what_was_confirmed_before_the_server_ended_stays_true() {
    let mut random = Random::new(5);
    let (_, mut probes) = search(&BOUND, |rate, seconds| trial(&BOUND, &MM1, rate, seconds, &mut random));
    let confirmed = (1..probes.len()).find_map(|count| Some((count, so_far(&BOUND, &probes[..count])?)));
    let (count, line) = confirmed.expect("a line is confirmed before the search is over");
    probes.truncate(count);
    let invalid = Probe { outcome: Outcome::Invalid, ..probes[0] };
    probes.extend([invalid; INVALID_MOST]);
    let Step::Done(answer) = next(&BOUND, &probes) else { panic!("the search goes on") };
    assert_eq!(answer.line.map(|line| line.rate_per_s), Some(line.rate_per_s));
}

#[test]
fn trials_whose_cpus_a_hypervisor_took_away_are_waited_for_and_change_nothing() {
    let answer = |is_shared: bool| {
        let (mut random, mut trials) = (Random::new(5), 0);
        search(&BOUND, |rate_per_s, seconds| {
            trials += 1;
            match is_shared && trials % 2 == 1 {
                true => Probe { rate_per_s, seconds, outcome: Outcome::Stolen, disturbed: None },
                false => trial(&BOUND, &MM1, rate_per_s, seconds, &mut random),
            }
        })
    };
    let ((alone, probes), (shared, all)) = (answer(false), answer(true));
    assert_eq!((&alone, 2 * probes.len()), (&shared, all.len()));
    assert!(alone.line.is_some_and(|line| line.bracket().is_some()));
}

#[test]
fn a_client_that_is_never_in_time_below_what_the_database_loses_ends_the_search() {
    let measure = |rate_per_s: f64, seconds: f64| {
        let outcome = match rate_per_s {
            rate if rate < 60.0 => Outcome::NotDriven { is_saturated: false },
            rate => Outcome::Overloaded { operations: (rate * seconds) as u64 },
        };
        Probe { rate_per_s, seconds, outcome, disturbed: None }
    };
    let (answer, probes) = search(&BOUND, measure);
    assert!(answer.ending == Ending::Unusable && answer.line.is_none(), "{answer:?}");
    assert!(probes.len() <= 2 * NOT_DRIVEN_IN_ALL_MOST, "{} trials", probes.len());
}

/// Simulates a server of whose time something else takes up to a third in a share of the trials.
fn beside_others(server: &Server, share: f64, rate: f64, seconds: f64, random: &mut Random) -> Probe {
    let is_disturbed = random.unit() < share;
    let taken = if is_disturbed { random.unit() / 3.0 } else { 0.0 };
    let server = Server { service_s: server.service_s / (1.0 - taken), ..*server };
    let disturbed = is_disturbed.then_some(Disturbance::Hypervisor);
    Probe { disturbed, ..trial(&BOUND, &server, rate, seconds, random) }
}

/// Simulates a server whose client sends nothing for up to a twentieth of the time in a share of the trials.
fn with_late_client(server: &Server, share: f64, rate: f64, seconds: f64, random: &mut Random) -> Probe {
    let is_late = random.unit() < share;
    let server = Server { pause_s: if is_late { 0.005 * random.unit() } else { 0.0 }, ..*server };
    let disturbed = is_late.then_some(Disturbance::Client);
    Probe { disturbed, ..trial(&BOUND, &server, rate, seconds, random) }
}

/// A function that simulates a trial of a server that is disturbed in a share of its trials.
type Disturbing = fn(&Server, f64, f64, f64, &mut Random) -> Probe;

/// Returns lines of [`MM1`] in units of the true one, and upper ends of brackets, for many seeds; and the mean number of trials of a search.
fn disturbed_lines(disturbing: Disturbing, share: f64, least: u64) -> (Vec<f64>, Vec<f64>, usize) {
    let truth = 1000.0 - 10_f64.ln() / BOUND.below_s;
    let (mut lines, mut ends, mut trials) = (Vec::new(), Vec::new(), 0);
    let seeds = seeds(least);
    for seed in 0..seeds {
        let mut random = Random::new(1000 + seed);
        let (answer, probes) = search(&BOUND, |rate, seconds| disturbing(&MM1, share, rate, seconds, &mut random));
        trials += probes.len();
        lines.extend(answer.line.as_ref().map(|line| line.rate_per_s / truth));
        ends.extend(answer.line.and_then(|line| line.bracket()).map(|[_, high]| high / truth));
    }
    let trials = trials / seeds as usize;
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    println!(
        "{share}: {} lines, {} brackets of {seeds}, at {} and {}, {trials} trials",
        lines.len(),
        ends.len(),
        mean(&lines),
        mean(&ends)
    );
    (lines, ends, trials)
}

/// Checks lines and upper ends against the true line. Returns the lowest line, and the number of upper ends.
fn assert_disturbed_lines_hold(disturbing: Disturbing, share: f64) -> (f64, usize) {
    let (lines, ends, trials) = disturbed_lines(disturbing, share, 10);
    assert!(lines.len() as u64 >= seeds(10) * 9 / 10, "{share}: {} lines", lines.len());
    // Both errors: lines above the true one, and upper ends below it.
    let wrong = lines.iter().filter(|line| **line > 1.0).count() + ends.iter().filter(|end| **end < 1.0).count();
    println!("{share}: {wrong} wrong ends");
    assert!(wrong as u64 * 10 <= seeds(10), "{share}: {wrong} wrong ends, {lines:?} {ends:?}");
    assert!(trials <= trials_most(BOUND.confirmations), "{share}: {trials}");
    (lines.into_iter().fold(f64::INFINITY, f64::min), ends.len())
}

#[test]
fn disturbed_trials_speak_for_a_rate_and_never_against_one() {
    for share in [0.2, 0.5, 0.8, 1.0] {
        let (lowest, ends) = assert_disturbed_lines_hold(beside_others, share);
        assert!(lowest > 0.4, "{share}: two thirds of a server carry 0.57 of the line, {lowest}");
        assert!(share < 1.0 || ends == 0, "nothing is refuted by disturbed trials alone");
    }
}

#[test]
fn trials_of_a_client_that_sends_late_speak_for_a_rate_too() {
    for share in [0.5, 1.0] {
        let (lowest, _) = assert_disturbed_lines_hold(with_late_client, share);
        assert!(lowest > 0.5, "{share}: {lowest}");
    }
}

#[test]
fn a_bound_that_disturbed_trials_lose_everywhere_is_not_called_out_of_reach() {
    let mut random = Random::new(3);
    let answered = |is_disturbed| Outcome::Answered {
        operations: 200,
        above: if is_disturbed { 60 } else { 0 },
        quantile_s: 0.02,
        mean_s: 0.01,
    };
    let (answer, _) = search(&BOUND, |rate_per_s, seconds| {
        let _ = random.unit();
        Probe { rate_per_s, seconds, outcome: answered(true), disturbed: Some(Disturbance::Others) }
    });
    assert!(matches!(answer.ending, Ending::Disturbed { by_hypervisor: 0, .. }) && answer.line.is_none(), "{answer:?}");
}

#[test]
fn a_line_that_was_confirmed_stays_where_higher_rates_cannot_be_driven() {
    let mut random = Random::new(3);
    let (mut lost, mut given) = (false, 0);
    let (answer, _) = search(&BOUND, |rate, seconds| {
        // From the first loss on, no rate but the line is driven.
        lost |= rate > 800.0;
        given += 1;
        let outcome = Outcome::NotDriven { is_saturated: false };
        match lost && given > 40 && rate > 700.0 {
            true => Probe { rate_per_s: rate, seconds, outcome, disturbed: None },
            false => beside_others(&MM1, 1.0, rate, seconds, &mut random),
        }
    });
    assert!(answer.line.is_some_and(|line| line.is_verified && line.rate_per_s < 770.0), "{:?}", answer.ending);
}
