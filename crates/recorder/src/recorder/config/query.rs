//! `[query]`: who may ask about what is stored, and how much. Main type: [`QueryConfig`].

use std::time::Duration;

use super::access::TOKEN_HASH;
use super::metrics::read_guarded;
use super::{ListenConfig, rows};
use crate::fault::fault;
use crate::layout::recorded::Shape;
use crate::recorder::access::TokenHash;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// `[query]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryConfig {
    /// The address on which it listens, and its limits.
    pub listen: ListenConfig,
    /// The hash of the token that a request must show; `None` if only this machine can connect.
    pub token: Option<TokenHash>,
    /// The most time of a question.
    pub within: Duration,
    /// The most questions that are answered at a time.
    pub at_once: u32,
    /// The most series of a question.
    pub series: u32,
    /// The most rows that a question reads.
    pub rows: u64,
}

/// `[query]`
pub static QUERY: Part = Part {
    name: "query",
    help: "Questions about what is stored, over Prometheus's HTTP API (`/api/v1/query_range` and others), as Grafana asks them. Layouts `wide`, `star` and `star-hot`.",
    settings: &[
        rows::listen("Address and port."),
        Setting {
            absent: Absent::Means("none: only this machine may ask"),
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
        Setting::new(
            "within",
            Kind::Duration(Span::Within(0.1, 3600.0)),
            Absent::Text("10s"),
            "Maximum time of a question. After it, the database is told to end the statement.",
        ),
        Setting::new(
            "at_once",
            Kind::Whole(1, 64),
            Absent::Whole(4),
            "Maximum number of questions that are answered at a time, each over a connection of its own. Further ones wait.",
        ),
        Setting::new(
            "series",
            Kind::Whole(1, 100_000),
            Absent::Whole(5_000),
            "Maximum number of series of a question.",
        ),
        Setting::new(
            "rows",
            Kind::Whole(1_000, 100_000_000),
            Absent::Whole(1_000_000),
            "Maximum number of rows that a question reads. Each takes up to 50 bytes of memory until it is answered.",
        ),
    ],
};

pub(super) fn read_query(root: &Table, layout: &str, errors: &mut Errors) -> Option<QueryConfig> {
    root.get("query")?;
    let section = Section::open(root, &QUERY, errors);
    if Shape::named(layout).is_some_and(|shape| !shape.has_field_columns()) {
        let remedy = "take layout.name = \"star\", \"star-hot\" or \"wide\", or leave [query] out";
        errors.push(
            section.place,
            fault!("[query] reads columns of fields and layout.name is \"{layout}\", which has none"; "{remedy}"),
        );
    }
    let guarded = read_guarded(&section, errors);
    let within = section.read("within", errors);
    let at_once = section.read("at_once", errors);
    let series = section.read("series", errors);
    let rows = section.read("rows", errors);
    let (listen, token) = guarded?;
    Some(QueryConfig { listen, token, within, at_once, series, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::config::read;

    #[test]
    fn questions_are_off_by_default_and_have_bounds() {
        let said = |more: &str| {
            let intake = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
            read(&format!("{intake}{more}"), "c.toml").map(|config| config.query).map_err(|errors| errors.to_string())
        };
        assert_eq!(said(""), Ok(None));
        let query = said("[query]\nlisten = \"127.0.0.1:9090\"\n").unwrap().unwrap();
        assert_eq!((query.within, query.at_once, query.series), (Duration::from_secs(10), 4, 5_000));
        assert_eq!((query.rows, query.token), (1_000_000, None));
        // Another process may record.
        let alone = "[database]\npath = \"m.db\"\n[query]\nlisten = \"127.0.0.1:0\"\n";
        assert!(read(alone, "c.toml").is_ok_and(|config| config.query.is_some() && !config.takes_lines()));
        for (more, says) in [
            ("[query]\n", "query.listen is missing"),
            ("[query]\nlisten = \"0.0.0.0:9090\"\n", "query.listen is \"0.0.0.0:9090\" and there is no token"),
            ("[query]\nlisten = \"127.0.0.1:0\"\nwithin = 5\n", "query.within is 5"),
            ("[query]\nlisten = \"127.0.0.1:0\"\n[layout]\nname = \"eav\"\n", "layout.name is \"eav\", which has none"),
        ] {
            let sentence = said(more).unwrap_err();
            assert!(sentence.contains(says), "{more}: {sentence}");
        }
    }
}
