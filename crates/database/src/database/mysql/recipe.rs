//! The recipes of private MariaDB and MySQL servers.
//!
//! Main type: [`MysqlRecipe`]. Invariant: nothing of an installed system instance is read or changed: no option files are read,
//! and every path that the server writes to is inside the private directory.

use std::path::{Path, PathBuf};

use super::{encryption, wsrep};
use crate::database::Endpoint;
use crate::database::recipe::{CONNECTIONS, CommandLine, Reach, Readiness, Recipe, executable, search_path};
use crate::database::tls::private;
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// Starts `mariadbd` or a genuine `mysqld`.
#[derive(Debug)]
pub struct MysqlRecipe {
    names: &'static [&'static str],
    /// True for MySQL itself: a `mysqld` that is MariaDB under another name is refused.
    genuine: bool,
    package: &'static str,
}

/// The recipe of `database.name = "mariadb"`.
pub static MARIADB: MysqlRecipe =
    MysqlRecipe { names: &["mariadbd", "mysqld"], genuine: false, package: "mariadb-server" };

/// The recipe of `database.name = "mysql"`.
pub static MYSQL: MysqlRecipe = MysqlRecipe { names: &["mysqld"], genuine: true, package: "mysql-server" };

/// The name of the database and of the account in a private server.
const NAME: &str = "loadline";
pub(super) const STATEMENTS: &str = "create.sql";
const NO_TEST_DATABASE: &str = "--skip-test-db";

impl MysqlRecipe {
    fn accept(&self, binary: PathBuf) -> Result<PathBuf, Fault> {
        if self.genuine && is_mariadb(&binary) {
            return Err(fault!(
                "{} is MariaDB, not MySQL", binary.display();
                "set database.name = \"mariadb\", or database.base to the directory of an unpacked MySQL"
            ));
        }
        Ok(binary)
    }

    /// Returns the server's binary.
    fn find(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        if let Some(binary) = &settings.binary {
            let found = executable(Path::new(binary));
            return self.accept(found.ok_or_else(|| format!("database.binary = \"{binary}\" is no executable file"))?);
        }
        if let Some(base) = &settings.base {
            let places = ["bin", "sbin", "libexec", ""];
            let found = places.iter().flat_map(|place| self.names.iter().map(move |name| (place, name)));
            let found = found.filter_map(|(place, name)| executable(&Path::new(base).join(place).join(name))).next();
            return self.accept(found.ok_or_else(|| self.not_found(&format!("under database.base = \"{base}\"")))?);
        }
        let mut refusal = None;
        for name in self.names {
            let usual = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin"];
            let usual = usual.iter().filter_map(|place| executable(&Path::new(place).join(name)));
            for binary in search_path(name).into_iter().chain(usual) {
                match self.accept(binary) {
                    Ok(binary) => return Ok(binary),
                    Err(sentence) => refusal = Some(sentence),
                }
            }
        }
        Err(refusal.unwrap_or_else(|| self.not_found("on the PATH or in /usr/sbin")))
    }

    fn not_found(&self, place: &str) -> Fault {
        let remedy = if self.genuine {
            "set database.base to the directory of an unpacked MySQL".to_owned()
        } else {
            format!("install the Debian package {} (apt-get install {})", self.package, self.package)
        };
        fault!(
            "no server binary {} {place}", self.names.join(" or ");
            "{remedy}, or set database.url to a running server"
        )
    }
}

