//! Logs of other databases, from which studies are drafted.

use std::io::Cursor;

use super::formats::names;
use crate::draft::catalogue::{Catalogue, Column, Holds, Server, Spread, Table, Writer};
use crate::draft::fit::{Fitted, Fitter, Place};
use crate::draft::private::describe;
use crate::draft::seen::{Collector, grammar_of, read_log};
use crate::draft::written::study_text;
use crate::draft::{Origin, Trier, draft, known};
use crate::fuzzed::{Target, texts};

/// Logs: a study drafted from any log can be read.
pub(super) static DRAFTS: Target = Target {
    name: "drafts",
    run: |input| {
        let (which, log) = input.split_first().map_or((0, input), |(which, log)| (*which, log));
        let server = [Server::Postgres, Server::MariaDb, Server::Sqlite][usize::from(which) % 3];
        let mut collector = Collector::new(grammar_of(server));
        if read_log(&mut Cursor::new(log), "shop", &mut collector).is_err() {
            return;
        }
        let (quote, literal) =
            (|name: &str| format!("\"{name}\""), |text: &str| format!("'{}'", text.replace('\'', "''")));
        let writer = Writer { quote: &quote, literal: &literal };
        let catalogue = catalogue();
        let known = known(&catalogue);
        let place =
            Place { server, writer: &writer, now_us: 1_795_674_175_000_000, offset_s: 0, keeps_values: which >= 128 };
        let fitter = Fitter { catalogue: &catalogue, known: &known, grammar: grammar_of(server), place };
        let mut drafted = draft(&fitter, collector.seen(), &mut Willing);
        let described = (which & 64 != 0).then(|| describe(&fitter, &mut drafted));
        let origin = Origin {
            address: "shop.db",
            is_file: true,
            database: "sqlite",
            journal: Some("delete"),
            settings: &[],
            name: "shop",
            file: "s.toml",
            time: "now",
        };
        if drafted.statements.is_empty() {
            return;
        }
        let text = study_text(&origin, &catalogue, &drafted, described.as_deref());
        match crate::study::load_text("s.toml", &text, &[], None, false, &names()) {
            Ok((study, _)) => {
                assert!(!study.base.workload.statements.is_empty());
                assert_eq!(study.base.tables.len(), described.map_or(0, |described| described.len()), "{text}");
            }
            // A study whose statements all write has no statements until writes are permitted.
            Err(errors) => assert!(drafted.statements.iter().all(|one| one.fitted.writes), "{errors}\n{text}"),
        }
    },
    seeds: || {
        let mut seeds = texts(&[
            "\u{0}2026-11-26 06:22:55.500 UTC [12] me@shop LOG:  execute s1: SELECT id FROM orders WHERE customer = $1 AND at BETWEEN $2 AND $3 LIMIT 5\n2026-11-26 06:22:55.500 UTC [12] me@shop DETAIL:  parameters: $1 = '7', $2 = '2026-11-01 00:00:00', $3 = NULL\n",
            "\u{0}{\"timestamp\":\"2026-11-26 06:22:55.500 UTC\",\"dbname\":\"shop\",\"message\":\"statement: UPDATE orders SET state = 'a' WHERE id IN (1,2)\"}\n",
            "\u{1}# Time: 261126  6:22:55\n# Query_time: 0.0002  Lock_time: 0.0  Rows_sent: 3  Rows_examined: 3\nSELECT count(*) FROM orders WHERE lower(state) = 'x' GROUP BY 1;\n",
            "\u{1}261126  6:22:55\t     5 Query\tINSERT INTO orders (id, customer, state, at) VALUES (1, -2, \"it\\'s\", NOW() - INTERVAL 1 DAY), (3,4,'b','2026-01-01')\n",
            "\u{2}SELECT * FROM orders o, orders p WHERE (o.id, o.customer) = (1, 2) OR o.state LIKE 'a%';\nSELECT 1;\n",
        ]);
        seeds.extend(seeds.clone().into_iter().map(|mut seed| {
            seed[0] |= 128;
            seed
        }));
        seeds.extend(seeds.clone().into_iter().map(|mut seed| {
            seed[0] |= 64;
            seed
        }));
        seeds
    },
    words: &[
        "SELECT ",
        " FROM orders ",
        " WHERE ",
        "customer = ",
        " BETWEEN ",
        " AND ",
        " IN (",
        "VALUES (",
        "?",
        "$1",
        "''",
        "\"",
        "'''",
        "\n# ",
        "\t",
        "LIMIT ",
        "ORDER BY ",
        "CAST(",
        "::",
        "interval '1 h'",
        "--",
        "/*",
        "$x$",
        "\\",
    ],
    memory: (32 << 20, 4 << 10),
    is_linear: true,
};

/// A database that accepts every statement.
struct Willing;

impl Trier for Willing {
    fn prepare(&mut self, _: &Fitted) -> Result<(), String> {
        Ok(())
    }

    fn rows_of_call(&mut self, _: &Fitted) -> Option<f64> {
        Some(2.0)
    }
}

fn catalogue() -> Catalogue {
    let column = |name: &str, holds, low: &str, high: &str| {
        let spread = Spread {
            distinct: Some(90.0),
            width: Some(5.0),
            range: Some((low.to_owned(), high.to_owned())),
            ..Spread::default()
        };
        let (name, type_name, plain_type) = (name.to_owned(), "t".to_owned(), Some("t".to_owned()));
        Column { name, type_name, holds, makes_itself: false, nullable: true, plain_type, spread }
    };
    let columns = vec![
        column("id", Holds::Whole, "1", "100"),
        column("customer", Holds::Whole, "1", "9"),
        column("state", Holds::Text, "a", "b"),
        column("at", Holds::Time { has_zone: false }, "2026-11-01 00:00:00", "2026-11-02 00:00:00"),
    ];
    let (name, quoted) = ("orders".to_owned(), "\"orders\"".to_owned());
    let (keys, indexed) = (vec![vec![0]], vec![0, 1]);
    let orders = Table {
        schema: String::new(),
        name,
        quoted,
        is_view: false,
        definition: None,
        rows: 100.0,
        bytes: None,
        columns,
        keys,
        indexed,
        indexes: vec![vec![1]],
        references: Vec::new(),
        suffix: None,
        is_analysed: true,
        is_visible: true,
    };
    Catalogue { tables: vec![orders], notes: Vec::new() }
}
