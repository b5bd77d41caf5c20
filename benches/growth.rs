//! How the cost of every command that reads files grows with what it reads: processor time and the most memory at four sizes, each twice the one before, and the exponent of each
//! (1 is in proportion, 2 its square) over the last three.
//!
//! `cargo bench --bench growth`, or `-- score` for one. A report of a run has `cargo bench --bench report`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should end there")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something that is read, and the arguments of the command that reads it.
struct Subject {
    name: &'static str,
    /// What there are so many of.
    of: &'static str,
    first: usize,
    make: fn(&Path, usize) -> Vec<String>,
}

const SUBJECTS: [Subject; 7] = [
    Subject { name: "score", of: "alternatives", first: 100, make: score },
    Subject { name: "compare", of: "variants on two machines", first: 25, make: compare },
    Subject { name: "fit", of: "numbers of clients", first: 100, make: fit },
    Subject { name: "fit-times", of: "single times", first: 100_000, make: fit_times },
    Subject { name: "import-pgbench", of: "seconds of a log, 20 lines each", first: 10_800, make: pgbench },
    Subject { name: "import-sysbench", of: "lines of a report", first: 20_000, make: sysbench },
    Subject { name: "study", of: "keys", first: 5_000, make: study },
];

fn main() {
    // Cargo adds `--bench`.
    if let Some(made) = std::env::var_os("MADE") {
        return make(&made.into_string().unwrap());
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    println!("| command | size | status | processor | memory at most |");
    println!("|---|---|---|---|---|");
    for subject in SUBJECTS.iter().filter(|subject| wanted.is_empty() || wanted.iter().any(|name| name == subject.name))
    {
        let sizes: Vec<usize> = (0..4).map(|step| subject.first << step).collect();
        let costs: Vec<(f64, f64)> = sizes.iter().map(|size| cost(subject, *size)).collect();
        let exponent = |figure: fn(&(f64, f64)) -> f64| (figure(&costs[3]) / figure(&costs[1])).log2() / 2.0;
        println!(
            "| {} | exponent | | {:.2} | {:.2} |",
            subject.name,
            exponent(|(seconds, _)| *seconds),
            exponent(|(_, bytes)| *bytes)
        );
    }
}

/// Writes what is read, and says the arguments of the command, a line each.
fn make(what: &str) {
    let parts: Vec<&str> = what.splitn(3, ' ').collect();
    let subject = SUBJECTS.iter().find(|subject| subject.name == parts[0]).unwrap();
    let arguments = (subject.make)(Path::new(parts[2]), parts[1].parse().unwrap());
    arguments.iter().for_each(|argument| println!("{argument}"));
}

/// What a command takes: seconds of processor, and bytes.
fn cost(subject: &Subject, size: usize) -> (f64, f64) {
    let directory = std::env::temp_dir().join(format!("loadline-growth-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    // A process begins with as much memory as the one had that it comes from, which therefore makes nothing large itself.
    let made = format!("{} {size} {}", subject.name, directory.display());
    let made = Command::new(std::env::current_exe().unwrap()).env("MADE", made).output().unwrap();
    let arguments = String::from_utf8(made.stdout).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    #[expect(clippy::zombie_processes, reason = "wait4 waits for it, and says what it took")]
    let child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut status, mut usage) = (0, no_usage());
    // SAFETY: the child is this process's own and was waited for by nobody; both places live until the call has ended.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    assert!(waited > 0, "the child ends");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let (cpu_s, bytes) = (seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss as f64 * 1024.0);
    let status = libc::WEXITSTATUS(status);
    println!("| {} | {size} {} | {status} | {cpu_s:.2} s | {:.0} MB |", subject.name, subject.of, bytes / 1e6);
    std::fs::remove_dir_all(&directory).unwrap();
    (cpu_s, bytes)
}

fn no_usage() -> libc::rusage {
    // SAFETY: it is made of numbers alone, for which 0 is a value.
    unsafe { std::mem::zeroed() }
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn score(directory: &Path, count: usize) -> Vec<String> {
    let (mut writes, mut reads) = ("alternative,throughput\n".to_owned(), "alternative,query,case,time_s\n".to_owned());
    for number in 0..count {
        let angle = std::f64::consts::FRAC_PI_2 * (number as f64 + 0.5) / count as f64;
        for repeat in [1.0, 1.01] {
            writeln!(writes, "a{number},{}", angle.sin() * repeat).unwrap();
            for query in 1..=3 {
                writeln!(reads, "a{number},{query},c,{}", (2.0 - angle.cos()) * repeat * f64::from(query)).unwrap();
            }
        }
    }
    let (writes, reads) = (write(directory, "w.csv", &writes), write(directory, "r.csv", &reads));
    words(&["score", "--writes", &writes, "--reads", &reads, "--json"])
}

fn compare(directory: &Path, count: usize) -> Vec<String> {
    let mut rows = "machine,case,variant,mean,sd,n\n".to_owned();
    for machine in ["one", "two"] {
        for number in 0..count {
            writeln!(rows, "{machine},c,v{number},{},1,5", 100 + number * 7 % 31).unwrap();
        }
    }
    words(&["compare", "--summaries", &write(directory, "s.csv", &rows)])
}

fn fit(directory: &Path, count: usize) -> Vec<String> {
    let mut rows = "workers,throughput\n".to_owned();
    for clients in 1..=count {
        // One server of 1 ms, 10 ms of thinking, and a little noise.
        let rate = (clients as f64 / 0.011).min(1_000.0) * (1.0 + (clients % 7) as f64 / 1_000.0);
        writeln!(rows, "{clients},{rate}").unwrap();
    }
    words(&["fit", "--points", &write(directory, "p.csv", &rows), "--json"])
}

fn fit_times(directory: &Path, count: usize) -> Vec<String> {
    let mut rows = "arrival_rate,time_s\n".to_owned();
    for number in 0..count {
        let (rate, place) = (100 * (1 + number % 5), (number as f64 + 0.5) / count as f64);
        writeln!(rows, "{rate},{:.9}", -(1.0 - place).ln() / (1_000.0 - rate as f64)).unwrap();
    }
    words(&["fit", "--points", &write(directory, "t.csv", &rows), "--json"])
}

fn pgbench(directory: &Path, seconds: usize) -> Vec<String> {
    let mut log = String::new();
    for second in 0..seconds {
        for number in 0..20 {
            let (client, time_us) = (number % 4, 900 + (second * 7 + number * 13) % 400);
            writeln!(log, "{client} {second} {time_us} 0 {} {:06}", 1_700_000_000 + second, number * 49_999).unwrap();
        }
    }
    let path = write(directory, "pgbench_log.1", &log);
    words(&["import", "pgbench", &path, "--out", &directory.join("run").display().to_string()])
}

fn sysbench(directory: &Path, lines: usize) -> Vec<String> {
    let whole = include_str!("../tests/import/sysbench/errors.txt");
    let (before, rest) = whole.split_once("[ 1s ]").unwrap();
    let end = rest.find("SQL statistics").unwrap();
    let mut report = before.to_owned();
    for second in 1..=lines {
        writeln!(
            report,
            "[ {second}s ] thds: 8 tps: 1712.38 qps: 35234.99 (r/w/o: 24811.97/6938.36/3484.66) lat (ms,95%): 7.98 err/s: 51.92 reconn/s: 0.00"
        )
        .unwrap();
    }
    report.push_str(&rest[end..]);
    let path = write(directory, "s.txt", &report);
    words(&["import", "sysbench", &path, "--out", &directory.join("run").display().to_string()])
}

fn study(directory: &Path, keys: usize) -> Vec<String> {
    let mut text = "version = 1\n".to_owned();
    for number in 0..keys {
        writeln!(text, "key{number} = {number}").unwrap();
    }
    words(&["plan", &write(directory, "s.toml", &text)])
}
