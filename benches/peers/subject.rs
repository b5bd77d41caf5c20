//! What is compared, and how each side is run.

use std::path::PathBuf;
use std::process::Command;

use loadline::database::{self, Endpoint, mysql, postgres};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

use crate::shared::ours::{Trial, postgres_socket, run_study_by, url};
use crate::shared::process::{Usage, in_session_of_its_own, measure, run};
use crate::transaction;

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

/// What is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One row by its key.
    Select,
    /// One row into sysbench's table.
    Insert,
    /// Several statements between BEGIN and COMMIT.
    Transaction,
}

/// Where client and server are started from, and how they are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// In one session, over a unix socket.
    Session,
    /// In sessions of their own, over a unix socket.
    Own,
    /// In sessions of their own, over TCP.
    Tcp,
    /// Likewise, with TLS; both verify the server's certificate.
    Tls,
}

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    peer: Peer,
    work: Work,
    connections: u32,
    arrangement: Arrangement,
    /// Whether pgbench has a thread for each connection, as sysbench always has, and not one for all.
    has_threads: bool,
}

/// All comparisons with a peer.
pub fn subjects(peer: Peer) -> Vec<Subject> {
    let works: &[Work] = match peer {
        Peer::Sysbench => &[Work::Select, Work::Insert, Work::Transaction],
        Peer::Pgbench => &[Work::Select, Work::Transaction],
    };
    let mut subjects = Vec::new();
    for work in works {
        for connections in [1, 8, 64] {
            for arrangement in [Arrangement::Session, Arrangement::Own, Arrangement::Tcp, Arrangement::Tls] {
                subjects.push(Subject { peer, work: *work, connections, arrangement, has_threads: false });
            }
        }
    }
    subjects
}

impl Subject {
    /// The transaction, in sessions of their own, with clients that both have a thread for each connection.
    pub fn transaction(peer: Peer, connections: u32) -> Self {
        let (work, arrangement) = (Work::Transaction, Arrangement::Own);
        Subject { peer, work, connections, arrangement, has_threads: true }
    }

    /// As in `mariadb select 8 own`.
    pub fn name(&self) -> String {
        let database = if self.peer == Peer::Sysbench { "mariadb" } else { "postgres" };
        format!("{database} {:?} {} {:?}", self.work, self.connections, self.arrangement).to_lowercase()
    }

    /// What a client's command is started by: in another session than the server's, unless they are to share one.
    fn starter(&self, program: &str) -> Command {
        if self.arrangement == Arrangement::Session {
            return Command::new(program);
        }
        in_session_of_its_own(program)
    }