impl Recipe for MysqlRecipe {
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let found = self.find(settings)?;
        if settings.nodes.is_some_and(|nodes| nodes > 1) {
            wsrep::check(settings)?;
        }
        Ok(found)
    }

    fn users(&self) -> &'static [&'static str] {
        &["mysql", "nobody"]
    }

    fn encryptions(&self) -> &'static [&'static str] {
        // MySQL's keyrings work differently and are not supported.
        if self.genuine { &[] } else { encryption::CIPHERS }
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "defaults_file",
            "datadir",
            "basedir",
            "socket",
            "port",
            "bind_address",
            "pid_file",
            "user",
            "init_file",
            "chroot",
            "skip_networking",
            "skip_grant_tables",
            "daemonize",
            "default_storage_engine",
            "wsrep_on",
            "wsrep_provider",
            "wsrep_cluster_name",
            "wsrep_cluster_address",
            "wsrep_new_cluster",
            "wsrep_node_name",
            "wsrep_node_address",
            "wsrep_node_incoming_address",
            "wsrep_sst_receive_address",
            "wsrep_sst_donor",
            "wsrep_notify_cmd",
            "wsrep_recover",
            "wsrep_start_position",
        ]
    }

    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        let mut sql = format!("CREATE DATABASE IF NOT EXISTS {NAME} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\n");
        let hosts = ["localhost", "127.0.0.1"].map(str::to_owned).into_iter();
        for host in hosts.chain(reach.client_network().map(|[a, b, c]| format!("{a}.{b}.{c}.%"))) {
            sql += &format!("CREATE USER IF NOT EXISTS '{NAME}'@'{host}' IDENTIFIED BY '{password}';\n");
            sql += &format!("GRANT ALL PRIVILEGES ON *.* TO '{NAME}'@'{host}' WITH GRANT OPTION;\n");
        }
        let mut files = vec![(STATEMENTS, sql)];
        if !self.genuine {
            files.extend(encryption::files(password));
        }
        files
    }

    fn initialise(&self, binary: &Path, directory: &Path, _user: &str) -> Vec<CommandLine> {
        let mut places = vec![
            format!("--basedir={}", base_of(binary).display()),
            format!("--datadir={}", data_of(directory).display()),
        ];
        let (program, options): (PathBuf, &[&str]) = if is_mariadb(binary) {
            let script = install_script(binary).unwrap_or_else(|| "mariadb-install-db".into());
            // Before 10.3 the script passes unknown options to the server, which then exits. A database "test" does no harm.
            let knows = std::fs::read_to_string(&script).is_ok_and(|text| text.contains(NO_TEST_DATABASE));
            let options = &[NO_TEST_DATABASE, "--skip-name-resolve", "--auth-root-authentication-method=socket"];
            (script, if knows { options } else { &options[1..] })
        } else {
            // A starting server removes the temporary tables of any other server that it finds in a shared directory. MariaDB's script splits this option at
            // a space; the server that it starts uses TMPDIR, which is the same directory.
            places.push(format!("--tmpdir={}", directory.display()));
            (binary.to_owned(), &["--initialize-insecure"])
        };
        let mut arguments = vec!["--no-defaults".to_owned()];
        arguments.extend(places);
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        vec![CommandLine { program, arguments, ..CommandLine::default() }]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let place = directory.display();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--basedir={}", base_of(binary).display()),
            format!("--datadir={}", data_of(directory).display()),
            format!("--tmpdir={place}"),
            format!("--socket={}", socket_of(directory).display()),
            format!("--pid-file={place}/pid"),
            format!("--init-file={place}/{STATEMENTS}"),
            format!("--port={port}"),
            format!("--bind-address={}", reach.address),
        ];
        let fixed = [
            "--skip-name-resolve",
            // The following options may be changed by database.config: the last occurrence of an option counts.
            "--skip-log-bin",
            "--performance-schema=0",
            "--local-infile=0",
            "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_bin",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=256M",
            &format!("--max-connections={CONNECTIONS}"),
            "--max-allowed-packet=64M",
            // The data is deleted with the server: nothing needs to be flushed when it stops.
            "--innodb-fast-shutdown=2",
        ];
        arguments.extend(fixed.iter().map(|option| (*option).to_owned()));
        if !is_mariadb(binary) {
            // MySQL would open a second port and create unneeded keys for encryption.
            arguments.extend(["--mysqlx=OFF", "--auto-generate-certs=OFF"].map(String::from));
        }
        if settings.tls.is_some() {
            arguments.push(format!("--ssl-cert={place}/{}", private::CERTIFICATE_FILE));
            arguments.push(format!("--ssl-key={place}/{}", private::KEY_FILE));
        }
        if let Some(cipher) = &settings.encryption {
            arguments.extend(encryption::options(cipher, directory));
        }
        if let Some(engine) = &settings.engine {
            arguments.push(format!("--default-storage-engine={engine}"));
        }
        arguments.extend(settings.config.iter().map(|(name, value)| format!("--{name}={value}")));
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint {
            unix: (settings.socket.as_deref() != Some("tcp")).then(|| socket_of(directory)),
            user: NAME.to_owned(),
            database: NAME.to_owned(),
            tls: settings.tls.as_ref().map(|_| private::trust(directory)).unwrap_or_default(),
            ..reach.endpoint(port)
        }
    }

    fn hello(&self, _endpoint: &Endpoint) -> Vec<u8> {
        Vec::new()
    }

    /// The server sends its greeting only after it has recovered, executed the init file and begun to accept connections.
    fn readiness(&self, answer: &[u8]) -> Readiness {
        match answer.get(4) {
            None => Readiness::Incomplete,
            Some(10) => Readiness::Ready,
            Some(0xff) => Readiness::Refused(String::from_utf8_lossy(answer.get(7..).unwrap_or_default()).into_owned()),
            Some(other) => Readiness::Refused(format!("an unknown greeting of protocol {other}")),
        }
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("version", "SELECT CONCAT(@@version, ' ', @@version_comment)"),
            ("innodb_flush_log_at_trx_commit", "SELECT @@innodb_flush_log_at_trx_commit"),
            ("default_storage_engine", "SELECT @@default_storage_engine"),
            (
                "table_engines",
                "SELECT GROUP_CONCAT(DISTINCT ENGINE) FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'",
            ),
            ("debug_no_sync", "SELECT @@debug_no_sync"),
            ("innodb_redo_log_enabled", "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'"),
            ("innodb_buffer_pool_size", "SELECT @@innodb_buffer_pool_size"),
            ("innodb_flush_method", "SELECT @@innodb_flush_method"),
            ("innodb_doublewrite", "SELECT @@innodb_doublewrite"),
            ("innodb_encrypt_tables", "SELECT @@innodb_encrypt_tables"),
            ("innodb_encrypt_log", "SELECT @@innodb_encrypt_log"),
            ("sync_binlog", "SELECT @@sync_binlog"),
            ("log_bin", "SELECT @@log_bin"),
            ("performance_schema", "SELECT @@performance_schema"),
            ("max_connections", "SELECT @@max_connections"),
            ("max_allowed_packet", "SELECT @@max_allowed_packet"),
            // The name in MariaDB until 11.1, and in MySQL.
            ("tx_isolation", "SELECT @@tx_isolation"),
            ("transaction_isolation", "SELECT @@transaction_isolation"),
            ("sql_mode", "SELECT @@sql_mode"),
            ("character_set_server", "SELECT @@character_set_server"),
        ]
    }
}

