//! The recipe of private PostgreSQL servers.
//!
//! Main type: [`PostgresRecipe`]. Invariant: everything the server reads and writes is inside the private directory.

use std::path::{Path, PathBuf};

use crate::database::Endpoint;
use crate::database::recipe::{CONNECTIONS, CommandLine, Reach, Readiness, Recipe, executable, search_path};
use crate::database::tls::private;
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// Starts `postgres`.
#[derive(Debug)]
pub struct PostgresRecipe;

/// The recipe of `database.name = "postgres"`.
pub static POSTGRES: PostgresRecipe = PostgresRecipe;

/// The name of the database and of the account in a private server.
pub(super) const NAME: &str = "loadline";
const PASSWORD_FILE: &str = "password";
/// The file with the rules for clients: beside the data, which can be that of an earlier server with other clients.
pub(super) const RULES_FILE: &str = "pg_hba.conf";
/// The directory where Debian keeps its versions side by side.
const DEBIAN: &str = "/usr/lib/postgresql";
const REMEDY: &str =
    "install the Debian package postgresql (apt-get install postgresql), or set database.url to a running server";

impl Recipe for PostgresRecipe {
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let found = if let Some(binary) = &settings.binary {
            executable(Path::new(binary))
                .ok_or_else(|| format!("database.binary = \"{binary}\" is no executable file"))?
        } else if let Some(base) = &settings.base {
            let mut places =
                ["bin", ""].iter().filter_map(|place| executable(&Path::new(base).join(place).join("postgres")));
            places
                .next()
                .ok_or_else(|| fault!("no server binary postgres under database.base = \"{base}\""; "{REMEDY}"))?
        } else {
            let mut found = search_path("postgres").into_iter().chain(newest_of(Path::new(DEBIAN)));
            found.next().ok_or_else(|| fault!("no server binary postgres on the PATH or under {DEBIAN}"; "{REMEDY}"))?
        };
        if executable(&found.with_file_name("initdb")).is_none() {
            return Err(fault!("{} has no initdb beside it", found.display(); "{REMEDY}"));
        }
        if settings.nodes.is_some_and(|nodes| nodes > 1) {
            check_copying(&found)?;
        }
        Ok(found)
    }

    fn users(&self) -> &'static [&'static str] {
        &["postgres", "nobody"]
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "data_directory",
            "config_file",
            "hba_file",
            "ident_file",
            "external_pid_file",
            "listen_addresses",
            "port",
            "unix_socket_directories",
            "unix_socket_group",
            "unix_socket_permissions",
            "logging_collector",
            "log_destination",
        ]
    }

    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        let network = reach
            .client_network()
            .map_or_else(String::new, |[a, b, c]| format!("host all all {a}.{b}.{c}.0/24 scram-sha-256\n"));
        // Replicas come through the socket in the private directory.
        let rules = format!(
            "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n{network}"
        );
        vec![(PASSWORD_FILE, format!("{password}\n")), (RULES_FILE, rules)]
    }

    fn initialise(&self, binary: &Path, directory: &Path, _user: &str) -> Vec<CommandLine> {
        let data = directory.join("data").display().to_string();
        // The unix socket is protected by the private directory; TCP, which every user of the machine reaches, by the password.
        let mut arguments: Vec<String> =
            ["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"]
                .map(String::from)
                .into();
        arguments.push(format!("--username={NAME}"));
        arguments.push(format!("--pwfile={}", directory.join(PASSWORD_FILE).display()));
        arguments.push(format!("--pgdata={data}"));
        let cluster = CommandLine { program: binary.with_file_name("initdb"), arguments, ..CommandLine::default() };
        let database = CommandLine {
            program: binary.to_owned(),
            arguments: ["--single", "-D", &data, "postgres"].map(String::from).into(),
            input: format!("CREATE DATABASE {NAME}\n"),
            ..CommandLine::default()
        };
        vec![cluster, database]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let mut arguments =
            ["-D", &directory.join("data").display().to_string(), "-p", &port.to_string()].map(String::from).to_vec();
        let mut set = |name: &str, value: &str| arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
        set("listen_addresses", &reach.address.to_string());
        set("hba_file", &directory.join(RULES_FILE).display().to_string());
        set("unix_socket_directories", &directory.display().to_string());
        set("max_connections", &CONNECTIONS.to_string());
        if settings.tls.is_some() {
            set("ssl", "on");
            set("ssl_cert_file", &directory.join(private::CERTIFICATE_FILE).display().to_string());
            set("ssl_key_file", &directory.join(private::KEY_FILE).display().to_string());
        }
        if settings.replication.as_deref() == Some("synchronous") {
            set("synchronous_standby_names", "*");
        }
        for (name, value) in &settings.config {
            set(name, value);
        }
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint {
            unix: (settings.socket.as_deref() != Some("tcp")).then(|| directory.join(format!(".s.PGSQL.{port}"))),
            user: NAME.to_owned(),
            database: NAME.to_owned(),
            tls: settings.tls.as_ref().map(|_| private::trust(directory)).unwrap_or_default(),
            ..reach.endpoint(port)
        }
    }

    /// Returns the startup packet: length, protocol 3.0, user and database.
    fn hello(&self, endpoint: &Endpoint) -> Vec<u8> {
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", &endpoint.user, "database", &endpoint.database, ""] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
        packet.append(&mut body);
        packet
    }

    /// A server is ready when it would take queries or asks for the password; 57P03 says that it is starting up.
    fn readiness(&self, answer: &[u8]) -> Readiness {
        let mut rest = answer;
        while rest.len() >= 5 {
            let length = u32::from_be_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize;
            let Some(message) = rest.get(5..1 + length) else { return Readiness::Incomplete };
            match rest[0] {
                b'Z' => return Readiness::Ready,
                b'R' if message != [0; 4] => return Readiness::Ready,
                b'E' if error_field(message, b'C') == "57P03" => return Readiness::Starting,
                b'E' => return Readiness::Refused(error_field(message, b'M')),
                _ => rest = &rest[1 + length..],
            }
        }
        Readiness::Incomplete
    }

    /// The fast shutdown: clients are disconnected, and the server ends after a checkpoint.
    fn stop_signal(&self) -> i32 {
        libc::SIGINT
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("version", "SHOW server_version"),
            ("fsync", "SHOW fsync"),
            ("synchronous_commit", "SHOW synchronous_commit"),
            ("synchronous_standby_names", "SELECT NULLIF(current_setting('synchronous_standby_names'), '')"),
            ("full_page_writes", "SHOW full_page_writes"),
            ("shared_buffers", "SHOW shared_buffers"),
            ("work_mem", "SHOW work_mem"),
            ("max_wal_size", "SHOW max_wal_size"),
            ("checkpoint_timeout", "SHOW checkpoint_timeout"),
            ("wal_level", "SHOW wal_level"),
            ("wal_sync_method", "SHOW wal_sync_method"),
            ("max_connections", "SHOW max_connections"),
            ("autovacuum", "SHOW autovacuum"),
            ("jit", "SHOW jit"),
            ("default_transaction_isolation", "SHOW default_transaction_isolation"),
            ("lc_collate", "SELECT datcollate FROM pg_database WHERE datname = current_database()"),
        ]
    }
}

