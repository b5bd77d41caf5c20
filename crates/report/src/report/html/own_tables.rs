//! Shows the study's own tables: their SQL, and the data with which they were filled.
//!
//! Item: [`SECTION`].

use maud::{Markup, html};

use super::section::Section;
use crate::statement::shortened;
use crate::study::Study;
use crate::trial::TableSettings;
use crate::units::show_number;

/// The most characters of an SQL text.
const SQL_MOST: usize = 2_000;

/// The section, shown if a case has tables of its own.
pub const SECTION: Section = Section {
    id: "tables",
    title: |_| "Tables",
    is_shown: |page| page.has_cases() && !sets(page.study).is_empty(),
    draw: |page| section(page.study),
};

fn section(study: &Study) -> Markup {
    let sets = sets(study);
    html! {
        section #tables {
            h2 { "Tables" }
            p.about { "The study's own, as they were made for its trials." }
            @for (design, tables) in sets {
                details open[study.cases.len() == 1] {
                    summary { (design) }
                    dl { @for table in tables { dt { (heading(table)) } dd { @for sql in texts(table) { code { (sql) } br; } } } }
                }
            }
        }
    }
}

/// Returns each set of tables once, by the design that has it, or else by its database.
fn sets(study: &Study) -> Vec<(String, &[TableSettings])> {
    let mut sets: Vec<(String, &[TableSettings])> = Vec::new();
    for settings in study.cases.iter().map(|case| &case.settings) {
        let tables = settings.tables.as_slice();
        if !tables.is_empty() && !sets.iter().any(|(_, other)| *other == tables) {
            let name = settings.workload.design.as_ref().unwrap_or(&settings.database.name);
            sets.push((name.clone(), tables));
        }
    }
    sets
}

fn heading(table: &TableSettings) -> String {
    match table.rows {
        0 => format!("{}, not filled", table.name),
        rows => format!("{}, {} rows", table.name, show_number(rows as f64)),
    }
}

fn texts(table: &TableSettings) -> Vec<String> {
    table.create.iter().chain(&table.then).map(|sql| shortened(sql, SQL_MOST)).collect()
}
