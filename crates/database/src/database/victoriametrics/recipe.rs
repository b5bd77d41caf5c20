//! The recipe of private VictoriaMetrics servers.
//!
//! Main type: [`VictoriametricsRecipe`]. Invariant: everything the server writes is inside the private directory, and it listens on one address.

use std::path::{Path, PathBuf};

use super::settings::check;
use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Programs, Reach, Readiness, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Starts `victoria-metrics`.
#[derive(Debug)]
pub struct VictoriametricsRecipe;

/// The recipe of `database.name = "victoriametrics"`.
pub static VICTORIAMETRICS: VictoriametricsRecipe = VictoriametricsRecipe;

/// The server's program: as Debian names it, and as its maker does.
const PROGRAMS: Programs = Programs {
    names: &["victoria-metrics", "victoria-metrics-prod"],
    below: &["bin", "usr/bin", ""],
    places: &["/usr/bin", "/usr/local/bin"],
    remedy: "install the Debian package victoria-metrics (apt-get install victoria-metrics), or set database.url to a running server",
};

/// The flags of a private server that differ from its own: it keeps points for a century instead of a month, answers neither from a cache nor as of half a minute ago, and
/// does not close connections after two minutes, or after one without a request.
const FLAGS: [(&str, &str); 5] = [
    ("http.connTimeout", "8760h"),
    ("http.idleConnTimeout", "8760h"),
    ("retentionPeriod", "100y"),
    ("search.disableCache", "true"),
    ("search.latencyOffset", "0s"),
];

impl Recipe for VictoriametricsRecipe {
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let binary = PROGRAMS.find(settings)?;
        check(&binary, &settings.config)?;
        Ok(binary)
    }

    fn users(&self) -> &'static [&'static str] {
        &["victoria-metrics", "nobody"]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[
            "configAuthKey",
            "deleteAuthKey",
            "envflag.enable",
            "forceFlushAuthKey",
            "flagsAuthKey",
            "graphiteListenAddr",
            "http.pathPrefix",
            "httpAuth.password",
            "httpAuth.username",
            "httpListenAddr",
            "influxDBLabel",
            "influxListenAddr",
            "influxMeasurementFieldSeparator",
            "influxSkipMeasurement",
            "influxSkipSingleField",
            "influxTrimTimestamp",
            "metricsAuthKey",
            "opentsdbHTTPListenAddr",
            "opentsdbListenAddr",
            "precisionBits",
            "promscrape.config",
            "relabelConfig",
            "storageDataPath",
            "tls",
            "tlsCertFile",
            "tlsKeyFile",
        ]
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let own = FLAGS.iter().filter(|(name, _)| !settings.config.contains_key(*name));
        let own = own.map(|(name, value)| format!("-{name}={value}"));
        let asked = settings.config.iter().map(|(name, value)| format!("-{name}={value}"));
        let places = [
            format!("-storageDataPath={}", directory.join("data").display()),
            format!("-httpListenAddr={}:{port}", reach.address),
        ];
        let arguments = own.chain(asked).chain(places).collect();
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        reach.endpoint(port)
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        b"GET /health HTTP/1.1\r\nHost: victoriametrics\r\nConnection: close\r\n\r\n".to_vec()
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
            ("retentionPeriod", "retentionPeriod"),
            ("memory.allowedBytes", "memory.allowedBytes"),
            ("memory.allowedPercent", "memory.allowedPercent"),
            ("dedup.minScrapeInterval", "dedup.minScrapeInterval"),
            ("maxConcurrentInserts", "maxConcurrentInserts"),
            ("search.maxConcurrentRequests", "search.maxConcurrentRequests"),
            ("search.disableCache", "search.disableCache"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_it_answers() {
        assert_eq!(VICTORIAMETRICS.readiness(b"HTTP/1.1"), Readiness::Incomplete);
        assert_eq!(VICTORIAMETRICS.readiness(b"HTTP/1.1 200 OK\r\n"), Readiness::Ready);
        assert_eq!(VICTORIAMETRICS.readiness(b"HTTP/1.1 503 Service Unavailable\r\n"), Readiness::Starting);
    }

    #[test]
    fn a_studys_settings_do_not_move_the_server_out_of_its_directory() {
        let config = [("retentionPeriod", "2y"), ("httpListenAddr", "0.0.0.0:1"), ("storageDataPath", "/etc")];
        let config = config.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = DatabaseSettings { config, ..DatabaseSettings::default() };
        let line = VICTORIAMETRICS.start(Path::new("/usr/bin/vm"), Path::new("/d"), 7, &settings, &Reach::LOOPBACK);
        // The last one counts.
        let value = |name: &str| line.arguments.iter().rev().find_map(|own| own.strip_prefix(name)).unwrap();
        assert_eq!(value("-retentionPeriod="), "2y");
        assert_eq!(value("-storageDataPath="), "/d/data");
        assert_eq!(value("-httpListenAddr="), "127.0.0.1:7");
        assert_eq!(value("-search.latencyOffset="), "0s");
        assert!(
            ["httpListenAddr", "storageDataPath"].iter().all(|name| VICTORIAMETRICS.reserved_settings().contains(name))
        );
    }
}
