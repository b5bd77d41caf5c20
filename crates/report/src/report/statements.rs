//! Resolves names such as `statement-1`: lists the study's own statements for the report.
//!
//! Main function: [`listed`]. Invariant: the numbers are those of the kinds of operation.

use crate::operation::OperationKind;
use crate::statement::shortened;
use crate::study::Study;
use crate::trial::{Settings, SqlStatement};
use crate::workload::has_statements;

/// Returns kinds of operation with the text of their statements, each cut to `most` characters; empty if the study has no statements of
/// its own. If cases have different statements under one name, the name includes the cases.
pub fn listed(study: &Study, most: usize) -> Vec<(String, String)> {
    if let Some(replay) = study.cases.first().and_then(|case| case.settings.workload.replay.as_ref()) {
        return replay.kinds.iter().map(|(name, sql)| (name.clone(), shortened(sql, most))).collect();
    }
    let mut found: Vec<Listed> = Vec::new();
    for settings in study.cases.iter().map(|case| &case.settings).filter(|settings| has_statements(settings)) {
        let names = settings.workload.kind_names();
        for (number, statement) in settings.workload.statements.iter().enumerate() {
            let (name, text) = (names.name(OperationKind::Statement(number as u16)), text(statement));
            if !found.iter().any(|other| other.name == name && other.text == text) {
                found.push(Listed { name, text, of: label(settings) });
            }
        }
    }
    let shown = |one: &Listed| {
        let is_alone = found.iter().filter(|other| other.name == one.name).count() == 1;
        let name = if is_alone { one.name.clone() } else { format!("{} ({})", one.name, one.of) };
        (name, shortened(&one.text, most))
    };
    found.iter().map(shown).collect()
}

/// A statement of some cases.
struct Listed {
    name: String,
    text: String,
    /// The label of the cases that have it.
    of: String,
}

/// Returns the label that distinguishes statements of one name: the design, or else the database.
fn label(settings: &Settings) -> String {
    match &settings.workload.design {
        Some(design) => format!("{design}, {}", settings.database.name),
        None => settings.database.name.clone(),
    }
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
    use crate::trial::Case;

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
        settings.database.name = "mariadb".to_owned();
        settings.workload.statements = vec![statement("SELECT  a\n FROM t;"), statement(&"SELECT long ".repeat(20))];
        let study = Study {
            name: "s".to_owned(),
            question: String::new(),
            source: String::new(),
            base: settings.clone(),
            factors: Vec::new(),
            repeat: Repeat { rule: RepeatRule::Fixed, within: 0.05, least: 1, most: 1, discard_first: false },
            goal: None,
            durability: None,
            claims: Vec::new(),
            quick: false,
            shrunk: Default::default(),
            left_out: Vec::new(),
            patience: crate::study::Patience::default(),
            seed: 1,
            cases: vec![Case::new(Default::default(), settings)],
        };
        let listed = listed(&study, 40);
        assert_eq!(listed[0], ("statement-1".to_owned(), "SELECT a FROM t".to_owned()));
        assert!(listed[1].1.ends_with('…') && listed[1].1.chars().count() == 40, "{listed:?}");
        let mut other = study.cases[0].settings.clone();
        other.workload.statements[0].sql = "SELECT b FROM t".to_owned();
        other.workload.design = Some("star".to_owned());
        let both = Study { cases: vec![study.cases[0].clone(), Case::new(Default::default(), other)], ..study };
        let names: Vec<String> = super::listed(&both, 40).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["statement-1 (mariadb)", "statement-2", "statement-1 (star, mariadb)"]);
    }
}
