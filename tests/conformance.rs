//! Every member of the registry does what every target must, and what its entry says that it can do besides. A new target is a line in `targets!`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "behind/mod.rs"]
#[expect(dead_code, reason = "shared with tests that stop the server")]
mod behind;

use std::path::Path;

use behind::Behind;

use loadline::database::conformance::{conformance, conformance_prepared};
use loadline::database::{self, Endpoint, Target};
use loadline::server::{Server, free_disk_bytes};
use loadline::trial::DatabaseSettings;

macro_rules! targets {
    ($($name:ident $config:expr;)*) => {
        const TRIED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                let config: &[&[(&str, &str)]] = &$config;
                config.iter().for_each(|config| conforms(stringify!($name), config));
            }
        )*
    };
}

// What a power failure would take is not what is checked here.
targets! {
    sqlite [&[("journal_mode", "wal")], &[("journal_mode", "delete")]];
    mariadb [&[("innodb_flush_log_at_trx_commit", "0")]];
    mysql [&[("innodb_flush_log_at_trx_commit", "0")]];
    postgres [&[("fsync", "off")]];
    redis [&[("appendfsync", "no")]];
    duckdb [&[]];
    clickhouse [&[("max_threads", "1"), ("index_granularity", "1024"), ("old_parts_lifetime", "1")]];
    cassandra [&[("commitlog_sync", "periodic")]];
    questdb [&[("cairo.commit.mode", "nosync")]];
    influxdb [&[]];
    odbc [&[("journal_mode", "wal")], &[("journal_mode", "delete")]];
    mongodb [&[("synchronous", "off")]];
    victoriametrics [&[]];
}

/// The servers with known service times keep nothing that could be read back.
const KEEPS_NOTHING: &str = "simulated";

#[test]
fn every_member_of_the_registry_is_tried() {
    let names: Vec<_> =
        database::REGISTRY.iter().map(|entry| entry.name).filter(|name| *name != KEEPS_NOTHING).collect();
    assert_eq!(names, TRIED);
}

#[test]
fn odbc_with_postgres() {
    behind_odbc("postgres", &[("fsync", "off")]);
}

#[test]
fn odbc_with_mariadb() {
    behind_odbc("mariadb", &[("innodb_flush_log_at_trx_commit", "0")]);
}

/// Checks a server of another target through its ODBC driver.
fn behind_odbc(name: &str, config: &[(&str, &str)]) {
    let Some(behind) = Behind::start(name, config) else { return };
    assert_conforms(&*behind.open(), conformance);
}

fn conforms(name: &str, config: &[(&str, &str)]) {
    let entry = database::find(name).unwrap();
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut settings = DatabaseSettings { name: name.to_owned(), config, ..DatabaseSettings::default() };
    if let Some(Err(missing)) = entry.library.map(|find| find()) {
        return eprintln!("{missing}: nothing was checked");
    }
    let Some(recipe) = entry.recipe else {
        let directory = std::env::temp_dir().join(format!("loadline-conformance-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        settings.path = Some(directory.join("database.db").display().to_string());
        assert_conforms(&*entry.open(&settings, None).unwrap(), conformance);
        return std::fs::remove_dir_all(&directory).unwrap();
    };
    if name == "mysql" {
        // No Debian package brings it.
        settings.base = std::env::var("LOADLINE_MYSQL_BASE").ok();
        if settings.base.is_none() {
            return eprintln!("LOADLINE_MYSQL_BASE names no MySQL: nothing was checked");
        }
    }
    // No Debian package brings them: `loadline fetch cassandra`, `loadline fetch questdb`, `loadline fetch mongodb`.
    if ["cassandra", "questdb", "mongodb"].contains(&name)
        && let Err(missing) = recipe.find_binary(&settings)
    {
        return eprintln!("{missing}: nothing was checked");
    }
    let server = Server::start(recipe, &settings, in_memory(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let both = server.endpoint();
    let over_tcp = Endpoint { unix: None, ..both.clone() };
    if both.unix.is_none() {
        // All have one way to send statements, and the first two make tables slowly.
        let check = if ["cassandra", "questdb", "influxdb", "mongodb", "victoriametrics"].contains(&name) {
            conformance_prepared
        } else {
            conformance
        };
        return assert_conforms(&*entry.open(&settings, Some(&over_tcp)).unwrap(), check);
    }
    let over_unix = Endpoint { tcp: None, ..both.clone() };
    assert_conforms(&*entry.open(&settings, Some(&over_unix)).unwrap(), conformance);
    assert_conforms(&*entry.open(&settings, Some(&over_tcp)).unwrap(), conformance_prepared);
}

/// Where ClickHouse has its data. It writes a file for each column of each insert and removes it soon after; on a disk the kernel takes most of the time for
/// that. What is checked here is the same in memory.
fn in_memory(name: &str) -> Option<&'static Path> {
    const NEEDED_BYTES: u64 = 2 << 30;
    let memory = Path::new("/dev/shm");
    (name == "clickhouse" && free_disk_bytes(memory).is_ok_and(|free| free >= NEEDED_BYTES)).then_some(memory)
}

fn assert_conforms(target: &dyn Target, check: fn(&dyn Target) -> Vec<String>) {
    let failures = check(target);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
