//! The recipe of private InfluxDB servers.
//!
//! Main type: [`InfluxdbRecipe`]. Invariant: everything the server reads and writes is inside the private directory, and it listens on one address for HTTP alone, but for a port of its own on the
//! loopback address for backups, which the kernel chooses.

use std::path::{Path, PathBuf};

use super::settings::{check, variable};
use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Programs, Reach, Readiness, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Starts `influxd`.
#[derive(Debug)]
pub struct InfluxdbRecipe;

/// The recipe of `database.name = "influxdb"`.
pub static INFLUXDB: InfluxdbRecipe = InfluxdbRecipe;

/// The server's program.
const PROGRAMS: Programs = Programs {
    names: &["influxd"],
    below: &["bin", "usr/bin", ""],
    places: &["/usr/bin", "/usr/sbin"],
    remedy: "install the Debian package influxdb (apt-get install influxdb), or set database.url to a running server",
};
const CONFIG_FILE: &str = "influxdb.conf";
/// The name of the account, and of the database.
const USER: &str = "loadline";
const DATABASE: &str = "loadline";

/// The settings of a private server that differ from InfluxDB's own: no reports to its maker, no statistics in a database of its own, and no line in a log for each request.
const CONFIG: &str = "reporting-disabled = true\nbind-address = \"127.0.0.1:0\"\n\
                      [data]\nquery-log-enabled = false\n\
                      [http]\nauth-enabled = true\nlog-enabled = false\npprof-enabled = false\n\
                      [monitor]\nstore-enabled = false\n";

impl Recipe for InfluxdbRecipe {
    /// The program is asked whether it knows the study's settings: the server passes over others.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let binary = PROGRAMS.find(settings)?;
        check(&binary, &settings.config)?;
        Ok(binary)
    }

    fn users(&self) -> &'static [&'static str] {
        &["influxdb", "nobody"]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "bind-address",
            "data.dir",
            "data.wal-dir",
            "http.access-log-path",
            "http.auth-enabled",
            "http.bind-address",
            "http.bind-socket",
            "http.debug-pprof-enabled",
            "http.enabled",
            "http.https-certificate",
            "http.https-enabled",
            "http.https-private-key",
            "http.pprof-enabled",
            "http.shared-secret",
            "http.unix-socket-enabled",
            "http.unix-socket-permissions",
            "ifql.bind-address",
            "ifql.enabled",
            "meta.dir",
            "monitor.store-database",
            "monitor.store-enabled",
            "reporting-enabled",
        ]
    }

    fn files(&self, _: &str, _: &Reach) -> Vec<(&'static str, String)> {
        vec![(CONFIG_FILE, CONFIG.to_owned())]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let arguments = vec!["-config".to_owned(), directory.join(CONFIG_FILE).display().to_string()];
        // Variables count for more than the file.
        let own = settings.config.iter().map(|(name, value)| (variable(name), value.clone()));
        let inside = |name: &str| directory.join("data").join(name).display().to_string();
        let places = [
            ("meta.dir", inside("meta")),
            ("data.dir", inside("data")),
            ("data.wal-dir", inside("wal")),
            ("http.bind-address", format!("{}:{port}", reach.address)),
        ];
        let places = places.into_iter().map(|(name, value)| (variable(name), value));
        // Its tools look for a home directory, which the server's user may not have.
        let home = ("HOME".to_owned(), directory.display().to_string());
        let environment = own.chain(places).chain([home]).collect();
        CommandLine { program: binary.to_owned(), arguments, environment, ..CommandLine::default() }
    }

    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint { user: USER.to_owned(), database: DATABASE.to_owned(), ..reach.endpoint(port) }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        b"GET /ping HTTP/1.1\r\nHost: influxdb\r\nConnection: close\r\n\r\n".to_vec()
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        match answer {
            _ if answer.starts_with(b"HTTP/1.1 204") => Readiness::Ready,
            _ if answer.len() < 12 => Readiness::Incomplete,
            _ => Readiness::Starting,
        }
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("data.wal_fsync_delay", "data.wal-fsync-delay"),
            ("data.cache_max_memory_size", "data.cache-max-memory-size"),
            ("data.cache_snapshot_memory_size", "data.cache-snapshot-memory-size"),
            ("data.cache_snapshot_write_cold_duration", "data.cache-snapshot-write-cold-duration"),
            ("data.compact_full_write_cold_duration", "data.compact-full-write-cold-duration"),
            ("data.max_concurrent_compactions", "data.max-concurrent-compactions"),
            ("data.max_series_per_database", "data.max-series-per-database"),
            ("data.max_values_per_tag", "data.max-values-per-tag"),
            ("coordinator.write_timeout", "coordinator.write-timeout"),
            ("runtime.GOMAXPROCS", "runtime.GOMAXPROCS"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_it_answers() {
        assert_eq!(INFLUXDB.readiness(b"HTTP/1.1"), Readiness::Incomplete);
        assert_eq!(INFLUXDB.readiness(b"HTTP/1.1 204 No Content\r\n"), Readiness::Ready);
        assert_eq!(INFLUXDB.readiness(b"HTTP/1.1 503 Service Unavailable\r\n"), Readiness::Starting);
    }

    #[test]
    fn a_studys_settings_do_not_move_the_server_out_of_its_directory() {
        let config = [("data.wal-fsync-delay", "10ms"), ("http.bind-address", "0.0.0.0:1"), ("data.dir", "/etc")];
        let config = config.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = DatabaseSettings { config, ..DatabaseSettings::default() };
        let line = INFLUXDB.start(Path::new("/usr/bin/influxd"), Path::new("/d"), 7, &settings, &Reach::LOOPBACK);
        // The last one counts.
        let value = |name: &str| line.environment.iter().rev().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(value("INFLUXDB_DATA_WAL_FSYNC_DELAY"), "10ms");
        assert_eq!(value("INFLUXDB_HTTP_BIND_ADDRESS"), "127.0.0.1:7");
        assert_eq!(
            (value("INFLUXDB_DATA_DIR"), value("INFLUXDB_META_DIR")),
            ("/d/data/data".into(), "/d/data/meta".into())
        );
        assert_eq!(line.arguments, ["-config", "/d/influxdb.conf"]);
        for name in ["http.bind-address", "data.dir"] {
            assert!(INFLUXDB.reserved_settings().contains(&name));
        }
    }
}
