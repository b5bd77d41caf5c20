//! The catalogue of MySQL and MariaDB.

use std::collections::BTreeMap;

use super::{
    Catalogue, Column, Holds, Reference, Spread, TABLES_MOST, Table, Writer, by_first, is_true, number, rows_of, text,
};
use crate::database::{DatabaseError, Session};

type Row = Vec<Option<String>>;

/// Returns the tables of the connection's database. MariaDB writes the catalogue's column names in lower case and MySQL in upper case, so
/// that columns are read by position.
pub fn tables(session: &mut dyn Session, writer: &Writer<'_>) -> Result<Catalogue, DatabaseError> {
    let found = session.query(&format!(
        "SELECT t.table_name, t.table_rows, t.data_length + t.index_length, t.engine, REPLACE(v.view_definition, CONCAT('`', DATABASE(), '`.'), '') FROM information_schema.tables t \
         LEFT JOIN information_schema.views v ON v.table_schema = t.table_schema AND v.table_name = t.table_name \
         WHERE t.table_schema = DATABASE() ORDER BY t.table_name LIMIT {}",
        TABLES_MOST + 1
    ))?;
    let columns = session.query(
        "SELECT table_name, column_name, column_type, data_type, extra, is_nullable FROM information_schema.columns \
         WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position LIMIT 50000",
    )?;
    let indexes = session.query(
        "SELECT table_name, index_name, non_unique, column_name, seq_in_index FROM information_schema.statistics \
         WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index LIMIT 50000",
    )?;
    let references = session.query(
        "SELECT table_name, constraint_name, column_name, referenced_table_name, referenced_column_name FROM information_schema.key_column_usage \
         WHERE table_schema = DATABASE() AND referenced_table_schema = DATABASE() ORDER BY table_name, constraint_name, ordinal_position LIMIT 50000",
    )?;
    let mut catalogue = Catalogue::default();
    catalogue.note_number(found.len());
    let (columns, indexes, references) = (by_first(&columns), by_first(&indexes), by_first(&references));
    let of = |row: &Row| {
        let name = text(row, 0);
        let own = (rows_of(&columns, &name), rows_of(&indexes, &name), rows_of(&references, &name));
        table(row, (&own.0, &own.1, &own.2), writer)
    };
    catalogue.tables.extend(found.iter().take(TABLES_MOST).map(of));
    Ok(catalogue)
}

/// Returns a table from the catalogue's rows on its columns, indexes and references.
fn table(row: &Row, (columns, indexes, references): (&[&Row], &[&Row], &[&Row]), writer: &Writer<'_>) -> Table {
    let name = text(row, 0);
    let columns: Vec<Column> = columns.iter().map(|row| column(row)).collect();
    let place = |name: &str| columns.iter().position(|column| column.name == name);
    let mut by_index: BTreeMap<(bool, String), (bool, Vec<usize>)> = BTreeMap::new();
    for row in indexes {
        let index = text(row, 1);
        let own = by_index.entry((index != "PRIMARY", index)).or_insert((text(row, 2) == "0", Vec::new()));
        own.1.extend(place(&text(row, 3)));
    }
    let indexed = by_index.values().filter_map(|(_, columns)| columns.first().copied()).collect();
    let filled = by_index.into_values().filter(|(_, columns)| !columns.is_empty());
    let (keys, further): (Vec<_>, Vec<_>) = filled.partition(|(is_unique, _)| *is_unique);
    let columns_of = |indexes: Vec<(bool, Vec<usize>)>| indexes.into_iter().map(|(_, columns)| columns).collect();
    let is_alone = |row: &&&Row| references.iter().filter(|other| text(other, 1) == text(row, 1)).count() == 1;
    let reference = |row: &&Row| {
        let column = place(&text(row, 2))?;
        Some(Reference { column, schema: String::new(), table: text(row, 3), of: text(row, 4) })
    };
    let references = references.iter().filter(is_alone).filter_map(reference).collect();
    Table {
        schema: String::new(),
        quoted: (writer.quote)(&name),
        name,
        is_view: number(row, 1).is_none(),
        definition: row.get(4).cloned().flatten().filter(|sql| !sql.is_empty()),
        rows: number(row, 1).unwrap_or(-1.0),
        bytes: number(row, 2),
        suffix: row.get(3).cloned().flatten().map(|engine| format!("ENGINE={engine}")),
        keys: columns_of(keys),
        indexes: columns_of(further),
        indexed,
        references,
        is_analysed: true,
        is_visible: true,
        columns,
    }
}

fn column(row: &Row) -> Column {
    let (type_name, extra) = (text(row, 2), text(row, 4).to_lowercase());
    let makes_itself = extra.contains("auto_increment") || extra.contains("generated");
    let holds = holds(&text(row, 3), &type_name);
    // The words of an enumeration are values of the user.
    let is_listed = type_name.starts_with("enum(") || type_name.starts_with("set(");
    let plain_type = Some(if is_listed { "varchar(255)".to_owned() } else { type_name.clone() });
    let (name, nullable, spread) = (text(row, 1), is_true(row, 5), Spread::default());
    Column { name, type_name, holds, makes_itself, nullable, plain_type, spread }
}

/// Returns the contents of a type; `tinyint(1)` is a synonym of BOOLEAN.
fn holds(data_type: &str, column_type: &str) -> Holds {
    match data_type.to_lowercase().as_str() {
        "tinyint" if column_type == "tinyint(1)" => Holds::Truth,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => Holds::Whole,
        "float" | "double" | "decimal" => Holds::Fraction,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" => Holds::Text,
        "date" => Holds::Date,
        "datetime" | "timestamp" => Holds::Time { has_zone: false },
        _ => Holds::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_hold_what_their_names_say() {
        assert_eq!(holds("tinyint", "tinyint(1)"), Holds::Truth);
        assert_eq!(holds("tinyint", "tinyint(4) unsigned"), Holds::Whole);
        assert_eq!(holds("DECIMAL", "decimal(10,2)"), Holds::Fraction);
        assert_eq!((holds("enum", "enum('a')"), holds("json", "json")), (Holds::Text, Holds::Other));
    }
}
