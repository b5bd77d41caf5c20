//! YCSB's property files as studies: `loadline run --ycsb workloads/workloada`.
//!
//! Main function: [`study_of`]. Invariant: every property is either applied or reported with its place: as an error if
//! leaving it out would change what is done, else as a note.

mod mapping;
mod properties;
pub mod settings;

use super::table::{STUDY, sections};
use crate::fault::fault;
use crate::file;
use crate::written::place::{Errors, Place, StudyErrors};
use crate::written::tree::Table;

use properties::{Property, read_properties, set};

/// YCSB's own workloads, by name, for `--ycsb workloada` where there is no such file.
static WORKLOADS: [(&str, &str); 6] = [
    ("workloada", include_str!("../../../../../studies/ycsb/workloada")),
    ("workloadb", include_str!("../../../../../studies/ycsb/workloadb")),
    ("workloadc", include_str!("../../../../../studies/ycsb/workloadc")),
    ("workloadd", include_str!("../../../../../studies/ycsb/workloadd")),
    ("workloade", include_str!("../../../../../studies/ycsb/workloade")),
    ("workloadf", include_str!("../../../../../studies/ycsb/workloadf")),
];

/// A property file, converted to the tree of a study.
pub struct YcsbStudy {
    /// The tree, as if it were read from a study file.
    pub root: Table,
    /// The `--set` arguments that are not properties, with their positions among all arguments.
    pub sets: Vec<(usize, String)>,
    /// Properties without an effect, one sentence each without its place.
    pub notes: Vec<(Place, String)>,
}

/// Returns the name for messages and the text of a property file, or of one of YCSB's own workloads.
///
/// # Errors
/// When there is no such file or it cannot be read.
pub fn find_text(path: &str) -> Result<(String, String), StudyErrors> {
    match (file::read(path, file::WRITTEN_MOST), WORKLOADS.iter().find(|(name, _)| *name == path)) {
        (Ok(bytes), _) => match file::text_of(bytes) {
            Ok(text) => Ok((path.to_owned(), text)),
            Err(line) => {
                Err(StudyErrors::one(fault!("{path}:{line}: not UTF-8 text"; "--ycsb takes a property file of YCSB")))
            }
        },
        (Err(error), Some((name, text))) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(((*name).to_owned(), (*text).to_owned()))
        }
        (Err(error), _) => {
            let names: Vec<_> = WORKLOADS.iter().map(|(name, _)| *name).collect();
            let remedy = format!("give the path of a property file of YCSB, or one of {}", names.join(", "));
            Err(StudyErrors::one(fault!("--ycsb {path}: cannot be read: {error}"; "{remedy}")))
        }
    }
}

/// Returns the study that a property file and the `key=value` arguments of `--set` describe; keys that are not settings of a study are properties.
pub fn study_of(text: &str, sets: &[String], errors: &mut Errors) -> YcsbStudy {
    let mut properties = read_properties(text, errors);
    let mut own = Vec::new();
    for (number, assignment) in sets.iter().enumerate() {
        match assignment.split_once('=') {
            // A list of values is a factor, as for any setting.
            Some((name, value)) if value.trim().starts_with('[') && mapping::setting_of(name.trim()).is_some() => {
                let setting = mapping::setting_of(name.trim()).unwrap_or_default();
                own.push((number, format!("{setting}={value}")));
            }
            Some((name, value)) if !is_setting(name.trim()) => {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                set(&mut properties, Property { name, value, place: Place::Argument(number) });
            }
            _ => own.push((number, assignment.clone())),
        }
    }
    let (root, notes) = mapping::map(&properties, errors);
    YcsbStudy { root, sets: own, notes }
}

/// Returns whether a key is a setting of a study, and not a property.
fn is_setting(key: &str) -> bool {
    match key.split_once('.') {
        Some((section, _)) => {
            sections().any(|known| known == section) || ["repeat", "goal", "factors"].contains(&section)
        }
        None => STUDY.find(key).is_some() && !sections().any(|known| known == key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_six_workloads_are_read_without_error_or_note() {
        for (name, text) in WORKLOADS {
            let mut errors = Errors::default();
            let study = study_of(text, &[], &mut errors);
            assert!(errors.is_empty(), "{name}: {errors:?}");
            assert_eq!(study.notes, [], "{name}");
            assert_eq!(find_text(name).unwrap().0, name);
        }
    }

    #[test]
    fn set_changes_properties_and_settings() {
        let mut errors = Errors::default();
        let sets = ["recordcount=5", "load.clients=3", "exponential.frac=0.5", "name=x", "workload=CoreWorkload"];
        let study = study_of("recordcount=1\noperationcount=1\n", &sets.map(str::to_owned), &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(study.sets, [(1, "load.clients=3".to_owned()), (3, "name=x".to_owned())]);
        assert_eq!(study.root.find("record.rows").unwrap().place, Place::Argument(0));
    }

    #[test]
    fn a_list_makes_a_property_a_factor() {
        let mut errors = Errors::default();
        let sets = ["threadcount=[1,4,16]", "requestdistribution=[uniform, zipfian]"];
        let study = study_of("recordcount=1\noperationcount=1\n", &sets.map(str::to_owned), &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        let factors = ["load.clients=[1,4,16]", "workload.ycsb.requests=[uniform, zipfian]"];
        assert_eq!(study.sets, [(0, factors[0].to_owned()), (1, factors[1].to_owned())]);
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_those_that_are() {
        let error = find_text("no/such").unwrap_err().to_string();
        assert!(error.starts_with("--ycsb no/such: cannot be read: ") && error.contains("workloadf"), "{error}");
    }
}
