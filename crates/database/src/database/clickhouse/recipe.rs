//! The recipe of private ClickHouse servers.
//!
//! Main type: [`ClickhouseRecipe`]. Invariant: everything the server reads and writes is inside the private directory, and it listens on one address for HTTP alone.

use std::path::{Path, PathBuf};

use super::settings::OF_SERVER;
use crate::database::Endpoint;
use crate::database::recipe::{CONNECTIONS, CommandLine, Programs, Reach, Readiness, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Starts `clickhouse-server`.
#[derive(Debug)]
pub struct ClickhouseRecipe;

/// The recipe of `database.name = "clickhouse"`.
pub static CLICKHOUSE: ClickhouseRecipe = ClickhouseRecipe;

/// The server's programs. The second one is all of ClickHouse, and needs to be told which part. Packages put them where not every user looks.
const PROGRAMS: Programs = Programs {
    names: &["clickhouse-server", "clickhouse"],
    below: &["bin", "sbin", "usr/bin", "usr/sbin", ""],
    places: &["/usr/sbin", "/usr/bin"],
    remedy: "install the Debian package clickhouse-server (apt-get install clickhouse-server), or set database.url to a running server",
};
/// The name of the account.
const USER: &str = "default";
const CONFIG_FILE: &str = "config.xml";
const USERS_FILE: &str = "users.xml";
/// The size of the cache of marks, which has no default in some versions.
const MARK_CACHE_BYTES: u64 = 1 << 30;
/// The time in seconds after which the server closes an idle connection: longer than a study.
const KEEP_ALIVE_S: u64 = 30 * 24 * 60 * 60;

impl Recipe for ClickhouseRecipe {
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        PROGRAMS.find(settings)
    }

    fn users(&self) -> &'static [&'static str] {
        &["clickhouse", "nobody"]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "access_control_path",
            "config-file",
            "daemon",
            "default_database",
            "default_profile",
            "format_schema_path",
            "http_port",
            "https_port",
            "interserver_http_host",
            "interserver_http_port",
            "listen_host",
            "log-file",
            "logger",
            "path",
            "pidfile",
            "readonly",
            "tcp_port",
            "tcp_port_secure",
            "tmp_path",
            "user_files_path",
            "users_config",
        ]
    }

    /// The account is let in from any address that reaches the server, with its password.
    fn files(&self, password: &str, _: &Reach) -> Vec<(&'static str, String)> {
        // Versions before 20 know no other name of the outermost element, and later ones still know this.
        let config = format!(
            "<?xml version=\"1.0\"?>\n<yandex>\n<logger><level>warning</level><console>1</console></logger>\n\
             <users_config>{USERS_FILE}</users_config>\n<default_profile>default</default_profile>\n\
             <default_database>default</default_database>\n<mark_cache_size>{MARK_CACHE_BYTES}</mark_cache_size>\n\
             <keep_alive_timeout>{KEEP_ALIVE_S}</keep_alive_timeout>\n<max_keep_alive_requests>0</max_keep_alive_requests>\n\
             <max_connections>{CONNECTIONS}</max_connections>\n<max_concurrent_queries>{CONNECTIONS}</max_concurrent_queries>\n</yandex>\n"
        );
        let users = format!(
            "<?xml version=\"1.0\"?>\n<yandex>\n<profiles><default></default></profiles>\n<users><{USER}><password>{password}</password>\
             <networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></{USER}></users>\n\
             <quotas><default></default></quotas>\n</yandex>\n"
        );
        vec![(CONFIG_FILE, config), (USERS_FILE, users)]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let is_of_all = binary.file_name().is_some_and(|name| name == PROGRAMS.names[1]);
        let mut arguments: Vec<String> = is_of_all.then(|| "server".to_owned()).into_iter().collect();
        arguments.extend([format!("--config-file={}", directory.join(CONFIG_FILE).display()), "--".to_owned()]);
        let mut set = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
        let inside = |name: &str| format!("{}/", directory.join("data").join(name).display());
        set("http_port", &port.to_string());
        set("listen_host", &reach.address.to_string());
        set("path", &format!("{}/", directory.join("data").display()));
        set("tmp_path", &inside("tmp"));
        set("user_files_path", &inside("user_files"));
        set("format_schema_path", &inside("format_schemas"));
        // Clients set the others, for each query or for their tables.
        for (name, value) in settings.config.iter().filter(|(name, _)| OF_SERVER.contains(&name.as_str())) {
            set(name, value);
        }
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    /// The server has no unix socket.
    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint { user: USER.to_owned(), ..reach.endpoint(port) }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        b"GET /ping HTTP/1.1\r\nHost: clickhouse\r\nConnection: close\r\n\r\n".to_vec()
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        match answer {
            _ if answer.starts_with(b"HTTP/1.1 200") => Readiness::Ready,
            _ if answer.len() < 12 => Readiness::Incomplete,
            _ => Readiness::Starting,
        }
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("async_insert", "async_insert"),
            ("wait_for_async_insert", "wait_for_async_insert"),
            ("fsync_after_insert", "fsync_after_insert"),
            ("fsync_part_directory", "fsync_part_directory"),
            ("min_rows_to_fsync_after_merge", "min_rows_to_fsync_after_merge"),
            ("max_insert_block_size", "max_insert_block_size"),
            ("max_threads", "max_threads"),
            ("max_memory_usage", "max_memory_usage"),
            ("background_pool_size", "background_pool_size"),
            ("index_granularity", "index_granularity"),
            ("parts_to_delay_insert", "parts_to_delay_insert"),
            ("parts_to_throw_insert", "parts_to_throw_insert"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_it_answers() {
        assert_eq!(CLICKHOUSE.readiness(b"HTTP/1.1"), Readiness::Incomplete);
        assert_eq!(CLICKHOUSE.readiness(b"HTTP/1.1 200 OK\r\n"), Readiness::Ready);
        assert_eq!(CLICKHOUSE.readiness(b"HTTP/1.1 503 Service Unavailable\r\n"), Readiness::Starting);
    }

    #[test]
    fn only_the_servers_own_settings_are_on_its_command_line() {
        let config = [("mark_cache_size", "5"), ("max_threads", "1")];
        let config = config.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = DatabaseSettings { config, ..DatabaseSettings::default() };
        let start = |program: &str| {
            let line = CLICKHOUSE.start(Path::new(program), Path::new("/d"), 7, &settings, &Reach::LOOPBACK);
            line.arguments.join(" ")
        };
        let told = start("/usr/sbin/clickhouse-server");
        assert!(
            told.starts_with("--config-file=/d/config.xml -- --http_port=7 --listen_host=127.0.0.1 --path=/d/data/"),
            "{told}"
        );
        assert!(told.ends_with("--mark_cache_size=5") && !told.contains("max_threads"), "{told}");
        assert!(start("/opt/clickhouse").starts_with("server --config-file="));
    }
}
