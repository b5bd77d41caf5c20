//! loadline beside its peers: client CPU per operation, throughput and resident memory of sysbench on MariaDB and of pgbench on
//! PostgreSQL, the same statement on the same table over a unix socket, in alternating runs.
//!
//! `cargo bench --bench peers` runs everything, `cargo bench --bench peers -- mariadb select 8` a part; `ROUNDS` and `SECONDS`
//! in the environment change the number and the length of the runs. Needs the Debian packages sysbench, mariadb-server and
//! postgresql. The CPU time is that of the whole process as the kernel accounts it, from its start to its end.

#[path = "../shared/mod.rs"]
mod shared;
mod subject;

use shared::process::Usage;
use shared::ratio::{from_environment, median_of, ratios, show};
use subject::{Peer, Subject, subjects};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rounds = from_environment("ROUNDS", 7.0) as usize;
    // sysbench and pgbench take whole seconds only.
    let seconds = from_environment("SECONDS", 4.0).round().max(1.0);
    println!(
        "{rounds} rounds of {seconds} s each side, alternating; median [95 % interval of the median] of the rounds\n"
    );
    println!(
        "{:<26} {:>9} {:>9}  {:<22} {:<22} {:>9} {:>9}  loop",
        "statement, connections", "ours", "peer", "CPU ratio", "throughput ratio", "ours", "peer"
    );
    println!(
        "{:<26} {:>9} {:>9}  {:<22} {:<22} {:>9} {:>9}",
        "", "µs/op", "µs/op", "ours / peer", "ours / peer", "MiB", "MiB"
    );
    for peer in [Peer::Sysbench, Peer::Pgbench] {
        let chosen: Vec<Subject> = subjects(peer)
            .into_iter()
            .filter(|subject| wanted.iter().all(|word| subject.name().split(' ').any(|part| part == word)))
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let server = subject::Prepared::start(peer);
        for subject in chosen {
            compare(&server, &subject, rounds, seconds);
        }
    }
}

fn compare(server: &subject::Prepared, subject: &Subject, rounds: usize, seconds: f64) {
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    let mut driver = String::new();
    for round in 0..rounds {
        // Which side comes first alternates, so that neither always finds the caches of the other.
        for side in 0..2 {
            if (round + side) % 2 == 0 {
                let trial = server.run_ours(subject, seconds);
                driver = trial.driver;
                ours.push(trial.usage);
            } else {
                peers.push(server.run_peer(subject, seconds));
            }
        }
    }
    println!(
        "{:<26} {:>9.2} {:>9.2}  {:<22} {:<22} {:>9.1} {:>9.1}  {driver}",
        subject.name(),
        median_of(&ours, Usage::cpu_us_per_operation),
        median_of(&peers, Usage::cpu_us_per_operation),
        show(&ratios(&ours, &peers, Usage::cpu_us_per_operation)),
        show(&ratios(&ours, &peers, Usage::operations_per_s)),
        median_of(&ours, Usage::memory_mib),
        median_of(&peers, Usage::memory_mib),
    );
}
