//! The recorder against the bare bulk path of the same database, in the same run. Rows have 61 columns (13 tags, 48 fields), layout `star`.
//!
//! `cargo bench --bench recorder` runs everything, `cargo bench --bench recorder -- sqlite minute` a part:
//!
//! - `ratio`: batches of 1,000 rows over HTTP from 8 clients, each of which sends its next one after the answer, until the last row is
//!   committed; in turns with the bare bulk path, `ROUNDS` (5) times, `ROUND_SECONDS` (5) each;
//! - `minute`: the same batches at `RATE` (60,000) rows a second, whatever the answers are, for `LASTS` (60) seconds;
//! - `sources`: single rows from 350 sources at 20 a second each, for `LASTS` (60) seconds.
//!
//! `-- refused`, alone or with names of databases, measures instead what rows cost that the database refuses: batches of 1,000 rows of four fields from 4
//! clients, with none, one in 100 and every second one bad, in turns, `ROUNDS` times, `BATCHES` (100) each. PostgreSQL is measured where it is named.
//!
//! `-- dashboard` measures instead how long ten panels of a dashboard take over Prometheus's HTTP API while single rows come in, and `-- index` what the index on
//! source and time costs, `-- retention` what deleting old rows meanwhile costs (`dashboard.rs`, `index.rs` and `retention.rs` have their settings). PostgreSQL is measured where it is named.
//!
//! `WRITERS` (1) says how many writers the recorder has.
//!
//! Every part ends with a count of the rows in the database. Nothing here passes or fails by time. Needs MariaDB's package.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

mod bare;
mod clients;
mod dashboard;
mod index;
mod process;
mod refused;
mod retention;
#[path = "../shared/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses what it needs")]
mod shared;

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline::database::{self, Endpoint};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

use clients::{BATCH, CLIENTS, FIELDS, Load, PER_SOURCE_S, SOURCES, Sent, TAGS};
use process::Recorder;
use shared::ratio::{from_environment, median, show};

/// A database that is written to, with what a recorder is told about it.
struct Target {
    name: &'static str,
    settings: DatabaseSettings,
    server: Option<Server>,
    /// The lines of the recorder's configuration.
    lines: String,
    directory: PathBuf,
}

impl Target {
    fn start(name: &'static str, directory: &Path) -> Self {
        let directory = directory.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut settings = DatabaseSettings { name: name.to_owned(), ..DatabaseSettings::default() };
        let recipe = database::find(name).unwrap().recipe;
        let server = recipe.map(|recipe| Server::start(recipe, &settings, None).unwrap());
        let lines = match server.as_ref().map(Server::endpoint) {
            None => {
                let path = directory.join("measurements.db").display().to_string();
                settings.path = Some(path.clone());
                format!("path = \"{path}\"")
            }
            Some(Endpoint { user, password, database, tcp, .. }) => {
                let (host, port) = tcp.clone().unwrap();
                let scheme = if name == "postgres" { "postgres" } else { "mysql" };
                format!("name = \"{name}\"\nurl = \"{scheme}://{user}:{password}@{host}:{port}/{database}\"")
            }
        };
        Target { name, settings, server, lines, directory }
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        self.server.as_ref().map(Server::endpoint)
    }

    /// Rows a second of the bare bulk path; where the database is a file, one of its own, so that neither inherits the other's pages.
    fn bare(&self, lasts: Duration, refers: bool) -> f64 {
        let file = self.directory.join("bare.db").display().to_string();
        let mut settings = self.settings.clone();
        settings.path = settings.path.map(|_| file.clone());
        let rows_per_s = bare::rows_per_s(&settings, self.endpoint(), lasts, refers);
        for suffix in ["", "-wal", "-shm"] {
            // Where there is a server there is no file.
            let _ = std::fs::remove_file(format!("{file}{suffix}"));
        }
        rows_per_s
    }

    /// Whether the database has what was acknowledged, and the recorder's counters say so.
    fn check(&self, recorder: &Recorder, acknowledged: usize) {
        self.check_of(recorder, acknowledged, 0);
    }

    /// As `check`, where the recorder has also stored so many rows of other measurements.
    fn check_of(&self, recorder: &Recorder, acknowledged: usize, others: usize) {
        recorder.drained();
        let counts = recorder.counts();
        let entry = database::find(self.name).unwrap();
        let mut session = entry.open_sql(&self.settings, self.endpoint()).unwrap().connect().unwrap();
        let answer = session.query("SELECT COUNT(*) FROM qos_values").unwrap();
        let stored: usize = answer[0][0].as_ref().unwrap().parse().unwrap();
        let all = (counts.acknowledged, counts.committed, counts.spooled, counts.quarantined);
        let rows = (acknowledged + others) as f64;
        assert_eq!((stored, all), (acknowledged, (rows, rows, 0.0, 0.0)), "rows are missing or too many");
        println!("{}: {stored} rows acknowledged, {stored} in the database", self.name);
    }
}

fn seconds(name: &str, default: f64) -> Duration {
    Duration::from_secs_f64(from_environment(name, default))
}

