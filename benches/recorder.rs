//! The recorder against the bare bulk path of the same database, in the same run: rows of 61 columns in batches over HTTP until the last is
//! committed, and single rows from 350 sources at 20 a second. Needs MariaDB's package. `cargo bench --bench recorder`

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use loadline::database::dialect::create_table;
use loadline::database::{self, Endpoint};
use loadline::record::ColumnKind;
use loadline::server::Server;
use loadline::statement::{Expect, Program, Request, Statement, Step, Table, TableColumn};
use loadline::trial::DatabaseSettings;

const TAGS: usize = 13;
const FIELDS: usize = 48;
const BATCH: usize = 1_000;
const CLIENTS: usize = 8;
const SOURCES: u32 = 350;
const PER_SOURCE_S: f64 = 20.0;
const SOURCES_FOR: Duration = Duration::from_secs(15);

/// How long each side writes in a round.
fn lasts() -> Duration {
    Duration::from_secs(10)
}

fn line(source: usize, row: usize, out: &mut String) {
    out.push_str("qos");
    (0..TAGS).for_each(|tag| write!(out, ",tag{tag}={}", source * 31 + tag).unwrap());
    for field in 0..FIELDS {
        let separator = if field == 0 { ' ' } else { ',' };
        write!(out, "{separator}f{field}={}", ((row * 7 + field * 13) % 1_000) as f64 / 10.0).unwrap();
    }
    out.push('\n');
}