/// The program that copies a running primary.
pub(super) const COPIES: &str = "pg_basebackup";

/// Checks that replicas can be made with the programs beside a server's binary.
fn check_copying(binary: &Path) -> Result<(), Fault> {
    if executable(&binary.with_file_name(COPIES)).is_some() {
        return Ok(());
    }
    let version = binary.ancestors().nth(2).and_then(Path::file_name).and_then(|name| name.to_str());
    let version = version.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let package = version.map_or("postgresql-client".to_owned(), |version| format!("postgresql-client-{version}"));
    Err(fault!(
        "database.nodes: {} has no {COPIES} beside it, which makes replicas", binary.display();
        "install the Debian package {package} (apt-get install {package})"
    ))
}

/// Returns the binary of the highest version under a directory of versions.
fn newest_of(directory: &Path) -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.split('.').next()?.parse().ok()?;
            Some((version, executable(&entry.path().join("bin/postgres"))?))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, binary)| binary)
}

/// Returns a field of an ErrorResponse: fields are a letter and a text that ends with a zero byte.
fn error_field(message: &[u8], letter: u8) -> String {
    let field = message.split(|byte| *byte == 0).find(|field| field.first() == Some(&letter));
    field.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_server_that_is_starting_up_is_not_ready() {
        let starting = message(b'E', b"SFATAL\0C57P03\0Mthe database system is starting up\0\0");
        assert_eq!(POSTGRES.readiness(&starting), Readiness::Starting);
        let missing = message(b'E', b"SFATAL\0C3D000\0Mdatabase \"loadline\" does not exist\0\0");
        assert_eq!(POSTGRES.readiness(&missing), Readiness::Refused("database \"loadline\" does not exist".to_owned()));
    }

    #[test]
    fn letting_in_is_not_yet_readiness() {
        let mut answer = message(b'R', &[0; 4]);
        assert_eq!(POSTGRES.readiness(&answer), Readiness::Incomplete);
        answer.extend(message(b'S', b"server_version\x0015\0"));
        answer.extend(message(b'Z', b"I"));
        assert_eq!(POSTGRES.readiness(&answer[..answer.len() - 1]), Readiness::Incomplete);
        assert_eq!(POSTGRES.readiness(&answer), Readiness::Ready);
        let asks_for_password = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        assert_eq!(POSTGRES.readiness(&asks_for_password), Readiness::Ready);
    }

    #[test]
    fn the_newest_version_is_taken() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("loadline-versions-{}", std::process::id()));
        for version in ["9.6", "15", "bogus"] {
            let bin = directory.join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join("postgres"), "").unwrap();
            std::fs::set_permissions(bin.join("postgres"), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let newest = newest_of(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(newest.unwrap().ends_with("15/bin/postgres"));
    }

    #[test]
    fn a_missing_server_is_reported_with_its_package() {
        let settings = DatabaseSettings { base: Some("/nowhere".to_owned()), ..DatabaseSettings::default() };
        let sentence = POSTGRES.find_binary(&settings).unwrap_err().to_string();
        assert!(sentence.contains("/nowhere") && sentence.contains("package postgresql"), "{sentence}");
        let sentence = check_copying(Path::new("/usr/lib/postgresql/99/bin/postgres")).unwrap_err().to_string();
        assert!(sentence.contains("apt-get install postgresql-client-99"), "{sentence}");
    }
}