fn data_of(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn socket_of(directory: &Path) -> PathBuf {
    directory.join("socket")
}

/// Returns the directory that contains the server's `bin` or `sbin`: `/usr` for an installed server.
fn base_of(binary: &Path) -> PathBuf {
    binary.parent().and_then(Path::parent).unwrap_or(Path::new("/usr")).to_owned()
}

/// Returns whether the binary is MariaDB's: it is called `mariadbd`, and older versions have their script beside a `mysqld`.
fn is_mariadb(binary: &Path) -> bool {
    binary.file_name().is_some_and(|name| name == "mariadbd") || install_script(binary).is_some()
}

/// Returns the script that makes MariaDB's data directory. Debian keeps it in `/usr/bin`, unpacked servers in `scripts`.
fn install_script(binary: &Path) -> Option<PathBuf> {
    let base = base_of(binary);
    let places = ["bin", "scripts", "sbin"].into_iter();
    let mut scripts =
        places.flat_map(|place| ["mariadb-install-db", "mysql_install_db"].map(|name| base.join(place).join(name)));
    scripts.find(|script| executable(script).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_is_missing_is_reported_with_its_setting() {
        let settings = DatabaseSettings { binary: Some("/nowhere/mariadbd".to_owned()), ..DatabaseSettings::default() };
        let sentence = MARIADB.find_binary(&settings).unwrap_err().to_string();
        assert!(sentence.contains("database.binary = \"/nowhere/mariadbd\""), "{sentence}");
        let settings = DatabaseSettings { base: Some("/nowhere".to_owned()), ..DatabaseSettings::default() };
        let sentence = MARIADB.find_binary(&settings).unwrap_err().to_string();
        assert!(sentence.contains("mariadb-server") && sentence.contains("/nowhere"), "{sentence}");
    }

    #[test]
    fn mariadb_is_not_taken_for_mysql() {
        let sentence = MYSQL.accept(PathBuf::from("/usr/sbin/mariadbd")).unwrap_err();
        assert!(sentence.what.contains("is MariaDB, not MySQL"), "{sentence}");
    }

    #[test]
    fn settings_of_the_study_come_last_and_win() {
        let mut settings = DatabaseSettings::default();
        settings.config.insert("innodb_buffer_pool_size".to_owned(), "1G".to_owned());
        settings.engine = Some("aria".to_owned());
        let line =
            MARIADB.start(Path::new("/usr/sbin/mariadbd"), Path::new("/tmp/d"), 4711, &settings, &Reach::LOOPBACK);
        assert_eq!(line.arguments.first().map(String::as_str), Some("--no-defaults"));
        assert_eq!(line.arguments.last().map(String::as_str), Some("--innodb_buffer_pool_size=1G"));
        assert!(line.arguments.contains(&"--default-storage-engine=aria".to_owned()));
        assert!(line.arguments.contains(&"--datadir=/tmp/d/data".to_owned()));
    }

    #[test]
    fn the_greeting_tells_readiness() {
        assert_eq!(MARIADB.readiness(&[]), Readiness::Incomplete);
        assert_eq!(MARIADB.readiness(&[90, 0, 0, 0]), Readiness::Incomplete);
        assert_eq!(MARIADB.readiness(&[90, 0, 0, 0, 10, b'5']), Readiness::Ready);
        let full = b"\x17\0\0\0\xff\x10\x04Too many connections";
        assert_eq!(MARIADB.readiness(full), Readiness::Refused("Too many connections".to_owned()));
    }

    #[test]
    fn the_unix_socket_is_left_out_where_tcp_is_asked_for() {
        let mut settings = DatabaseSettings::default();
        assert_eq!(
            MARIADB.endpoint(Path::new("/d"), 1, &settings, &Reach::LOOPBACK).unix,
            Some(PathBuf::from("/d/socket"))
        );
        settings.socket = Some("tcp".to_owned());
        assert_eq!(MARIADB.endpoint(Path::new("/d"), 1, &settings, &Reach::LOOPBACK).unix, None);
    }
}