/// Rows a second of bulk inserts of the same values, one connection.
fn bare(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> f64 {
    let database = (database::find(&settings.name).unwrap().open)(settings, endpoint).unwrap();
    let mut session = database.connect().unwrap();
    let number = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
    let mut columns: Vec<_> = ["record_id", "measurement", "time_ns"].map(number).to_vec();
    columns.extend((0..FIELDS).map(|field| TableColumn {
        name: format!("f{field}"),
        kind: ColumnKind::Float64,
        nullable: true,
    }));
    let table = Table {
        name: "bare".to_owned(),
        columns: columns.clone(),
        primary_key: vec!["record_id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: vec![vec!["measurement".to_owned()]],
        foreign_keys: Vec::new(),
    };
    session.run("DROP TABLE IF EXISTS bare").unwrap();
    create_table(database.dialect(), &table).iter().for_each(|sql| session.run(sql).unwrap());
    let statements = vec![Statement::Insert { table: table.name, columns }];
    session.prepare(&Program { statements, rows_max: BATCH, ..Program::default() }).unwrap();
    let (begun, mut rows, mut request) = (Instant::now(), 0_i64, Request::default());
    while begun.elapsed() < lasts() {
        request.clear();
        for _ in 0..BATCH {
            rows += 1;
            [rows, rows % 8, rows].iter().for_each(|value| request.cells.int(*value));
            (0..FIELDS as i64).for_each(|field| request.cells.float(((rows * 7 + field * 13) % 1_000) as f64 / 10.0));
        }
        let expect = Expect::Changed(BATCH as u64);
        request.steps.push(Step { statement: 0, rows: BATCH as u32, first_cell: 0, expect });
        session.execute(&request, None).unwrap();
    }
    rows as f64 / begun.elapsed().as_secs_f64()
}

struct Recorder {
    child: Child,
    http: SocketAddr,
}

impl Recorder {
    fn start(directory: &std::path::Path, database: &str) -> Self {
        let config = directory.join("recorder.toml");
        let spool = directory.join("spool").display().to_string();
        let text = format!(
            "[database]\n{database}\n[spool]\npath = \"{spool}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[writer]\ndrain = \"60s\"\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .arg("record")
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let http = loop {
            let line = lines.next().expect("the recorder starts").unwrap();
            if let Some(rest) = line.split("address=\"").nth(1) {
                break rest.trim_end_matches('"').parse().unwrap();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Recorder { child, http }
    }

    fn metric(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page.lines().find_map(|line| line.strip_prefix(&format!("loadline_{name} "))).unwrap().parse().unwrap()
    }

    fn resident_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
    }

    /// Rows a second from the first request to the last commit.
    fn batches(&self) -> f64 {
        let begun = Instant::now();
        let rows: usize = std::thread::scope(|scope| {
            let clients: Vec<_> =
                (0..CLIENTS).map(|client| scope.spawn(move || self.post_batches(client, begun))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        while self.metric("spooled_rows") > 0.0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        rows as f64 / begun.elapsed().as_secs_f64()
    }

    fn post_batches(&self, client: usize, begun: Instant) -> usize {
        let mut body = String::new();
        (0..BATCH).for_each(|row| line(client, row, &mut body));
        let mut stream = TcpStream::connect(self.http).unwrap();
        let (mut rows, mut answer) = (0, [0; 4096]);
        let head = format!(
            "POST /api/v2/write HTTP/1.1\r\nHost: x\r\nX-Loadline-Source: c{client}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        while begun.elapsed() < lasts() {
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
            let length = stream.read(&mut answer).unwrap();
            if answer[..length].starts_with(b"HTTP/1.1 204") {
                rows += BATCH;
            } else {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        rows
    }

    /// Times to acknowledgement of single rows, from when they were due, in seconds and in order.
    fn single_rows(&self) -> Vec<f64> {
        let times = Mutex::new(Vec::new());
        let begun = Instant::now() + Duration::from_millis(500);
        std::thread::scope(|scope| {
            for source in 0..SOURCES {
                let times = &times;
                let work = move || {
                    let mine = self.post_single_rows(source, begun);
                    times.lock().unwrap().extend(mine);
                };
                std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work).unwrap();
            }
        });
        let mut times = times.into_inner().unwrap();
        times.sort_by(f64::total_cmp);
        times
    }

    fn post_single_rows(&self, source: u32, begun: Instant) -> Vec<f64> {
        let mut body = String::new();
        line(source as usize, 1, &mut body);
        let mut stream = TcpStream::connect(self.http).unwrap();
        let text = format!(
            "POST /write HTTP/1.1\r\nHost: x\r\nX-Loadline-Source: s{source}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (mut times, mut answer) = (Vec::new(), [0; 4096]);
        let period = Duration::from_secs_f64(1.0 / PER_SOURCE_S);
        let mut due = begun + period.mul_f64(f64::from(source) / f64::from(SOURCES));
        while due < begun + SOURCES_FOR {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(text.as_bytes()).unwrap();
            let length = stream.read(&mut answer).unwrap();
            assert!(answer[..length].starts_with(b"HTTP/1.1 204"));
            times.push(due.elapsed().as_secs_f64());
            due += period;
        }
        times
    }

    fn stop(mut self) {
        // SAFETY: kill takes no pointer; the process is the child that was started here and not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        assert!(self.child.wait().unwrap().success());
    }
}

fn measure(
    name: &str,
    settings: &DatabaseSettings,
    endpoint: Option<&Endpoint>,
    database: &str,
    directory: &std::path::Path,
) {
    std::fs::create_dir_all(directory).unwrap();
    let before = bare(settings, endpoint);
    let recorder = Recorder::start(directory, database);
    let batches = recorder.batches();
    let times = recorder.single_rows();
    let (left, resident) = (recorder.metric("spooled_rows"), recorder.resident_mib());
    recorder.stop();
    let after = bare(settings, endpoint);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e3;
    println!("{name}: bare bulk path {before:.0} and {after:.0} rows/s before and after");
    println!(
        "{name}: batches of {BATCH} rows of {} columns over HTTP, to the last commit: {batches:.0} rows/s, {:.2} of the bare path",
        TAGS + FIELDS,
        2.0 * batches / (before + after)
    );
    println!(
        "{name}: {SOURCES} sources at {PER_SOURCE_S}/s, single rows: {:.0} rows/s acknowledged, p50 {:.1} ms, p99 {:.1} ms from when they \
         were due, {left:.0} rows left in the spool at the end; {resident:.0} MiB resident at most",
        times.len() as f64 / SOURCES_FOR.as_secs_f64(),
        at(0.5),
        at(0.99)
    );
}

fn main() {
    let directory = std::env::temp_dir().join(format!("loadline-bench-recorder-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("measurements.db").display().to_string();
    let sqlite =
        DatabaseSettings { name: "sqlite".to_owned(), path: Some(path.clone()), ..DatabaseSettings::default() };
    measure("sqlite", &sqlite, None, &format!("path = \"{path}\""), &directory.join("sqlite"));
    let mariadb = DatabaseSettings { name: "mariadb".to_owned(), ..DatabaseSettings::default() };
    let server = Server::start(database::find("mariadb").unwrap().recipe.unwrap(), &mariadb, None).unwrap();
    let endpoint = server.endpoint();
    let (host, port) = endpoint.tcp.clone().unwrap();
    let url = format!("mysql://{}:{}@{host}:{port}/{}", endpoint.user, endpoint.password, endpoint.database);
    measure(
        "mariadb",
        &mariadb,
        Some(endpoint),
        &format!("name = \"mariadb\"\nurl = \"{url}\""),
        &directory.join("mariadb"),
    );
    let _ = std::fs::remove_dir_all(&directory);
}
