//! The recipe of private servers: FerretDB, which keeps documents in SQLite, or MongoDB's own `mongod`.
//!
//! Main type: [`MongodbRecipe`]. Invariant: everything the server reads and writes is inside the private directory, and it listens on one address alone.

use std::path::{Path, PathBuf};

use super::durability::{SYNCHRONOUS, SYNCHRONOUS_USUAL};
use super::message::{command, read_message};
use super::{module, startup};
use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Reach, Readiness, Recipe};
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// Starts FerretDB or `mongod`.
#[derive(Debug)]
pub struct MongodbRecipe;

/// The recipe of `database.name = "mongodb"`.
pub static MONGODB: MongodbRecipe = MongodbRecipe;

/// The database of private servers.
const DATABASE: &str = "loadline";
/// The settings of SQLite that a study may set for FerretDB.
const PRAGMAS: [&str; 6] =
    [SYNCHRONOUS, "cache_size", "journal_size_limit", "mmap_size", "temp_store", "wal_autocheckpoint"];

/// Returns whether a program is MongoDB's own server, by its name.
fn is_mongod(binary: &Path) -> bool {
    binary.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mongod"))
}

/// Returns the value of [`SYNCHRONOUS`] that a private server of FerretDB is started with.
pub(super) fn synchronous_of(settings: &DatabaseSettings) -> String {
    settings.config.get(SYNCHRONOUS).map_or_else(|| SYNCHRONOUS_USUAL.to_owned(), |value| value.trim().to_lowercase())
}

/// Checks that FerretDB's SQLite knows the study's settings: it passes over others.
fn check(settings: &DatabaseSettings) -> Result<(), Fault> {
    for (name, value) in &settings.config {
        if !PRAGMAS.contains(&name.as_str()) {
            let known = PRAGMAS.join(", ");
            return Err(
                fault!("database.config has \"{name}\", which is no setting of FerretDB's SQLite that can be set"; "there are {known}"),
            );
        }
        let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_known = name != SYNCHRONOUS || ["off", "normal", "full", "extra"].contains(&&*synchronous_of(settings));
        if !is_plain || !is_known {
            let remedy = if name == SYNCHRONOUS { "it is off, normal, full or extra" } else { "it is a number" };
            return Err(fault!("database.config has {name} = \"{value}\""; "{remedy}"));
        }
    }
    Ok(())
}

impl Recipe for MongodbRecipe {
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let binary = module::find(settings)?;
        if !is_mongod(&binary) {
            check(settings)?;
        }
        Ok(binary)
    }

    fn users(&self) -> &'static [&'static str] {
        // The program is in the home directory of who has fetched it.
        &[]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let data = directory.join("data").display().to_string();
        let address = reach.address.to_string();
        let arguments = if is_mongod(binary) {
            let mut arguments: Vec<String> = ["--dbpath", &data, "--bind_ip", &address, "--port", &port.to_string()]
                .into_iter()
                .chain(["--nounixsocket", "--quiet"])
                .map(str::to_owned)
                .collect();
            for (name, value) in &settings.config {
                arguments.extend(["--setParameter".to_owned(), format!("{name}={value}")]);
            }
            arguments
        } else {
            let mut pragmas =
                "_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=auto_vacuum(none)".to_owned();
            let synchronous = (SYNCHRONOUS.to_owned(), synchronous_of(settings));
            let others = settings.config.iter().filter(|(name, _)| *name != SYNCHRONOUS);
            for (name, value) in others.chain([(&synchronous.0, &synchronous.1)]) {
                pragmas += &format!("&_pragma={name}({value})");
            }
            vec![
                "--handler=sqlite".to_owned(),
                format!("--sqlite-url=file:{data}/?{pragmas}"),
                format!("--listen-addr={address}:{port}"),
                format!("--state-dir={data}"),
                "--debug-addr=-".to_owned(),
                "--telemetry=disable".to_owned(),
                "--log-level=error".to_owned(),
            ]
        };
        // Its libraries look for a home directory.
        let environment = vec![("HOME".to_owned(), directory.display().to_string())];
        CommandLine { program: binary.to_owned(), arguments, environment, ..CommandLine::default() }
    }

    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint { database: DATABASE.to_owned(), ..reach.endpoint(port) }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        let mut out = Vec::new();
        command(0, "admin", &mut out, startup::hello);
        out
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        match read_message(answer) {
            Ok(None) => Readiness::Incomplete,
            Ok(Some((message, _))) => match startup::check_greeting(message.body) {
                Ok(()) => Readiness::Ready,
                Err(error) => Readiness::Refused(error.to_string()),
            },
            Err(error) => Readiness::Refused(error.to_string()),
        }
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[(SYNCHRONOUS, SYNCHRONOUS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(config: &[(&str, &str)]) -> DatabaseSettings {
        let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        DatabaseSettings { config, ..DatabaseSettings::default() }
    }

    fn started(binary: &str, config: &[(&str, &str)]) -> String {
        let line = MONGODB.start(Path::new(binary), Path::new("/d"), 7, &settings(config), &Reach::LOOPBACK);
        line.arguments.join(" ")
    }

    #[test]
    fn what_is_acknowledged_is_synced_unless_the_study_says_otherwise() {
        let usual = started("/bin/ferretdb", &[]);
        for part in ["synchronous(full)", "journal_mode(wal)", "file:/d/data/?", "--listen-addr=127.0.0.1:7"] {
            assert!(usual.contains(part), "{usual}");
        }
        let lazy = started("/bin/ferretdb", &[("synchronous", "OFF"), ("cache_size", "-2000")]);
        assert!(lazy.contains("synchronous(off)") && lazy.contains("cache_size(-2000)"), "{lazy}");
        let own = started("/opt/bin/mongod", &[("ttlMonitorEnabled", "false")]);
        assert!(own.contains("--dbpath /d/data") && own.contains("--setParameter ttlMonitorEnabled=false"), "{own}");
    }

    #[test]
    fn settings_that_would_be_passed_over_are_refused() {
        let told = |config: &[(&str, &str)]| check(&settings(config)).map_err(|fault| fault.to_string());
        assert_eq!(told(&[("synchronous", "Normal"), ("mmap_size", "0")]), Ok(()));
        assert!(told(&[("synchronus", "off")]).unwrap_err().contains("synchronus"));
        assert!(told(&[("synchronous", "sometimes")]).unwrap_err().contains("normal"));
        assert!(told(&[("cache_size", "1)&_pragma=x(1")]).unwrap_err().contains("a number"));
    }

    #[test]
    fn a_server_is_ready_when_it_answers() {
        let hello = MONGODB.hello(&Endpoint::default());
        assert_eq!(MONGODB.readiness(&hello[..20]), Readiness::Incomplete);
        // It does not say which protocol it speaks.
        assert!(matches!(MONGODB.readiness(&hello), Readiness::Refused(_)));
        assert!(matches!(MONGODB.readiness(b"HTTP/1.1 400 Bad Request"), Readiness::Refused(_)));
    }
}
