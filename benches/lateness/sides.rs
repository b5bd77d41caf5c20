//! Both sides on one private PostgreSQL with pgbench's table.

use std::path::PathBuf;
use std::process::Command;

use loadline::database::postgres;
use loadline::histogram::Histogram;
use loadline::server::Server;
use loadline::store;
use loadline::trial::DatabaseSettings;

use crate::WORKERS;
use crate::shared::ours::{postgres_socket, url};
use crate::shared::process::{measure, run};

/// Rows of pgbench's table at scale 1.
const ROWS: u32 = 100_000;

/// What was seen in one run; what a side does not tell is not a number.
pub struct Run {
    pub late_us_median: f64,
    pub late_us_mean: f64,
    pub lag_us_median: f64,
    pub lag_us_mean: f64,
    pub offered_share: f64,
    pub carried_share: f64,
}

/// A server with the table.
pub struct Prepared {
    server: Server,
    directory: PathBuf,
}

impl Prepared {
    /// Starts a private server and lets pgbench make its table.
    pub fn start() -> Self {
        let mut settings = DatabaseSettings::default();
        settings.config.insert("shared_buffers".to_owned(), "128MB".to_owned());
        let server = Server::start(&postgres::recipe::POSTGRES, &settings, None);
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        let directory = std::env::temp_dir().join(format!("loadline-lateness-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
        let prepared = Prepared { server, directory };
        run(prepared.pgbench().args(["-i", "-s", "1", "-q"]));
        prepared
    }

    fn pgbench(&self) -> Command {
        let endpoint = self.server.endpoint();
        let (directory, port) = postgres_socket(endpoint);
        let mut command = Command::new("pgbench");
        command.env("PGHOST", directory).env("PGPORT", port);
        command.env("PGUSER", &endpoint.user).env("PGPASSWORD", &endpoint.password);
        command.env("PGDATABASE", &endpoint.database);
        command
    }

    fn selects(&self, seconds: f64) -> Command {
        let mut command = self.pgbench();
        let (workers, time) = (WORKERS.to_string(), format!("{seconds:.0}"));
        command.args(["-S", "-M", "prepared", "-n", "-j", "1", "-c", &workers, "-T", &time]);
        command
    }

    /// Transactions per second that the connections carry without a pause, as pgbench measures it.
    pub fn capacity_per_s(&self, seconds: f64) -> f64 {
        number_after(&measure(&mut self.selects(seconds), || ()).0, "tps =")
    }

    /// pgbench at a rate: one thread for all connections, as loadline has one loop.
    pub fn run_pgbench(&self, rate_per_s: f64, seconds: f64) -> Run {
        let (text, _) = measure(self.selects(seconds).args(["-R", &rate_per_s.to_string()]), || ());
        Run {
            late_us_median: f64::NAN,
            late_us_mean: f64::NAN,
            lag_us_median: f64::NAN,
            lag_us_mean: 1e3 * number_after(&text, "rate limit schedule lag: avg"),
            offered_share: f64::NAN,
            carried_share: number_after(&text, "tps =") / rate_per_s,
        }
    }

    /// loadline at a rate.
    pub fn run_ours(&self, rate_per_s: f64, seconds: f64) -> Run {
        let study = format!(
            "name = \"lateness\"\n[database]\nname = \"postgres\"\nurl = \"{}\"\n[workload]\nname = \"sql\"\nstatements = [ {{ sql \
             = \"SELECT abalance FROM pgbench_accounts WHERE aid = ?\", weight = 1, params = [ {{ uniform = [1, {ROWS}] }} ] }} ]\n\
             [load]\narrivals = \"poisson\"\nrate = {rate_per_s}\nclients = {WORKERS}\nduration = \"{seconds}s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
            url("postgres", self.server.endpoint()),
        );
        let (path, out) = (self.directory.join("study.toml"), self.directory.join("run"));
        std::fs::write(&path, study).expect("the temporary directory can be written to");
        // It is there after the first run only.
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let prepare = || drop(std::fs::remove_dir_all(&out));
        measure(command.args(["run", "--json"]).arg(&path).arg("--out").arg(&out), prepare);
        let trial = store::Run::open(&out).expect("the run was written just now").measurements.remove(0);
        let mut lag = Histogram::new();
        trial.operations.values().for_each(|operation| lag.merge(&operation.schedule_lag));
        let median_us = |times: &Histogram| times.quantile_ns(0.5) as f64 / 1e3;
        Run {
            late_us_median: median_us(&trial.generator_late),
            late_us_mean: trial.generator_late.mean_ns() / 1e3,
            lag_us_median: median_us(&lag),
            lag_us_mean: lag.mean_ns() / 1e3,
            offered_share: trial.offered_per_s() / rate_per_s,
            carried_share: trial.throughput_per_s() / rate_per_s,
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // It holds nothing that is needed.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The first number behind a label.
fn number_after(text: &str, label: &str) -> f64 {
    let rest = text.find(label).map_or("", |at| &text[at + label.len()..]);
    let number: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().unwrap_or_else(|_| panic!("no number behind \"{label}\" in:\n{text}"))
}
