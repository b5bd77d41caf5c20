//! Reads `[intake]` and the tables below it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::blocks::{read_blocks, read_ftp, read_put};
use super::nats::{read_nats, read_store};
use super::read::{read_bytes, read_duration, read_texts};
use super::{IntakeConfig, ListenConfig, TlsConfig};
use crate::recorder::access::TOKEN_CHARACTERS_MIN;
use crate::study::place::Errors;
use crate::study::section::Section;
use crate::study::tree::{Content, Table};

const KEYS: &[&str] = &["memory", "request", "partial", "http", "tcp", "nats", "blocks", "ftp", "put", "store"];
const LISTEN_KEYS: &[&str] = &[
    "listen",
    "tokens",
    "certificate",
    "key",
    "client_authority",
    "insecure",
    "connections",
    "connections_per_address",
    "patience",
];

pub(super) fn read_intake(root: &Table, errors: &mut Errors) -> IntakeConfig {
    let section = Section::open(root, "intake", KEYS, errors);
    let empty = Table::default();
    let intakes = ["http", "tcp", "nats", "ftp", "put", "store"];
    let tables = match intakes.iter().find_map(|name| section.get(name)) {
        Some(_) => root.get("intake").and_then(|entry| match &entry.node.content {
            Content::Table(table) => Some(table),
            _ => None,
        }),
        None => None,
    };
    let is_needed = ["processing", "office", "forward"].iter().all(|name| root.get(name).is_none());
    if tables.is_none() && is_needed {
        errors.push(section.place, "there is no intake; add [intake.http] with listen = \"127.0.0.1:8086\"");
    }
    let tables = tables.unwrap_or(&empty);
    let memory_bytes = read_bytes(&section, "memory", 1 << 20, 1 << 36, errors).unwrap_or(64 << 20);
    let request_bytes = read_bytes(&section, "request", 1 << 10, 1 << 30, errors).unwrap_or(16 << 20);
    if request_bytes > memory_bytes {
        let place = section.get("request").or(section.get("memory")).map_or(section.place, |entry| entry.place);
        errors.push(place, "intake.request is larger than intake.memory; no such request could be taken in");
    }
    // What is wrong with them is said where they are read.
    let has_access = root.get("access").is_some();
    let blocks = read_blocks(tables, errors);
    let has_users = blocks.users.is_some();
    IntakeConfig {
        memory_bytes,
        request_bytes,
        shows_metrics: root.get("metrics").is_none(),
        keeps_good_lines: section.one_of("partial", &["keep", "refuse"], errors) != Some("refuse"),
        http: read_listen(tables, "http", has_access, errors),
        tcp: read_listen(tables, "tcp", has_access, errors),
        nats: read_nats(tables, errors),
        blocks,
        ftp: read_ftp(tables, has_users, errors),
        put: read_put(tables, has_users, errors),
        store: read_store(tables, errors),
    }
}

fn read_listen(tables: &Table, kind: &str, has_access: bool, errors: &mut Errors) -> Option<ListenConfig> {
    tables.get(kind)?;
    let mut section = Section::open(tables, kind, LISTEN_KEYS, errors);
    let path = format!("intake.{kind}");
    section.name = &path;
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
        connections: section.count("connections", 1, 100_000, errors).unwrap_or(1_000),
        connections_per_address: read_per_address(&section, errors),
        patience: read_duration(&section, "patience", 0.01, 3600.0, errors).unwrap_or(Duration::from_secs(30)),
    })
}

/// The most connections of an address.
pub(super) fn read_per_address(section: &Section<'_>, errors: &mut Errors) -> Option<u32> {
    section.count("connections_per_address", 1, 100_000, errors)
}

fn read_tokens(section: &Section<'_>, errors: &mut Errors) -> Vec<String> {
    let tokens = read_texts(section, "tokens", errors);
    let short = tokens.iter().filter(|token| token.chars().count() < TOKEN_CHARACTERS_MIN).count();
    if let Some(entry) = section.get("tokens").filter(|_| short > 0) {
        let tokens = section.path("tokens");
        let must = format!("a token must have {TOKEN_CHARACTERS_MIN} characters or more");
        // The token itself is not shown.
        let what = format!("{tokens} has {short} that are shorter, and could be guessed; {must}");
        errors.push(entry.node.place, format!("{what}; loadline password --token makes one"));
    }
    tokens
}

/// Whether an intake may be reached from other machines without TLS. Where it would be and nobody has said so, that is an error.
pub(super) fn read_insecure(
    section: &Section<'_>,
    listen: Option<SocketAddr>,
    requires_tls: bool,
    errors: &mut Errors,
) -> bool {
    let is_insecure = section.truth("insecure", errors).unwrap_or(false);
    if listen.is_some_and(|listen| !listen.ip().is_loopback()) && !requires_tls && !is_insecure {
        let entry = section.get("listen");
        let (place, address) = (entry.map_or(section.place, |entry| entry.node.place), section.path("listen"));
        let shown = entry.map(|entry| entry.node.to_string()).unwrap_or_default();
        let remedy = "add certificate and key, or write insecure = true where something else protects the way";
        errors.push(place, format!("{address} is {shown} and clients would come without TLS; {remedy}"));
    }
    is_insecure
}

pub(super) fn read_tls(section: &Section<'_>, errors: &mut Errors) -> Option<TlsConfig> {
    let file = |key: &str, errors: &mut Errors| section.text(key, errors).map(PathBuf::from);
    match (file("certificate", errors), file("key", errors)) {
        (Some(certificate), Some(key)) => {
            Some(TlsConfig { certificate, key, client_authority: file("client_authority", errors) })
        }
        (None, None) => {
            if let Some(entry) = section.get("client_authority") {
                let path = section.path("client_authority");
                let remedy = "clients show certificates with TLS only; add certificate and key";
                errors.push(entry.place, format!("{path} is {} without TLS; {remedy}", entry.node));
            }
            None
        }
        _ => {
            errors.push(section.place, format!("{} needs both certificate and key for TLS, or neither", section.name));
            None
        }
    }
}

/// An address to listen on. Where `missing` says what is missing and what adds it, only this machine may be listened to.
pub(super) fn read_address(
    section: &Section<'_>,
    key: &str,
    missing: &Option<(&str, &str)>,
    errors: &mut Errors,
) -> Option<SocketAddr> {
    let path = section.path(key);
    let Some(entry) = section.get(key) else {
        errors.push(section.place, format!("{path} is missing; write an address and a port"));
        return None;
    };
    let address = match section.text(key, errors)?.parse::<SocketAddr>() {
        Ok(address) => address,
        Err(_) => {
            let must = "it must be an address and a port, as in \"127.0.0.1:8086\"";
            errors.push(entry.node.place, format!("{path} is {}; {must}", entry.node));
            return None;
        }
    };
    if let Some((what, adds)) = missing
        && !address.ip().is_loopback()
    {
        let remedy = format!("{adds}, or listen on a loopback address such as 127.0.0.1");
        errors.push(entry.node.place, format!("{path} is {} and {what}; {remedy}", entry.node));
    }
    Some(address)
}
