//! The admission machines against a simulated database: load from 0 to 3 × capacity, and capacity halved midway. They settle
//! without oscillation and keep the bound.

use super::gate::{GateState, Turn, Usage};
use super::governor::{ModelLine, State};
use super::limit::Limit;
use super::rate::{Bucket, Residuals};
use crate::recorder::config::AdmissionConfig;

const BOUND_S: f64 = 0.1;
const MOST: u32 = 20_000;

/// A database that takes a fixed time for each transaction, 1 ms at first, and then this many rows a second, ± 20 %.
struct SimulatedDatabase {
    rows_per_s: f64,
    /// The time of each commit besides its rows, in seconds.
    commit_s: f64,
    state: u64,
}

impl SimulatedDatabase {
    fn commit_s(&mut self, rows: u64) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = 0.8 + 0.4 * (self.state >> 40) as f64 / (1_u64 << 24) as f64;
        (self.commit_s + rows as f64 / self.rows_per_s) * spread
    }
}

/// The observations of a phase.
#[derive(Debug, Default)]
struct Seen {
    commits: u32,
    above: u32,
    windows: Vec<f64>,
    rows: f64,
    lasted_s: f64,
    flips: u32,
    spooled_max: f64,
}

struct Simulation {
    database: SimulatedDatabase,
    limit: Limit,
    gate: GateState,
    spooled: f64,
    spool_rows: f64,
    now_s: f64,
}

impl Simulation {
    fn new(rows_per_s: f64) -> Self {
        Simulation {
            database: SimulatedDatabase { rows_per_s, commit_s: 0.001, state: 7 },
            limit: Limit::new(MOST, 0.99, BOUND_S),
            gate: GateState::default(),
            spooled: 0.0,
            spool_rows: 500_000.0,
            now_s: 0.0,
        }
    }

    /// Rows arrive at a rate in requests of 100, from 20 sources, while one writer drains.
    fn run(&mut self, arrivals_per_s: f64, seconds: f64) -> Seen {
        let mut seen = Seen::default();
        let end_s = self.now_s + seconds;
        let mut source = 0;
        while self.now_s < end_s {
            let rows = self.spooled.min(f64::from(self.limit.rows())).floor();
            let took_s = if rows >= 1.0 { self.database.commit_s(rows as u64) } else { 0.005 };
            if rows >= 1.0 {
                self.limit.observe(rows as u64, took_s);
                seen.commits += 1;
                seen.above += u32::from(took_s > BOUND_S);
                seen.windows.push(f64::from(self.limit.rows()));
            }
            self.spooled -= rows;
            seen.rows += rows;
            for _ in 0..(arrivals_per_s * took_s / 100.0).round() as u32 {
                let was_closed = self.gate.is_closed();
                let usage = Usage { filled: self.spooled / self.spool_rows, empties_per_s: 0.0 };
                source = (source + 1) % 20;
                if self.gate.ask(&source.to_string(), 100, usage, self.now_s) == Turn::In {
                    self.spooled += 100.0;
                }
                seen.flips += u32::from(was_closed != self.gate.is_closed());
            }
            seen.spooled_max = seen.spooled_max.max(self.spooled);
            self.now_s += took_s;
        }
        seen.lasted_s = seconds;
        seen
    }
}

fn assert_bound_is_kept(seen: &Seen) {
    let share = f64::from(seen.above) / f64::from(seen.commits);
    assert!(share < 0.02, "{share} of {} commits took longer than the bound", seen.commits);
}

/// Returns the median of the windows, and how far they spread around it.
fn middle_and_spread(windows: &[f64]) -> (f64, f64) {
    let mut sorted = windows.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    (at(0.5), (at(0.95) - at(0.05)) / at(0.5))
}

#[test]
fn from_no_load_to_three_times_capacity_the_bound_holds_and_the_spool_is_bounded() {
    let capacity = 50_000.0;
    let mut simulation = Simulation::new(capacity);
    for times in [0.0, 0.3, 0.7, 0.9, 1.5, 3.0] {
        simulation.run(times * capacity, 20.0);
        let seen = simulation.run(times * capacity, 120.0);
        if times == 0.0 {
            assert_eq!(seen.commits, 0);
            continue;
        }
        assert_bound_is_kept(&seen);
        assert!(seen.spooled_max <= 500_000.0);
        let carried = seen.rows / seen.lasted_s / capacity;
        assert!((carried - times.min(0.97)).abs() < 0.06 || times > 1.0 && carried > 0.85, "{times}: {carried}");
        if times > 1.0 {
            let (_, spread) = middle_and_spread(&seen.windows);
            assert!(spread < 0.6, "the window swings by {spread} at {times}");
            // From 75 to 90 % takes 75,000 rows: the gate cannot change more often than that.
            assert!(f64::from(seen.flips) <= 2.0 * seen.lasted_s * 2.0 * capacity / 75_000.0 + 2.0, "{}", seen.flips);
        }
    }
}

