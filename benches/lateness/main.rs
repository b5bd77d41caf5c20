//! How late generators are: loadline's open loop beside `pgbench -R` on PostgreSQL, at 60 % of what 16 connections carry, the
//! same statement on the same table over a unix socket, in alternating runs of one go.
//!
//! `cargo bench --bench lateness`; `ROUNDS`, `SECONDS` and `SHARE` in the environment change the number and the length of the
//! runs and the share of capacity. Needs the Debian package postgresql. pgbench's schedule lag is the time from the scheduled
//! start of a transaction to its start, its own lateness and waiting for a connection together; loadline's schedule lag is the
//! same, and its generator lateness is the part of it in which a connection was free.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "../shared/mod.rs"]
mod shared;
mod sides;

use shared::ratio::{from_environment, show};
use sides::{Prepared, Run};

/// Connections of both sides.
const WORKERS: u32 = 16;

fn main() {
    let rounds = from_environment("ROUNDS", 7.0) as usize;
    let seconds = from_environment("SECONDS", 5.0);
    let share = from_environment("SHARE", 0.6);
    let server = Prepared::start();
    let capacity_per_s = server.capacity_per_s(seconds);
    let rate_per_s = (share * capacity_per_s).round();
    println!(
        "{WORKERS} connections carry {capacity_per_s:.0}/s; offered are {rate_per_s:.0}/s, {:.0} %, on {} CPUs",
        100.0 * share,
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    println!(
        "{rounds} rounds of {seconds} s each side, alternating; median [95 % interval of the median] of the rounds\n"
    );
    let (mut ours, mut peers): (Vec<Run>, Vec<Run>) = Default::default();
    for round in 0..rounds {
        // Which side comes first alternates, so that neither always finds the machine as the other left it.
        for side in 0..2 {
            if (round + side) % 2 == 0 {
                ours.push(server.run_ours(rate_per_s, seconds));
            } else {
                peers.push(server.run_pgbench(rate_per_s, seconds));
            }
        }
    }
    let line = |name: &str, runs: &[Run], figure: fn(&Run) -> f64| {
        println!("{name:<52} {}", show(&runs.iter().map(figure).collect::<Vec<_>>()));
    };
    line("loadline: generator lateness, median, µs", &ours, |run| run.late_us_median);
    line("loadline: generator lateness, mean, µs", &ours, |run| run.late_us_mean);
    line("loadline: schedule lag, median, µs", &ours, |run| run.lag_us_median);
    line("loadline: schedule lag, mean, µs", &ours, |run| run.lag_us_mean);
    line("pgbench -R: schedule lag, mean, µs", &peers, |run| run.lag_us_mean);
    let ratios: Vec<f64> = ours.iter().zip(&peers).map(|(a, b)| a.lag_us_mean / b.lag_us_mean).collect();
    println!("{:<52} {}", "ratio of mean schedule lags, loadline / pgbench", show(&ratios));
    println!();
    line("loadline: arrived more than asked for, %", &ours, |run| 100.0 * (run.offered_share - 1.0));
    line("loadline: completed more than asked for, %", &ours, |run| 100.0 * (run.carried_share - 1.0));
    line("pgbench -R: completed more than asked for, %", &peers, |run| 100.0 * (run.carried_share - 1.0));
}
