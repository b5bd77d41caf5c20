//! `[database]`: which database, and how a private server of it is started.
//!
//! Main: [`DATABASE`] and [`read_database`].

use std::collections::BTreeMap;

use serde_json::json;

use super::Patience;
use super::names::Names;
use super::reading::{CPUS, read_cpus, read_name};
use crate::database::{Level, URL_FORM};
use crate::fault::fault;
use crate::trial::DatabaseSettings;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};
use crate::written::{Absent, Form, Kind, Part, Setting, Span};

const PRIVATE: &str = "a private server";

/// Minimum and maximum memory of a server, in bytes.
const MEMORY_LEAST: u64 = 32 << 20;
const MEMORY_MOST: u64 = 1 << 44;

/// The form of `database.config`.
pub static CONFIG: Form = Form {
    says: "table of names with text, numbers, `true` or `false`",
    schema: || {
        let value = json!({ "type": ["string", "number", "boolean", "object"] });
        json!({ "type": "object", "propertyNames": { "pattern": "^[A-Za-z0-9_.-]+$" }, "additionalProperties": value })
    },
    example: "{ work_mem = \"4MB\" }",
};

/// The settings of the section.
pub static DATABASE: Part = Part {
    name: "database",
    help: "The database, and how its private server is started, or the address of an existing server.",
    settings: &[
        Setting::new("name", Kind::Named(database_names), Absent::Text("sqlite"), "The database.")
            .factor(|settings| Some(settings.database.name.as_str().into())),
        Setting::new(
            "engine",
            Kind::Text,
            Absent::Means("the database's own"),
            "The storage engine, if the database has several: `innodb`, `myisam` and `aria` in MariaDB, `innodb` and `myisam` in MySQL.",
        )
        .factor(|settings| settings.database.engine.as_deref().map(Into::into)),
        Setting::new(
            "url",
            Kind::Own(&URL_FORM),
            Absent::Means("a private server is started, and stopped at the end"),
            "The address of an existing server. The password can be in the address or in LOADLINE_PASSWORD.",
        )
        .factor(|settings| settings.database.url.as_deref().map(Into::into)),
        Setting::new(
            "watch",
            Kind::Text,
            Absent::Means("a server on this machine is watched from here, one elsewhere not at all"),
            "The address of `loadline watch` on the machine of the server at `url`, as in `watch://db.example:7481`. Figures for CPU, disk, memory and network are then those of that machine. The token is taken from LOADLINE_WATCH_TOKEN; `?sslmode=verify-full&sslrootcert=FILE` works as in a database's address. `nats:NAME` is a watcher at the NATS server that `loadline run --nats URL` names, started with `loadline watch --nats URL --name NAME`.",
        ),
        Setting::new(
            "path",
            Kind::Text,
            Absent::Means("a file of the run"),
            "The database file.",
        )
        .only("embedded databases")
        .factor(|settings| settings.database.path.as_deref().map(Into::into)),
        Setting::new("binary", Kind::Text, Absent::Means("the one installed"), "The server's program file.")
            .only(PRIVATE)
            .factor(|settings| settings.database.binary.as_deref().map(Into::into)),
        Setting::new("base", Kind::Text, Absent::Means("none"), "The directory into which a server was unpacked.")
            .only(PRIVATE)
            .factor(|settings| settings.database.base.as_deref().map(Into::into)),
        Setting::new(
            "socket",
            Kind::OneOf(&["unix", "tcp"]),
            Absent::Means("`\"unix\"`; `\"tcp\"` over a `[link]`"),
            "How clients connect.",
        )
        .only(PRIVATE)
        .factor(|settings| settings.database.socket.as_deref().map(Into::into)),
        Setting::new(
            "tls",
            Kind::OneOf(&["none", "verify"]),
            Absent::Text("none"),
            "How connections are protected: `verify` is TLS with a certificate made for the server, which its clients verify. It needs `socket = \"tcp\"` or a `[link]`. For an existing server, write `sslmode` in its address.",
        )
        .only(PRIVATE)
        .factor(|settings| Some(settings.database.tls.as_deref().unwrap_or("none").into())),
        Setting::new("cpus", Kind::Own(&CPUS), Absent::Means("all"), "The CPUs to which the server is pinned.")
            .only(PRIVATE)
            .factor(|settings| settings.database.cpus.as_deref().map(Into::into)),
        Setting::new(
            "memory",
            Kind::Bytes(MEMORY_LEAST, MEMORY_MOST),
            Absent::Means("no limit"),
            "Maximum memory of the server together with the page cache of its files, as in `\"512MiB\"`, for tables that are larger than memory; with several nodes, of each. It needs a control group, which root can make, or a user in a delegated scope.",
        )
        .only(PRIVATE)
        .factor(|settings| settings.database.memory_bytes.map(Into::into)),
        Setting::new(
            "encryption",
            Kind::OneOf(&["none", "aes128", "aes256"]),
            Absent::Text("none"),
            "How the server encrypts its files.",
        )
        .only(PRIVATE)
        .factor(|settings| Some(settings.database.encryption.as_deref().unwrap_or("none").into())),
        Setting::new(
            "nodes",
            Kind::Whole(1, 9),
            Absent::Means("1"),
            "The number of nodes, each a server with a directory of its own. Of PostgreSQL's and Redis's nodes, the first is the primary, and the others are replicas that receive its log or its commands. MariaDB's nodes are a Galera cluster, in which all take writes; three of them can lose one.",
        )
        .only(PRIVATE)
        .factor(|settings| Some(super::cluster::nodes_of(&settings.database).into())),
        Setting::new(
            "replication",
            Kind::OneOf(&["asynchronous", "synchronous"]),
            Absent::Text("asynchronous"),
            "When replicas have what was written: `synchronous`, one of them before it is acknowledged; `asynchronous`, some time later. PostgreSQL's replica then has it on its disk. With Redis, clients send `WAIT` behind each write; the replica has it as durably as `appendonly` and `appendfsync` say.",
        )
        .only("a private server with replicas")
        .factor(|settings| Some(settings.database.replication.as_deref().unwrap_or("asynchronous").into())),
        Setting::new(
            "read_from",
            Kind::OneOf(&["primary", "replica"]),
            Absent::Text("primary"),
            "Which nodes are read from: the clients of a workload that only reads, and the readers of the workload `freshness`, connect to the replicas in turn. Writers always connect to the primary.",
        )
        .only("a private server with replicas")
        .factor(|settings| Some(settings.database.read_from.as_deref().unwrap_or("primary").into())),
        Setting::new(
            "connect_to",
            Kind::OneOf(&["one", "all"]),
            Absent::Text("one"),
            "Which nodes clients connect to: the first one, or all in turn.",
        )
        .only("a private server whose nodes all take writes")
        .factor(|settings| Some(settings.database.connect_to.as_deref().unwrap_or("one").into())),
        Setting::new(
            "reconnect_to",
            Kind::OneOf(&["same", "other"]),
            Absent::Text("same"),
            "Where a client connects that has lost its connection: to its own node, until that admits it again, or, with `other`, to the next node that does. Writers to a primary have no other.",
        )
        .only("a private server with several nodes")
        .factor(|settings| Some(settings.database.reconnect_to.as_deref().unwrap_or("same").into())),
        Setting::new(
            "durability",
            Kind::OneOf(&Level::NAMES),
            Absent::Means("as its settings have it: the strongest that it has, unless `config` says otherwise"),
            "What acknowledged writes must survive: `power-cut`, `crash` (a killed server, but no power cut) or `none`. It stands for the database's own settings that provide this, which are written into `config`; `loadline durability` shows whether they do.",
        )
        .only("databases that loadline starts, or opens as a file")
        .factor(|settings| settings.database.durability.as_deref().map(Into::into)),
        Setting::new(
            "statement_timeout",
            Kind::Duration(Span::AboveZero),
            Absent::Text("5m"),
            "Maximum wait for the answer to a statement before and after the load, such as to prepare, fill and count. Creating, changing and dropping tables may take 20 times as long.",
        )
        .only("databases behind a connection"),
        Setting::new(
            "config",
            Kind::Own(&CONFIG),
            Absent::Means("none"),
            "The database's own settings. Each can be a factor, as `database.config.NAME`.",
        ),
    ],
};

