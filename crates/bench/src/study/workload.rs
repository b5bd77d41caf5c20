//! `[workload]`: what clients do.
//!
//! Main: [`WORKLOAD`] and [`read_workload`].

use super::chosen::Chosen;
use super::evolve;
use super::fill::{MIX, STATEMENT, read_mix, read_statements};
use super::names::Names;
use super::query::{QUERY, read_queries};
use super::questions::{QUESTION, read_questions};
use super::reading::{LARGE, read_name};
use super::ycsb::settings::{YCSB, read_ycsb};
use crate::trial::{Asked, EVOLVE_AT_MOST_S, SqlStatement, WorkloadSettings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

const QUERIES: &str = "workloads `query` and `recent`";
const QUESTIONS: &str = "workload `questions`";
const EVOLVING: &str = "`evolve`";
const FOREIGN: &str = "workloads `sql`, `connect` and `replay`";
const REPLAY: &str = "workload `replay`";

/// The settings of the section.
pub static WORKLOAD: Part = Part {
    name: "workload",
    help: "What clients do.",
    settings: &[
        Setting::new(
            "name",
            Kind::Named(workload_names),
            Absent::Text("write"),
            "The workload; `loadline list workloads` says what each does.",
        )
        .factor(|settings| Some(settings.workload.name.as_str().into())),
        Setting::new("batch", Kind::Whole(1, 100_000), Absent::Whole(1), "Number of records per transaction.")
            .factor(|settings| Some(settings.workload.batch.into())),
        Setting::new(
            "statements",
            Kind::Parts(&STATEMENT),
            Absent::Means("none: they must be given for `sql`; `SELECT 1` for `connect`"),
            "The statements that clients execute.",
        )
        .only("workloads `sql` and `connect`"),
        Setting::new("mix", Kind::Part(&MIX), Absent::Means("none: it must be given"), "The workloads that it consists of, with their shares.")
            .only("workload `mix`"),
        Setting::new(
            "attribute",
            Kind::Text,
            Absent::Means("`select` reads all columns; `update` sets the first hot column"),
            "The column that `select` reads and `update` sets.",
        )
        .only("workloads `select`, `update` and `mix`")
        .factor(|settings| settings.workload.attribute.as_deref().map(Into::into)),
        Setting::new(
            "evolve",
            Kind::Duration(Span::Any),
            Absent::Means("the schema stays as it is"),
            "The time from one change of the schema to the next. Each second change takes the one before it back.",
        )
        .factor(|settings| settings.workload.evolve_s.map(Into::into)),
        Setting::new(
            "evolve_records",
            Kind::Whole(1, LARGE),
            Absent::Means("`100`"),
            "Number of records that get a value in the added field.",
        )
        .only(EVOLVING)
        .factor(|settings| settings.workload.evolve_records.map(Into::into)),
        Setting::new(
            "evolve_change",
            Kind::OneOf(&["field", "default", "not-null", "index"]),
            Absent::Text("field"),
            "What is added: a field that some records get, a column with a default, such a column that cannot be null, or an index.",
        )
        .only(EVOLVING)
        .factor(|settings| serde_json::to_value(settings.workload.evolve.change).ok()),
        Setting::new(
            "evolve_algorithm",
            Kind::OneOf(&["auto", "instant", "inplace", "copy", "concurrently"]),
            Absent::Text("auto"),
            "The algorithm of the change. `auto` takes the best one that the database accepts.",
        )
        .only(EVOLVING)
        .factor(|settings| Some(settings.workload.evolve.algorithm.as_deref().unwrap_or("auto").into())),
        Setting::new(
            "evolve_at_most",
            Kind::Duration(Span::Any),
            Absent::Means("60 s"),
            "How long a trial continues beyond its duration for a change that is not finished.",
        )
        .only(EVOLVING)
        .factor(|settings| Some(settings.workload.evolve.at_most_s.unwrap_or(EVOLVE_AT_MOST_S).into())),
        Setting::new("queries", Kind::Parts(&QUERY), Absent::Means("none: they must be given"), "The queries that clients execute.")
            .only(QUERIES),
        Setting::new("query", Kind::Text, Absent::Means("all are asked"), "The name of the only query to execute.")
            .only(QUERIES)
            .factor(|settings| settings.workload.query.as_deref().map(Into::into)),
        Setting::new(
            "window",
            Kind::Whole(0, LARGE),
            Absent::Means("none: it must be given"),
            "Number of last records that the queries look at; `0` means all.",
        )
        .only("workload `recent`")
        .factor(|settings| settings.workload.window.map(Into::into)),
        Setting::new("questions", Kind::Parts(&QUESTION), Absent::Means("none: they must be given"), "The questions that clients ask.")
            .only(QUESTIONS),
        Setting::new("question", Kind::Text, Absent::Means("all are asked"), "The name of the only question to ask.")
            .only(QUESTIONS)
            .factor(|settings| settings.workload.question.as_deref().map(Into::into)),
        Setting::new("explain", Kind::Truth, Absent::Truth(false), "Whether the database's plans of the queries are kept, and of questions the text too.")
            .only("workloads `query`, `recent` and `questions`"),
        Setting::new(
            "trace",
            Kind::Text,
            Absent::Means("none: it must be given"),
            "The file with the statements to send, as `loadline capture` writes it.",
        )
        .only(REPLAY),
        Setting::new(
            "speed",
            Kind::Number(1e-3, 1e6),
            Absent::Means("`1`; sought by `[goal]`"),
            "How many times as fast as in the trace statements are sent.",
        )
        .only(REPLAY)
        .factor(|settings| settings.workload.replay.as_ref()?.speed.map(Into::into)),
        Setting::new(
            "until",
            Kind::Duration(Span::AboveZero),
            Absent::Means("its end"),
            "The time in the trace up to which it is sent.",
        )
        .only(REPLAY),
        Setting::new(
            "set_up",
            Kind::Texts,
            Absent::Means("none"),
            "SQL to execute before each trial, after the tables are created. On a database that is not loadline's own it needs `writes = true`.",
        )
        .only(FOREIGN),
        Setting::new(
            "clean_up",
            Kind::Texts,
            Absent::Means("none"),
            "SQL to execute after each trial, however it ended.",
        )
        .only(FOREIGN),
        Setting::new(
            "design",
            Kind::Text,
            Absent::Means("none: all `[[tables]]` are the case's"),
            "The design whose `[[tables]]` and statements the case uses, in addition to those that name no design.",
        )
        .only(FOREIGN)
        .factor(|settings| settings.workload.design.as_deref().map(Into::into)),
        Setting::new(
            "writes",
            Kind::Truth,
            Absent::Truth(false),
            "Whether statements may change a database that is not loadline's own.",
        )
        .only(FOREIGN),
        Setting::new("ycsb", Kind::Part(&YCSB), Absent::Means("as the workload's letter means"), "Differences from YCSB's own workload.")
            .only("workloads of YCSB"),
    ],
};

fn workload_names() -> Vec<&'static str> {
    crate::workload::REGISTRY.iter().map(|entry| entry.name).collect()
}

