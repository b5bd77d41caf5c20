//! The recipe of private QuestDB servers: Java with QuestDB's classes.
//!
//! Main type: [`QuestdbRecipe`]. Invariant: everything the server reads and writes is inside the private directory, and it listens on one address for the protocol of PostgreSQL
//! alone.

use std::path::{Path, PathBuf};

use super::jar;
use crate::database::Endpoint;
use crate::database::java;
use crate::database::postgres::recipe::POSTGRES;
use crate::database::recipe::{CONNECTIONS, CommandLine, Reach, Readiness, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Starts QuestDB in Java.
#[derive(Debug)]
pub struct QuestdbRecipe;

/// The recipe of `database.name = "questdb"`.
pub static QUESTDB: QuestdbRecipe = QuestdbRecipe;

/// The module and the class that are the server.
const MAIN: &str = "io.questdb/io.questdb.ServerMain";
/// The file of settings, before it is put where the server looks for it.
const CONFIG_FILE: &str = "server.conf";
/// The account, and the database, of which there is one.
const USER: &str = "loadline";
const DATABASE: &str = "qdb";
/// Where Debian has versions of Java that QuestDB runs on, in order of preference.
const JAVAS: [&str; 1] = ["17"];
/// The memory of the Java heap where the study says nothing about memory, and the least, in MiB. Data are outside of it.
const HEAP_MIB: u64 = 512;
const HEAP_LEAST_MIB: u64 = 128;

/// The settings of a private server, unless the study says otherwise. The sizes of its pools of threads follow from the number of CPUs.
const USUAL: [(&str, &str); 5] = [
    // The disk that a column takes ahead in the files of each day: 16 MiB by default, which is 1 GiB for each day of 61 columns.
    ("cairo.writer.data.append.page.size", "1M"),
    ("pg.net.connection.limit", "300"),
    // A message of a client, and a row of an answer, must fit; the largest value that a study writes has 2 MB.
    ("pg.recv.buffer.size", "4M"),
    ("pg.send.buffer.size", "4M"),
    ("pg.max.blob.size.on.query", "4M"),
];
const _: () = assert!(CONNECTIONS == 300);

/// Returns the settings that have no other value than loadline's, apart from addresses.
fn config(password: &str) -> String {
    format!(
        "config.validation.strict=true\n\
         http.enabled=false\nhttp.min.enabled=false\nline.tcp.enabled=false\nline.udp.enabled=false\n\
         telemetry.enabled=false\npg.user={USER}\npg.password={password}\n"
    )
}

impl Recipe for QuestdbRecipe {
    /// The archive of classes stands for the server: it says which version runs. Java is looked for, too.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        java::find(settings, "QuestDB", &JAVAS)?;
        jar::find(settings)
    }

    fn users(&self) -> &'static [&'static str] {
        // The classes are in the home directory of who has fetched them.
        &[]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "cairo.root",
            "cairo.snapshot.instance.id",
            "cairo.sql.copy.export.root",
            "cairo.sql.copy.root",
            "cairo.sql.copy.work.root",
            "cairo.volumes",
            "config.validation.strict",
            "dev.mode.enabled",
            "http.bind.to",
            "http.enabled",
            "http.min.bind.to",
            "http.min.enabled",
            "http.net.bind.to",
            "http.static.public.directory",
            "line.tcp.enabled",
            "line.tcp.net.bind.to",
            "line.udp.bind.to",
            "line.udp.enabled",
            "pg.enabled",
            "pg.net.bind.to",
            "pg.password",
            "pg.readonly.password",
            "pg.readonly.user",
            "pg.readonly.user.enabled",
            "pg.security.readonly",
            "pg.user",
            "posthog.enabled",
            "readonly",
            "telemetry.enabled",
        ]
    }

    fn files(&self, password: &str, _: &Reach) -> Vec<(&'static str, String)> {
        vec![(CONFIG_FILE, config(password))]
    }

    /// The server reads its settings beside its tables.
    fn initialise(&self, _: &Path, directory: &Path, _: &str) -> Vec<CommandLine> {
        let (from, to) = (directory.join(CONFIG_FILE), directory.join("data/conf").join(CONFIG_FILE));
        let arguments = ["-D", "-m", "600", &from.display().to_string(), &to.display().to_string()];
        vec![CommandLine {
            program: "install".into(),
            arguments: arguments.map(String::from).into(),
            ..CommandLine::default()
        }]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        // The other half is for what lies outside of Java's heap: tables are files in memory.
        let heap_mib = settings.memory_bytes.map_or(HEAP_MIB, |bytes| (bytes >> 21).max(HEAP_LEAST_MIB));
        let arguments = [
            format!("-Xmx{heap_mib}m"),
            "-XX:+UseParallelGC".to_owned(),
            format!("-Djava.io.tmpdir={}", directory.display()),
            "-p".to_owned(),
            binary.display().to_string(),
            "-m".to_owned(),
            MAIN.to_owned(),
            "-d".to_owned(),
            directory.join("data").display().to_string(),
        ];
        // Settings are also read from the environment, where they count for more than those of the file.
        let of_log = [("QDB_LOG_WRITERS", "stdout"), ("QDB_LOG_W_STDOUT_LEVEL", "ADVISORY,ERROR,CRITICAL")];
        let usual = USUAL.iter().filter(|(name, _)| !settings.config.contains_key(*name));
        let usual = usual.map(|(name, value)| (variable(name), (*value).to_owned()));
        // Two names of one variable are no two settings: the server is asked for the others, and does not know them.
        let is_plain =
            |name: &str| name.bytes().all(|byte| byte == b'.' || byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let own = settings.config.iter().filter(|(name, _)| is_plain(name));
        let own = own.map(|(name, value)| (variable(name), value.clone()));
        let listens = (variable("pg.net.bind.to"), format!("{}:{port}", reach.address));
        let of_log = of_log.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = of_log.into_iter().chain(usual).chain(own).chain([listens]).collect();
        let program = java::find(settings, "QuestDB", &JAVAS).unwrap_or_else(|_| "java".into());
        CommandLine { program, arguments: arguments.into(), environment, ..CommandLine::default() }
    }

    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint { user: USER.to_owned(), database: DATABASE.to_owned(), ..reach.endpoint(port) }
    }

    fn hello(&self, endpoint: &Endpoint) -> Vec<u8> {
        POSTGRES.hello(endpoint)
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        POSTGRES.readiness(answer)
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cairo.commit.mode", "cairo.commit.mode"),
            ("cairo.wal.max.lag.size", "cairo.wal.max.lag.size"),
            ("cairo.wal.max.lag.txn.count", "cairo.wal.max.lag.txn.count"),
            ("cairo.max.uncommitted.rows", "cairo.max.uncommitted.rows"),
            ("cairo.o3.max.lag", "cairo.o3.max.lag"),
            ("cairo.wal.segment.rollover.row.count", "cairo.wal.segment.rollover.row.count"),
            ("cairo.writer.data.append.page.size", "cairo.writer.data.append.page.size"),
            ("cairo.wal.writer.data.append.page.size", "cairo.wal.writer.data.append.page.size"),
            ("shared.worker.count", "shared.worker.count"),
            ("pg.worker.count", "pg.worker.count"),
            ("pg.net.connection.limit", "pg.net.connection.limit"),
            ("ram.usage.limit.percent", "ram.usage.limit.percent"),
        ]
    }
}

