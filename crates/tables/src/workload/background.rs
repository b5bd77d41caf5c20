//! The workload of the background load, which `[background]` describes.
//!
//! Main function: [`settings`]. Invariant: it is one of the plain workloads, whose operations need only the existing
//! tables.

use super::{find, inserts, parts, write};
use crate::trial::{Settings, WorkloadSettings};

/// Workloads that can run in the background.
pub const BACKGROUND_WORKLOADS: [&str; 4] = ["write", "update", "select", "read"];

/// Returns the settings for the background clients; `None` without such clients.
///
/// # Errors
/// A sentence if the two loads cannot run at the same time.
pub(super) fn settings(settings: &Settings) -> Result<Option<Settings>, String> {
    let Some(background) = &settings.background else { return Ok(None) };
    let name = background.workload.as_str();
    let Some(entry) = BACKGROUND_WORKLOADS.contains(&name).then(|| find(name)).flatten() else {
        let list = BACKGROUND_WORKLOADS.join(", ");
        return Err(format!("background.workload is \"{name}\"; write one of {list}"));
    };
    let inserts = inserts(settings) || parts(settings)?.iter().any(|part| part.name == write::WRITE.name);
    if entry.name == write::WRITE.name && inserts {
        return Err(format!(
            "background.workload is \"write\" and workload.name = \"{}\" inserts records too, under the same numbers; let \
             one of them do all of it",
            settings.workload.name
        ));
    }
    let attribute = settings.workload.attribute.clone();
    let workload =
        WorkloadSettings { name: name.to_owned(), batch: background.batch, attribute, ..WorkloadSettings::default() };
    Ok(Some(Settings { workload, background: None, ..settings.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::BackgroundSettings;

    fn study(workload: &str, background: &str) -> Settings {
        let mut study = Settings::default();
        study.workload.name = workload.to_owned();
        study.workload.batch = 1;
        study.workload.mix = [("write".to_owned(), 1.0), ("read".to_owned(), 1.0)].into();
        let workload = background.to_owned();
        study.background = Some(BackgroundSettings { workload, clients: 2, batch: 5, ..Default::default() });
        study
    }

    #[test]
    fn the_background_has_its_own_workload_and_batch() {
        let beside = settings(&study("read", "write")).unwrap().unwrap();
        assert_eq!((beside.workload.name.as_str(), beside.workload.batch), ("write", 5));
        assert!(beside.background.is_none());
        assert!(settings(&Settings::default()).unwrap().is_none());
    }

    #[test]
    fn two_sides_that_insert_are_refused() {
        for workload in ["write", "mix"] {
            assert!(settings(&study(workload, "write")).unwrap_err().contains("under the same numbers"), "{workload}");
            assert!(settings(&study(workload, "update")).is_ok());
        }
        assert!(settings(&study("read", "sql")).unwrap_err().contains("write one of write, update, select, read"));
    }
}