fn database_names() -> Vec<&'static str> {
    crate::database::REGISTRY.iter().map(|entry| entry.name).collect()
}

/// Reads the section.
pub fn read_database(root: &Table, names: &Names, errors: &mut Errors) -> DatabaseSettings {
    let section = Section::open(root, &DATABASE, errors);
    // Leaving it out and writing `none` are the same case.
    let encryption: Option<String> = section.find("encryption", errors).filter(|name| name != "none");
    let tls: Option<String> = section.find("tls", errors).filter(|name| name != "none");
    let mut settings = DatabaseSettings {
        name: read_name(&section, "name", &names.databases, errors),
        engine: section.read("engine", errors),
        url: section.read("url", errors),
        watch: section.read("watch", errors),
        path: section.read("path", errors),
        binary: section.read("binary", errors),
        base: section.read("base", errors),
        socket: section.read("socket", errors),
        tls,
        memory_bytes: section.find("memory", errors),
        cpus: read_cpus(&section, errors),
        encryption,
        durability: section.find("durability", errors),
        nodes: section.find("nodes", errors),
        replication: section.find("replication", errors).filter(|when| when != "asynchronous"),
        read_from: section.find("read_from", errors).filter(|node| node != "primary"),
        connect_to: section.find("connect_to", errors).filter(|nodes| nodes != "one"),
        reconnect_to: section.find("reconnect_to", errors).filter(|node| node != "same"),
        config: read_config(&section, errors),
    };
    give_level(&mut settings, &section, errors);
    settings
}

