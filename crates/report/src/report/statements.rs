//! What stands behind `statement-1`: the study's own statements, as its report lists them.
//!
//! Main function: [`listed`]. Invariant: the numbers are those of the kinds of operation.

use crate::operation::OperationKind;
use crate::statement::shortened;
use crate::study::Study;
use crate::trial::SqlStatement;
use crate::workload::has_statements;

/// Kinds of operation with the text of their statements, at most so many characters of each; empty where statements are not the
/// study's own, or where cases have different ones under one number.
pub fn listed(study: &Study, most: usize) -> Vec<(String, String)> {
    if let Some(replay) = study.cases.first().and_then(|case| case.settings.workload.replay.as_ref()) {
        return replay.kinds.iter().map(|(name, sql)| (name.clone(), shortened(sql, most))).collect();
    }
    let mut cases = study.cases.iter().filter(|case| has_statements(&case.settings));
    let Some(first) = cases.next() else { return Vec::new() };
    let statements = &first.settings.workload.statements;
    if cases.any(|case| case.settings.workload.statements != *statements) {
        return Vec::new();
    }
    let names = first.settings.workload.kind_names();
    let name = |number: usize| names.name(OperationKind::Statement(number as u16));
    statements.iter().enumerate().map(|(number, one)| (name(number), shortened(&text(one), most))).collect()
}

fn text(statement: &SqlStatement) -> String {
    let then = statement.then.iter().map(|part| part.sql.as_str());
    let parts = std::iter::once(statement.sql.as_str()).chain(then);
    parts.map(|sql| sql.trim().trim_end_matches(';')).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Repeat, RepeatRule};
    use crate::trial::{Case, Settings};

    #[test]
    fn statements_are_listed_by_the_numbers_of_their_kinds() {
        let mut settings = Settings::default();
        settings.workload.name = "sql".to_owned();
        let statement = |sql: &str| SqlStatement {
            name: None,
            sql: sql.to_owned(),
            weight: 1.0,
            params: Vec::new(),
            allow_empty: false,
            rows: None,
            then: Vec::new(),
        };
        settings.workload.statements = vec![statement("SELECT  a\n FROM t;"), statement(&"SELECT long ".repeat(20))];
        let study = Study {
            name: "s".to_owned(),
            question: String::new(),
            source: String::new(),
            base: settings.clone(),
            factors: Vec::new(),
            repeat: Repeat { rule: RepeatRule::Fixed, within: 0.05, least: 1, most: 1, discard_first: false },
            goal: None,
            claims: Vec::new(),
            quick: false,
            shrunk: Default::default(),
            patience: crate::study::Patience::default(),
            seed: 1,
            cases: vec![Case::new(Default::default(), settings)],
        };
        let listed = listed(&study, 40);
        assert_eq!(listed[0], ("statement-1".to_owned(), "SELECT a FROM t".to_owned()));
        assert!(listed[1].1.ends_with('…') && listed[1].1.chars().count() == 40, "{listed:?}");
    }
}
