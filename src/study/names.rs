//! Names that a study may use: those available, and those that are known and come later.
//!
//! Main type: [`Names`], filled by `commands/` from the registries. Invariant: no name is both available and later.

use super::suggest::closest;
pub use crate::database::ReadUrl;
use crate::trial::Settings;

const KNOWN_DATABASES: &[&str] = &["sqlite", "mariadb", "mysql", "postgres", "simulated"];
const KNOWN_LAYOUTS: &[&str] = &["wide", "star", "star-hot", "json", "eav", "key-value", "spare"];
const KNOWN_RECORDS: &[&str] = &["qos", "wisconsin", "usertable", "sensor", "violation", "custom"];
const KNOWN_WORKLOADS: &[&str] = &[
    "write",
    "read",
    "sql",
    "select",
    "update",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "ycsb-load",
    "mix",
    "query",
    "recent",
    "freshness",
    "connect",
];
const KNOWN_ARRIVALS: &[&str] = &["closed", "poisson", "constant", "trace", "sources"];

/// Everything that can be named in a study.
#[derive(Debug, Clone)]
pub struct Names {
    /// `database.name`.
    pub databases: NameList,
    /// What there is to know of each available database.
    pub database_facts: Vec<DatabaseFacts>,
    /// `record.type`.
    pub records: NameList,
    /// `layout.name`.
    pub layouts: NameList,
    /// `workload.name`.
    pub workloads: NameList,
    /// `load.arrivals`.
    pub arrivals: NameList,
    /// Whether `load.samples = true` is available.
    pub has_samples: bool,
    /// Asks the parts that a case is made of whether they can be built so: the record type, the layout, the workload. The
    /// answer is a sentence that names the setting, its value and the remedy. Agrees to everything until it is filled.
    pub try_build: fn(&Settings) -> Result<(), String>,
}

/// What the study checks need to know of a database.
#[derive(Debug, Clone)]
pub struct DatabaseFacts {
    /// Name in the registry.
    pub name: String,
    /// Storage engines that can be chosen, the default first; empty where there is no choice.
    pub engines: Vec<String>,
    /// Whether loadline can start a private server of it.
    pub has_private_server: bool,
    /// Reads `database.url`; none for embedded databases.
    pub read_url: Option<ReadUrl>,
}

impl DatabaseFacts {
    /// Whether it runs inside this process: it has neither a private server nor an address.
    pub fn is_embedded(&self) -> bool {
        !self.has_private_server && self.read_url.is_none()
    }
}

impl Names {
    /// What is available, by kind; the names that the contract knows besides are told apart as later. Raw samples are later
    /// until the field says otherwise.
    pub fn new(databases: Vec<DatabaseFacts>, records: &[&str], layouts: &[&str], workloads: &[&str]) -> Self {
        let database_names: Vec<&str> = databases.iter().map(|facts| facts.name.as_str()).collect();
        Names {
            databases: NameList::new("database", &database_names, KNOWN_DATABASES),
            records: NameList::new("record type", records, KNOWN_RECORDS),
            layouts: NameList::new("layout", layouts, KNOWN_LAYOUTS),
            workloads: NameList::new("workload", workloads, KNOWN_WORKLOADS),
            arrivals: NameList::new("arrivals", KNOWN_ARRIVALS, KNOWN_ARRIVALS),
            has_samples: false,
            try_build: |_| Ok(()),
            database_facts: databases,
        }
    }

    /// The facts of an available database.
    pub fn database(&self, name: &str) -> Option<&DatabaseFacts> {
        self.database_facts.iter().find(|facts| facts.name == name)
    }
}

/// The names of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameList {
    /// What is named, as in `layout`.
    pub kind: &'static str,
    /// Names that can be used.
    pub available: Vec<String>,
    /// Names that are known and cannot be used yet.
    pub later: Vec<String>,
}

impl NameList {
    /// A list from the names available and all names known.
    pub fn new(kind: &'static str, available: &[&str], known: &[&str]) -> Self {
        let later = known.iter().filter(|name| !available.contains(name));
        NameList {
            kind,
            available: available.iter().map(|name| (*name).to_owned()).collect(),
            later: later.map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Checks a name.
    ///
    /// # Errors
    /// A sentence that suggests what was meant, or that the name comes later, with what is available.
    pub fn check(&self, name: &str) -> Result<(), String> {
        if self.available.iter().any(|available| available == name) {
            return Ok(());
        }
        let kind = self.kind;
        let available = self.available.join(", ");
        if self.later.iter().any(|later| later == name) {
            return Err(format!("{kind} \"{name}\" is not available yet; available: {available}"));
        }
        match closest(name, self.available.iter().chain(&self.later).map(String::as_str)) {
            Some(meant) => Err(format!("unknown {kind} \"{name}\"; did you mean \"{meant}\"?")),
            None => Err(format!("unknown {kind} \"{name}\"; available: {available}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_later_are_told_apart_from_unknown_ones() {
        let layouts = NameList::new("layout", &["wide", "star"], KNOWN_LAYOUTS);
        assert_eq!(layouts.check("star"), Ok(()));
        assert_eq!(layouts.check("eav").unwrap_err(), "layout \"eav\" is not available yet; available: wide, star");
        assert_eq!(layouts.check("eva").unwrap_err(), "unknown layout \"eva\"; did you mean \"eav\"?");
        assert_eq!(layouts.check("columnar").unwrap_err(), "unknown layout \"columnar\"; available: wide, star");
    }
}