/// Reads the section.
pub fn read_workload(root: &Table, names: &Names, errors: &mut Errors) -> WorkloadSettings {
    let section = Section::open(root, &WORKLOAD, errors);
    let name = read_name(&section, "name", &names.workloads, errors);
    let writes = section.read("writes", errors);
    let chosen = Chosen::of(root, names);
    let statements = read_statements(&section, writes, &chosen, errors);
    let window: Option<u64> = section.read("window", errors);
    let mut queries = read_queries(&section, errors);
    queries.iter_mut().for_each(|query| query.window = window.filter(|records| *records > 0));
    WorkloadSettings {
        statements: if statements.is_empty() && name == "connect" { vec![shortest()] } else { statements },
        name,
        batch: section.read("batch", errors),
        mix: read_mix(&section, errors),
        attribute: section.read("attribute", errors),
        queries,
        questions: read_questions(&section, errors),
        question: section.find("question", errors),
        window,
        query: section.read("query", errors),
        explain: section.read("explain", errors),
        writes,
        set_up: section.texts("set_up", errors),
        clean_up: section.texts("clean_up", errors),
        design: section.find("design", errors),
        asked: Asked::default(),
        replay: None,
        replayed: Default::default(),
        evolve_s: section.find("evolve", errors).filter(|seconds| *seconds > 0.0),
        evolve_records: section.read("evolve_records", errors),
        evolve: evolve::read_evolve(&section, errors),
        ycsb: read_ycsb(&section, errors),
    }
}

/// Returns the query of `connect` if the study names none: the shortest one that works in every database.
fn shortest() -> SqlStatement {
    let sql = "SELECT 1".to_owned();
    SqlStatement { name: None, sql, weight: 1.0, params: Vec::new(), allow_empty: false, rows: None, then: Vec::new() }
}
