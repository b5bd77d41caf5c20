//! The names that a study may use.
//!
//! Main type: [`Names`], filled by `commands/` from the registries.

pub use crate::database::ReadUrl;
use crate::fault::{Fault, fault};
use crate::trial::Settings;
use crate::written::closest;

/// The values that `load.arrivals` can have.
pub const ARRIVALS: &[&str] = &["closed", "poisson", "constant", "trace", "sources"];

/// What is asked for as a database of its own.
const GALERA: &str = "galera";

/// Everything that can be named in a study.
#[derive(Debug, Clone)]
pub struct Names {
    /// The values of `database.name`.
    pub databases: NameList,
    /// The facts about each available database.
    pub database_facts: Vec<DatabaseFacts>,
    /// The values of `record.type`.
    pub records: NameList,
    /// The values of `layout.name`.
    pub layouts: NameList,
    /// The values of `workload.name`.
    pub workloads: NameList,
    /// The values of `load.arrivals`.
    pub arrivals: NameList,
    /// Checks that the parts of a case (record type, layout, workload) can be built with these settings. The error is a
    /// sentence that names the setting, its value and the remedy. Accepts everything until it is set.
    pub try_build: fn(&Settings) -> Result<(), String>,
    /// Returns why a case that is not faulty cannot be carried out here: its database cannot do what it asks, or the
    /// server is not installed. Returns `None` for every case until it is set.
    pub cannot: fn(&Settings) -> Option<String>,
}

/// The facts about a database that the checks of a study need.
#[derive(Debug, Clone)]
pub struct DatabaseFacts {
    /// Name in the registry.
    pub name: String,
    /// Storage engines that can be chosen, the default first; empty where there is no choice.
    pub engines: Vec<String>,
    /// Whether loadline can start a private server of it.
    pub has_private_server: bool,
    /// Reads `database.url`; `None` for embedded databases.
    pub read_url: Option<ReadUrl>,
}

impl DatabaseFacts {
    /// Returns whether the database runs inside this process unless it has an address: it has no private server.
    pub fn is_embedded(&self) -> bool {
        !self.has_private_server
    }
}

impl Names {
    /// Collects the available names, by kind.
    pub fn new(databases: Vec<DatabaseFacts>, records: &[&str], layouts: &[&str], workloads: &[&str]) -> Self {
        let database_names: Vec<&str> = databases.iter().map(|facts| facts.name.as_str()).collect();
        Names {
            databases: NameList::new("database", &database_names),
            records: NameList::new("record type", records),
            layouts: NameList::new("layout", layouts),
            workloads: NameList::new("workload", workloads),
            arrivals: NameList::new("arrivals", ARRIVALS),
            try_build: |_| Ok(()),
            cannot: |_| None,
            database_facts: databases,
        }
    }

    /// Returns the facts about an available database.
    pub fn database(&self, name: &str) -> Option<&DatabaseFacts> {
        self.database_facts.iter().find(|facts| facts.name == name)
    }
}

/// The names of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameList {
    /// The kind of thing that is named, as in `layout`.
    pub kind: &'static str,
    /// The names that can be used.
    pub available: Vec<String>,
}

impl NameList {
    /// Makes a list of the available names.
    pub fn new(kind: &'static str, available: &[&str]) -> Self {
        NameList { kind, available: available.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// Checks that a name is available.
    ///
    /// # Errors
    /// A fault with the name that was probably meant, or with the available names.
    pub fn check(&self, name: &str) -> Result<(), Fault> {
        if self.available.iter().any(|available| available == name) {
            return Ok(());
        }
        let kind = self.kind;
        if name == GALERA && self.available.iter().any(|available| available == "mariadb") {
            let remedy = "it is MariaDB with several nodes: write name = \"mariadb\" and nodes = 3";
            return Err(fault!("unknown {kind} \"{name}\""; "{remedy}"));
        }
        let available = self.available.join(", ");
        match closest(name, self.available.iter().map(String::as_str)) {
            Some(meant) => Err(fault!("unknown {kind} \"{name}\""; "did you mean \"{meant}\"?")),
            None => Err(fault!("unknown {kind} \"{name}\""; "available: {available}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_unknown_is_refused_with_the_one_meant_or_all_there_are() {
        let layouts = NameList::new("layout", &["wide", "star", "eav"]);
        assert_eq!(layouts.check("star"), Ok(()));
        assert_eq!(layouts.check("eva").unwrap_err().to_string(), "unknown layout \"eva\"; did you mean \"eav\"?");
        assert_eq!(
            layouts.check("columnar").unwrap_err().to_string(),
            "unknown layout \"columnar\"; available: wide, star, eav"
        );
        let databases = NameList::new("database", &["sqlite", "mariadb"]);
        let galera = databases.check("galera").unwrap_err().to_string();
        assert!(galera.ends_with("write name = \"mariadb\" and nodes = 3"), "{galera}");
    }
}
