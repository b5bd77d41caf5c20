//! Indexes that cover what is asked: the index alone answers, and answers are right.

use loadline::database::Database;
use loadline::question::{Ask, Question};
use loadline::trial::TimeIndex;
use loadline::workload::Work;

use super::written::assert_right_in_layout;
use super::{Filled, question, questions, settings};
use crate::program::Scratch;

const TEXTS: [&str; 3] = ["kind", "payload", "source"];

/// Questions of every kind that name numbers only.
fn of_numbers() -> Vec<Question> {
    questions().into_iter().filter(|question| !question.of.iter().any(|of| TEXTS.contains(&of.as_str()))).collect()
}

/// Holds answers of a covered table against the records, before and while more are written.
pub fn assert_right(database: &dyn Database) {
    for (layout, index) in [("wide", TimeIndex::SourceTimeCovering), ("star", TimeIndex::TimeSourceCovering)] {
        let mut settings = settings(layout, of_numbers());
        settings.layout.time_index = Some(index);
        let count = settings.workload.questions.len();
        assert!(count > 10, "{count}");
        let mut filled = Filled::new(database, &settings);
        for question in 0..count {
            filled.ask(question, 0..8).unwrap_or_else(|why| panic!("{layout}, covered: {why}"));
        }
        drop(filled);
        settings.workload.questions.retain(|question| question.span_ns.is_some() || question.ask == Ask::Newest);
        assert_right_in_layout(database, settings);
    }
}

#[test]
fn a_covering_index_takes_what_it_can_and_says_what_it_cannot() {
    let covered = |layout: &str, questions| {
        let mut settings = settings(layout, questions);
        settings.layout.time_index = Some(TimeIndex::SourceTimeCovering);
        Work::new(&settings).map(|work| work.program().tables.clone())
    };
    let of = |of: &[&str]| vec![question(Ask::Range, of, Some(20))];
    let tables = covered("wide", of(&["value_1", "quality", "value_1"])).unwrap();
    assert_eq!(tables[0].indexes, [["source_id", "time_ns", "value_1", "quality"]]);
    for (layout, of, says) in [
        ("wide", of(&["kind"]), "\"kind\" of layout \"wide\" is no number"),
        ("gorilla", of(&["value_1"]), "of layout \"gorilla\" is no number"),
        ("wide", of(&[]), "they name no column"),
    ] {
        let why = covered(layout, of).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
    let mut settings = settings("wide", Vec::new());
    settings.layout.time_index = Some(TimeIndex::TimeSourceCovering);
    settings.workload.name = "write".to_owned();
    let why = Work::new(&settings).map(drop).unwrap_err();
    assert!(why.contains("workload.name = \"questions\""), "{why}");
}

#[test]
fn the_plan_says_that_the_index_alone_answers() {
    let place = Scratch::new();
    place.write("study.toml", &super::STUDY.replace("[load]\n", "explain = true\n[load]\n"));
    let sets = ["--set", "layout.time_index=[source-time, source-time-covering]"];
    // Whether the client was fast enough is another question.
    place.run(&[&["run", "study.toml", "--json", "--out", "run"], &sets[..]].concat());
    let stored = place.stored("run");
    assert_eq!(stored.len(), 2);
    for trial in stored {
        let is_covering = trial.trial.case.settings.layout.time_index == Some(TimeIndex::SourceTimeCovering);
        let plan = trial.plans["hour"].join("; ");
        assert_eq!(plan.contains("COVERING INDEX"), is_covering, "{plan}");
        assert_eq!(trial.operations["hour"].wrong, Some(0));
    }
}
