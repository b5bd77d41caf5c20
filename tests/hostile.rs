//! Servers whose answers are damaged on the way: whatever arrives, `run` ends within its limits with status 0, 1 or 2, takes bounded memory, names the tables
//! that stay, and figures that it calls valid are those of a run that nothing has damaged.
//!
//! `LOADLINE_HOSTILE_RUNS` says how many runs there are for each server, and `LOADLINE_HOSTILE_SEED` where they begin.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "hostile/program.rs"]
mod program;
#[path = "hostile/proxy.rs"]
mod proxy;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::time::Duration;

use loadline::database::{self, Endpoint};
use loadline::random::Stream;
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use program::{Ended, number_in};
use proxy::{DAMAGES, Damage, Order, Protocol, Proxy};

/// Runs for each server where nothing else is asked for.
const RUNS: u64 = 16;
const OPERATIONS: u64 = 200;

/// A server behind a proxy, and a folder for runs.
struct Trying {
    name: &'static str,
    server: Server,
    proxy: Proxy,
    folder: PathBuf,
}

/// What differs between studies.
#[derive(Debug)]
struct Variant {
    clients: u64,
    layout: &'static str,
    pipeline: bool,
    batch: u64,
}

/// Records of numbers.
const NUMBERS: &str = "type = \"custom\"\nidentity = [{ name = \"site\", kind = \"int\", fill = { uniform = [1, 9] } }]\nvalues = [\
    { name = \"level\", kind = \"int\", fill = { uniform = [0, 1000000] } }, { name = \"heat\", kind = \"float\", fill = { drift = [-20.0, 30.0, 0.1] } }]";

const VARIANTS: [Variant; 4] = [
    Variant { clients: 1, layout: "star", pipeline: false, batch: 1 },
    Variant { clients: 3, layout: "wide", pipeline: true, batch: 1 },
    Variant { clients: 1, layout: "json", pipeline: true, batch: 5 },
    Variant { clients: 2, layout: "eav", pipeline: false, batch: 3 },
];

/// How many operations of each kind there were, and of how many records.
type Counts = BTreeMap<String, (u64, u64)>;

