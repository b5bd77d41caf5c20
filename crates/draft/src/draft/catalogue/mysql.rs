//! The catalogue of MySQL and MariaDB.

use std::collections::BTreeMap;

use super::{Catalogue, Column, Holds, Spread, TABLES_MOST, Table, Writer, by_first, number, text};
use crate::database::{DatabaseError, Session};

/// The tables of the connection's database. MariaDB writes names of columns of the catalogue in small letters, MySQL in capitals, so that they are told
/// by their places.
pub fn tables(session: &mut dyn Session, writer: &Writer<'_>) -> Result<Catalogue, DatabaseError> {
    let found = session.query(&format!(
        "SELECT table_name, table_rows, data_length + index_length FROM information_schema.tables \
         WHERE table_schema = DATABASE() ORDER BY table_name LIMIT {}",
        TABLES_MOST + 1
    ))?;
    let columns = session.query(
        "SELECT table_name, column_name, column_type, data_type, extra FROM information_schema.columns \
         WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position LIMIT 50000",
    )?;
    let indexes = session.query(
        "SELECT table_name, index_name, non_unique, column_name, seq_in_index FROM information_schema.statistics \
         WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index LIMIT 50000",
    )?;
    let mut catalogue = Catalogue::default();
    catalogue.note_number(found.len());
    let (columns, indexes) = (by_first(&columns), by_first(&indexes));
    for row in found.iter().take(TABLES_MOST) {
        let name = text(row, 0);
        let own = columns.get(name.as_str()).into_iter().flatten();
        let columns: Vec<Column> = own
            .map(|row| {
                let (type_name, extra) = (text(row, 2), text(row, 4).to_lowercase());
                let makes_itself = extra.contains("auto_increment") || extra.contains("generated");
                let holds = holds(&text(row, 3), &type_name);
                Column { name: text(row, 1), type_name, holds, makes_itself, spread: Spread::default() }
            })
            .collect();
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let mut by_index: BTreeMap<(bool, String), (bool, Vec<usize>)> = BTreeMap::new();
        for row in indexes.get(name.as_str()).into_iter().flatten() {
            let index = text(row, 1);
            let own = by_index.entry((index != "PRIMARY", index)).or_insert((text(row, 2) == "0", Vec::new()));
            own.1.extend(place(&text(row, 3)));
        }
        let indexed = by_index.values().filter_map(|(_, columns)| columns.first().copied()).collect();
        let keys = by_index
            .into_values()
            .filter(|(is_unique, columns)| *is_unique && !columns.is_empty())
            .map(|(_, columns)| columns);
        let keys = keys.collect();
        let (quoted, schema) = ((writer.quote)(&name), String::new());
        let (rows, is_view) = (number(row, 1).unwrap_or(-1.0), number(row, 1).is_none());
        catalogue.tables.push(Table {
            schema,
            name,
            quoted,
            is_view,
            rows,
            bytes: number(row, 2),
            columns,
            keys,
            indexed,
        });
    }
    Ok(catalogue)
}

/// What a type holds; `tinyint(1)` is what BOOLEAN is another word for.
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