#[test]
fn when_capacity_is_halved_the_window_settles_at_half() {
    let mut simulation = Simulation::new(50_000.0);
    simulation.run(150_000.0, 60.0);
    let (before, _) = middle_and_spread(&simulation.run(150_000.0, 60.0).windows);
    simulation.database.rows_per_s = 25_000.0;
    let first = simulation.run(150_000.0, 3.0);
    assert!(f64::from(first.above) < 12.0, "it takes {} commits to notice", first.above);
    simulation.run(150_000.0, 20.0);
    let seen = simulation.run(150_000.0, 120.0);
    let (after, spread) = middle_and_spread(&seen.windows);
    assert_bound_is_kept(&seen);
    assert!((after / before - 0.5).abs() < 0.1 && spread < 0.6, "{before} {after} {spread}");
    simulation.database.rows_per_s = 50_000.0;
    simulation.run(150_000.0, 60.0);
    let (again, _) = middle_and_spread(&simulation.run(150_000.0, 60.0).windows);
    assert!((again / before - 1.0).abs() < 0.1, "and comes back: {before} {again}");
}

fn wait_s(bucket: &mut Bucket, now_s: f64) -> f64 {
    let ticket = bucket.take(1_000, now_s);
    bucket.wait_s(ticket, now_s)
}

#[test]
fn a_rate_from_a_model_is_kept_and_a_stale_model_is_noticed() {
    let mut bucket = Bucket::new(30_000.0, 1_000);
    let mut residuals = Residuals::default();
    let mut database = SimulatedDatabase { rows_per_s: 50_000.0, commit_s: 0.001, state: 3 };
    let expected_s = 0.021;
    let (mut now_s, mut rows, mut stale_at_s) = (0.0, 0.0, None);
    while now_s < 120.0 {
        if now_s > 60.0 {
            database.rows_per_s = 12_500.0;
        }
        if stale_at_s.is_none() {
            now_s += wait_s(&mut bucket, now_s);
        }
        let (second, mut sum_s, mut commits) = (now_s, 0.0, 0.0);
        while now_s < second + 1.0 {
            let took_s = database.commit_s(1_000);
            (sum_s, commits, rows) = (sum_s + took_s, commits + 1.0, rows + 1_000.0);
            now_s += took_s + if stale_at_s.is_none() { wait_s(&mut bucket, now_s + took_s) } else { 0.0 };
        }
        residuals.observe(sum_s / commits, expected_s);
        if now_s < 60.0 {
            assert!(!residuals.is_stale());
            assert!((rows / now_s / 30_000.0 - 1.0).abs() < 0.1 || now_s < 5.0, "{}", rows / now_s);
        } else if residuals.is_stale() && stale_at_s.is_none() {
            stale_at_s = Some(now_s);
        }
    }
    assert!(stale_at_s.is_some_and(|at_s| at_s < 75.0), "{stale_at_s:?}");
}

fn model_of(rows_per_s: f64) -> ModelLine {
    // 1 ms and then the rows, behind a queue as in M/M/1.
    let mean_s =
        move |rate: f64| if rate < rows_per_s { 0.021 / (1.0 - rate / rows_per_s).max(0.3) } else { f64::INFINITY };
    ModelLine { batch_rows: 1_000, rows_per_s: 0.6 * rows_per_s, mean_s: Box::new(mean_s), from: String::new() }
}

/// Runs the governor with a model in front of a database, while there is always more to write.
fn govern(governor: &mut State, database: &mut SimulatedDatabase, now_s: &mut f64, seconds: f64) -> Seen {
    let (mut seen, end_s) = (Seen { lasted_s: seconds, ..Seen::default() }, *now_s + seconds);
    while *now_s < end_s {
        let rows = u64::from(governor.view().window_rows);
        if let Some(ticket) = governor.take(rows, *now_s) {
            *now_s += governor.wait_s(ticket, *now_s);
        }
        let took_s = database.commit_s(rows);
        *now_s += took_s;
        governor.observe(rows, took_s, *now_s);
        seen.commits += 1;
        seen.above += u32::from(took_s > BOUND_S);
        seen.rows += rows as f64;
        seen.windows.push(f64::from(governor.view().window_rows));
    }
    seen
}

