//! `[database]`: the database for measurement data. Main function: [`read_database`].

use std::collections::BTreeMap;

use super::rows::CONFIG;
use crate::database;
use crate::fault::fault;
use crate::trial::DatabaseSettings;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};
use crate::written::{Absent, Kind, Part, Setting};

const PRIVATE: &str = "a private server";
const PRIVATE_KEYS: [&str; 5] = ["binary", "base", "socket", "cpus", "config"];

/// `[database]`
pub static DATABASE: Part = Part {
    name: "database",
    help: "The database that measurement data are written into. A recorder that only takes in blocks needs none.",
    settings: &[
        Setting::new("name", Kind::Listed(names), Absent::Text("sqlite"), "The database."),
        Setting::new(
            "engine",
            Kind::Text,
            Absent::Means("`\"innodb\"`"),
            "The storage engine, which must store a record and its ledger together or not at all.",
        )
        .only("MariaDB and MySQL"),
        Setting::new(
            "url",
            Kind::Own(&database::URL_FORM),
            Absent::Means("a private server is started, and stopped at the end"),
            "The address of an existing server. User and password can be in it.",
        )
        .only("servers"),
        Setting::new("path", Kind::Text, Absent::Means("none: it must be given for SQLite"), "The database file.")
            .only("SQLite"),
        Setting::new("binary", Kind::Text, Absent::Means("the one installed"), "The server's program file.")
            .only(PRIVATE),
        Setting::new("base", Kind::Text, Absent::Means("none"), "The directory into which a server was unpacked.")
            .only(PRIVATE),
        Setting::new(
            "socket",
            Kind::OneOf(&["unix", "tcp"]),
            Absent::Means("`\"unix\"`"),
            "How the recorder connects to it.",
        )
        .only(PRIVATE),
        Setting::new("cpus", Kind::Text, Absent::Means("all"), "The CPUs to which it is pinned, as in `0` or `0,2-3`.")
            .only(PRIVATE),
        Setting::new("config", Kind::Own(&CONFIG), Absent::Means("none"), "The database's own settings.")
            .only("SQLite and private servers"),
    ],
};

fn names() -> Vec<&'static str> {
    database::REGISTRY.iter().filter(|entry| missing(entry).is_none()).map(|entry| entry.name).collect()
}

/// Returns what a database lacks for a recorder.
fn missing(entry: &database::Entry) -> Option<database::Capability> {
    let needed = [database::Capability::Sql, database::Capability::DryRuns];
    needed.into_iter().find(|capability| !entry.capabilities.has(*capability))
}

/// Reads the name of the database. One that cannot be a recorder's is refused with the reason.
fn read_name(section: &Section<'_>, errors: &mut Errors) -> String {
    let named = section.get("name").and_then(|entry| match &entry.node.content {
        Content::Text(name) => Some((entry.place, database::find(name)?)),
        _ => None,
    });
    let lacks = named.and_then(|(place, entry)| Some((place, entry.name, missing(entry)?)));
    let Some((place, name, capability)) = lacks else { return section.read("name", errors) };
    let others = names().join(", ");
    let what = capability.name();
    errors.push(
        place,
        fault!("database.name is \"{name}\" and {name} has no {what}"; "a recorder can store into: {others}"),
    );
    "sqlite".to_owned()
}

/// Reads the settings of the section.
pub(super) fn read_database(root: &Table, errors: &mut Errors) -> DatabaseSettings {
    let section = Section::open(root, &DATABASE, errors);
    let settings = DatabaseSettings {
        name: read_name(&section, errors),
        engine: section.read("engine", errors),
        url: section.read("url", errors),
        watch: None,
        path: section.read("path", errors),
        binary: section.read("binary", errors),
        base: section.read("base", errors),
        socket: section.read("socket", errors),
        encryption: None,
        tls: None,
        memory_bytes: None,
        cpus: section.read("cpus", errors),
        durability: None,
        nodes: None,
        replication: None,
        read_from: None,
        connect_to: None,
        reconnect_to: None,
        config: read_server_config(&section, errors),
    };
    if let Some(entry) = database::find(&settings.name) {
        check_database(entry, &settings, &section, errors);
    }
    settings
}

fn read_server_config(section: &Section<'_>, errors: &mut Errors) -> BTreeMap<String, String> {
    let mut config = BTreeMap::new();
    let Some(entry) = section.get("config") else { return config };
    let Content::Table(table) = &entry.node.content else {
        errors.push(entry.place, fault!("database.config is {}", entry.node; "it must be a table {{ name = value }}"));
        return config;
    };
    for entry in &table.entries {
        let value = match &entry.node.content {
            Content::Text(text) => text.clone(),
            Content::Integer(number) => number.to_string(),
            Content::Float(number) => number.to_string(),
            Content::Boolean(truth) => truth.to_string(),
            _ => {
                let must = "it must be text, a number, or true or false";
                errors.push(entry.node.place, fault!("database.config.{} is {}", entry.key, entry.node; "{must}"));
                continue;
            }
        };
        config.insert(entry.key.clone(), value);
    }
    config
}

/// Reports settings that contradict each other.
fn check_database(entry: &database::Entry, settings: &DatabaseSettings, section: &Section<'_>, errors: &mut Errors) {
    let place = |key: &str| section.get(key).map_or(section.place, |entry| entry.place);
    let name = entry.name;
    let is_embedded = entry.read_url.is_none();
    match (&settings.path, is_embedded) {
        (None, true) => {
            errors.push(
                section.place,
                fault!("database.path is missing"; "name the file for {name}, as in path = \"measurements.db\""),
            );
        }
        (Some(_), false) => {
            let remedy = "leave it out; database.url names a server that exists";
            errors.push(place("path"), fault!("database.path is a file and {name} is a server"; "{remedy}"));
        }
        _ => {}
    }
    match (&settings.url, entry.read_url) {
        (Some(_), None) => {
            errors.push(
                place("url"),
                fault!("database.url is for servers and {name} is none"; "use database.path for its file"),
            );
        }
        (Some(url), Some(read_url)) => {
            if let Err(sentence) = read_url(url) {
                errors.push(place("url"), format!("database.url: {sentence}"));
            }
        }
        (None, _) => {}
    }
    if let Some(engine) = &settings.engine {
        if entry.engines.is_empty() {
            errors.push(place("engine"), fault!("{name} has no engines"; "leave database.engine out"));
        } else if !engine.eq_ignore_ascii_case("innodb") {
            let remedy =
                "write \"innodb\" or leave it out: a record and its ledger must be stored together or not at all";
            errors.push(place("engine"), fault!("database.engine \"{engine}\" has no transactions"; "{remedy}"));
        }
    }
    if is_embedded
        && let Some(value) = settings.config.get("synchronous")
        && !["full", "extra", "2", "3"].contains(&value.to_ascii_lowercase().as_str())
    {
        let remedy = "write \"full\" or leave it out: what is acknowledged must be on the disk";
        errors.push(place("config"), fault!("database.config.synchronous is \"{value}\""; "{remedy}"));
    }
    for key in PRIVATE_KEYS {
        if section.get(key).is_none() {
            continue;
        }
        if settings.url.is_some() {
            let remedy = "leave one of them out";
            errors.push(
                place(key),
                fault!("database.{key} is for a private server and database.url names one that exists"; "{remedy}"),
            );
        } else if is_embedded && key != "config" {
            errors.push(place(key), fault!("database.{key} is for servers and {name} is none"; "leave it out"));
        }
    }
}
