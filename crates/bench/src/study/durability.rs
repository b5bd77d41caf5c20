//! `[durability]`: the study asks what survives; a run of it makes the databases fail instead of measuring them.
//!
//! Main: [`DURABILITY`] and [`read_durability`].

use serde_json::json;

use crate::fault::fault;
use crate::trial::{DurabilityPlan, FaultKind};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};
use crate::written::{Absent, Form, Kind, Part, Setting};

/// The form of `durability.faults`.
static FAULTS: Form = Form {
    says: "list of `\"power\"`, `\"kill\"`, `\"eio\"`, `\"enospc\"` and `\"bits\"`",
    schema: || json!({ "type": "array", "items": { "enum": FaultKind::NAMES }, "minItems": 1, "uniqueItems": true }),
    example: "[\"power\", \"kill\"]",
};

/// The settings of the section.
pub(super) static DURABILITY: Part = Part {
    name: "durability",
    help: "The study asks what survives: `loadline run` makes each of its databases fail again and again, as `loadline durability` does, and measures no load.",
    settings: &[
        Setting::new(
            "cuts",
            Kind::Whole(1, DurabilityPlan::CUTS_MOST as i64),
            Absent::Whole(DurabilityPlan::CUTS as i64),
            "Number of failures of each kind for each case.",
        ),
        Setting::new(
            "faults",
            Kind::Own(&FAULTS),
            Absent::Means("the power, and the processes alone if power cuts lose something"),
            "What fails: the power of the disk, the processes, calls to the disk (`eio`), room on it (`enospc`), or bits of the data that are read.",
        ),
        Setting::new(
            "sync_first",
            Kind::Truth,
            Absent::Truth(false),
            "Whether everything on the disk is synced before records are written, as an operating system does within half a minute. Then the files that a database made when it started are there after a cut, as they are behind a server that has run for longer.",
        ),
    ],
};

/// Reads `[durability]`; `None` if there is no such table.
pub(super) fn read_durability(root: &Table, errors: &mut Errors) -> Option<DurabilityPlan> {
    root.get(DURABILITY.name)?;
    let section = Section::open(root, &DURABILITY, errors);
    let mut faults: Vec<FaultKind> = Vec::new();
    for node in section.list("faults", errors) {
        let kind = if let Content::Text(name) = &node.content { FaultKind::of_name(name) } else { None };
        // A database is its own store.
        let kind = kind.filter(|kind| FaultKind::OF_DATABASES.contains(kind));
        match kind {
            Some(kind) if faults.contains(&kind) => {
                errors.push(node.place, fault!("durability.faults has {node} twice"; "leave one of them out"));
            }
            Some(kind) => faults.push(kind),
            None => {
                let names = FaultKind::OF_DATABASES.map(FaultKind::name).join(", ");
                errors.push(node.place, fault!("durability.faults has {node}"; "possible: {names}"));
            }
        }
    }
    let (cuts, sync_first) = (section.read("cuts", errors), section.read("sync_first", errors));
    Some(DurabilityPlan { cuts, faults, sync_first, recorder: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::place::Source;
    use crate::written::tree;

    fn read(text: &str) -> Result<Option<DurabilityPlan>, String> {
        let mut errors = Errors::default();
        let root = tree::Table::parse(text, &mut errors);
        let plan = read_durability(&root, &mut errors);
        let source = Source { file: "s.toml".to_owned(), arguments: Vec::new() };
        errors.into_result(&source).map(|()| plan).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_study_says_how_often_what_fails() {
        assert_eq!(read("name = \"s\""), Ok(None));
        assert_eq!(read("[durability]"), Ok(Some(DurabilityPlan::default())));
        let plan = DurabilityPlan {
            cuts: 7,
            faults: vec![FaultKind::Eio, FaultKind::Power],
            sync_first: true,
            recorder: None,
        };
        assert_eq!(read("[durability]\ncuts = 7\nfaults = [\"eio\", \"power\"]\nsync_first = true"), Ok(Some(plan)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, part) in [
            ("[durability]\ncuts = 0", "s.toml:2"),
            ("[durability]\nfaults = [\"fire\"]", "\"fire\"; possible: power, kill, eio, enospc, bits"),
            ("[durability]\nfaults = [\"kill\", \"kill\"]", "twice"),
            ("[durability]\nfaults = \"kill\"", "faults"),
            ("[durability]\nfault = \"kill\"", "faults"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
