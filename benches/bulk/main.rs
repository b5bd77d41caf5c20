//! Bulk writing beside the least that another program can do: rows/s of `loadline run` (workload write, layout wide, 1000 rows a
//! transaction, one client) against a small program that has all rows prepared in memory before its clock starts. The same
//! server, table, rows and transactions, the table made anew before each run, in alternating runs.
//!
//! `cargo bench --bench bulk` runs everything, `cargo bench --bench bulk -- mariadb execute` a part; `ROUNDS` and `BATCHES` in the
//! environment change the number and the length of the runs. The references are a bulk execute and LOAD DATA LOCAL in
//! `mariadb_bulk.c`, binary COPY in `postgres_bulk.c`, and SQLite's C interface in `sqlite_reference.rs`. Needs the Debian
//! packages gcc, mariadb-server, libmariadb-dev, postgresql and libpq-dev.
//!
//! Rows/s count the measured phase only: of loadline that includes making the rows. CPU time and memory are those of the whole
//! process.

mod reference;
mod rows;
#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "../shared/mod.rs"]
mod shared;
mod sqlite_reference;
mod target;

use reference::Reference;
use shared::process::Usage;
use shared::ratio::{from_environment, median_of, ratios, show};
use target::Target;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [mode, file, batches] = &words[..]
        && mode == sqlite_reference::MODE
    {
        return sqlite_reference::run(file, batches.parse().expect("a number of batches"));
    }
    let rounds = from_environment("ROUNDS", 11.0) as usize;
    let batches = from_environment("BATCHES", 300.0) as u32;
    println!(
        "{rounds} rounds of {batches} transactions of {} rows each side, alternating after one that is discarded; median \
         [95 % interval of the median] of the rounds\n",
        rows::BATCH
    );
    println!("{:<18} {:>9} {:>9}  {:<20} {:>13} {:>13}", "reference", "ours", "other", "rows/s", "CPU µs/row", "MiB");
    println!(
        "{:<18} {:>9} {:>9}  {:<20} {:>6} {:>6} {:>6} {:>6}  loop",
        "", "rows/s", "rows/s", "ours / other", "ours", "other", "ours", "other"
    );
    for database in ["mariadb", "postgres", "sqlite"] {
        let chosen = |reference: &&Reference| {
            reference.database() == database
                && words.iter().all(|word| word == database || word == reference.statement())
        };
        let chosen: Vec<_> = reference::ALL.iter().filter(chosen).collect();
        if !chosen.is_empty() {
            let target = Target::start(database, batches);
            chosen.into_iter().for_each(|reference| compare(&target, *reference, rounds));
        }
    }
}

fn compare(target: &Target, reference: Reference, rounds: usize) {
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    let mut driver = String::new();
    for round in 0..=rounds {
        // Which side comes first alternates, so that neither always finds the caches and the log of the other.
        for side in 0..2 {
            if (round + side) % 2 == 0 {
                let trial = target.run_ours();
                driver = trial.driver;
                ours.push(trial.usage);
            } else {
                others.push(target.run_reference(reference));
            }
        }
    }
    let (ours, others) = (&ours[1..], &others[1..]);
    println!(
        "{:<18} {:>9.0} {:>9.0}  {:<20} {:>6.2} {:>6.2} {:>6.1} {:>6.1}  {driver}",
        format!("{} {}", reference.database(), reference.statement()),
        median_of(ours, Usage::operations_per_s),
        median_of(others, Usage::operations_per_s),
        show(&ratios(ours, others, Usage::operations_per_s)),
        median_of(ours, Usage::cpu_us_per_operation),
        median_of(others, Usage::cpu_us_per_operation),
        median_of(ours, Usage::memory_mib),
        median_of(others, Usage::memory_mib),
    );
}
