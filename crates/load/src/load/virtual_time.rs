//! Tests of clients, schedule and tally in virtual time, driven as loops drive them, against simulated servers: the
//! results of a trial of minutes are known exactly, and take milliseconds on any machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arrivals::{Process, Schedule};
use super::client::{Client, Next};
use super::phases::Phases;
use super::share::Share;
use super::source::Source;
use super::tally::Tally;
use crate::database::Answer;
use crate::operation::Operation;
use crate::queueing::fit::{Request as FitRequest, fit};
use crate::queueing::{Point, Points};
use crate::statement::Request;
use crate::statistics::random::Random;
use crate::statistics::summary::{mean, sample_sd};
use crate::trial::{Arrivals, Length};

const SECOND_NS: u64 = 1_000_000_000;

struct Reads;

impl Source for Reads {
    fn next(&mut self, _: &mut Request) -> Operation {
        Operation::Read { record: 0 }
    }
}

/// Drives clients until they are over. `server` returns for each operation, in the order of sending, when it is done.
fn drive(phases: &Phases, clients: u32, think_ns: u64, mut server: impl FnMut(u64) -> u64) -> Tally {
    let new = |number| (Client::new(number, Box::new(Reads), think_ns, 0, phases.measure_ns), false);
    let mut clients: Vec<(Client, bool)> = (0..clients).map(new).collect();
    let mut tally = Tally::new(phases.measure_ns, phases.end_ns);
    let mut due: BinaryHeap<Reverse<(u64, usize)>> = (0..clients.len()).map(|place| Reverse((0, place))).collect();
    while let Some(Reverse((now_ns, place))) = due.pop() {
        let (client, is_running) = &mut clients[place];
        if std::mem::take(is_running) {
            client.done(now_ns, &Ok(Answer::default()), &mut tally);
        }
        match client.next(now_ns, phases) {
            Next::Over => {}
            Next::Wait(until_ns) => due.push(Reverse((until_ns, place))),
            Next::Send => {
                client.sent(now_ns);
                *is_running = true;
                due.push(Reverse((server(now_ns), place)));
            }
        }
    }
    tally
}

/// A client that works for 7 ms on each answer of a server that takes 2 ms: every response time is 2 ms, and operations begin every 9 ms.
#[test]
fn what_a_client_does_with_an_answer_is_in_no_response_time() {
    const MS: u64 = 1_000_000;
    let phases = Phases::new(0, 0.0, Length::Seconds(1.0), 1.0);
    let mut client = Client::new(0, Box::new(Reads), 0, 0, 0);
    let mut tally = Tally::new(phases.measure_ns, phases.end_ns);
    let mut now_ns = 0;
    while client.next(now_ns, &phases) == Next::Send {
        client.sent(now_ns);
        let done_ns = now_ns + 2 * MS;
        client.postpone(done_ns + 7 * MS);
        client.done(done_ns, &Ok(Answer::default()), &mut tally);
        now_ns = match client.next(done_ns, &phases) {
            Next::Wait(until_ns) => until_ns,
            Next::Over => break,
            Next::Send => panic!("an operation begins although the client is at work"),
        };
    }
    let operations = tally.operations(&crate::operation::KindNames::default());
    assert_eq!(operations["read"].completed, 1000_u64.div_ceil(9));
    assert!((operations["read"].response_time.max_ns() as f64 / (2 * MS) as f64 - 1.0).abs() < 0.01);
}

fn open(arrivals: Arrivals, rate_per_s: f64, seed: u64, warmup_s: f64, length: Length) -> Phases {
    let phases = Phases::new(0, warmup_s, length, 1.0);
    let share = Share::WHOLE;
    let process = Process { arrivals, rate_per_s, profile: &[], trace_ns: &[], seed, share };
    let schedule = Schedule::new(process, 0, phases.measure_ns, length, 1);
    phases.with_schedule(schedule)
}

/// Returns the mean response time of all operations that count, in seconds.
fn mean_s(tally: &Tally) -> f64 {
    tally.operations(&crate::operation::KindNames::default())["read"].response_time.mean_ns() / 1e9
}

/// Returns the smallest time that is not exceeded by this share of all times.
fn nearest_rank(times_s: &[f64], share: f64) -> f64 {
    times_s[(share * times_s.len() as f64).ceil() as usize - 1]
}

