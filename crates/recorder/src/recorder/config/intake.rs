//! Reads `[intake]` and the tables below it.

use super::blocks::{BLOCKS, FTP, PUT, read_blocks, read_ftp, read_put};
use super::listening::{read_address, read_insecure, read_tls};
use super::nats::{NATS, STORE, read_nats, read_store};
use super::{IntakeConfig, ListenConfig, rows};
use crate::fault::fault;
use crate::recorder::access::TOKEN_CHARACTERS_MIN;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};
use crate::written::{Absent, Kind, Part, Setting};

const OFF: Absent = Absent::Means("off");

const fn table_of(key: &'static str, part: &'static Part, help: &'static str) -> Setting {
    Setting::new(key, Kind::Part(part), OFF, help)
}

/// `[intake]`
pub static INTAKE: Part = Part {
    name: "intake",
    help: "What is taken in. Each table below it is an intake, which is off if the table is missing.",
    settings: &[
        Setting::new(
            "memory",
            Kind::Bytes(1 << 20, 1 << 36),
            Absent::Text("64MiB"),
            "Maximum size of all requests in memory.",
        ),
        Setting::new(
            "request",
            Kind::Bytes(1 << 10, 1 << 30),
            Absent::Text("16MiB"),
            "Maximum size of one request, after decompression; at most `memory`.",
        ),
        Setting::new(
            "partial",
            Kind::OneOf(&["keep", REFUSE]),
            Absent::Text("keep"),
            "Whether the good lines of a batch with bad ones are kept, or the whole batch is refused.",
        ),
        table_of("http", &HTTP, "Line protocol over HTTP."),
        table_of("tcp", &TCP, "Line protocol over TCP."),
        table_of("nats", &NATS, "Line protocol in messages of a NATS stream."),
        Setting::new(
            "blocks",
            Kind::Part(&BLOCKS),
            Absent::Means("see below"),
            "Settings of all ways to upload blocks.",
        ),
        table_of("ftp", &FTP, "Blocks by FTP and FTPS."),
        table_of("put", &PUT, "Blocks by HTTP PUT."),
        table_of("store", &STORE, "Blocks that another recorder forwards."),
    ],
};

const REFUSE: &str = "refuse";

const LISTENING: [Setting; 9] = [
    rows::listen("Address and port. Other machines need a token and TLS."),
    Setting::new(
        "tokens",
        Kind::Texts,
        Absent::Means("none"),
        "Tokens of one sender that may do everything, each of 16 characters or more. Without a token, and without `[[access]]`, only this machine may send.",
    ),
    rows::CERTIFICATE,
    rows::KEY,
    rows::CLIENT_AUTHORITY,
    rows::INSECURE,
    rows::connections(100_000, 1_000),
    rows::connections_per_address(rows::HALF),
    rows::PATIENCE,
];

/// `[intake.http]`
pub static HTTP: Part = Part {
    name: "intake.http",
    help: "Line protocol over HTTP: `POST /api/v2/write` and `/write`; `GET /ready`, `/health` and `/metrics`.",
    settings: &LISTENING,
};

/// `[intake.tcp]`
pub static TCP: Part = Part {
    name: "intake.tcp",
    help: "Line protocol over TCP, with an empty line after each batch.",
    settings: &LISTENING,
};

pub(super) fn read_intake(root: &Table, errors: &mut Errors) -> IntakeConfig {
    let section = Section::open(root, &INTAKE, errors);
    let empty = Table::default();
    let intakes = ["http", "tcp", "nats", "ftp", "put", "store"];
    let tables = match intakes.iter().find_map(|name| section.get(name)) {
        Some(_) => root.get("intake").and_then(|entry| match &entry.node.content {
            Content::Table(table) => Some(table),
            _ => None,
        }),
        None => None,
    };
    let is_needed = ["processing", "office", "forward", "query"].iter().all(|name| root.get(name).is_none());
    if tables.is_none() && is_needed {
        errors.push(section.place, fault!("there is no intake"; "add [intake.http] with listen = \"127.0.0.1:8086\""));
    }
    let tables = tables.unwrap_or(&empty);
    let memory_bytes = section.read("memory", errors);
    let request_bytes = section.read("request", errors);
    if request_bytes > memory_bytes {
        let place = section.get("request").or(section.get("memory")).map_or(section.place, |entry| entry.place);
        errors.push(place, fault!("intake.request is larger than intake.memory"; "no such request could be taken in"));
    }
    // Errors of these are reported where they are read.
    let has_access = root.get("access").is_some();
    let blocks = read_blocks(tables, errors);
    let has_users = blocks.users.is_some();
    IntakeConfig {
        memory_bytes,
        request_bytes,
        shows_metrics: root.get("metrics").is_none(),
        keeps_good_lines: section.find("partial", errors) != Some(REFUSE),
        http: read_listen(tables, &HTTP, has_access, errors),
        tcp: read_listen(tables, &TCP, has_access, errors),
        nats: read_nats(tables, errors),
        blocks,
        ftp: read_ftp(tables, has_users, errors),
        put: read_put(tables, has_users, errors),
        store: read_store(tables, errors),
    }
}

fn read_listen(tables: &Table, part: &'static Part, has_access: bool, errors: &mut Errors) -> Option<ListenConfig> {
    tables.get(part.last_name())?;
    let section = Section::open(tables, part, errors);
    let tokens = read_tokens(&section, errors);
    let missing = (tokens.is_empty() && !has_access).then_some(("there is no token", "add [[access]] or tokens"));
    let listen = read_address(&section, "listen", &missing, errors);
    let tls = read_tls(&section, errors);
    let is_insecure = read_insecure(&section, listen, tls.is_some(), errors);
    Some(ListenConfig {
        listen: listen?,
        tokens,
        is_insecure,
        tls,
        connections: section.read("connections", errors),
        connections_per_address: section.read("connections_per_address", errors),
        patience: section.read("patience", errors),
    })
}

fn read_tokens(section: &Section<'_>, errors: &mut Errors) -> Vec<String> {
    let tokens = section.texts("tokens", errors);
    let short = tokens.iter().filter(|token| token.chars().count() < TOKEN_CHARACTERS_MIN).count();
    if let Some(entry) = section.get("tokens").filter(|_| short > 0) {
        let tokens = section.path("tokens");
        let least = TOKEN_CHARACTERS_MIN;
        // The token itself is not shown.
        let fault = fault!(
            "{tokens} has {short} that are shorter than a token must be, and could be guessed";
            "a token must have {least} characters or more: loadline password --token makes one"
        );
        errors.push(entry.node.place, fault);
    }
    tokens
}
