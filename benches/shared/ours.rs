//! Runs of the real binary: one trial of a study with a single case.

use std::path::{Path, PathBuf};
use std::process::Command;

use loadline::database::Endpoint;

use super::process::{Usage, measure};

/// What a trial did.
pub struct Trial {
    /// What the whole process used, for the operations asked for.
    pub usage: Usage,
    /// How it waited, as in `epoll`.
    pub driver: String,
    /// CPU time of its load threads in the measured phase.
    pub load_cpu_s: f64,
}

/// Runs a study of one case and one trial in a directory, and counts its operations of this name, each as `unit` of them.
pub fn run_study(directory: &Path, study: &str, operation: &str, unit: f64) -> Trial {
    run_study_by(Command::new(env!("CARGO_BIN_EXE_loadline")), directory, study, operation, unit)
}

/// The same by a command that starts the program.
pub fn run_study_by(mut program: Command, directory: &Path, study: &str, operation: &str, unit: f64) -> Trial {
    let path = directory.join("study.toml");
    std::fs::write(&path, study).expect("the temporary directory can be written to");
    let out = directory.join("run");
    // It is there after the first run only.
    let prepare = || drop(std::fs::remove_dir_all(&out));
    let (text, usage) = measure(program.args(["run", "--json"]).arg(&path).arg("--out").arg(&out), prepare);
    let document: serde_json::Value = serde_json::from_str(&text).expect("loadline prints one JSON document");
    let case = &document["cases"][0];
    assert_eq!(document["valid"], true, "{}", case["invalid_because"]);
    let count = case["operations"][operation]["count"].as_f64();
    let count = count.unwrap_or_else(|| panic!("no operation \"{operation}\" in {case}"));
    let trial = std::fs::read_to_string(out.join("trials.jsonl")).unwrap_or_default();
    let trial: serde_json::Value = serde_json::from_str(trial.trim()).unwrap_or_default();
    let driver = trial["loops"][0]["driver"].as_str().unwrap_or("?").to_owned();
    let measured_s = trial["measured_s"].as_f64().unwrap_or(f64::NAN);
    let load_cpu_s = trial["client_cpu_s"].as_f64().unwrap_or(f64::NAN);
    Trial { usage: usage.with(count * unit, measured_s), driver, load_cpu_s }
}

/// The URL of a private server, over its unix socket.
pub fn url(database: &str, endpoint: &Endpoint) -> String {
    let Endpoint { user, password, database: schema, .. } = endpoint;
    let socket = endpoint.unix.as_ref().expect("a private server has a unix socket");
    if database == "postgres" {
        let (directory, port) = postgres_socket(endpoint);
        return format!("postgres://{user}:{password}@localhost:{port}/{schema}?host={}", directory.display());
    }
    format!("mysql://{user}:{password}@localhost/{schema}?socket={}", socket.display())
}

/// PostgreSQL's own way to name a unix socket: its directory and the port in its name.
pub fn postgres_socket(endpoint: &Endpoint) -> (PathBuf, String) {
    let socket = endpoint.unix.clone().unwrap_or_default();
    let port = socket.extension().and_then(|port| port.to_str()).unwrap_or("5432").to_owned();
    (socket.parent().map(Path::to_owned).unwrap_or_default(), port)
}