/// 100 operations a second for 200 s, 1 ms each, at a server that is frozen from 100 s to 110 s. An open loop shows the ten seconds; a loop that
/// waits for each answer before it continues leaves a thousand operations out, and shows the freeze once.
#[test]
fn a_frozen_server_shows_in_an_open_loop_as_it_should_and_hides_in_a_closed_one() {
    let known: serde_json::Value = serde_json::from_str(include_str!("../../../../tests/known-answers.json")).unwrap();
    let expected = |name: &str| known["coordinated_omission"]["expected"][name].as_f64().unwrap();
    let assert_close = |found: f64, name: &str| {
        let expected = expected(name);
        assert!((found - expected).abs() <= 1e-6 * expected, "{name}: {found} instead of {expected}");
    };
    let frozen_ns = 100 * SECOND_NS..110 * SECOND_NS;
    let serve = |sent_ns: u64| if frozen_ns.contains(&sent_ns) { frozen_ns.end } else { sent_ns } + 1_000_000;
    let ascending = |mut times_s: Vec<f64>| {
        times_s.sort_by(f64::total_cmp);
        times_s
    };

    let mut times_s = Vec::new();
    let phases = open(Arrivals::Constant, 100.0, 0, 0.0, Length::Operations(20_000));
    let tally = drive(&phases, 1, 0, |sent_ns| {
        let intended_ns = 10_000_000 * (times_s.len() as u64 + 1);
        times_s.push((serve(sent_ns) - intended_ns) as f64 / 1e9);
        serve(sent_ns)
    });
    let times_s = ascending(times_s);
    assert_eq!(times_s.len() as f64, expected("open_n"));
    assert_close(mean_s(&tally), "open_mean");
    for (share, name) in [(0.5, "open_p50"), (0.9, "open_p90"), (0.99, "open_p99"), (1.0, "open_max")] {
        assert_close(nearest_rank(&times_s, share), name);
    }

    // A think time of 9 ms after each answer gives the same rate.
    let mut times_s = Vec::new();
    let tally = drive(&Phases::new(0, 0.0, Length::Seconds(200.0), 1.0), 1, 9_000_000, |sent_ns| {
        times_s.push((serve(sent_ns) - sent_ns) as f64 / 1e9);
        serve(sent_ns)
    });
    let times_s = ascending(times_s);
    assert_eq!(times_s.len() as f64, expected("closed_skip_n"));
    assert_close(mean_s(&tally), "closed_mean");
    for (share, name) in [(0.99, "closed_p99"), (0.999, "closed_p999"), (1.0, "closed_max")] {
        assert_close(nearest_rank(&times_s, share), name);
    }
}

/// Rates of an M/M/1 server with 1,000 per second behind a delay of 1.6 ms, as the paper's at one million tuples. A trial must be long compared with
/// the relaxation time of the queue, 1 / (µ (1 - √ρ)²): at the highest rate it is 37 of these. At a share of 0.8, where it would be 14, trial means
/// are so skewed that µ lay within its interval in 85 of 100.
const MU_PER_S: f64 = 1_000.0;
const DELTA_S: f64 = 0.0016;
const SHARES: [f64; 8] = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.7];
const TRIALS: u32 = 12;

/// Returns the mean response time of a trial with 64 workers, in seconds.
fn trial_mean_s(rate_per_s: f64, seed: u64) -> f64 {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut free_ns = 0.0_f64;
    let length = Length::Operations(1_000);
    let tally = drive(&open(Arrivals::Poisson, rate_per_s, seed, 0.3, length), 64, 0, |sent_ns| {
        let service_ns = -(1.0 - random.unit()).ln() / MU_PER_S * 1e9;
        free_ns = free_ns.max(sent_ns as f64) + service_ns;
        (free_ns + DELTA_S * 1e9) as u64
    });
    mean_s(&tally)
}

#[test]
fn the_engine_driven_at_eight_rates_gives_back_the_parameters_of_an_mm1_server_within_their_intervals() {
    let request = FitRequest { model: "mm1".to_owned(), ..FitRequest::default() };
    let (mut mu_held, mut delta_held) = (0, 0);
    for repetition in 0..100_u64 {
        let point = |(place, share): (usize, f64)| {
            let seed = |trial: u32| repetition * 1_000 + place as u64 * 100 + u64::from(trial);
            let rate_per_s = share * MU_PER_S;
            let trials: Vec<f64> = (0..TRIALS).map(|trial| trial_mean_s(rate_per_s, seed(trial))).collect();
            Point {
                arrival_rate_per_s: Some(rate_per_s),
                mean_s: mean(&trials),
                se_s: sample_sd(&trials).map(|sd| sd / f64::from(TRIALS).sqrt()),
                trials: Some(TRIALS),
                ..Point::default()
            }
        };
        let points = Points(SHARES.into_iter().enumerate().map(point).collect());
        let report = fit(&points, &request).unwrap();
        let holds = |name: &str, truth: f64| {
            let range = report.fits[0].parameter(name).unwrap().ci95.unwrap();
            u32::from(range.low <= truth && truth <= range.high)
        };
        mu_held += holds("mu_per_s", MU_PER_S);
        delta_held += holds("delta_s", DELTA_S);
    }
    assert!(mu_held >= 90, "mu lies within its 95 % interval in {mu_held} of 100");
    assert!(delta_held >= 90, "delta lies within its 95 % interval in {delta_held} of 100");
}