/// Batches as fast as they are answered, in turns with the bare bulk path; how many rows were acknowledged.
fn ratio(target: &Target, recorder: &Recorder) -> usize {
    let (rounds, lasts) = (from_environment("ROUNDS", 5.0) as usize, seconds("ROUND_SECONDS", 5.0));
    let bare = || [true, false].map(|refers| target.bare(lasts, refers));
    let (mut acknowledged, mut rates, mut bares, mut cpu) = (0, Vec::new(), vec![bare()], Vec::new());
    for _ in 0..rounds {
        let before_s = recorder.cpu_s();
        let sent = Load { senders: CLIENTS, batch: BATCH, per_s: None, lasts, at_ns: None }.send(recorder.http);
        let seconds = sent.elapsed_s + recorder.drained();
        acknowledged += sent.rows;
        rates.push(sent.rows as f64 / seconds);
        cpu.push((recorder.cpu_s() - before_s) * 1e6 / sent.rows as f64);
        bares.push(bare());
    }
    println!(
        "{}: batches of {BATCH} rows of {} columns over HTTP, to the last commit: {:.0} rows/s, {:.1} µs of the recorder's CPU a row",
        target.name,
        TAGS + FIELDS,
        median(&rates),
        median(&cpu),
    );
    for (place, name) in ["with the recorder's foreign key", "without it"].into_iter().enumerate() {
        let bares: Vec<_> = bares.iter().map(|both| both[place]).collect();
        let around = bares.windows(2);
        let ratios: Vec<_> = rates.iter().zip(around).map(|(rate, bare)| 2.0 * rate / (bare[0] + bare[1])).collect();
        println!(
            "  bare bulk path {name}: {:.0} rows/s; ratio {} (median of {rounds} rounds [95 % interval, or smallest and largest])",
            median(&bares),
            show(&ratios)
        );
        println!("    rounds: {rates:.0?} rows/s, bare {bares:.0?}");
    }
    acknowledged
}

fn tell(target: &Target, recorder: &Recorder, what: &str, lasts: Duration, sent: &Sent) -> usize {
    let left = recorder.counts().spooled;
    let drained_s = recorder.drained();
    println!(
        "{}: {what} for {:.0} s: {:.0} rows/s acknowledged, p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms from when they were due; {} requests \
         refused; {left:.0} rows in the buffer at the end, {drained_s:.2} s until it was empty",
        target.name,
        lasts.as_secs_f64(),
        sent.rows as f64 / sent.elapsed_s,
        sent.ms_at(0.5),
        sent.ms_at(0.99),
        sent.ms_at(1.0),
        sent.refused,
    );
    sent.rows
}

/// Batches at a rate.
fn minute(target: &Target, recorder: &Recorder) -> usize {
    let (rate, lasts) = (from_environment("RATE", 60_000.0), seconds("LASTS", 60.0));
    let per_s = Some(rate / (BATCH * CLIENTS) as f64);
    let sent = Load { senders: CLIENTS, batch: BATCH, per_s, lasts, at_ns: None }.send(recorder.http);
    tell(target, recorder, &format!("batches of {BATCH} rows at {rate:.0} rows/s"), lasts, &sent)
}

/// Single rows.
fn sources(target: &Target, recorder: &Recorder) -> usize {
    let lasts = seconds("LASTS", 60.0);
    let sent = Load { senders: SOURCES, batch: 1, per_s: Some(PER_SOURCE_S), lasts, at_ns: None }.send(recorder.http);
    tell(target, recorder, &format!("single rows from {SOURCES} sources at {PER_SOURCE_S}/s"), lasts, &sent)
}

type Part = fn(&Target, &Recorder) -> usize;

fn main() {
    const PARTS: [(&str, Part); 3] = [("ratio", ratio), ("minute", minute), ("sources", sources)];
    const DATABASES: [&str; 3] = ["sqlite", "mariadb", "postgres"];
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_refused = |word: &String| word == "refused";
    let has = |name: &str| words.iter().any(|word| word == name);
    let is_alone = |word: &String| ["refused", "dashboard", "index", "retention"].contains(&word.as_str());
    let is_part = |word: &String| PARTS.iter().any(|(name, _)| name == word) || is_alone(word);
    let is_known = |word: &String| DATABASES.contains(&word.as_str()) || is_part(word);
    assert!(
        words.iter().all(is_known),
        "say which of {DATABASES:?} and of ratio, minute, sources, refused, dashboard, index, retention: {words:?}"
    );
    let is_chosen = |name: &str, all: &[&str]| match words.iter().any(|word| all.contains(&word.as_str())) {
        true => words.iter().any(|word| word == name),
        false => name != "postgres",
    };
    let directory = std::env::temp_dir().join(format!("loadline-bench-recorder-{}", std::process::id()));
    for name in DATABASES.into_iter().filter(|name| is_chosen(name, &DATABASES)) {
        if has("index") {
            index::index(name, &directory);
            continue;
        }
        if has("retention") {
            retention::retention(name, &directory);
            continue;
        }
        let target = Target::start(name, &directory);
        let more = if has("dashboard") { "[query]\nlisten = \"127.0.0.1:0\"\n" } else { "" };
        let recorder = Recorder::start_with(&target.directory, &target.lines, more);
        if has("dashboard") {
            let acknowledged = dashboard::dashboard(&target, &recorder);
            target.check_of(&recorder, acknowledged, dashboard::STORED);
            recorder.stop();
            continue;
        }
        if words.iter().any(is_refused) {
            refused::refused(&target, &recorder);
            recorder.stop();
            continue;
        }
        let chosen = PARTS.iter().filter(|(name, _)| is_chosen(name, &PARTS.map(|(name, _)| name)));
        let acknowledged = chosen.map(|(_, part)| part(&target, &recorder)).sum();
        target.check(&recorder, acknowledged);
        println!("{name}: {:.0} MiB resident at most", recorder.resident_mib());
        recorder.stop();
    }
    // What is left there is in the temporary directory.
    let _ = std::fs::remove_dir_all(&directory);
}
