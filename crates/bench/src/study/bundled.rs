//! The studies that come with loadline.
//!
//! Main table: [`BUNDLED`]. Invariant: each study has the name of its directory under `studies/`. A new one is a
//! directory and a line here.

use std::path::Path;

use crate::fault::fault;
use crate::file::{WRITTEN_MOST, read, text_of};
use crate::written::closest;
use crate::written::place::StudyErrors;

/// A study that comes with loadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundled {
    /// Name, as in `loadline run NAME`.
    pub name: &'static str,
    /// One line for `loadline list studies`.
    pub summary: &'static str,
    /// The text of the study file.
    pub text: &'static str,
    /// The description: what the study repeats, on which hardware, with which deviations.
    pub readme: &'static str,
}

macro_rules! bundled {
    ($($name:literal: $summary:literal,)*) => {
        &[$(Bundled {
            name: $name,
            summary: $summary,
            text: include_str!(concat!("../../../../studies/", $name, "/study.toml")),
            readme: include_str!(concat!("../../../../studies/", $name, "/README.md")),
        }),*]
    };
}

/// All bundled studies, in the order of `loadline list studies`.
pub static BUNDLED: &[Bundled] = bundled! {
    "qos-write": "which layout takes the most measurement rows; about a minute on SQLite",
    "qos-write-paper": "the same with all 297 cases of the 2015 thesis on MariaDB; many hours",
    "shortlist": "which database, of those that can start here: writing and reading at equal durability; ten minutes",
    "durability": "which settings of SQLite keep what was acknowledged when the power goes; two minutes, needs FUSE",
    "price-of-durability": "what it costs that a write survives a power cut, in each database; two to ten minutes",
    "durability-servers": "which databases keep what they acknowledged, at each level of durability; half an hour, needs FUSE",
    "outages": "how long a database answers nothing when its server is killed, restarted or stalls; three minutes",
    "failover": "what is lost when PostgreSQL's primary dies and its replica takes over, synchronous or not; three minutes",
    "lost-node": "what happens when a Galera cluster of three loses a node under load; five minutes",
    "wisconsin-size": "how response times of selections grow with load and relation; three minutes on MariaDB",
    "wisconsin-size-paper": "the same with 1, 5 and 10 million rows as in the 2011 paper; two hours",
    "qos-read": "which layout answers queries over measurement rows fastest; five minutes on MariaDB",
    "qos-read-paper": "the same with all cases of the 2015 thesis on two million rows and up to 50 readers; days",
    "load-line": "the highest rate of selections and of updates with nine in ten answered within 10 ms; one to ten minutes",
    "schemaless": "columns, JSON, rows of fields, bytes or prepared columns under YCSB's workloads; ten minutes on MariaDB",
    "schemaless-paper": "the same as in the 2018 thesis: 1,000 records and operations, 40 trials; ten minutes",
    "nosql-2018": "MongoDB, Cassandra and Redis beside databases with SQL under YCSB's workloads; a quarter of an hour",
    "schemaless-evolve": "what adding and removing a field costs while others work; seven minutes on MariaDB",
    "wisconsin-select-update": "whether selections and updates respond alike as load grows; three minutes on MariaDB",
    "series": "the questions that dashboards ask, by layout and index, while readings come in; two minutes on SQLite",
    "series-shortlist": "the same of every database here, of readings that change slowly, each in a row or packed; ten minutes",
    "growth": "whether questions about time take longer as the table grows, by index; five minutes on SQLite",
    "late-data": "what readings that arrive late cost whoever writes them, by index; three minutes on SQLite",
    "retention": "what throwing old readings away costs whoever writes them, by way and index; three minutes on SQLite",
    "qos-mixed": "queries while rows are written, three layouts; two minutes on SQLite",
    "freshness": "how soon readers see events that others write, at 2 to 20 MB/s; three minutes on MariaDB",
    "event-paths": "the same through the database and through publish-subscribe with a historian; ten minutes",
    "insert-rate": "how many sensor events a second, by engine, tables and writers; four minutes on MariaDB",
    "insert-rate-clients": "what text statements, new connections, TCP and single inserts cost a writer; two minutes",
    "latest-window": "searches among the last records while others write, with and without an index; a minute",
    "index-cost": "what each index costs those who write; a minute",
    "recorder-capacity": "how many sources a recorder takes in with one to three writers; a quarter of an hour on MariaDB",
    "recorder-numbers": "how many sources one to four recorders on a stream take in; half an hour, as root",
    "recorder-paths": "the database directly, and through a recorder over HTTP and NATS; six to ten minutes on MariaDB",
    "settings": "which settings of MariaDB pay when measurement data is written and read; five minutes",
    "query-count": "queries per second after a new connection, with and without encrypted files; two minutes on MariaDB",
    "query-count-paper": "the same with up to ten million queries as in the source; two hours",
    "disk-size": "how many bytes a record takes on the disk, in each database and layout; two to six minutes",
    "disk-write": "how fast the disk writes by size of block, and what a database suffers; five minutes on SQLite",
    "block-intake": "how fast blocks come in over a link, by its rate and its tunnel's cipher; 25 minutes, as root",
    "block-intake-limit": "where intake nears the disk's speed, with and without a limit; five minutes, as root",
    "camera-fleet": "what cameras make, what their links carry, and what is processed of it; half an hour, as root",
    "tls-cost": "what TLS costs readers, and those who connect each time; two minutes on PostgreSQL",
    "settings-postgres": "the same for PostgreSQL; five minutes",
};

/// Returns the name for messages and the text of a study: bundled, a file, or a directory with a `study.toml`.
///
/// # Errors
/// When there is no such study or it cannot be read.
pub fn find_text(source: &str) -> Result<(String, String), StudyErrors> {
    if let Some(bundled) = BUNDLED.iter().find(|bundled| bundled.name == source) {
        return Ok((format!("studies/{}/study.toml", bundled.name), bundled.text.to_owned()));
    }
    let path = Path::new(source);
    let file = if path.is_dir() { path.join("study.toml") } else { path.to_path_buf() };
    match read(&file, WRITTEN_MOST) {
        Ok(bytes) => match text_of(bytes) {
            Ok(text) => Ok((file.display().to_string(), text)),
            Err(line) => {
                Err(StudyErrors::one(fault!("{}:{line}: not UTF-8 text", file.display(); "a study is a TOML file")))
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !looks_like_a_path(source) => {
            let names = BUNDLED.iter().map(|bundled| bundled.name);
            let remedy = match closest(source, names.clone()) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("bundled: {}; or give the path of a study file", names.collect::<Vec<_>>().join(", ")),
            };
            Err(StudyErrors::one(fault!("unknown study \"{source}\""; "{remedy}")))
        }
        Err(error) => {
            let remedy = "give the path of a study file or the name of a bundled study (loadline list studies)";
            Err(StudyErrors::one(fault!("{}: cannot be read: {error}", file.display(); "{remedy}")))
        }
    }
}

fn looks_like_a_path(source: &str) -> bool {
    source.contains('/') || source.ends_with(".toml") || Path::new(source).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_study_gets_a_suggestion() {
        let error = find_text("qos-wirte").unwrap_err().to_string();
        assert_eq!(error, "unknown study \"qos-wirte\"; did you mean \"qos-write\"?");
        let error = find_text("nowhere/study.toml").unwrap_err().to_string();
        assert!(error.starts_with("nowhere/study.toml: cannot be read: "), "{error}");
    }
}
