//! loadline beside redis-benchmark: client CPU per operation and throughput of the same commands on hashes of the same shape (ten fields of 100 bytes),
//! in alternating runs on one private server.
//!
//! `read` is HMGET of a whole record of a thousand, `write` HSET of a new one. Arrangements are those of the benchmark `peers`: `session` (client and server in
//! one session, over a unix socket), `own` (each in a session of its own, over a unix socket) and `tcp`. `cargo bench --bench redis` runs everything,
//! `cargo bench --bench redis -- read 8 own` a part; `ROUNDS` and `SECONDS` in the environment change the number and the length of the runs.
//!
//! The CPU time of redis-benchmark is that of its process. That of loadline is that of its process where it reads; where it writes it is that of its load
//! threads in the measured phase, since it counts and removes afterwards what it has written, which redis-benchmark leaves.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "shared/mod.rs"]
mod shared;

use std::path::PathBuf;
use std::process::Command;

use loadline::database::redis::recipe::REDIS;
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use shared::ours::run_study_by;
use shared::process::{Usage, in_session_of_its_own, measure, run};
use shared::ratio::{from_environment, median_of, ratios, show};

/// Records that are read.
const RECORDS: u32 = 1_000;
/// Commands a second that redis-benchmark is given work for; it ends when they are done.
const COMMANDS_PER_S: f64 = 60_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Read,
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Session,
    Own,
    Tcp,
}

#[derive(Debug, Clone, Copy)]
struct Subject {
    work: Work,
    connections: u32,
    arrangement: Arrangement,
}

impl Subject {
    fn name(&self) -> String {
        format!("{:?} {} {:?}", self.work, self.connections, self.arrangement).to_lowercase()
    }