/// Adds the settings that give the requested level. A database that has none is refused elsewhere, with the names of others.
fn give_level(settings: &mut DatabaseSettings, section: &Section, errors: &mut Errors) {
    let level = settings.durability.as_deref().and_then(Level::of_name);
    let given = crate::database::find(&settings.name).zip(level).and_then(|(entry, level)| entry.settings_for(level));
    for (name, value) in given.unwrap_or_default() {
        let plain = |name: &str| name.to_lowercase().replace('-', "_");
        match settings.config.iter().find(|(known, _)| plain(known) == plain(name)) {
            Some((_, same)) if same.to_lowercase() == *value => {}
            Some((known, other)) => {
                let place = section.get("durability").map_or(section.place, |entry| entry.node.place);
                let asked = settings.durability.as_deref().unwrap_or_default();
                errors.push(
                    place,
                    fault!("database.durability = \"{asked}\" sets {name} = {value}, and database.config has {known} = {other}"; "leave one of them out"),
                );
            }
            None => drop(settings.config.insert((*name).to_owned(), (*value).to_owned())),
        }
    }
}

/// Reads how long trials wait for the database, which is not a setting of a case.
pub fn read_patience(root: &Table, errors: &mut Errors) -> Patience {
    // Other faults of the section were reported when it was read for the cases.
    let section = Section::open(root, &DATABASE, &mut Errors::default());
    Patience(section.read("statement_timeout", errors))
}

/// Reads the server's own settings, as text. Unquoted dots in names make tables, which are joined again.
fn read_config(section: &Section, errors: &mut Errors) -> BTreeMap<String, String> {
    fn collect(prefix: &str, table: &Table, out: &mut BTreeMap<String, String>, errors: &mut Errors) {
        for entry in &table.entries {
            let name = format!("{prefix}{}", entry.key);
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if name.is_empty() || !name.chars().all(is_name) {
                let remedy = "letters, digits, and the signs _ - . are possible";
                errors.push(entry.place, fault!("database.config has the name {name:?}"; "{remedy}"));
                continue;
            }
            let text = match &entry.node.content {
                Content::Table(inner) => {
                    collect(&format!("{name}."), inner, out, errors);
                    continue;
                }
                Content::Text(text) if !text.chars().any(char::is_control) => text.clone(),
                Content::Integer(_) | Content::Float(_) | Content::Boolean(_) => entry.node.to_string(),
                _ => {
                    let must = "it must be text on one line, a number, or true or false";
                    errors.push(entry.node.place, fault!("database.config.{name} is {}", entry.node; "{must}"));
                    continue;
                }
            };
            out.insert(name, text);
        }
    }
    let mut config = BTreeMap::new();
    if let Some(entry) = section.get("config") {
        match &entry.node.content {
            Content::Table(table) => collect("", table, &mut config, errors),
            _ => errors.push(
                entry.node.place,
                fault!("database.config is {}", entry.node; "it must be a table {{ name = value }}"),
            ),
        }
    }
    config
}
