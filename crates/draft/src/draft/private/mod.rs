//! Describes the tables of a study that runs without the original: their definitions, with rows similar to the original's.
//!
//! Main function: [`describe`]. Invariants: a description contains no text of a row, and only rounded bounds of numbers and times, unless
//! values may be kept; every statement that remains has all its tables.

mod described;
mod fills;
mod keys;
mod made;
mod rounded;

#[cfg(test)]
mod tests;

use super::Drafted;
use super::catalogue::Table;
use super::fit::Fitter;
use super::sql::{Kind, tokens_of};
use super::{DraftedStatement, LeftOut};
use described::referred;
use made::Maker;
use rounded::rounded;

pub use described::Described;

/// The most letters of a table name that a study accepts.
const NAME_MOST: usize = 60;

/// Describes the tables that the statements use, referenced tables first, and leaves out statements whose tables cannot be described.
/// The fills of the statements' parameters are rounded.
pub fn describe(fitter: &Fitter<'_>, drafted: &mut Drafted) -> Vec<Described> {
    let tables = &fitter.catalogue.tables;
    let (kept, left): (Vec<DraftedStatement>, Vec<DraftedStatement>) = std::mem::take(&mut drafted.statements)
        .into_iter()
        .partition(|statement| hindrance(fitter, &statement.fitted.sql).is_none());
    for DraftedStatement { fitted, share, .. } in left {
        let because = hindrance(fitter, &fitted.sql).unwrap_or_default();
        drafted.left_out.push(LeftOut { sql: fitted.sql, share, because });
    }
    drafted.statements = kept;
    let mut included: Vec<usize> = Vec::new();
    for statement in &mut drafted.statements {
        for table in fitter.tables_below(&statement.fitted.sql) {
            include(tables, table, &mut included);
        }
        if !fitter.place.keeps_values {
            let fills = std::mem::take(&mut statement.fitted.fills);
            statement.fitted.fills = fills.into_iter().map(rounded).collect();
        }
    }
    // Tables that refer to each other keep the order in which they were found.
    let (views, wanted): (Vec<usize>, Vec<usize>) = included.into_iter().partition(|table| tables[*table].is_view);
    let mut ordered = Vec::new();
    wanted.iter().for_each(|table| put_in_order(tables, *table, &wanted, &mut Vec::new(), &mut ordered));
    ordered.extend(views);
    let maker = Maker { place: &fitter.place, tables, included: &ordered };
    ordered.iter().map(|table| maker.describe(*table)).collect()
}

/// Returns the reason for which a statement cannot be executed on described tables, if there is one.
fn hindrance(fitter: &Fitter<'_>, sql: &str) -> Option<String> {
    let tables = &fitter.catalogue.tables;
    let of_table = |table: usize| {
        let Table { name, is_view, schema, definition, .. } = &tables[table];
        // Tables are created without their schema, so their names must be unique.
        let is_one_of_several =
            tables.iter().any(|other| other.name.eq_ignore_ascii_case(name) && other.schema != *schema);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_named = name.len() <= NAME_MOST
            && name.chars().all(is_plain)
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
        match (is_one_of_several, is_named) {
            (true, _) => Some(format!("there are tables {name} in several schemas, and one of each name is described")),
            (_, false) => Some(format!("{name} has a name of other letters than tables of a study take")),
            _ if *is_view => of_view(fitter, name, definition.as_deref()),
            _ => None,
        }
    };
    fitter.tables_below(sql).into_iter().find_map(of_table)
}

/// Returns the reason for which a view cannot be described, if there is one.
fn of_view(fitter: &Fitter<'_>, name: &str, definition: Option<&str>) -> Option<String> {
    let Some(definition) = definition else {
        return Some(format!("{name} is a table of another server, or a view whose SQL is not told"));
    };
    let has_texts = tokens_of(definition, fitter.grammar).iter().any(|token| token.kind == Kind::Text);
    (has_texts && !fitter.place.keeps_values).then(|| {
        format!("{name} is a view with texts of its own in its SQL, which leave the database with --values alone")
    })
}

fn include(tables: &[Table], table: usize, included: &mut Vec<usize>) {
    if table < tables.len() && !included.contains(&table) {
        included.push(table);
    }
}

/// Appends a table behind the tables that it refers to.
fn put_in_order(tables: &[Table], table: usize, wanted: &[usize], above: &mut Vec<usize>, ordered: &mut Vec<usize>) {
    if ordered.contains(&table) || above.contains(&table) {
        return;
    }
    above.push(table);
    for reference in &tables[table].references {
        if let Some(other) =
            referred(tables, &reference.schema, &reference.table).filter(|other| wanted.contains(other))
        {
            put_in_order(tables, other, wanted, above, ordered);
        }
    }
    above.pop();
    ordered.push(table);
}
