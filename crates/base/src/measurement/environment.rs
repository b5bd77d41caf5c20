//! The machine and the software of the measurements. Main type: [`Environment`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LinkMeasurement;

/// The machine and the software of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Version of loadline.
    pub loadline: String,
    /// Name of the machine.
    pub machine: String,
    /// Model of the CPU.
    pub cpu: String,
    /// Number of CPUs that loadline may use.
    pub cpus: u32,
    /// CPU frequency governor, if the kernel reports it.
    pub governor: Option<String>,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Operating system and kernel.
    pub kernel: String,
    /// File system and device of the run directory, if known.
    pub disk: Option<String>,
    /// Time that the disk took to make a few bytes durable, before the first trial; `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_sync: Option<DiskSync>,
    /// Version and relevant settings of each database of the run, by name; where a database has several servers, those of the last one.
    pub databases: BTreeMap<String, BTreeMap<String, String>>,
    /// The servers of the run with different facts, each with the cases that were measured on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerFacts>,
    /// The words of the command that began the run, without passwords; empty in runs of versions that did not note it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Capacity of each link of the run when it was created, before any other traffic.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, LinkMeasurement>,
}

impl Environment {
    /// Returns whether loadline measured. Measurements of other tools have no CPUs, because the tools do not report them.
    pub fn is_own(&self) -> bool {
        self.cpus > 0
    }

    /// Notes the facts that a server reported, with the cases that are measured on it.
    pub fn note_server(&mut self, database: &str, facts: BTreeMap<String, String>, cases: &[String]) {
        // The result of failures is not a fact of the server: a run that is continued may know more than when it began.
        let told = |facts: &BTreeMap<String, String>| -> Vec<(String, String)> {
            facts
                .iter()
                .filter(|(name, _)| *name != PROVED)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let is_it = |server: &&mut ServerFacts| server.database == database && told(&server.facts) == told(&facts);
        match self.servers.iter_mut().find(is_it) {
            Some(server) => {
                server.facts.extend(facts.get_key_value(PROVED).map(|(name, value)| (name.clone(), value.clone())));
                let new: Vec<_> = cases.iter().filter(|case| !server.cases.contains(case)).cloned().collect();
                server.cases.extend(new);
            }
            None => {
                self.servers.push(ServerFacts { database: database.to_owned(), cases: cases.to_vec(), facts });
            }
        }
    }
}

/// Name of the fact with the result of failures under a server's settings, as in `0 of 300 cuts`.
pub const PROVED: &str = "proved";

/// Facts that a server, or an embedded database, reported about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Name of the database.
    pub database: String,
    /// Ids of the study's cases that were measured on it.
    pub cases: Vec<String>,
    /// Version, program and the settings that matter, name by name.
    pub facts: BTreeMap<String, String>,
}

/// Times of syncs of one overwritten page each: the least cost of a durable commit on this disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskSync {
    /// Median, in seconds.
    pub p50_s: f64,
    /// 90th percentile, in seconds.
    pub p90_s: f64,
    /// Number of syncs.
    pub count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_continued_may_know_more_of_the_same_server() {
        let facts = |more: &[(&str, &str)]| {
            let told = [("version", "15")].iter().chain(more);
            told.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let mut environment = Environment::default();
        environment.note_server("postgres", facts(&[]), &["a".to_owned()]);
        environment.note_server("postgres", facts(&[(PROVED, "0 of 5 cuts")]), &["a".to_owned(), "b".to_owned()]);
        environment.note_server("postgres", facts(&[("fsync", "off")]), &["c".to_owned()]);
        assert_eq!(environment.servers.len(), 2);
        assert_eq!(
            (&environment.servers[0].cases[..], &environment.servers[0].facts[PROVED]),
            (&["a".to_owned(), "b".to_owned()][..], &"0 of 5 cuts".to_owned())
        );
        // A report without the fact removes nothing.
        environment.note_server("postgres", facts(&[]), &["a".to_owned()]);
        assert!(environment.servers[0].facts.contains_key(PROVED) && environment.servers.len() == 2);
    }
}