#[test]
fn when_a_model_is_stale_the_window_keeps_the_bound_until_the_model_holds_again() {
    let config = AdmissionConfig { model: None, quantile: 0.99, below: std::time::Duration::from_secs_f64(BOUND_S) };
    let mut governor = State::new(&config, MOST, Some(model_of(50_000.0)));
    let (mut database, mut now_s) = (SimulatedDatabase { rows_per_s: 50_000.0, commit_s: 0.001, state: 11 }, 0.0);
    let modelled = govern(&mut governor, &mut database, &mut now_s, 60.0);
    assert!((modelled.rows / 60.0 / 30_000.0 - 1.0).abs() < 0.1, "it keeps the line: {}", modelled.rows / 60.0);
    assert!(!governor.view().is_stale && governor.view().window_rows == 1_000);
    // Five times as slow: the line is above what the database carries.
    database.rows_per_s = 10_000.0;
    govern(&mut governor, &mut database, &mut now_s, 20.0);
    assert!(governor.view().is_stale && governor.view().window_rows < 1_000);
    govern(&mut governor, &mut database, &mut now_s, 30.0);
    let adaptive = govern(&mut governor, &mut database, &mut now_s, 120.0);
    assert_bound_is_kept(&adaptive);
    let (_, spread) = middle_and_spread(&adaptive.windows);
    assert!(spread < 0.6 && adaptive.rows / 120.0 > 8_500.0, "{spread} {}", adaptive.rows / 120.0);
    database.rows_per_s = 50_000.0;
    govern(&mut governor, &mut database, &mut now_s, 60.0);
    assert!(!governor.view().is_stale, "it is trusted again");
    let again = govern(&mut governor, &mut database, &mut now_s, 60.0);
    assert!((again.rows / 60.0 / 30_000.0 - 1.0).abs() < 0.1, "{}", again.rows / 60.0);
}

#[test]
fn a_database_whose_commits_take_longer_than_was_measured_gets_no_more_than_was_measured() {
    let config = AdmissionConfig { model: None, quantile: 0.99, below: std::time::Duration::from_secs_f64(BOUND_S) };
    let mut governor = State::new(&config, MOST, Some(model_of(50_000.0)));
    // Each commit is slow, but large ones carry more than the line all the same.
    let mut database = SimulatedDatabase { rows_per_s: 200_000.0, commit_s: 0.060, state: 5 };
    let mut now_s = 0.0;
    govern(&mut governor, &mut database, &mut now_s, 30.0);
    assert!(governor.view().is_stale);
    let seen = govern(&mut governor, &mut database, &mut now_s, 120.0);
    assert!(seen.rows / 120.0 < 30_000.0 * 1.02, "{} rows/s", seen.rows / 120.0);
    assert_bound_is_kept(&seen);
}

#[test]
fn a_greedy_source_takes_no_room_from_modest_ones_at_three_times_capacity() {
    let capacity = 50_000.0;
    let (mut gate, mut spooled, spool_rows) = (GateState::default(), 0.0_f64, 500_000.0);
    let (mut modest, mut greedy) = ([0_u32; 2], [0_u32; 2]);
    // In steps of 10 ms: nine modest sources that together send a fifth of capacity, and one that sends three times capacity.
    for step in 0..20_000 {
        let now_s = f64::from(step) / 100.0;
        let usage = Usage { filled: spooled / spool_rows, empties_per_s: 0.0 };
        let mut ask = |source: &str, rows: f64, seen: &mut [u32; 2]| {
            let is_in = gate.ask(source, rows as u64, usage, now_s) == Turn::In;
            spooled += if is_in { rows } else { 0.0 };
            if step > 5_000 {
                seen[usize::from(is_in)] += 1;
            }
        };
        (0..9).for_each(|source| ask(&format!("modest {source}"), 0.2 * capacity / 9.0 / 100.0, &mut modest));
        ask("greedy", 3.0 * capacity / 100.0, &mut greedy);
        spooled = (spooled - capacity / 100.0).max(0.0);
        assert!(spooled <= spool_rows);
    }
    assert_eq!(modest[0], 0, "no modest source was ever turned away");
    assert!(greedy[0] > greedy[1], "{greedy:?}: the greedy one waits");
    assert!(greedy[1] > 3_000, "{greedy:?}: and has what is left");
}
