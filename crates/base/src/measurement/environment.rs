//! The machine and the software that measurements were made on. Main type: [`Environment`].

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
    /// Model of its CPU.
    pub cpu: String,
    /// Number of CPUs that loadline may use.
    pub cpus: u32,
    /// CPU frequency governor, if the kernel tells.
    pub governor: Option<String>,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Operating system and kernel.
    pub kernel: String,
    /// File system and device of the run directory, if known.
    pub disk: Option<String>,
    /// How long that disk took to make a few bytes durable, before the first trial; none where it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_sync: Option<DiskSync>,
    /// Per database of the run: version and the settings that matter, name by name; of several servers of one, what the last one told.
    pub databases: BTreeMap<String, BTreeMap<String, String>>,
    /// Each server of the run that told something else, with the cases that were measured on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerFacts>,
    /// The words of the command that began the run, without passwords; empty in runs of versions that did not note it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What each link of the run carried when it was first made, before anything else was on it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, LinkMeasurement>,
}

impl Environment {
    /// Whether loadline measured. What other tools measured has no CPUs: they do not tell.
    pub fn is_own(&self) -> bool {
        self.cpus > 0
    }

    /// Notes what a server told that cases are measured on.
    pub fn note_server(&mut self, database: &str, facts: BTreeMap<String, String>, cases: &[String]) {
        // What failures have shown of it is no fact of the server's: a run that is continued may know more than when it began.
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

/// Name of the fact that says what failures have shown of a server's settings, as in `0 of 300 cuts`.
pub const PROVED: &str = "proved";

/// What a server, or an embedded database, told of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Name of the database.
    pub database: String,
    /// Ids of the study's cases that were measured on it.
    pub cases: Vec<String>,
    /// Version, program and the settings that matter, name by name.
    pub facts: BTreeMap<String, String>,
}

/// Times of syncs of one overwritten page each: the least that a durable commit costs on this disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskSync {
    /// Median, in seconds.
    pub p50_s: f64,
    /// 90th percentile, in seconds.
    pub p90_s: f64,
    /// How many were tried.
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
        // Whoever knows nothing takes nothing away.
        environment.note_server("postgres", facts(&[]), &["a".to_owned()]);
        assert!(environment.servers[0].facts.contains_key(PROVED) && environment.servers.len() == 2);
    }
}
