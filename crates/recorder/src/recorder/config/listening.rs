//! Reads the address on which a part listens, its certificate, and whether others may connect without TLS.

use std::net::SocketAddr;

use super::TlsConfig;
use crate::fault::fault;
use crate::written::place::Errors;
use crate::written::section::Section;

/// Reads whether other machines may connect without TLS. An address that would allow it without this setting is an error.
pub(super) fn read_insecure(
    section: &Section<'_>,
    listen: Option<SocketAddr>,
    requires_tls: bool,
    errors: &mut Errors,
) -> bool {
    let is_insecure: bool = section.read("insecure", errors);
    if listen.is_some_and(|listen| !listen.ip().is_loopback()) && !requires_tls && !is_insecure {
        let entry = section.get("listen");
        let (place, address) = (entry.map_or(section.place, |entry| entry.node.place), section.path("listen"));
        let shown = entry.map(|entry| entry.node.to_string()).unwrap_or_default();
        let remedy = "add certificate and key, or write insecure = true where something else protects the way";
        errors.push(place, fault!("{address} is {shown} and clients would come without TLS"; "{remedy}"));
    }
    is_insecure
}

/// Reads certificate and key. If clients are asked for certificates, the table may name the authority that must have signed them.
pub(super) fn read_tls(section: &Section<'_>, errors: &mut Errors) -> Option<TlsConfig> {
    const AUTHORITY: &str = "client_authority";
    match (section.given("certificate", errors), section.given("key", errors)) {
        (Some(certificate), Some(key)) => {
            let client_authority = if section.has(AUTHORITY) { section.read(AUTHORITY, errors) } else { None };
            Some(TlsConfig { certificate, key, client_authority })
        }
        (None, None) => {
            if let Some(entry) = section.get(AUTHORITY) {
                let path = section.path(AUTHORITY);
                let remedy = "clients show certificates with TLS only; add certificate and key";
                errors.push(entry.place, fault!("{path} is {} without TLS", entry.node; "{remedy}"));
            }
            None
        }
        _ => {
            errors.push(section.place, format!("{} needs both certificate and key for TLS, or neither", section.name));
            None
        }
    }
}

/// Reads an address to listen on. If `missing` says what is missing and what adds it, only a loopback address is allowed.
pub(super) fn read_address(
    section: &Section<'_>,
    key: &str,
    missing: &Option<(&str, &str)>,
    errors: &mut Errors,
) -> Option<SocketAddr> {
    let path = section.path(key);
    let Some(entry) = section.get(key) else {
        errors.push(section.place, fault!("{path} is missing"; "write an address and a port"));
        return None;
    };
    let address = match section.text(key, errors)?.parse::<SocketAddr>() {
        Ok(address) => address,
        Err(_) => {
            let must = "it must be an address and a port, as in \"127.0.0.1:8086\"";
            errors.push(entry.node.place, fault!("{path} is {}", entry.node; "{must}"));
            return None;
        }
    };
    if let Some((what, adds)) = missing
        && !address.ip().is_loopback()
    {
        let remedy = format!("{adds}, or listen on a loopback address such as 127.0.0.1");
        errors.push(entry.node.place, fault!("{path} is {} and {what}", entry.node; "{remedy}"));
    }
    Some(address)
}
