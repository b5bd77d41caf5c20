//! What agents cost the run that they work for: its memory and CPU time, the time until all are ready, how far apart they begin, and the messages of a trial.
//!
//! `cargo bench --bench agents` tries agents on this machine that drive a load against the simulated database (1 to 64), and agents over NATS that only pretend to
//! (10 to 1,000); `-- here 1 8`, `-- pretended 500` and `-- contention 1 2 4` choose. The last one shows how the throughput of closed loops grows with agents. `TRIALS` and `SECONDS` in the environment change the number and the length of the trials. Needs
//! the Debian package nats-server.

mod contention;
#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "../shared/mod.rs"]
mod shared;
mod watched;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline::measurement::{Measurement, starts_apart_s};
use loadline::runner::agents::pretended::pretend;
use loadline::runner::agents::{BusAddress, version_of};
use loadline::store::Run;
use shared::ratio::{from_environment, show};
use watched::{Cost, watched};

/// Arrivals per second of all agents together, and the clients of each.
const RATE_PER_S: f64 = 1_000.0;
const CLIENTS_EACH: usize = 4;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let counts: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let is_asked =
        |part: &str| words.iter().any(|word| word == part) || !words.iter().any(|w| w.parse::<f64>().is_err());
    let or = |usual: &[usize]| if counts.is_empty() { usual.to_vec() } else { counts.clone() };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load of the machine before: {}", load.split(' ').next().unwrap_or("unknown"));
    if is_asked("here") {
        println!("\nagents on this machine, {RATE_PER_S} arrivals/s together, simulated database");
        or(&[1, 2, 4, 8, 16, 32, 64]).into_iter().for_each(here);
    }
    if is_asked("pretended") {
        println!("\nagents over NATS that drive nothing");
        or(&[10, 30, 100, 300, 1_000]).into_iter().for_each(over_nats);
    }
    if is_asked("contention") {
        let counts = or(&[1, 2, 3, 4, 6, 8]);
        let waiting = "name = \"simulated\"\nconfig = { service = \"4ms\", servers = 64 }";
        contention::contention("a database that takes 4 ms and no CPU", waiting, &counts);
        contention::contention("PostgreSQL on the same CPUs", "name = \"postgres\"", &counts);
    }
}

/// A directory of its own, which goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("loadline-bench-agents-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the directory can be made");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn study(agents: usize, database: &str) -> String {
    let (seconds, trials) = (from_environment("SECONDS", 5.0), from_environment("TRIALS", 3.0) as u32);
    let clients = agents * CLIENTS_EACH;
    format!(
        "name = \"agents\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 100\n[layout]\nname = \"wide\"\n[workload]\nname = \"write\"\n\
         [load]\nagents = {agents}\nclients = {clients}\narrivals = \"poisson\"\nrate = {RATE_PER_S}\nwarmup = \"1s\"\nduration = \"{seconds}s\"\n\
         [repeat]\nrule = \"fixed\"\nleast = {trials}\nmost = {trials}\n"
    )
}

/// Runs a study to its end, and returns its trials and what the run itself cost.
fn run(scratch: &Scratch, study: &str, more: &[&str]) -> (Vec<Measurement>, Cost) {
    std::fs::write(scratch.0.join("s.toml"), study).expect("the study can be written");
    let out = scratch.0.join("run");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.current_dir(&scratch.0).args(["run", "s.toml", "--out", "run"]).args(more);
    command.env("LOADLINE_STOLEN", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let cost = watched(command.spawn().expect("the program starts"));
    (Run::open(&out).expect("the run is stored").measurements, cost)
}

/// Prints what trials with as many agents and their run have in common.
fn line(agents: usize, trials: &[Measurement], cost: Cost) {
    let of = |figure: &dyn Fn(&Measurement) -> f64| show(&trials.iter().map(figure).collect::<Vec<_>>());
    let lost = trials.iter().filter(|trial| trial.trial.lost_attempt.is_some()).count();
    let load_s = |trial: &Measurement| trial.trial.case.settings.load.warmup_s + trial.measured_s;
    println!(
        "{agents:>5} agents, {} trials, {lost} lost: the run held {:.0} MiB at most and {:.1} % of a CPU;",
        trials.len(),
        cost.memory_most_bytes / f64::from(1 << 20),
        100.0 * cost.cpu_s / cost.elapsed_s
    );
    println!("             before and after the load, s     {}", of(&|trial| trial.total_s - load_s(trial)));
    println!("             began apart, ms                  {}", of(&|trial| 1e3 * starts_apart_s(&trial.agents)));
}

fn here(agents: usize) {
    let scratch = Scratch::new();
    let database = "name = \"simulated\"\nconfig = { service = \"1ms\", servers = 8 }";
    let (trials, cost) = run(&scratch, &study(agents, database), &[]);
    line(agents, &trials, cost);
    let shares: Vec<f64> =
        trials.iter().map(|trial| trial.scheduled() as f64 / (RATE_PER_S * trial.measured_s)).collect();
    println!("             arrived of what was asked        {}", show(&shares));
}

/// A NATS server with its counters.
struct Nats {
    child: Child,
    port: u16,
    monitor: u16,
}

impl Nats {
    fn start(scratch: &Scratch) -> Self {
        let free = || {
            std::net::TcpListener::bind("127.0.0.1:0")
                .and_then(|socket| socket.local_addr())
                .expect("a free port")
                .port()
        };
        let (port, monitor) = (free(), free());
        let installed = Path::new("/usr/sbin/nats-server");
        let program = if installed.exists() { installed.as_os_str() } else { "nats-server".as_ref() };
        let child = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-m", &monitor.to_string()])
            .current_dir(&scratch.0)
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server is installed");
        let nats = Nats { child, port, monitor };
        let begun = Instant::now();
        while nats.counters().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "nats-server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        nats
    }

    /// Messages and bytes that it has taken and given out.
    fn counters(&self) -> Option<[f64; 4]> {
        let page = watched::page(self.monitor, "/varz")?;
        let known: serde_json::Value = serde_json::from_str(&page).ok()?;
        let number = |name: &str| known[name].as_f64();
        Some([number("in_msgs")?, number("out_msgs")?, number("in_bytes")?, number("out_bytes")?])
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn over_nats(agents: usize) {
    let scratch = Scratch::new();
    let nats = Nats::start(&scratch);
    let url = format!("nats://127.0.0.1:{}", nats.port);
    let (stop, version) = (Arc::new(AtomicBool::new(false)), version_of(Path::new(env!("CARGO_BIN_EXE_loadline"))));
    let pretended = |number: usize| {
        let (stop, version) = (Arc::clone(&stop), version.clone());
        let address = BusAddress { url: url.clone(), authority: None, credentials: None };
        let name = format!("agent-{number:05}");
        std::thread::spawn(move || pretend(&address, &name, &version, &stop))
    };
    let threads: Vec<_> = (0..agents).map(pretended).collect();
    std::thread::sleep(Duration::from_secs(2));
    let before = nats.counters().expect("it answers");
    let (trials, cost) = run(&scratch, &study(agents, "name = \"simulated\""), &["--nats", &url]);
    let after = nats.counters().expect("it answers");
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no panic").expect("the NATS server is there");
    }
    line(agents, &trials, cost);
    let of_each = |place: usize| (after[place] - before[place]) / (trials.len() * agents) as f64;
    println!(
        "             through NATS, for each agent and trial: {:.0} messages and {:.1} kB in, {:.0} and {:.1} kB out",
        of_each(0),
        of_each(2) / 1e3,
        of_each(1),
        of_each(3) / 1e3
    );
}
