//! The recipe of private Redis servers.
//!
//! Main type: [`RedisRecipe`]. Invariant: everything the server reads and writes is inside the private directory. Unless its settings say otherwise,
//! acknowledged writes are on the disk, which is not so with Redis's own defaults.

use std::path::{Path, PathBuf};

use crate::database::Endpoint;
use crate::database::recipe::{CONNECTIONS, CommandLine, Programs, Reach, Readiness, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Starts `redis-server`.
#[derive(Debug)]
pub struct RedisRecipe;

/// The recipe of `database.name = "redis"`.
pub static REDIS: RedisRecipe = RedisRecipe;

/// The server's programs.
const PROGRAMS: Programs = Programs {
    names: &["redis-server", "valkey-server"],
    below: &["bin", "src", ""],
    places: &[],
    remedy: "install the Debian package redis-server (apt-get install redis-server), or set database.url to a running server",
};
/// The file with the passwords.
pub(super) const CONFIG_FILE: &str = "redis.conf";
const SOCKET_FILE: &str = "redis.sock";

impl Recipe for RedisRecipe {
    /// Debian's file is a link to a program that checks dumps under another name.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        PROGRAMS.find(settings)
    }

    fn users(&self) -> &'static [&'static str] {
        &["redis", "valkey", "nobody"]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "aclfile",
            "bind",
            "bind-source-addr",
            "cluster-enabled",
            "daemonize",
            "dir",
            "include",
            "logfile",
            "masterauth",
            "masteruser",
            "pidfile",
            "port",
            "protected-mode",
            "replica-announce-ip",
            "replica-announce-port",
            "replicaof",
            "requirepass",
            "slave-announce-ip",
            "slave-announce-port",
            "slaveof",
            "supervised",
            "syslog-enabled",
            "tls-port",
            "unixsocket",
            "unixsocketperm",
            "user",
        ]
    }

    fn files(&self, password: &str, _: &Reach) -> Vec<(&'static str, String)> {
        vec![(CONFIG_FILE, format!("requirepass {password}\n"))]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let inside = |name: &str| directory.join(name).display().to_string();
        let mut arguments = vec![inside(CONFIG_FILE)];
        let mut set = |name: &str, value: &str| arguments.extend([format!("--{name}"), value.to_owned()]);
        set("port", &port.to_string());
        set("bind", &reach.address.to_string());
        set("unixsocket", &inside(SOCKET_FILE));
        set("unixsocketperm", "700");
        set("dir", &inside("data"));
        set("daemonize", "no");
        set("maxclients", &CONNECTIONS.to_string());
        // The log of all commands, synced before they are answered, without additional snapshots.
        set("appendonly", "yes");
        set("appendfsync", "always");
        set("save", "");
        for (name, value) in &settings.config {
            set(name, value);
        }
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint {
            unix: (settings.socket.as_deref() != Some("tcp")).then(|| directory.join(SOCKET_FILE)),
            ..reach.endpoint(port)
        }
    }

    fn hello(&self, endpoint: &Endpoint) -> Vec<u8> {
        format!("AUTH {}\r\nPING\r\n", endpoint.password).into_bytes()
    }

    /// A server is ready when it admits the connection and answers; one that still loads its data says so.
    fn readiness(&self, answer: &[u8]) -> Readiness {
        let text = String::from_utf8_lossy(answer);
        let mut lines = text.split_inclusive("\r\n").filter(|line| line.ends_with("\r\n"));
        match (lines.next(), lines.next()) {
            (Some(refused), _) if refused.starts_with('-') && !refused.starts_with("-LOADING") => {
                Readiness::Refused(refused.trim_start_matches('-').trim().to_owned())
            }
            (Some(_), Some(second)) if second.starts_with("+PONG") => Readiness::Ready,
            // A replica may also be set to answer only while its primary does.
            (Some(_), Some(second)) if second.starts_with("-LOADING") || second.starts_with("-MASTERDOWN") => {
                Readiness::Starting
            }
            (Some(_), Some(second)) => Readiness::Refused(second.trim_start_matches('-').trim().to_owned()),
            _ => Readiness::Incomplete,
        }
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("appendonly", "appendonly"),
            ("appendfsync", "appendfsync"),
            ("no_appendfsync_on_rewrite", "no-appendfsync-on-rewrite"),
            ("auto_aof_rewrite_percentage", "auto-aof-rewrite-percentage"),
            ("save", "save"),
            ("maxmemory", "maxmemory"),
            ("maxmemory_policy", "maxmemory-policy"),
            ("max_connections", "maxclients"),
            ("io_threads", "io-threads"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_reads_its_data_is_not_ready() {
        assert_eq!(REDIS.readiness(b"+OK\r\n-LOADING Redis is loading the dataset in memory\r\n"), Readiness::Starting);
        assert_eq!(REDIS.readiness(b"+OK\r\n+PO"), Readiness::Incomplete);
        assert_eq!(REDIS.readiness(b"+OK\r\n+PONG\r\n"), Readiness::Ready);
        assert_eq!(REDIS.readiness(b"-WRONGPASS no\r\n"), Readiness::Refused("WRONGPASS no".to_owned()));
    }

    #[test]
    fn what_is_acknowledged_is_on_the_disk_unless_the_study_says_otherwise() {
        let settings = DatabaseSettings {
            config: [("appendfsync".to_owned(), "everysec".to_owned())].into(),
            ..DatabaseSettings::default()
        };
        let start = |settings: &DatabaseSettings| {
            REDIS
                .start(Path::new("/bin/redis-server"), Path::new("/d"), 1, settings, &Reach::LOOPBACK)
                .arguments
                .join(" ")
        };
        let usual = start(&DatabaseSettings::default());
        assert!(usual.contains("--appendonly yes --appendfsync always"), "{usual}");
        assert!(start(&settings).ends_with("--appendfsync everysec"), "the last is what counts");
    }
}
