//! The database that is written to, and how each side is run on it. The main type is [`Target`].

use std::path::PathBuf;
use std::process::Command;

use loadline::database::dialect::{create_table, drop_table, statement_text};
use loadline::database::{self, Database, Endpoint, Session};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

use crate::reference::{Reference, compile};
use crate::rows::{BATCH, CHECK, Rows, SEED, TABLE};
use crate::shared::ours::{Trial, postgres_socket, run_study, url};
use crate::shared::process::{Usage, run};
use crate::sqlite_reference::MODE;

/// A database with what the references need.
pub struct Target {
    name: &'static str,
    /// None for the embedded one.
    server: Option<Server>,
    directory: PathBuf,
    rows: Rows,
    /// The compiled reference of a server.
    program: PathBuf,
    check: Vec<Option<String>>,
}

impl Target {
    /// Starts a private server where there is one, and makes the rows of the references.
    pub fn start(name: &'static str, batches: u32) -> Self {
        let entry = database::find(name).expect("the database is registered");
        // First of all, so that nothing is left behind where a package is missing.
        let program = if entry.recipe.is_some() { compile(name) } else { PathBuf::new() };
        let directory = std::env::temp_dir().join(format!("loadline-bulk-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
        let mut settings = DatabaseSettings::default();
        if name == "mariadb" {
            settings.config.insert("local_infile".to_owned(), "1".to_owned());
        }
        let server = entry.recipe.map(|recipe| Server::start(recipe, &settings, None));
        let server = server.map(|server| server.unwrap_or_else(|error| panic!("{error}")));
        let rows = Rows::new(batches);
        let check = rows.check();
        let target = Target { name, server, directory, rows, program, check };
        match name {
            "mariadb" => target.rows.write(&target.directory.join("rows")),
            "postgres" => target.write_copies(),
            _ => {}
        }
        target
    }

    fn endpoint(&self) -> &Endpoint {
        self.server.as_ref().expect("only servers are asked").endpoint()
    }

    fn file(&self) -> String {
        self.directory.join("bulk.db").display().to_string()
    }

    /// Removes the file of the embedded database.
    fn remove_file(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // It is not there before the first run.
            let _ = std::fs::remove_file(format!("{}{suffix}", self.file()));
        }
    }

    fn open(&self) -> Box<dyn Database> {
        let settings = DatabaseSettings { path: Some(self.file()), ..DatabaseSettings::default() };
        let endpoint = self.server.as_ref().map(Server::endpoint);
        let entry = database::find(self.name).expect("the database is registered");
        entry.open_sql(&settings, endpoint).unwrap_or_else(|error| panic!("{error}"))
    }

    fn make_table(&self, database: &dyn Database) -> Box<dyn Session> {
        let mut session = database.connect().unwrap_or_else(|error| panic!("{error}"));
        for sql in create_table(database.dialect(), &self.rows.work.program().tables[0]) {
            session.run(&sql).unwrap_or_else(|error| panic!("{error}"));
        }
        session
    }

    /// Lets PostgreSQL write its own binary form of each transaction's rows.
    fn write_copies(&self) {
        let database = self.open();
        let mut session = self.make_table(&*database);
        session.prepare(self.rows.work.program()).unwrap_or_else(|error| panic!("{error}"));
        for request in self.rows.requests() {
            session.execute(&request, None).unwrap_or_else(|error| panic!("{error}"));
        }
        session.run("CREATE INDEX by_number ON qos (record_id)").unwrap_or_else(|error| panic!("{error}"));
        let mut script = String::new();
        for batch in 0..self.rows.batches {
            let (from, below) = (batch * BATCH, (batch + 1) * BATCH);
            let rows = format!("record_id >= {from} AND record_id < {below} ORDER BY record_id");
            let path = self.directory.join(format!("{batch}.copy"));
            script += &format!("\\copy (SELECT * FROM qos WHERE {rows}) TO '{}' (FORMAT binary)\n", path.display());
        }
        let path = self.directory.join("copy.sql");
        std::fs::write(&path, script).expect("the temporary directory can be written to");
        run(Command::new("psql").args(["-q", "-v", "ON_ERROR_STOP=1", &self.postgres_target(), "-f"]).arg(&path));
        self.drop_table(&*database, &mut *session);
    }

    fn drop_table(&self, database: &dyn Database, session: &mut dyn Session) {
        session.run(&drop_table(database.dialect(), TABLE)).unwrap_or_else(|error| panic!("{error}"));
    }

    /// In the words of libpq.
    fn postgres_target(&self) -> String {
        let Endpoint { user, password, database, .. } = self.endpoint();
        let (host, port) = postgres_socket(self.endpoint());
        format!("host={} port={port} user={user} password={password} dbname={database}", host.display())
    }

    /// Runs the reference on a new table, checks what it wrote, and removes the table.
    pub fn run_reference(&self, reference: Reference) -> Usage {
        self.remove_file();
        let database = self.open();
        drop(self.make_table(&*database));
        let (text, usage) = run(&mut self.command(reference, &*database));
        let elapsed_s = text.trim().parse().unwrap_or_else(|_| panic!("{reference:?} printed no time but {text:?}"));
        let mut session = database.connect().unwrap_or_else(|error| panic!("{error}"));
        let held = session.query(CHECK).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(held, std::slice::from_ref(&self.check), "{reference:?} wrote other rows");
        self.drop_table(&*database, &mut *session);
        drop((session, database));
        self.remove_file();
        usage.with(f64::from(self.rows.batches * BATCH), elapsed_s)
    }

    fn command(&self, reference: Reference, database: &dyn Database) -> Command {
        let mut command = Command::new(&self.program);
        match reference {
            Reference::MariadbExecute | Reference::MariadbLoad => {
                let Endpoint { unix, user, password, database: schema, .. } = self.endpoint();
                let sql = match reference {
                    Reference::MariadbExecute => statement_text(database.dialect(), self.rows.insert(), 1),
                    _ => format!("LOAD DATA LOCAL INFILE 'batch' INTO TABLE {TABLE}"),
                };
                command.arg(unix.as_ref().expect("a private server has a unix socket")).args([user, password, schema]);
                command.arg(self.directory.join("rows")).args([reference.statement(), &sql]);
            }
            Reference::PostgresCopy => {
                let sql = format!("COPY {TABLE} FROM STDIN (FORMAT binary)");
                command.args([self.postgres_target(), sql]).arg(&self.directory);
                command.arg(self.rows.batches.to_string());
            }
            Reference::SqliteInsert => {
                command = Command::new(std::env::current_exe().expect("this program is a file"));
                command.args([MODE, &self.file(), &self.rows.batches.to_string()]);
            }
        }
        command
    }

    /// Runs loadline, which makes the table and removes it afterwards.
    pub fn run_ours(&self) -> Trial {
        self.remove_file();
        let place = match &self.server {
            Some(server) => format!("url = \"{}\"", url(self.name, server.endpoint())),
            None => format!("path = \"{}\"", self.file()),
        };
        let study = format!(
            "name = \"bulk\"\n[database]\nname = \"{}\"\n{place}\n[record]\ntype = \"qos\"\ntable = \"{TABLE}\"\nseed = {SEED}\n\
             per_measurement = {BATCH}\n[layout]\nname = \"wide\"\n[workload]\nname = \"write\"\nbatch = {BATCH}\n[load]\n\
             clients = 1\noperations = {}\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
            self.name, self.rows.batches
        );
        let trial = run_study(&self.directory, &study, "insert", f64::from(BATCH));
        self.remove_file();
        trial
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It holds nothing that is needed.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
