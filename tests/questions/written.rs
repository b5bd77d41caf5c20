//! Answers while records come in.

use loadline::database::Database;
use loadline::operation::Operation;
use loadline::question::Ask;
use loadline::trial::{Arrivals, BackgroundSettings, Settings};

use super::{Filled, MORE, ROWS, questions, settings};

/// A client that writes beside those that ask.
pub fn writer() -> BackgroundSettings {
    BackgroundSettings {
        workload: "write".to_owned(),
        clients: 1,
        arrivals: Arrivals::Constant,
        rate_per_s: 1.0,
        batch: 10,
    }
}

/// Answers stay right while records come in, late ones included, as long as a question looks at a span.
pub fn assert_right(database: &dyn Database) {
    let with_spans =
        questions().into_iter().filter(|question| question.span_ns.is_some() || question.ask == Ask::Newest);
    let questions: Vec<_> = with_spans.collect();
    ["star", "gorilla"].iter().for_each(|layout| assert_right_in_layout(database, settings(layout, questions.clone())));
}

pub fn assert_right_in_layout(database: &dyn Database, mut settings: Settings) {
    settings.background = Some(writer());
    let count = settings.workload.questions.len();
    let mut filled = Filled::new(database, &settings);
    for first in (ROWS..ROWS + MORE).step_by(100) {
        filled.execute(&Operation::Insert { first, records: 100 }).unwrap();
        for question in 0..count {
            let layout = &settings.layout.name;
            filled
                .ask(question, first..first + 3)
                .unwrap_or_else(|why| panic!("{layout}, after {first} records: {why}"));
        }
    }
}
