//! loadline beside its peers: client CPU per operation, throughput and resident memory of sysbench on MariaDB and of pgbench on
//! PostgreSQL, the same statement or transaction on the same table, in alternating runs.
//!
//! Where client and server are started from decides how the kernel divides the CPUs between them, so each comparison is made in four
//! arrangements: `session` (both in one session, as from one shell, over a unix socket), `own` (each in a session of its own, as an
//! init system starts servers, over a unix socket), `tcp` (likewise, over TCP) and `tls` (likewise, with TLS and the server's certificate verified).
//!
//! `cargo bench --bench peers` runs everything, `cargo bench --bench peers -- mariadb select 8 own` a part; `cargo bench --bench peers
//! -- databases` compares instead how many times as many transactions PostgreSQL carries as MariaDB, by loadline and by its peers,
//! with all four sides in each round, once on all CPUs, where a client's own work is taken from the server, and once with the servers on the first CPU and the
//! clients on the last. pgbench has a thread for each connection there, as sysbench has. `ROUNDS` and `SECONDS` in the environment change the number and the length of the runs. Needs
//! the Debian packages sysbench, mariadb-server and postgresql. The CPU time is that of the whole process as the kernel accounts it,
//! from its start to its end.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "../shared/mod.rs"]
mod shared;
mod subject;
mod transaction;

use shared::process::Usage;
use shared::ratio::{from_environment, median_of, ratios, show};
use subject::{Peer, Prepared, Subject, subjects};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rounds = from_environment("ROUNDS", 7.0) as usize;
    // sysbench and pgbench take whole seconds only.
    let seconds = from_environment("SECONDS", 4.0).round().max(1.0);
    println!(
        "{rounds} rounds of {seconds} s each side, alternating; median [95 % interval of the median] of the rounds\n"
    );
    if wanted.iter().any(|word| word == "databases") {
        return compare_databases(rounds, seconds);
    }
    println!(
        "{:<34} {:>9} {:>9}  {:<22} {:<22} {:>9} {:>9}  loop",
        "statement, connections, arrangement", "ours", "peer", "CPU ratio", "throughput ratio", "ours", "peer"
    );
    println!(
        "{:<34} {:>9} {:>9}  {:<22} {:<22} {:>9} {:>9}",
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
        let server = Prepared::start(peer);
        for subject in chosen {
            compare(&server, &subject, rounds, seconds);
        }
    }
}

fn compare(server: &Prepared, subject: &Subject, rounds: usize, seconds: f64) {
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
        "{:<34} {:>9.2} {:>9.2}  {:<22} {:<22} {:>9.1} {:>9.1}  {driver}",
        subject.name(),
        median_of(&ours, Usage::cpu_us_per_operation),
        median_of(&peers, Usage::cpu_us_per_operation),
        show(&ratios(&ours, &peers, Usage::cpu_us_per_operation)),
        show(&ratios(&ours, &peers, Usage::operations_per_s)),
        median_of(&ours, Usage::memory_mib),
        median_of(&peers, Usage::memory_mib),
    );
}

/// The transaction on both databases, by both sides.
fn compare_databases(rounds: usize, seconds: f64) {
    let all = affinity();
    for are_apart in [false, true] {
        // Who is started keeps to the CPUs of whoever starts it.
        let (first, last) = if are_apart { (only(&all, 0), only(&all, usize::MAX)) } else { (all, all) };
        keep_to(&first);
        let servers = [Peer::Sysbench, Peer::Pgbench].map(Prepared::start);
        keep_to(&last);
        compare_databases_on(&servers, are_apart, rounds, seconds);
        keep_to(&all);
    }
}

/// The CPUs that this thread may use.
fn affinity() -> libc::cpu_set_t {
    // SAFETY: all zero bytes are a valid set, and the call writes no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0, "the CPUs can be asked for");
        set
    }
}

/// One CPU of a set, by its place, or the last one.
fn only(all: &libc::cpu_set_t, place: usize) -> libc::cpu_set_t {
    // SAFETY: CPUs are asked for and set within the set's size; all zero bytes are a valid set.
    unsafe {
        let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, all)).collect();
        assert!(cpus.len() > 1, "servers and clients need a CPU each");
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[place.min(cpus.len() - 1)], &mut one);
        one
    }
}

/// From now on this thread, and whatever it starts, keeps to some CPUs.
fn keep_to(cpus: &libc::cpu_set_t) {
    // SAFETY: the call reads no more than the set's size.
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(cpus), cpus) }, 0, "the CPUs can be chosen");
}

fn compare_databases_on(servers: &[Prepared; 2], are_apart: bool, rounds: usize, seconds: f64) {
    let cpus = if are_apart { "servers on one CPU, clients on another" } else { "all CPUs for all" };
    println!("the transaction of {}, PostgreSQL / MariaDB, {cpus}", transaction::DESCRIPTION);
    println!("{:<34} {:<22} {:<22} {:<22}", "connections, arrangement", "loadline", "peers", "loadline / peers");
    for connections in [1, 8, 64] {
        let both = [Peer::Sysbench, Peer::Pgbench].map(|peer| Subject::transaction(peer, connections));
        let (mut ours, mut peers) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for round in 0..rounds {
            // The four sides take turns at being first.
            for side in 0..4 {
                let side = (round + side) % 4;
                let (server, subject) = (&servers[side % 2], &both[side % 2]);
                if side < 2 {
                    ours[side].push(server.run_ours(subject, seconds).usage);
                } else {
                    peers[side - 2].push(server.run_peer(subject, seconds));
                }
            }
        }
        let of = |sides: &[Vec<Usage>; 2]| ratios(&sides[1], &sides[0], Usage::operations_per_s);
        let (both_ours, both_peers) = (ours, peers);
        let (ours, peers) = (of(&both_ours), of(&both_peers));
        let between: Vec<f64> = ours.iter().zip(&peers).map(|(a, b)| a / b).collect();
        println!(
            "{:<34} {:<22} {:<22} {:<22}",
            format!("{connections} own"),
            show(&ours),
            show(&peers),
            show(&between)
        );
        let side = |usage: &[Usage]| {
            let (rate, cost) =
                (median_of(usage, Usage::operations_per_s), median_of(usage, Usage::cpu_us_per_operation));
            format!("{rate:.0}/s with {:.2} CPUs", rate * cost / 1e6)
        };
        for (who, sides) in [("loadline", &both_ours), ("peers", &both_peers)] {
            println!("  {who}: PostgreSQL {}, MariaDB {} of the client", side(&sides[1]), side(&sides[0]));
        }
    }
}
