//! `run.toml`: the resolved study, its seed, and the machine, kernel, databases and settings of a run.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file;
use crate::measurement::Environment;
use crate::study::Study;

/// Version of the file's format; raised when a field's meaning changes.
const RUN_FILE_VERSION: u32 = 1;

/// The content of `run.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// Version of the format in which the file was written.
    pub version: u32,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// The machine and its software.
    pub environment: Environment,
    /// The study with everything resolved.
    pub study: Study,
}

impl RunFile {
    pub(super) fn new(study: Study, environment: Environment, started: &str) -> Self {
        RunFile { version: RUN_FILE_VERSION, started: started.to_owned(), environment, study }
    }

    /// Reads the file of a run if `path` is such a file or its directory; `None` if it is something else, such as a study.
    ///
    /// # Errors
    /// A sentence, if the file is that of a run and cannot be understood.
    pub fn find(path: &Path) -> Option<Result<Self, String>> {
        let file = if path.is_dir() { path.join(super::RUN_FILE) } else { path.to_path_buf() };
        let text = file::read_text(&file, file::MADE_MOST).ok()?;
        let table: toml::Table = text.parse().ok()?;
        let is_run = ["version", "environment", "study"].iter().all(|key| table.contains_key(*key));
        is_run.then(|| Self::from_toml(&text).map_err(|why| format!("{}: {why}", file.display())))
    }

    pub(super) fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| format!("the study has no TOML form: {error}"))
    }

    pub(super) fn from_toml(text: &str) -> Result<Self, String> {
        let file: RunFile = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.version > RUN_FILE_VERSION {
            return Err(format!("version {} was written by a newer loadline; use that one", file.version));
        }
        Ok(file)
    }

    /// Checks that a run begun with this file may be continued with a study on a machine.
    ///
    /// # Errors
    /// A sentence that names what differs.
    pub(super) fn check_same(&self, study: &Study, environment: &Environment) -> Result<(), String> {
        let (mine, theirs) = (&self.environment, environment);
        for (what, then, now) in [
            ("machine", &mine.machine, &theirs.machine),
            ("CPU", &mine.cpu, &theirs.cpu),
            ("kernel", &mine.kernel, &theirs.kernel),
            ("version of loadline", &mine.loadline, &theirs.loadline),
        ] {
            if then != now {
                return Err(format!(
                    "the run was begun with another {what}: \"{then}\", now \"{now}\"; its figures would not compare, so \
                     begin a new run"
                ));
            }
        }
        if mine.cpus != theirs.cpus {
            return Err(format!(
                "the run was begun with {} CPUs, now there are {}; begin a new run",
                mine.cpus, theirs.cpus
            ));
        }
        if self.study != *study {
            return Err(format!(
                "the run was begun with another form of study \"{}\": {}; repeat file, --set, --quick and --seed as they were, \
                 or begin a new run",
                self.study.name,
                difference(&self.study, study)
            ));
        }
        Ok(())
    }
}

/// Returns the first setting in which two studies differ, with its values if they are short.
fn difference(then: &Study, now: &Study) -> String {
    fn first(path: &str, then: &Value, now: &Value) -> Option<String> {
        match (then, now) {
            _ if then == now => None,
            (Value::Object(then), Value::Object(now)) => {
                // The cases follow from the other keys.
                let keys = then.keys().chain(now.keys()).filter(|key| *key != "cases");
                keys.chain(now.keys()).find_map(|key| {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    first(&path, then.get(key).unwrap_or(&Value::Null), now.get(key).unwrap_or(&Value::Null))
                })
            }
            (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
                Some(format!("it had other {path}"))
            }
            _ => {
                let setting = path.strip_prefix("base.").unwrap_or(path);
                Some(format!("{setting} was {then} and is {now} now"))
            }
        }
    }
    let value = |study| serde_json::to_value(study).unwrap_or_default();
    first("", &value(then), &value(now)).unwrap_or_else(|| "it differs".to_owned())
}
