//! What a YCSB client costs: `cargo bench --bench ycsb`. First without a database, the choice of an operation and the making of a
//! record; then workload C and the load phase on a private MariaDB over TCP, with the CPU time that loadline itself takes for each
//! operation. Needs the package mariadb-server; `-- --pure` leaves the database out.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use loadline::record::Cells;
use loadline::trial::Settings;
use loadline::workload::{Client, Work};

const ROUNDS: usize = 7;
const COUNT: u64 = 1_000_000;
const ROWS: u64 = 100_000;

fn main() {
    println!("Median of {ROUNDS} rounds [least, most]");
    records();
    for (name, requests) in [
        ("ycsb-c", "uniform"),
        ("ycsb-c", "zipfian"),
        ("ycsb-c", "latest"),
        ("ycsb-c", "hotspot"),
        ("ycsb-c", "exponential"),
        ("ycsb-d", "latest"),
    ] {
        choices(name, requests);
    }
    if std::env::args().all(|argument| argument != "--pure") {
        measured("ycsb-c", "read", ROWS, "at most 5 µs and 95,000/s on two quiet CPUs");
        measured("ycsb-load", "insert", 0, "at most 10 µs");
    }
}

fn settings(name: &str) -> Settings {
    let mut settings = Settings::default();
    settings.record.type_name = "usertable".to_owned();
    settings.record.table = "usertable".to_owned();
    (settings.record.rows, settings.record.per_measurement) = (ROWS, 1);
    settings.layout.name = "wide".to_owned();
    (settings.workload.name, settings.workload.batch) = (name.to_owned(), 1);
    settings
}

/// Prints the time of a thing that was done `COUNT` times in each round.
fn print_times(what: &str, mut round: impl FnMut()) {
    let mut times_ns: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            round();
            begun.elapsed().as_secs_f64() * 1e9 / COUNT as f64
        })
        .collect();
    times_ns.sort_by(f64::total_cmp);
    println!("{what}: {:.1} ns [{:.1}, {:.1}]", times_ns[ROUNDS / 2], times_ns[0], times_ns[ROUNDS - 1]);
}

fn records() {
    let generator = loadline::data::build(&settings("ycsb-c").record).unwrap_or_else(|error| panic!("{error}"));
    let mut cells = Cells::new();
    print_times("a record, key and 10 fields of 100 characters", || {
        for record in 0..COUNT {
            cells.clear();
            generator.identity(record, 1, &mut cells);
            generator.values(black_box(record), &mut cells);
            black_box(&cells);
        }
    });
}

fn choices(name: &str, requests: &str) {
    let mut settings = settings(name);
    settings.workload.ycsb.requests = Some(requests.to_owned());
    let work = Work::new(&settings).unwrap_or_else(|error| panic!("{error}"));
    let client = Client { number: 0, of: 1, seed: 1 };
    let mut workload = work.workload(client).unwrap_or_else(|error| panic!("{error}"));
    let mut cells = Cells::new();
    print_times(&format!("the choice of an operation of {name}, {requests}"), || {
        for _ in 0..COUNT {
            black_box(workload.next(&mut cells));
            workload.done(true);
        }
    });
}

/// Runs a workload of the real binary and prints what an operation costs.
fn measured(name: &str, operation: &str, rows: u64, asked: &str) {
    let directory = std::env::temp_dir().join(format!("loadline-bench-ycsb-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
    // The disk is not what is looked at: commits are written, not synced.
    let study = format!(
        "name = \"ycsb\"\n[database]\nname = \"mariadb\"\nsocket = \"tcp\"\n\
         config = {{ innodb_flush_log_at_trx_commit = 2 }}\n[record]\ntype = \"usertable\"\nrows = {rows}\n\
         [layout]\nname = \"wide\"\n[workload]\nname = \"{name}\"\n[load]\nclients = 4\nduration = \"5s\"\n\
         [repeat]\nrule = \"fixed\"\nleast = {ROUNDS}\n"
    );
    let measurements = run(&directory, &study);
    let spread = |figure: &dyn Fn(&serde_json::Value) -> f64| {
        let mut figures: Vec<f64> = measurements.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        (figures[figures.len() / 2], figures[0], figures[figures.len() - 1])
    };
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let count = |trial: &serde_json::Value| number(&trial["operations"][operation]["completed"]);
    let cpu = spread(&|trial| number(&trial["client_cpu_s"]) / count(trial) * 1e6);
    let rate = spread(&|trial| count(trial) / number(&trial["measured_s"]));
    println!(
        "MariaDB over TCP, 4 connections, {name}: client CPU {:.2} µs [{:.2}, {:.2}] an operation, {:.0}/s [{:.0}, {:.0}]; asked for: {asked}",
        cpu.0, cpu.1, cpu.2, rate.0, rate.1, rate.2
    );
    // What is left behind is in the directory for temporary files.
    let _ = std::fs::remove_dir_all(&directory);
}

/// The stored trials of a study.
fn run(directory: &Path, study: &str) -> Vec<serde_json::Value> {
    let path = directory.join("study.toml");
    std::fs::write(&path, study).expect("the temporary directory can be written to");
    let out = directory.join("run");
    let output = Command::new(env!("CARGO_BIN_EXE_loadline")).arg("run").arg(&path).arg("--out").arg(&out).output();
    let output = output.expect("the binary can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(out.join("trials.jsonl")).expect("a run has trials");
    text.lines().map(|line| serde_json::from_str(line).expect("a trial is JSON")).collect()
}
