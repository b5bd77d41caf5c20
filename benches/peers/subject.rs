//! What is compared, and how each side is run.

use std::path::PathBuf;
use std::process::Command;

use loadline::database::{self, Endpoint, mysql, postgres};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

use crate::shared::ours::{Trial, postgres_socket, run_study, url};
use crate::shared::process::{Usage, run};

/// Rows of sysbench's table.
const SYSBENCH_ROWS: u32 = 100_000;
/// Rows of pgbench's table at scale 1.
const PGBENCH_ROWS: u32 = 100_000;

/// The tool compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// sysbench, on MariaDB.
    Sysbench,
    /// pgbench, on PostgreSQL.
    Pgbench,
}

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    peer: Peer,
    is_insert: bool,
    connections: u32,
}

/// All comparisons with a peer.
pub fn subjects(peer: Peer) -> Vec<Subject> {
    let kinds: &[bool] = if peer == Peer::Sysbench { &[false, true] } else { &[false] };
    let connections = [1, 8, 64];
    kinds
        .iter()
        .flat_map(|is_insert| connections.map(|connections| Subject { peer, is_insert: *is_insert, connections }))
        .collect()
}

impl Subject {
    /// As in `mariadb select 8`.
    pub fn name(&self) -> String {
        let database = if self.peer == Peer::Sysbench { "mariadb" } else { "postgres" };
        format!("{database} {} {}", if self.is_insert { "insert" } else { "select" }, self.connections)
    }

    fn statements(&self) -> String {
        match (self.peer, self.is_insert) {
            (Peer::Sysbench, false) => format!(
                "{{ sql = \"SELECT c FROM sbtest1 WHERE id=?\", weight = 1, params = [ {{ uniform = [1, {SYSBENCH_ROWS}] }} ] }}"
            ),
            (Peer::Sysbench, true) => format!(
                "{{ sql = \"INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, ?, ?, ?)\", weight = 1, params = [ {{ uniform = [1, \
                 {SYSBENCH_ROWS}] }}, {{ random_text = 119 }}, {{ random_text = 59 }} ] }}"
            ),
            (Peer::Pgbench, _) => format!(
                "{{ sql = \"SELECT abalance FROM pgbench_accounts WHERE aid = ?\", weight = 1, params = [ {{ uniform = [1, \
                 {PGBENCH_ROWS}] }} ] }}"
            ),
        }
    }
}

/// A server with the peer's own table.
pub struct Prepared {
    peer: Peer,
    server: Server,
    directory: PathBuf,
}

impl Prepared {
    /// Starts a private server and lets the peer make its table.
    pub fn start(peer: Peer) -> Self {
        let mut settings = DatabaseSettings::default();
        let (recipe, config): (&dyn database::recipe::Recipe, _) = match peer {
            // The disk is not what is compared: commits are written, not synced.
            Peer::Sysbench => (&mysql::recipe::MARIADB, ("innodb_flush_log_at_trx_commit", "2")),
            Peer::Pgbench => (&postgres::recipe::POSTGRES, ("shared_buffers", "128MB")),
        };
        settings.config.insert(config.0.to_owned(), config.1.to_owned());
        let server = Server::start(recipe, &settings, None);
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        let directory = std::env::temp_dir().join(format!("loadline-peers-{}-{peer:?}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
        let prepared = Prepared { peer, server, directory };
        match peer {
            Peer::Sysbench => run(prepared.sysbench("oltp_point_select", 1).arg("prepare")),
            Peer::Pgbench => run(prepared.pgbench().args(["-i", "-s", "1", "-q"])),
        };
        prepared
    }

    fn endpoint(&self) -> &Endpoint {
        self.server.endpoint()
    }

    fn socket(&self) -> String {
        self.endpoint().unix.as_ref().expect("a private server has a unix socket").display().to_string()
    }

    fn sysbench(&self, script: &str, threads: u32) -> Command {
        let mut command = Command::new("sysbench");
        let endpoint = self.endpoint();
        command.args([
            script,
            "--tables=1",
            &format!("--table-size={SYSBENCH_ROWS}"),
            &format!("--mysql-socket={}", self.socket()),
            &format!("--mysql-user={}", endpoint.user),
            &format!("--mysql-password={}", endpoint.password),
            &format!("--mysql-db={}", endpoint.database),
            "--rand-type=uniform",
            &format!("--threads={threads}"),
        ]);
        command
    }

    fn pgbench(&self) -> Command {
        let endpoint = self.endpoint();
        let (directory, port) = postgres_socket(endpoint);
        let mut command = Command::new("pgbench");
        command.env("PGHOST", directory).env("PGPORT", port);
        command
            .env("PGUSER", &endpoint.user)
            .env("PGPASSWORD", &endpoint.password)
            .env("PGDATABASE", &endpoint.database);
        command
    }

    /// Runs the peer and returns what it used.
    pub fn run_peer(&self, subject: &Subject, seconds: f64) -> Usage {
        match self.peer {
            Peer::Sysbench => {
                let script = if subject.is_insert { "oltp_insert" } else { "oltp_point_select" };
                let (text, usage) =
                    run(self.sysbench(script, subject.connections).arg(format!("--time={seconds}")).arg("run"));
                let after = |label: &str| number_after(&text, label);
                usage.with(after("total:"), after("total time:"))
            }
            Peer::Pgbench => {
                let connections = subject.connections.to_string();
                let time = format!("{seconds:.0}");
                let (text, usage) = run(self.pgbench().args([
                    "-S",
                    "-M",
                    "prepared",
                    "-n",
                    "-j",
                    "1",
                    "-c",
                    &connections,
                    "-T",
                    &time,
                ]));
                let operations = number_after(&text, "transactions actually processed:");
                usage.with(operations, operations / number_after(&text, "tps ="))
            }
        }
    }

    /// Runs loadline and returns what it did.
    pub fn run_ours(&self, subject: &Subject, seconds: f64) -> Trial {
        let name = if self.peer == Peer::Sysbench { "mariadb" } else { "postgres" };
        let study = format!(
            "name = \"peers\"\n[database]\nname = \"{name}\"\nurl = \"{}\"\n[workload]\nname = \"sql\"\n\
             writes = {}\nstatements = [ {} ]\n[load]\nclients = {}\nduration = \"{seconds}s\"\nwarmup = \"0s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
            url(name, self.endpoint()),
            subject.is_insert,
            subject.statements(),
            subject.connections,
        );
        run_study(&self.directory, &study, "statement-1", 1.0)
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
