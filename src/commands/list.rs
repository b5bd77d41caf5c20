//! `loadline list`: the members of the registries, and which databases can start here.
//!
//! Main type: [`Catalogue`], filled from the registries. Invariant: the list holds exactly the names that studies can use.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Failure;
use super::output::{print, print_json, table};
use crate::cli::Listed;
use crate::database::Entry;
use crate::study::{BUNDLED, DatabaseFacts, Names};

/// Everything that can be listed, from the registries; the bundled studies are known without them.
pub struct Catalogue<'a> {
    /// Record types.
    pub records: Vec<Member<'a>>,
    /// Layouts.
    pub layouts: Vec<Member<'a>>,
    /// Databases.
    pub databases: &'a [&'a Entry],
    /// Workloads.
    pub workloads: Vec<Member<'a>>,
}

/// A member of a registry.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Name in studies.
    pub name: &'a str,
    /// Description in one line.
    pub summary: &'a str,
}

/// Returns where the server of a database is installed, or fails with the reason why it cannot start here.
pub type FindServer<'a> = &'a dyn Fn(&Entry) -> Result<PathBuf, String>;

impl Catalogue<'_> {
    /// Returns the names that studies may use.
    pub fn names(&self) -> Names {
        let facts = |entry: &&Entry| DatabaseFacts {
            name: entry.name.to_owned(),
            engines: entry.engines.iter().map(|engine| (*engine).to_owned()).collect(),
            has_private_server: entry.recipe.is_some(),
            read_url: entry.read_url,
        };
        let names = |members: &[Member<'_>]| members.iter().map(|member| member.name.to_owned()).collect::<Vec<_>>();
        let (records, layouts, workloads) = (names(&self.records), names(&self.layouts), names(&self.workloads));
        fn borrow(names: &[String]) -> Vec<&str> {
            names.iter().map(String::as_str).collect()
        }
        Names::new(
            self.databases.iter().map(facts).collect(),
            &borrow(&records),
            &borrow(&layouts),
            &borrow(&workloads),
        )
    }

    fn members(&self, listed: Listed) -> Vec<Member<'_>> {
        match listed {
            Listed::Studies => {
                BUNDLED.iter().map(|study| Member { name: study.name, summary: study.summary }).collect()
            }
            Listed::Records => self.records.clone(),
            Listed::Layouts => self.layouts.clone(),
            Listed::Databases => {
                self.databases.iter().map(|entry| Member { name: entry.name, summary: entry.summary }).collect()
            }
            Listed::Workloads => self.workloads.clone(),
        }
    }
}

const ALL: [Listed; 5] = [Listed::Studies, Listed::Records, Listed::Layouts, Listed::Databases, Listed::Workloads];

fn name_of(listed: Listed) -> &'static str {
    match listed {
        Listed::Studies => "studies",
        Listed::Records => "records",
        Listed::Layouts => "layouts",
        Listed::Databases => "databases",
        Listed::Workloads => "workloads",
    }
}

/// Prints the requested list, or everything without a request.
///
/// # Errors
/// Fails if stdout cannot be written.
pub fn run(what: Option<Listed>, is_json: bool, catalogue: &Catalogue, find_server: FindServer) -> Result<(), Failure> {
    let kinds: Vec<Listed> = what.map_or(ALL.to_vec(), |listed| vec![listed]);
    if is_json {
        print_json(&json_of(&kinds, catalogue, find_server))
    } else {
        print(&text_of(&kinds, catalogue, find_server))
    }
}

