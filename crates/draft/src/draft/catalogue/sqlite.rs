//! Reads the catalogue of an SQLite file.

use super::{Catalogue, Column, Holds, Reference, Spread, TABLES_MOST, Table, Writer, is_true, number, text};
use crate::database::{DatabaseError, Session};
use crate::draft::sql::{Grammar, tokens_of};

/// Returns the tables and views of the file.
pub fn tables(session: &mut dyn Session, writer: &Writer<'_>) -> Result<Catalogue, DatabaseError> {
    let found = session.query(&format!(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY name LIMIT {}",
        TABLES_MOST + 1
    ))?;
    let mut catalogue = Catalogue::default();
    catalogue.note_number(found.len());
    for row in found.iter().take(TABLES_MOST) {
        match table(session, writer, row) {
            Ok(table) => catalogue.tables.push(table),
            Err(error) if error.is_refusal() => {
                catalogue.notes.push(format!("{} could not be looked at: {error}", text(row, 0)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(catalogue)
}

fn table(session: &mut dyn Session, writer: &Writer<'_>, row: &[Option<String>]) -> Result<Table, DatabaseError> {
    let (name, is_table, sql) = (text(row, 0), text(row, 1) == "table", text(row, 2).to_uppercase());
    let literal = (writer.literal)(&name);
    let columns = session.query(&format!(
        "SELECT name, type, pk, hidden, \"notnull\" FROM pragma_table_xinfo({literal}) ORDER BY cid"
    ))?;
    let has_rowid = is_table && !sql.contains("WITHOUT ROWID");
    let mut key: Vec<(f64, usize)> = columns
        .iter()
        .enumerate()
        .filter_map(|(place, row)| Some((number(row, 2).filter(|place| *place > 0.0)?, place)))
        .collect();
    key.sort_by(|a, b| a.0.total_cmp(&b.0));
    let key: Vec<usize> = key.into_iter().map(|(_, place)| place).collect();
    let is_row_number =
        |place: usize| has_rowid && key == [place] && text(&columns[place], 1).eq_ignore_ascii_case("INTEGER");
    let column = |(place, row): (usize, &Vec<Option<String>>)| {
        let type_name = text(row, 1);
        let makes_itself = is_row_number(place) || number(row, 3).is_some_and(|hidden| hidden >= 2.0);
        let is_of_key = number(row, 2).is_some_and(|place| place > 0.0);
        let (nullable, plain_type) = (!is_true(row, 4) && !is_of_key, Some(type_name.clone()));
        let (name, holds, spread) = (text(row, 0), holds(&type_name), Spread::default());
        Column { name, holds, type_name, makes_itself, nullable, plain_type, spread }
    };
    let columns: Vec<Column> = columns.iter().enumerate().map(column).collect();
    let mut keys = if key.is_empty() { Vec::new() } else { vec![key.clone()] };
    let mut indexed: Vec<usize> = key.first().copied().into_iter().collect();
    let mut indexes = Vec::new();
    for index in session
        .query(&format!("SELECT name, \"unique\", partial FROM pragma_index_list({literal}) ORDER BY seq DESC"))?
    {
        let of_index = session.query(&format!(
            "SELECT name FROM pragma_index_info({}) ORDER BY seqno",
            (writer.literal)(&text(&index, 0))
        ))?;
        let place = |row: &Vec<Option<String>>| columns.iter().position(|column| column.name == text(row, 0));
        let Some(of_index) =
            of_index.iter().map(place).collect::<Option<Vec<usize>>>().filter(|index| !index.is_empty())
        else {
            continue;
        };
        indexed.push(of_index[0]);
        if text(&index, 1) == "1" && text(&index, 2) == "0" && !keys.contains(&of_index) {
            keys.push(of_index);
        } else if text(&index, 1) != "1" && text(&index, 2) == "0" {
            indexes.push(of_index);
        }
    }
    let references = references(session, &literal, &columns)?;
    let quoted = (writer.quote)(&name);
    let rows = if has_rowid { greatest_row(session, &quoted)? } else { -1.0 };
    Ok(Table {
        schema: String::new(),
        name,
        quoted,
        is_view: !is_table,
        definition: row.get(2).cloned().flatten().filter(|_| !is_table).and_then(|sql| shown_by(&sql)),
        rows,
        bytes: None,
        columns,
        keys,
        indexed,
        indexes,
        references,
        suffix: (is_table && !has_rowid).then(|| "WITHOUT ROWID".to_owned()),
        is_analysed: is_analysed(session, &literal),
        is_visible: true,
    })
}

/// Returns the SQL of a view: the query behind `CREATE VIEW name AS`.
fn shown_by(sql: &str) -> Option<String> {
    let tokens = tokens_of(sql, Grammar::SQLITE);
    let behind = tokens.iter().position(|token| token.is("as")).and_then(|word| tokens.get(word + 1))?;
    // The column names of the view stand before the query if they differ from the query's.
    let has_names = tokens.iter().take_while(|token| !token.is("as")).any(|token| token.is_mark("("));
    let at = behind.text.as_ptr() as usize - sql.as_ptr() as usize;
    (!has_names).then(|| sql[at..].to_owned())
}

/// Returns whether ANALYZE has examined a table; before its first run, the table that records this does not exist.
fn is_analysed(session: &mut dyn Session, table: &str) -> bool {
    let found = session.query(&format!("SELECT 1 FROM sqlite_stat1 WHERE tbl = {table} LIMIT 1"));
    found.is_ok_and(|rows| !rows.is_empty())
}

/// Returns the greatest row id, which is found at once; deleted rows are included.
fn greatest_row(session: &mut dyn Session, quoted: &str) -> Result<f64, DatabaseError> {
    let rows = session.query(&format!("SELECT max(rowid) FROM {quoted}"))?;
    Ok(rows.first().and_then(|row| number(row, 0)).unwrap_or(0.0))
}

/// Returns the columns that hold keys of other tables.
fn references(session: &mut dyn Session, table: &str, columns: &[Column]) -> Result<Vec<Reference>, DatabaseError> {
    let rows = session.query(&format!(
        "SELECT id, \"from\", \"table\", \"to\" FROM pragma_foreign_key_list({table}) ORDER BY id, seq LIMIT 1000"
    ))?;
    let reference = |row: &Vec<Option<String>>| {
        let is_alone = rows.iter().filter(|other| text(other, 0) == text(row, 0)).count() == 1;
        let column = columns.iter().position(|column| column.name == text(row, 1)).filter(|_| is_alone)?;
        Some(Reference { column, schema: String::new(), table: text(row, 2), of: row.get(3).cloned().flatten()? })
    };
    Ok(rows.iter().filter_map(reference).collect())
}

/// Returns the contents of a declared type, by SQLite's rules of affinity and by usual names of time types.
fn holds(declared: &str) -> Holds {
    let declared = declared.to_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    match () {
        () if has(&["BOOL"]) => Holds::Truth,
        () if has(&["INT"]) => Holds::Whole,
        () if has(&["TIMESTAMP", "DATETIME"]) => Holds::Time { has_zone: false },
        () if declared == "DATE" => Holds::Date,
        () if has(&["CHAR", "CLOB", "TEXT"]) => Holds::Text,
        () if has(&["REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"]) => Holds::Fraction,
        () => Holds::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_shows_what_stands_behind_its_name() {
        let shown = |sql| shown_by(sql);
        assert_eq!(shown("CREATE VIEW \"as\" AS SELECT a AS b FROM t"), Some("SELECT a AS b FROM t".to_owned()));
        assert_eq!(
            shown("create temp view v\nas\nwith q as (select 1) select * from q"),
            Some("with q as (select 1) select * from q".to_owned())
        );
        assert_eq!((shown("CREATE VIEW v(a, b) AS SELECT 1, 2"), shown("CREATE VIEW v")), (None, None));
    }

    #[test]
    fn types_hold_what_their_names_say() {
        for (declared, held) in [
            ("INTEGER", Holds::Whole),
            ("unsigned big int", Holds::Whole),
            ("VARCHAR(20)", Holds::Text),
            ("datetime", Holds::Time { has_zone: false }),
            ("double precision", Holds::Fraction),
            ("", Holds::Other),
            ("BLOB", Holds::Other),
        ] {
            assert_eq!(holds(declared), held, "{declared}");
        }
    }
}