impl Trying {
    fn new(name: &'static str, protocol: Protocol) -> Trying {
        let recipe = database::find(name).unwrap().recipe.unwrap();
        let server = Server::start(recipe, &DatabaseSettings::default(), None).unwrap();
        let proxy = Proxy::start(protocol, server.endpoint().tcp.clone().unwrap());
        let folder = std::env::temp_dir().join(format!("loadline-hostile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let trying = Trying { name, server, proxy, folder };
        // With the first connection as to a private server, Cassandra has a keyspace, and InfluxDB an account and a database.
        trying.tables_left();
        trying
    }

    fn write_study(&self, variant: &Variant) {
        match self.name {
            "redis" | "cassandra" | "mongodb" => return self.write_study_of_keys(variant),
            "clickhouse" | "influxdb" | "victoriametrics" => return self.write_study_without_updates(variant),
            _ => {}
        }
        let Endpoint { user, password, database, .. } = self.server.endpoint();
        let (name, port) = (self.name, self.proxy.port);
        let scheme = if name == "postgres" { "postgres" } else { "mysql" };
        let Variant { clients, layout, batch, .. } = variant;
        // MariaDB goes on after a statement that failed.
        let pipeline = variant.pipeline && name == "postgres";
        let study = format!(
            "name = \"hostile\"\n[database]\nname = \"{name}\"\nurl = \"{scheme}://{user}:{password}@127.0.0.1:{port}/{database}?sslmode=disable\"\n\
             statement_timeout = \"1s\"\n[record]\ntable = \"hostile\"\nrows = 150\n\
             [workload]\nname = \"mix\"\nmix = {{ read = 2, update = 1, write = 1, scan = 1 }}\nbatch = {batch}\n\
             [layout]\nname = \"{layout}\"\n[load]\nclients = {clients}\npipeline = {pipeline}\noperations = {OPERATIONS}\nwarmup = \"0s\"\ndrain = \"2s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
        );
        std::fs::write(self.folder.join("study.toml"), study).unwrap();
    }

    /// The same of a store that finds rows by their whole key alone.
    fn write_study_of_keys(&self, Variant { clients, batch, .. }: &Variant) {
        let (name, port) = (self.name, self.proxy.port);
        let Endpoint { password, database, .. } = self.server.endpoint();
        let account = if password.is_empty() { String::new() } else { format!(":{password}@") };
        let study = format!(
            "name = \"hostile\"\n[database]\nname = \"{name}\"\nurl = \"{name}://{account}127.0.0.1:{port}/{database}\"\n\
             statement_timeout = \"1s\"\n[record]\ntable = \"hostile\"\nrows = 150\n\
             [workload]\nname = \"mix\"\nmix = {{ read = 2, update = 1, write = 1, select = 1 }}\nbatch = {batch}\n\
             [layout]\nname = \"wide\"\n[load]\nclients = {clients}\noperations = {OPERATIONS}\nwarmup = \"0s\"\ndrain = \"2s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
        );
        std::fs::write(self.folder.join("study.toml"), study).unwrap();
    }

    /// The same of a store that changes no rows. ClickHouse makes files for each column of an insert: sensors have few.
    fn write_study_without_updates(&self, Variant { clients, batch, .. }: &Variant) {
        let Endpoint { user, password, database, .. } = self.server.endpoint();
        let (name, port) = (self.name, self.proxy.port);
        // VictoriaMetrics has numbers alone, and no limits.
        let (record, mix) = match name {
            "victoriametrics" => (NUMBERS, "read = 2, write = 1, select = 1"),
            _ => ("type = \"sensor\"", "read = 2, write = 1, scan = 1"),
        };
        let study = format!(
            "name = \"hostile\"\n[database]\nname = \"{name}\"\nurl = \"{name}://{user}:{password}@127.0.0.1:{port}/{database}\"\n\
             statement_timeout = \"1s\"\n[record]\n{record}\ntable = \"hostile\"\nrows = 150\n\
             [workload]\nname = \"mix\"\nmix = {{ {mix} }}\nbatch = {batch}\n\
             [layout]\nname = \"wide\"\n[load]\nclients = {clients}\noperations = {OPERATIONS}\nwarmup = \"0s\"\ndrain = \"2s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
        );
        std::fs::write(self.folder.join("study.toml"), study).unwrap();
    }

    fn run(&self, order: Option<Order>) -> Ended {
        let _ = std::fs::remove_dir_all(self.folder.join("run"));
        self.proxy.begin(order);
        program::run(&self.folder, &["run", "study.toml", "--out", "run", "--json"])
    }

    /// Other work may keep a server from answering within the second that it has: then once more.
    fn run_undamaged(&self) -> Ended {
        for _ in 0..4 {
            let ended = self.run(None);
            if ended.status == Some(0) {
                return ended;
            }
            self.tables_left();
        }
        self.run(None)
    }

    /// Tables of the study that are on the server, which are removed.
    fn tables_left(&self) -> Vec<String> {
        match self.name {
            "redis" => return self.keys_left(),
            "clickhouse" | "influxdb" | "cassandra" | "mongodb" | "victoriametrics" => return self.table_left(),
            _ => {}
        }
        let database = database::find(self.name).unwrap().open_sql(
            &DatabaseSettings { name: self.name.to_owned(), ..DatabaseSettings::default() },
            Some(self.server.endpoint()),
        );
        let mut session = database.unwrap().connect().unwrap();
        let found =
            session.query("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'hostile%'").unwrap();
        let names: Vec<String> = found.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        for name in &names {
            let cascade = if self.name == "postgres" { " CASCADE" } else { "" };
            session.run(&format!("DROP TABLE IF EXISTS {name}{cascade}")).unwrap();
        }
        names
    }
}

impl Trying {
    /// The table of the study, where any key of it is on the server; they are removed.
    fn keys_left(&self) -> Vec<String> {
        let Endpoint { tcp, password, .. } = self.server.endpoint();
        let mut stream = std::net::TcpStream::connect(tcp.clone().unwrap()).unwrap();
        write!(stream, "AUTH {password}\r\nDBSIZE\r\nFLUSHALL\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let [_, keys, _] = [(); 3].map(|()| lines.next().unwrap());
        if keys == ":0" { Vec::new() } else { vec!["hostile".to_owned()] }
    }
}

impl Trying {
    /// The table of the study, if it is on the server; it is removed.
    fn table_left(&self) -> Vec<String> {
        let settings = DatabaseSettings { name: self.name.to_owned(), ..DatabaseSettings::default() };
        let target = database::find(self.name).unwrap().open(&settings, Some(self.server.endpoint())).unwrap();
        let mut session = target.open().unwrap();
        let is_there = session.count_rows("hostile").is_ok();
        session.drop_table("hostile").unwrap();
        if is_there { vec!["hostile".to_owned()] } else { Vec::new() }
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a run that was called valid has counted.
fn counts(out: &str, trials: &str) -> Counts {
    let findings: serde_json::Value = serde_json::from_str(out).unwrap();
    assert_eq!(findings["valid"], true, "{out}");
    let trial: serde_json::Value = serde_json::from_str(trials.lines().next().unwrap()).unwrap();
    let shown = findings["cases"][0]["operations"].as_object().unwrap();
    let kinds = trial["operations"].as_object().unwrap().iter().map(|(kind, seen)| {
        let number = |name: &str| seen[name].as_u64().unwrap();
        assert_eq!(shown[kind]["count"], seen["completed"], "{out}");
        assert_eq!((number("failed"), number("abandoned")), (0, 0), "{trials}");
        (kind.clone(), (number("completed"), number("records")))
    });
    kinds.collect()
}

fn operations(counts: &Counts) -> u64 {
    counts.values().map(|(operations, _)| operations).sum()
}

/// Which message is damaged in a run: as often one of the first, one of the last, and any.
fn order_of(seed: u64, messages: u64) -> Order {
    let mut random = Stream::seeded(seed);
    let damage = DAMAGES[random.below(DAMAGES.len() as u64) as usize];
    let at = match random.below(3) {
        0 => random.below(messages.min(80)),
        1 => messages - 1 - random.below(messages.min(40)),
        _ => random.below(messages),
    };
    Order { at, damage, seed: random.word() }
}

fn every_run_ends_well(name: &'static str, protocol: Protocol) {
    let trying = Trying::new(name, protocol);
    let undamaged = VARIANTS.map(|variant| {
        trying.write_study(&variant);
        let ended = trying.run_undamaged();
        assert_eq!(ended.status, Some(0), "{}{}", ended.out, ended.said);
        let trials = std::fs::read_to_string(trying.folder.join("run/trials.jsonl")).unwrap();
        let counts = counts(&ended.out, &trials);
        assert_eq!((operations(&counts), trying.tables_left()), (OPERATIONS, Vec::new()));
        (variant, trying.proxy.messages(), counts)
    });
    let (runs, first) = (number_in("LOADLINE_HOSTILE_RUNS").unwrap_or(RUNS), number_in("LOADLINE_HOSTILE_SEED"));
    let first = first.unwrap_or(1);
    let (mut by_status, mut longest, mut most_kib) = (BTreeMap::new(), Duration::ZERO, 0);
    for seed in first..first + runs {
        let (variant, messages, expected) = &undamaged[(seed % 4) as usize];
        trying.write_study(variant);
        let order = order_of(seed, *messages);
        let ended = trying.run(Some(order));
        let left = trying.tables_left();
        let told = format!("{name}, seed {seed}, {variant:?}, {order:?}: {ended:?}");
        ended.check(&told);
        let is_named = |table: &String| ended.said.contains(table) || ended.out.contains(table);
        assert!(left.iter().all(is_named), "{left:?} are left, and nobody says so: {told}");
        if ended.status == Some(0) {
            let trials = std::fs::read_to_string(trying.folder.join("run/trials.jsonl")).unwrap();
            let counts = counts(&ended.out, &trials);
            assert_eq!(operations(&counts), OPERATIONS, "{told}");
            assert!(variant.clients > 1 || counts == *expected, "{counts:?} for {expected:?}: {told}");
            // The message may not have been sent in this run: how many there are differs a little.
            assert!(order.damage != Damage::Stall || trying.proxy.messages() <= order.at, "{told}");
        }
        *by_status.entry((order.damage as usize, ended.status)).or_insert(0_u64) += 1;
        longest = longest.max(ended.took);
        most_kib = most_kib.max(ended.most_kib);
    }
    for ((damage, status), count) in &by_status {
        println!("{name}: {:?} {count} with status {status:?}", DAMAGES[*damage]);
    }
    println!("{name}: {runs} runs, the longest {longest:.1?}, at most {} MiB", most_kib >> 10);
}

#[test]
fn damaged_answers_of_postgres_end_no_run_badly() {
    every_run_ends_well("postgres", Protocol::Postgres);
}

#[test]
fn damaged_answers_of_mariadb_end_no_run_badly() {
    every_run_ends_well("mariadb", Protocol::Mysql);
}

#[test]
fn damaged_answers_of_redis_end_no_run_badly() {
    every_run_ends_well("redis", Protocol::Redis);
}

#[test]
fn damaged_answers_of_clickhouse_end_no_run_badly() {
    every_run_ends_well("clickhouse", Protocol::Http);
}

#[test]
fn damaged_answers_of_influxdb_end_no_run_badly() {
    every_run_ends_well("influxdb", Protocol::Http);
}

#[test]
fn damaged_answers_of_victoriametrics_end_no_run_badly() {
    every_run_ends_well("victoriametrics", Protocol::Http);
}

/// The test that needs Cassandra.
mod with_cassandra {
    use loadline::database;
    use loadline::trial::DatabaseSettings;

    use super::{Protocol, every_run_ends_well};

    #[test]
    fn damaged_answers_of_cassandra_end_no_run_badly() {
        let recipe = database::find("cassandra").unwrap().recipe.unwrap();
        if let Err(missing) = recipe.find_binary(&DatabaseSettings::default()) {
            return eprintln!("{missing}: nothing was checked");
        }
        every_run_ends_well("cassandra", Protocol::Cassandra);
    }
}

/// The test that needs FerretDB.
mod with_mongodb {
    use loadline::database;
    use loadline::trial::DatabaseSettings;

    use super::{Protocol, every_run_ends_well};

    #[test]
    fn damaged_answers_of_ferretdb_end_no_run_badly() {
        let recipe = database::find("mongodb").unwrap().recipe.unwrap();
        if let Err(missing) = recipe.find_binary(&DatabaseSettings::default()) {
            return eprintln!("{missing}: nothing was checked");
        }
        every_run_ends_well("mongodb", Protocol::Mongodb);
    }
}