/// Returns the lists as text, one table for each kind.
pub fn text_of(kinds: &[Listed], catalogue: &Catalogue, find_server: FindServer) -> String {
    let one = |listed: &Listed| {
        let kind = name_of(*listed);
        let mut rows = vec![vec![kind.to_owned(), String::new()]];
        if *listed == Listed::Databases {
            rows[0].push("here".to_owned());
            // The summaries contain the engines.
            rows.extend(catalogue.databases.iter().map(|entry| {
                let here = match start_of(entry, find_server) {
                    Start::Embedded => "embedded".to_owned(),
                    Start::Library(path) if entry.read_url.is_some() => format!("through {}", path.display()),
                    Start::Library(path) => format!("embedded, from {}", path.display()),
                    Start::Server(path) => format!("can start: {}", path.display()),
                    Start::Not(reason) => format!("cannot start: {reason}"),
                };
                vec![entry.name.to_owned(), entry.summary.to_owned(), here]
            }));
        } else {
            let members = catalogue.members(*listed);
            rows.extend(members.iter().map(|member| vec![member.name.to_owned(), member.summary.to_owned()]));
        }
        table(rows)
    };
    kinds.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Returns the lists as JSON: `{"layouts": [{"name", "summary"}], "databases": [{…, "engines", "can_start", "server",
/// "reason"}]}`.
pub fn json_of(kinds: &[Listed], catalogue: &Catalogue, find_server: FindServer) -> Value {
    let one = |listed: &Listed| {
        let members: Vec<Value> = if *listed == Listed::Databases {
            catalogue.databases.iter().map(|entry| database_json(entry, find_server)).collect()
        } else {
            let members = catalogue.members(*listed);
            members.iter().map(|member| json!({ "name": member.name, "summary": member.summary })).collect()
        };
        (name_of(*listed).to_owned(), Value::Array(members))
    };
    Value::Object(kinds.iter().map(one).collect())
}

fn database_json(entry: &Entry, find_server: FindServer) -> Value {
    let (can_start, server, reason) = match start_of(entry, find_server) {
        Start::Embedded | Start::Library(_) => (true, None, None),
        Start::Server(path) => (true, Some(path.display().to_string()), None),
        Start::Not(reason) => (false, None, Some(reason)),
    };
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "engines": entry.engines,
        "can_start": can_start,
        "server": server,
        "reason": reason,
    })
}

enum Start {
    Embedded,
    /// Embedded, from this library.
    Library(PathBuf),
    Server(PathBuf),
    Not(String),
}

fn start_of(entry: &Entry, find_server: FindServer) -> Start {
    if let Some(find) = entry.library {
        return match find() {
            Ok(path) => Start::Library(path),
            Err(fault) => Start::Not(fault.to_string()),
        };
    }
    if entry.recipe.is_none() && entry.read_url.is_none() {
        return Start::Embedded;
    }
    match find_server(entry) {
        Ok(path) => Start::Server(path),
        Err(reason) => Start::Not(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Capabilities, DatabaseError, Endpoint, Opens};

    const EMBEDDED: Entry = Entry {
        name: "sqlite",
        summary: "inside this process",
        engines: &[],
        opens: Opens::Store(|_, _| Err(DatabaseError::Unavailable("not in this test".to_owned()))),
        recipe: None,
        library: None,
        clustered: None,
        read_url: None,
        capabilities: Capabilities::SQL,
        processes: &[],
        level: None,
        refuses: None,
        refuses_rows: None,
        levels: &[],
    };
    const SERVER: Entry = Entry {
        name: "mariadb",
        recipe: Some(&crate::database::mysql::recipe::MARIADB),
        summary: "a server",
        engines: &["innodb", "aria"],
        read_url: Some(|_| Ok(Endpoint::default())),
        ..EMBEDDED
    };

    fn catalogue() -> Catalogue<'static> {
        let member = |name| Member { name, summary: "one line" };
        Catalogue {
            records: vec![member("qos")],
            layouts: vec![member("wide"), member("star")],
            databases: &[&EMBEDDED, &SERVER],
            workloads: vec![member("write")],
        }
    }

    #[test]
    fn databases_say_whether_they_can_start_here() {
        let missing = |_: &Entry| Err("mariadbd not found; install mariadb-server".to_owned());
        let text = text_of(&[Listed::Databases], &catalogue(), &missing);
        assert!(text.contains("embedded"), "{text}");
        assert!(text.contains("cannot start: mariadbd not found; install mariadb-server"), "{text}");
        let found = |_: &Entry| Ok(PathBuf::from("/usr/sbin/mariadbd"));
        let json = json_of(&[Listed::Databases], &catalogue(), &found);
        assert_eq!(json["databases"][0]["server"], Value::Null);
        assert_eq!(json["databases"][1]["server"], "/usr/sbin/mariadbd");
        assert_eq!(json["databases"][1]["engines"], json!(["innodb", "aria"]));
    }

    #[test]
    fn everything_is_listed_when_nothing_is_named() {
        let json = json_of(&ALL, &catalogue(), &|_| Err(String::new()));
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["databases", "layouts", "records", "studies", "workloads"]);
        assert_eq!(json["studies"][0]["name"], "qos-write");
        assert_eq!(
            json["layouts"],
            json!([{"name": "wide", "summary": "one line"}, {"name": "star", "summary": "one line"}])
        );
    }

    #[test]
    fn the_names_for_studies_come_from_the_registries() {
        let names = catalogue().names();
        assert_eq!(names.layouts.available, ["wide", "star"]);
        assert!(names.database("sqlite").unwrap().is_embedded() && !names.database("mariadb").unwrap().is_embedded());
    }
}
