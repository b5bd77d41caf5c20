//! The recipe of private Cassandra servers: Java with Cassandra's classes.
//!
//! Main type: [`CassandraRecipe`]. Invariant: everything the server reads and writes is inside the private directory. Unless its settings say otherwise,
//! acknowledged writes are on the disk, which is not so with Cassandra's own defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::frame::{Said, begin_frame, end_frame, opcode, read_frame};
use super::{jars, startup};
use crate::database::Endpoint;
use crate::database::java;
use crate::database::recipe::{CommandLine, Reach, Readiness, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Starts Cassandra in Java.
#[derive(Debug)]
pub struct CassandraRecipe;

/// The recipe of `database.name = "cassandra"`.
pub static CASSANDRA: CassandraRecipe = CassandraRecipe;

const CONFIG_FILE: &str = "cassandra.yaml";
const LOG_FILE: &str = "logback.xml";
/// The class that is the server.
const MAIN: &str = "org.apache.cassandra.service.CassandraDaemon";
/// The keyspace of private servers.
const KEYSPACE: &str = "loadline";
/// The address at which a node would hear others: one of the machine's own at which clients of other servers do not listen, so that one free port does for both.
const NODE_ADDRESS: &str = "127.0.0.2";
/// The memory of the Java heap where the study says nothing about memory, and the least, in MiB.
const HEAP_MIB: u64 = 512;
const HEAP_LEAST_MIB: u64 = 128;
/// Where Debian has versions of Java that Cassandra runs on, in order of preference.
const JAVAS: [&str; 2] = ["17", "11"];

/// Returns the settings that have no other value than loadline's. The rest is in the command.
fn config() -> String {
    format!(
        "cluster_name: loadline\n\
         partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
         endpoint_snitch: SimpleSnitch\n\
         seed_provider:\n  - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n    parameters:\n      - seeds: \"{NODE_ADDRESS}\"\n\
         listen_address: {NODE_ADDRESS}\n\
         authenticator: AllowAllAuthenticator\n\
         authorizer: AllowAllAuthorizer\n\
         auto_bootstrap: false\n"
    )
}

/// Warnings and errors go to the standard output.
const LOG: &str = r#"<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>[%level] %date{ISO8601} %msg%n%ex{short}</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"#;

/// The packages of Java's own modules that Cassandra uses, from its file `jvm17-server.options`.
const EXPORTS: [&str; 7] = [
    "java.base/jdk.internal.misc",
    "java.base/java.lang.ref",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
];
const OPENS: [&str; 19] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
];

/// The settings of a private server, unless the study says otherwise.
const USUAL: [(&str, &str); 11] = [
    ("commitlog_sync", "batch"),
    ("num_tokens", "1"),
    ("auto_snapshot", "false"),
    ("hinted_handoff_enabled", "false"),
    // Studies write batches of any size, count whole tables, and are not to be told that a write failed because the disk was slow.
    ("batch_size_warn_threshold", "16MiB"),
    ("batch_size_fail_threshold", "64MiB"),
    ("range_request_timeout", "600s"),
    ("read_request_timeout", "60s"),
    ("write_request_timeout", "10s"),
    ("truncate_request_timeout", "600s"),
    // However long it takes: by default, an answer that is due for 12 s is given up.
    ("native_transport_timeout", "600s"),
];

/// Returns the program of Java.
fn find_java(settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
    java::find(settings, "Cassandra", &JAVAS)
}