    fn statements(&self) -> String {
        match (self.peer, self.work) {
            (_, Work::Transaction) => transaction::OURS.to_owned(),
            (Peer::Sysbench, Work::Select) => format!(
                "{{ sql = \"SELECT c FROM sbtest1 WHERE id=?\", weight = 1, params = [ {{ uniform = [1, {SYSBENCH_ROWS}] }} ] }}"
            ),
            (Peer::Sysbench, Work::Insert) => format!(
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
        settings.tls = Some("verify".to_owned());
        settings.config.insert(config.0.to_owned(), config.1.to_owned());
        let directory = std::env::temp_dir().join(format!("loadline-peers-{}-{peer:?}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
        // sysbench has a certificate of its own with TLS, in files of these names where it runs, and MariaDB takes none that it cannot verify.
        for (content, name) in database::tls::private::files(std::net::Ipv4Addr::LOCALHOST)
            .expect("certificates can be made")
            .into_iter()
            .zip(["client-cert.pem", "client-key.pem"])
        {
            std::fs::write(directory.join(name), content.1).expect("the temporary directory can be written to");
        }
        if peer == Peer::Sysbench {
            let authority = directory.join("client-cert.pem").display().to_string();
            settings.config.insert("ssl_ca".to_owned(), authority);
        }
        let server = Server::start(recipe, &settings, None);
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        let prepared = Prepared { peer, server, directory };
        let first = subjects(peer)[0];
        match peer {
            Peer::Sysbench => run(prepared.sysbench("oltp_point_select", &first).arg("prepare")),
            Peer::Pgbench => run(prepared.pgbench(&first).args(["-i", "-s", "1", "-q"])),
        };
        for (name, text) in [(transaction::LUA_FILE, transaction::LUA), (transaction::SQL_FILE, transaction::SQL)] {
            std::fs::write(prepared.directory.join(name), text).expect("the temporary directory can be written to");
        }
        transaction::make_tables(peer, prepared.endpoint());
        std::fs::copy(prepared.certificate(), prepared.directory.join("cacert.pem"))
            .expect("the server's directory can be read");
        prepared
    }

    /// The server's certificate, which it has signed itself.
    fn certificate(&self) -> PathBuf {
        self.endpoint().tls.authorities.clone().expect("a server with TLS has a certificate")
    }

    /// The server's host and port.
    fn tcp(&self) -> (String, String) {
        let (host, port) = self.endpoint().tcp.as_ref().expect("a private server listens on TCP");
        (host.clone(), port.to_string())
    }

    fn endpoint(&self) -> &Endpoint {
        self.server.endpoint()
    }

    fn socket(&self) -> String {
        self.endpoint().unix.as_ref().expect("a private server has a unix socket").display().to_string()
    }

    fn sysbench(&self, script: &str, subject: &Subject) -> Command {
        let mut command = subject.starter("sysbench");
        let endpoint = self.endpoint();
        command.arg(script);
        match subject.arrangement {
            Arrangement::Tcp | Arrangement::Tls => {
                let (host, port) = self.tcp();
                command.args([format!("--mysql-host={host}"), format!("--mysql-port={port}")]);
                command.args((subject.arrangement == Arrangement::Tls).then_some("--mysql-ssl=on"));
            }
            _ => {
                command.arg(format!("--mysql-socket={}", self.socket()));
            }
        }
        if script != transaction::LUA_FILE {
            command.args(["--tables=1", &format!("--table-size={SYSBENCH_ROWS}")]);
        }
        command.current_dir(&self.directory).args([
            &format!("--mysql-user={}", endpoint.user),
            &format!("--mysql-password={}", endpoint.password),
            &format!("--mysql-db={}", endpoint.database),
            "--rand-type=uniform",
            &format!("--threads={}", subject.connections),
        ]);
        command
    }

    fn pgbench(&self, subject: &Subject) -> Command {
        let endpoint = self.endpoint();
        let (host, port) = match subject.arrangement {
            Arrangement::Tcp | Arrangement::Tls => self.tcp(),
            _ => {
                let (directory, port) = postgres_socket(endpoint);
                (directory.display().to_string(), port)
            }
        };
        let mut command = subject.starter("pgbench");
        command.current_dir(&self.directory).env("PGHOST", host).env("PGPORT", port);
        let mode = if subject.arrangement == Arrangement::Tls { "verify-full" } else { "disable" };
        command.env("PGSSLMODE", mode).env("PGSSLROOTCERT", self.certificate());
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
                let script = match subject.work {
                    Work::Select => "oltp_point_select",
                    Work::Insert => "oltp_insert",
                    Work::Transaction => transaction::LUA_FILE,
                };
                let (text, usage) =
                    measure(self.sysbench(script, subject).arg(format!("--time={seconds}")).arg("run"), || ());
                let after = |label: &str| number_after(&text, label);
                // A transaction is an event; of a single statement it counts as many.
                usage.with(after("total number of events:"), after("total time:"))
            }
            Peer::Pgbench => {
                let (connections, time) = (subject.connections.to_string(), format!("{seconds:.0}"));
                let mut command = self.pgbench(subject);
                match subject.work {
                    Work::Transaction => command.args(["-f", transaction::SQL_FILE]),
                    _ => command.arg("-S"),
                };
                let threads = if subject.has_threads { &connections } else { "1" };
                command.args(["-M", "prepared", "-n", "-j", threads, "-c", &connections, "-T", &time]);
                let (text, usage) = measure(&mut command, || ());
                let operations = number_after(&text, "transactions actually processed:");
                usage.with(operations, operations / number_after(&text, "tps ="))
            }
        }
    }

    /// Runs loadline and returns what it did.
    pub fn run_ours(&self, subject: &Subject, seconds: f64) -> Trial {
        let name = if self.peer == Peer::Sysbench { "mariadb" } else { "postgres" };
        let url = match subject.arrangement {
            Arrangement::Tcp | Arrangement::Tls => {
                let Endpoint { user, password, database, .. } = self.endpoint();
                let (host, port) = self.tcp();
                let scheme = if self.peer == Peer::Sysbench { "mysql" } else { "postgres" };
                let tls = match subject.arrangement {
                    Arrangement::Tls => format!("verify-full&sslrootcert={}", self.certificate().display()),
                    _ => "disable".to_owned(),
                };
                format!("{scheme}://{user}:{password}@{host}:{port}/{database}?sslmode={tls}")
            }
            _ => url(name, self.endpoint()),
        };
        let study = format!(
            "name = \"peers\"\n[database]\nname = \"{name}\"\nurl = \"{url}\"\n[workload]\nname = \"sql\"\n\
             writes = {}\nstatements = [ {} ]\n[load]\nclients = {}\nduration = \"{seconds}s\"\nwarmup = \"0s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
            subject.work != Work::Select,
            subject.statements(),
            subject.connections,
        );
        let operation = if subject.work == Work::Transaction { transaction::OPERATION } else { "statement-1" };
        let program = subject.starter(env!("CARGO_BIN_EXE_loadline"));
        run_study_by(program, &self.directory, &study, operation, 1.0)
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
