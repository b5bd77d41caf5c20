//! `run.toml`: the resolved study, its seed, and the machine, kernel, databases and settings of a run.

use serde::{Deserialize, Serialize};

use crate::measurement::Environment;
use crate::study::Study;

/// Version of the file's form; raised when a field's meaning would change.
const RUN_FILE_VERSION: u32 = 1;

/// The content of `run.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// Version of the writer's form.
    pub version: u32,
    /// When the run began, UTC, RFC 3339.
    pub started: String,
    /// Machine and software.
    pub environment: Environment,
    /// The study with everything resolved.
    pub study: Study,
}

impl RunFile {
    pub(super) fn new(study: Study, environment: Environment, started: &str) -> Self {
        RunFile { version: RUN_FILE_VERSION, started: started.to_owned(), environment, study }
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

    /// Whether a run begun with this file may be continued with a study on a machine.
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
                "the run was begun with another form of study \"{}\": the file, --set, --quick or --seed differ; repeat them \
                 as they were, or begin a new run",
                self.study.name
            ));
        }
        Ok(())
    }
}