    /// What a client's command is started by: in another session than the server's, unless they are to share one.
    fn starter(&self, program: &str) -> Command {
        if self.arrangement == Arrangement::Session {
            return Command::new(program);
        }
        in_session_of_its_own(program)
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rounds = from_environment("ROUNDS", 7.0) as usize;
    let seconds = from_environment("SECONDS", 4.0);
    let bench = Bench::start();
    println!(
        "{rounds} rounds of about {seconds} s each side, alternating; median [95 % interval of the median] of the rounds\n"
    );
    println!("{:<20} {:>9} {:>9}  {:<22} {:<22}", "", "ours", "peer", "CPU ratio", "throughput ratio");
    println!("{:<20} {:>9} {:>9}  {:<22} {:<22}", "", "µs/op", "µs/op", "ours / peer", "ours / peer");
    for work in [Work::Read, Work::Write] {
        for connections in [1, 8, 64] {
            for arrangement in [Arrangement::Session, Arrangement::Own, Arrangement::Tcp] {
                let subject = Subject { work, connections, arrangement };
                if wanted.iter().all(|word| subject.name().split(' ').any(|part| part == word)) {
                    bench.compare(&subject, rounds, seconds);
                }
            }
        }
    }
}

struct Bench {
    server: Server,
    directory: PathBuf,
}

impl Bench {
    fn start() -> Self {
        // The disk is not what is compared: the log is written, not synced.
        let config = [("appendfsync".to_owned(), "no".to_owned())].into();
        let settings = DatabaseSettings { name: "redis".to_owned(), config, ..DatabaseSettings::default() };
        let server = Server::start(&REDIS, &settings, None).unwrap_or_else(|error| panic!("{error}"));
        let directory = std::env::temp_dir().join(format!("loadline-redis-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
        Bench { server, directory }
    }

    fn compare(&self, subject: &Subject, rounds: usize, seconds: f64) {
        let (mut ours, mut peers) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            for side in 0..2 {
                if (round + side) % 2 == 0 {
                    ours.push(self.run_ours(subject, seconds));
                } else {
                    peers.push(self.run_peer(subject, seconds));
                }
            }
        }
        println!(
            "{:<20} {:>9.2} {:>9.2}  {:<22} {:<22}",
            subject.name(),
            median_of(&ours, Usage::cpu_us_per_operation),
            median_of(&peers, Usage::cpu_us_per_operation),
            show(&ratios(&ours, &peers, Usage::cpu_us_per_operation)),
            show(&ratios(&ours, &peers, Usage::operations_per_s)),
        );
    }

    fn run_ours(&self, subject: &Subject, seconds: f64) -> Usage {
        let endpoint = self.server.endpoint();
        let (host, port) = endpoint.tcp.clone().expect("a private server listens on TCP");
        let url = match (&endpoint.unix, subject.arrangement) {
            (Some(socket), Arrangement::Session | Arrangement::Own) => {
                format!("unix://:{}@{}", endpoint.password, socket.display())
            }
            _ => format!("redis://:{}@{host}:{port}", endpoint.password),
        };
        let (workload, rows, operation) = match subject.work {
            Work::Read => ("read", RECORDS, "read"),
            Work::Write => ("write", 0, "insert"),
        };
        let study = format!(
            "name = \"peers\"\n[database]\nname = \"redis\"\nurl = \"{url}\"\n[record]\ntype = \"usertable\"\ntable = \"ours\"\nrows = {rows}\n\
             [layout]\nname = \"wide\"\n[workload]\nname = \"{workload}\"\n[load]\nclients = {}\nduration = \"{seconds}s\"\nwarmup = \"0s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
            subject.connections,
        );
        let program = subject.starter(env!("CARGO_BIN_EXE_loadline"));
        let trial = run_study_by(program, &self.directory, &study, operation, 1.0);
        match subject.work {
            Work::Read => trial.usage,
            Work::Write => trial.usage.with_cpu(trial.load_cpu_s),
        }
    }

    fn run_peer(&self, subject: &Subject, seconds: f64) -> Usage {
        let commands = (COMMANDS_PER_S * seconds).round().max(1.0);
        if subject.work == Work::Read {
            // What is read is there.
            run(&mut self.benchmark(subject, Work::Write, RECORDS, 20.0 * f64::from(RECORDS)));
        }
        let keys = if subject.work == Work::Read { RECORDS } else { 100_000_000 };
        let (text, usage) = measure(&mut self.benchmark(subject, subject.work, keys, commands), || ());
        if subject.work == Work::Write {
            self.remove_all();
        }
        // `HSET …: 84033.61 requests per second, p50=0.327 msec`
        let before = text.split(" requests per second").next().unwrap_or_default();
        let rate = before.rsplit([' ', '\r', '\n']).next().and_then(|rate| rate.parse::<f64>().ok());
        let rate = rate.unwrap_or_else(|| panic!("no rate in {text}"));
        usage.with(commands, commands / rate)
    }

    /// redis-benchmark with commands on random keys.
    fn benchmark(&self, subject: &Subject, work: Work, keys: u32, commands: f64) -> Command {
        let endpoint = self.server.endpoint();
        let (host, port) = endpoint.tcp.clone().expect("a private server listens on TCP");
        let mut command = subject.starter("redis-benchmark");
        match (&endpoint.unix, subject.arrangement) {
            (Some(socket), Arrangement::Session | Arrangement::Own) => command.arg("-s").arg(socket),
            _ => command.args(["-h", &host, "-p", &port.to_string()]),
        };
        command.args(["-a", &endpoint.password, "-c", &subject.connections.to_string(), "-r", &keys.to_string()]);
        command.args(["-n", &format!("{commands:.0}"), "-q"]);
        let fields = (0..10).map(|field| format!("field{field}"));
        match work {
            Work::Read => {
                command.args(["HMGET", "peer:user__rand_int__", "YCSB_KEY"]).args(fields);
            }
            Work::Write => {
                command.args(["HSET", "peer:user__rand_int__", "YCSB_KEY", "user__rand_int__"]);
                for field in fields {
                    command.args([field, "x".repeat(100)]);
                }
            }
        }
        command
    }

    fn remove_all(&self) {
        let endpoint = self.server.endpoint();
        let socket = endpoint.unix.as_ref().expect("a private server has a unix socket");
        let mut command = Command::new("redis-cli");
        run(command.arg("-s").arg(socket).args(["-a", &endpoint.password, "--no-auth-warning", "FLUSHALL"]));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // It holds nothing that is needed.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