/// Returns the environment variable of a setting.
fn variable(name: &str) -> String {
    format!("QDB_{}", name.replace('.', "_").to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(config: &[(&str, &str)]) -> CommandLine {
        let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = DatabaseSettings { config, ..DatabaseSettings::default() };
        QUESTDB.start(Path::new("/jars/questdb-9.jar"), Path::new("/d"), 7, &settings, &Reach::LOOPBACK)
    }

    fn value(line: &CommandLine, name: &str) -> Vec<String> {
        line.environment.iter().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    }

    #[test]
    fn settings_of_a_study_are_given_once_under_the_name_of_their_variable() {
        assert!(value(&started(&[]), "QDB_CAIRO_COMMIT_MODE").is_empty());
        assert_eq!(value(&started(&[("cairo.commit.mode", "sync")]), "QDB_CAIRO_COMMIT_MODE"), ["sync"]);
        assert_eq!(value(&started(&[("pg.net.connection.limit", "9")]), "QDB_PG_NET_CONNECTION_LIMIT"), ["9"]);
    }

    #[test]
    fn a_second_name_of_a_setting_does_not_open_the_server() {
        assert!(QUESTDB.reserved_settings().contains(&"http.enabled"));
        for name in ["http_enabled", "HTTP.ENABLED", "http-enabled"] {
            assert!(value(&started(&[(name, "true")]), "QDB_HTTP_ENABLED").is_empty(), "{name}");
        }
        assert_eq!(
            value(&started(&[("pg.net.bind.to", "0.0.0.0:1")]), "QDB_PG_NET_BIND_TO").last().unwrap(),
            "127.0.0.1:7"
        );
    }

    #[test]
    fn it_listens_on_one_port_of_this_machine_and_its_files_are_in_the_directory() {
        let line = started(&[]);
        assert_eq!(value(&line, "QDB_PG_NET_BIND_TO"), ["127.0.0.1:7"]);
        let told = line.arguments.join(" ");
        assert!(told.ends_with("-p /jars/questdb-9.jar -m io.questdb/io.questdb.ServerMain -d /d/data"), "{told}");
        let config = config("secret");
        assert!(config.contains("http.enabled=false") && config.contains("pg.password=secret"), "{config}");
    }
}