impl Recipe for CassandraRecipe {
    /// The archive of classes stands for the server: it says which version runs. Java is looked for, too.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        find_java(settings)?;
        jars::find(settings)
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
            "authenticator",
            "authorizer",
            "broadcast_address",
            "broadcast_rpc_address",
            "cdc_raw_directory",
            "client_encryption_options",
            "cluster_name",
            "commitlog_directory",
            "data_file_directories",
            "hints_directory",
            "listen_address",
            "listen_interface",
            "local_system_data_file_directory",
            "native_transport_port",
            "native_transport_port_ssl",
            "rpc_address",
            "rpc_interface",
            "saved_caches_directory",
            "seed_provider",
            "server_encryption_options",
            "ssl_storage_port",
            "storage_port",
        ]
    }

    fn files(&self, _: &str, _: &Reach) -> Vec<(&'static str, String)> {
        vec![(CONFIG_FILE, config()), (LOG_FILE, LOG.to_owned())]
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
        // The other half is for what Java has outside of its heap, and for pages of files.
        let heap_mib = settings.memory_bytes.map_or(HEAP_MIB, |bytes| (bytes >> 21).max(HEAP_LEAST_MIB));
        let mut arguments = vec![format!("-Xmx{heap_mib}m"), "-Djava.security.manager=allow".to_owned()];
        let open = |option: &str, names: &[&str]| {
            names.iter().map(|name| format!("--add-{option}={name}=ALL-UNNAMED")).collect::<Vec<_>>()
        };
        arguments.extend(open("exports", &EXPORTS).into_iter().chain(open("opens", &OPENS)));
        let mut set = |name: &str, value: &str| arguments.push(format!("-D{name}={value}"));
        set("java.io.tmpdir", &directory.display().to_string());
        set("logback.configurationFile", &format!("file://{}", inside(LOG_FILE)));
        set("cassandra.config", &format!("file://{}", inside(CONFIG_FILE)));
        set("cassandra.storagedir", &inside("data"));
        set("cassandra-foreground", "yes");
        // There is no other node to wait for.
        set("cassandra.ring_delay_ms", "0");
        set("cassandra.skip_wait_for_gossip_to_settle", "0");
        // What a row takes in memory is found in a hundredth of the attempts, and of the seconds.
        set("cassandra.memtable_row_overhead_computation_step", "1000");
        set("cassandra.config.allow_system_properties", "true");
        for (name, value) in settings_of(settings, port, reach) {
            set(&format!("cassandra.settings.{name}"), &value);
        }
        let classes = binary.parent().unwrap_or(directory).join("*");
        arguments.extend(["-cp".to_owned(), classes.display().to_string(), MAIN.to_owned()]);
        let program = find_java(settings).unwrap_or_else(|_| "java".into());
        CommandLine { program, arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint { database: KEYSPACE.to_owned(), ..reach.endpoint(port) }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        let mut out = Vec::new();
        let from = begin_frame(opcode::STARTUP, 0, &mut out);
        startup::startup_body(&mut out);
        end_frame(from, &mut out);
        out
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        match read_frame(answer) {
            Ok(None) => Readiness::Incomplete,
            Ok(Some((frame, _))) if frame.opcode == opcode::ERROR => {
                let said = Said::of(frame.body).map(|said| said.message);
                Readiness::Refused(said.unwrap_or_else(|error| error.to_string()))
            }
            Ok(Some(_)) => Readiness::Ready,
            Err(error) => Readiness::Refused(error.to_string()),
        }
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("commitlog_sync", "commitlog_sync"),
            ("commitlog_sync_period", "commitlog_sync_period"),
            ("commitlog_disk_access_mode", "commitlog_disk_access_mode"),
            ("durable_writes", super::tables::DURABLE_WRITES),
            ("commitlog_segment_size", "commitlog_segment_size"),
            ("concurrent_reads", "concurrent_reads"),
            ("concurrent_writes", "concurrent_writes"),
            ("memtable_allocation_type", "memtable_allocation_type"),
            ("memtable_heap_space", "memtable_heap_space"),
            ("disk_access_mode", "disk_access_mode"),
            ("batch_size_fail_threshold", "batch_size_fail_threshold"),
        ]
    }
}

/// Returns the settings of a server. Those of a way to sync belong to it alone: any other refuses to start with them.
fn settings_of(settings: &DatabaseSettings, port: u16, reach: &Reach) -> BTreeMap<String, String> {
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut all: BTreeMap<String, String> = USUAL.into_iter().map(own).collect();
    all.extend(settings.config.iter().map(|(name, value)| (name.replace('-', "_"), value.clone())));
    let of_way = match all.get("commitlog_sync").map(String::as_str) {
        Some("periodic") => Some(("commitlog_sync_period", "10000ms")),
        Some("group") => Some(("commitlog_sync_group_window", "10ms")),
        _ => None,
    };
    if let Some((name, value)) = of_way {
        all.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    let (port, address) = (port.to_string(), reach.address.to_string());
    all.extend([("native_transport_port", &*port), ("storage_port", &port), ("rpc_address", &address)].map(own));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(config: &[(&str, &str)]) -> String {
        let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = DatabaseSettings { config, ..DatabaseSettings::default() };
        let line =
            CASSANDRA.start(Path::new("/jars/cassandra-all-5.jar"), Path::new("/d"), 7, &settings, &Reach::LOOPBACK);
        line.arguments.join(" ")
    }

    #[test]
    fn what_is_acknowledged_is_on_the_disk_unless_the_study_says_otherwise() {
        let usual = started(&[]);
        assert!(usual.contains("settings.commitlog_sync=batch") && !usual.contains("commitlog_sync_period"), "{usual}");
        let lazy = started(&[("commitlog_sync", "periodic")]);
        assert!(lazy.contains("commitlog_sync=periodic") && lazy.contains("commitlog_sync_period=10000ms"), "{lazy}");
        let own = started(&[("commitlog_sync", "periodic"), ("commitlog_sync_period", "1000ms")]);
        assert!(own.contains("commitlog_sync_period=1000ms"), "{own}");
    }

    #[test]
    fn it_listens_on_one_port_of_two_addresses_of_this_machine() {
        let usual = started(&[]);
        for part in [
            "settings.native_transport_port=7",
            "settings.storage_port=7",
            "settings.rpc_address=127.0.0.1",
            "-cp /jars/* ",
        ] {
            assert!(usual.contains(part), "{usual}");
        }
        assert_eq!(config().matches(NODE_ADDRESS).count(), 2);
    }

    #[test]
    fn a_server_is_ready_when_it_answers() {
        assert_eq!(CASSANDRA.readiness(b"\x84\0\0\0\x02\0\0"), Readiness::Incomplete);
        assert_eq!(CASSANDRA.readiness(b"\x84\0\0\0\x02\0\0\0\0"), Readiness::Ready);
        let refused = Readiness::Refused("no".to_owned());
        assert_eq!(CASSANDRA.readiness(b"\x84\0\0\0\0\0\0\0\x08\0\0\0\x0a\0\x02no"), refused);
        assert!(matches!(CASSANDRA.readiness(b"HTTP"), Readiness::Refused(_)));
    }
}
