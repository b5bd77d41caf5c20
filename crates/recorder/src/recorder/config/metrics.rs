//! `[metrics]`: a separate address for `/metrics`. Main type: [`MetricsConfig`].

use super::access::{TOKEN_HASH, read_hash};
use super::listening::{read_address, read_insecure, read_tls};
use super::{ListenConfig, rows};
use crate::recorder::access::TokenHash;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Part, Setting};

/// `[metrics]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// The address on which it listens, and its limits.
    pub listen: ListenConfig,
    /// The hash of the token that a request must show; `None` if only this machine can connect.
    pub token: Option<TokenHash>,
}

/// `[metrics]`
pub static METRICS: Part = Part {
    name: "metrics",
    help: "A separate address for `/metrics`, which the intakes then do not answer.",
    settings: &[
        rows::listen("Address and port."),
        Setting {
            absent: Absent::Means("none: only this machine may read it"),
            help: "The hash of the token that readers must send. `loadline password --token` makes both.",
            ..TOKEN_HASH
        },
        rows::CERTIFICATE,
        rows::KEY,
        rows::CLIENT_AUTHORITY,
        rows::INSECURE,
        rows::connections(10_000, 100),
        rows::connections_per_address(rows::HALF),
        rows::PATIENCE,
    ],
};

pub(super) fn read_metrics(root: &Table, errors: &mut Errors) -> Option<MetricsConfig> {
    root.get("metrics")?;
    let (listen, token) = read_guarded(&Section::open(root, &METRICS, errors), errors)?;
    Some(MetricsConfig { listen, token })
}

/// Reads an address that readers need a token for, if other machines can reach it.
pub(super) fn read_guarded(section: &Section<'_>, errors: &mut Errors) -> Option<(ListenConfig, Option<TokenHash>)> {
    let token = section.get("token_hash").and_then(|_| read_hash(section, &section.path("token_hash"), errors));
    let remedy = ("there is no token", "add token_hash, as loadline password --token makes it");
    let listen = read_address(section, "listen", &section.get("token_hash").is_none().then_some(remedy), errors);
    let tls = read_tls(section, errors);
    let is_insecure = read_insecure(section, listen, tls.is_some(), errors);
    let connections = section.read("connections", errors);
    let connections_per_address = section.read("connections_per_address", errors);
    let patience = section.read("patience", errors);
    let (listen, tokens) = (listen?, Vec::new());
    let listen = ListenConfig { listen, tokens, is_insecure, tls, connections, connections_per_address, patience };
    Some((listen, token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::config::read;

    fn said(metrics: &str) -> Result<Option<MetricsConfig>, String> {
        let intake = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
        let config = read(&format!("{metrics}{intake}"), "c.toml").map_err(|errors| errors.to_string())?;
        assert_eq!(config.intake.shows_metrics, config.metrics.is_none());
        Ok(config.metrics)
    }

    #[test]
    fn an_address_of_its_own_is_as_protected_as_every_other() {
        assert_eq!(said(""), Ok(None));
        let here = said("[metrics]\nlisten = \"127.0.0.1:9100\"\nconnections_per_address = 3\n").unwrap().unwrap();
        assert!(here.token.is_none() && here.listen.connections == 100);
        assert_eq!(here.listen.connections_per_address, Some(3));
        let hash = format!("token_hash = \"{}\"\n", TokenHash::of("a").text());
        let open = "[metrics]\nlisten = \"0.0.0.0:9100\"\n";
        let there = said(&format!("{open}{hash}insecure = true\n")).unwrap().unwrap();
        assert!(there.token.is_some_and(|token| token.is(&TokenHash::of("a"))));
        for (metrics, says) in [
            (open.to_owned(), "c.toml:2: metrics.listen is \"0.0.0.0:9100\" and there is no token; add token_hash"),
            (format!("{open}{hash}"), "metrics.listen is \"0.0.0.0:9100\" and clients would come without TLS"),
            (format!("{open}insecure = true\ntoken_hash = \"secret\"\n"), "c.toml:4: metrics.token_hash is no hash"),
            ("[metrics]\n".to_owned(), "c.toml:1: metrics.listen is missing"),
            ("[metrics]\nlisten = \"127.0.0.1:0\"\ntoken = \"x\"\n".to_owned(), "unknown key \"token\" in metrics"),
        ] {
            let sentence = said(&metrics).unwrap_err();
            assert!(sentence.contains(says) && !sentence.contains("secret"), "{metrics}: {sentence}");
        }
    }
}
