//! Reads the settings of `[workload]` for schema changes during a load, and checks which can be combined.
//!
//! Main functions: [`read_evolve`] and [`check_evolve`]. Invariant: an algorithm that the database does not have is refused, never
//! ignored.

use super::clash::Clash;
use crate::fault::fault;
use crate::trial::{EvolveSettings, SchemaChangeKind, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;

/// Layouts whose fields are columns of a table.
const WITH_COLUMNS: [&str; 3] = ["wide", "star", "star-hot"];

/// Reads these settings, except how often the schema changes.
pub fn read_evolve(section: &Section<'_>, errors: &mut Errors) -> EvolveSettings {
    let algorithm: Option<String> = section.find("evolve_algorithm", errors);
    EvolveSettings {
        change: section.read("evolve_change", errors),
        algorithm: algorithm.filter(|algorithm| algorithm != "auto"),
        at_most_s: section.given("evolve_at_most", errors),
    }
}

/// Returns the settings that cannot be combined.
pub fn check_evolve(settings: &Settings) -> Vec<Clash> {
    let evolve = &settings.workload.evolve;
    let mut found: Vec<Clash> = Vec::new();
    let layout = settings.layout.name.as_str();
    if evolve.change != SchemaChangeKind::Field && !WITH_COLUMNS.contains(&layout) {
        let names = WITH_COLUMNS.join(", ");
        let remedy = format!("write evolve_change = \"field\", or take one of the layouts {names}");
        let message =
            fault!("workload.evolve_change is for layouts with columns and layout.name is \"{layout}\""; "{remedy}");
        found.push((&["workload.evolve_change", "layout.name"], message));
    }
    let name = settings.database.name.as_str();
    let remedy = match (evolve.algorithm.as_deref(), name, evolve.change) {
        (None, ..) | (Some("instant" | "inplace" | "copy"), "mariadb" | "mysql", _) => return found,
        (Some("concurrently"), "postgres", SchemaChangeKind::Index) => return found,
        (_, "mariadb" | "mysql", _) => "it has \"instant\", \"inplace\" and \"copy\"",
        (_, "postgres", _) => "it has \"concurrently\", for evolve_change = \"index\"",
        _ => "leave it out",
    };
    let algorithm = evolve.algorithm.as_deref().unwrap_or("auto");
    let message = fault!("workload.evolve_algorithm is \"{algorithm}\" and database.name is \"{name}\""; "{remedy}");
    found.push((&["workload.evolve_algorithm", "workload.evolve_change", "database.name"], message));
    found
}
