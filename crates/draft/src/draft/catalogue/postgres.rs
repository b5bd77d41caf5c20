//! Reads PostgreSQL's catalogue, and the statistics of ANALYZE in `pg_stats`.

use std::collections::HashMap;

use super::{
    Catalogue, Column, Holds, Reference, Spread, TABLES_MOST, Table, Writer, by_first, is_true, number, rows_of, text,
};
use crate::database::{DatabaseError, Session};

type Row = Vec<Option<String>>;
type Rows = Vec<Row>;

const OWN: &str = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' \
     AND c.relkind IN ('r', 'p', 'm', 'v', 'f') AND has_any_column_privilege(c.oid, 'SELECT')";

/// The approximate number of rows, as the planner computes it: the rows per page at the last ANALYZE or VACUUM, times the present number of
/// pages. `pg_stat_get_live_tuples` can count rows inserted right before an ANALYZE twice, and is used only if neither has run yet.
const ROWS: &str = "CASE WHEN c.reltuples > 0 AND c.relpages > 0 AND pg_relation_size(c.oid) > 0 \
     THEN c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::float8) \
     WHEN c.reltuples > 0 THEN c.reltuples WHEN pg_stat_get_live_tuples(c.oid) > 0 THEN pg_stat_get_live_tuples(c.oid) ELSE c.reltuples END";

/// Returns the tables and views that the session may read.
pub fn tables(session: &mut dyn Session, writer: &Writer<'_>) -> Result<Catalogue, DatabaseError> {
    let found = session.query(&format!(
        "SELECT c.oid, n.nspname, c.relname, {ROWS}, pg_total_relation_size(c.oid), pg_table_is_visible(c.oid), c.relkind, \
         CASE WHEN c.relkind = 'v' THEN rtrim(pg_get_viewdef(c.oid), '; ') END \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {OWN} ORDER BY 2, 3 LIMIT {}",
        TABLES_MOST + 1
    ))?;
    let columns = columns(session)?;
    let indexes = session.query(&format!(
        "SELECT c.oid, i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL, i.indisprimary, i.indkey::text, i.indnkeyatts, i.indpred IS NULL \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_index i ON i.indrelid = c.oid \
         WHERE {OWN} AND i.indisvalid ORDER BY c.oid, i.indisprimary DESC, i.indexrelid LIMIT 50000"
    ))?;
    // Only single-column keys: for a key of several columns, the pairs of columns would have to be matched.
    let references = session.query(&format!(
        "SELECT c.oid, k.conkey[1], fn.nspname, f.relname, fa.attname \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'f' \
         JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace fn ON fn.oid = f.relnamespace \
         JOIN pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = k.confkey[1] \
         WHERE {OWN} AND array_length(k.conkey, 1) = 1 ORDER BY c.oid, k.oid LIMIT 50000"
    ))?;
    let statistics = session.query(
        "SELECT schemaname, tablename, attname, null_frac, n_distinct, avg_width, array_to_json(most_common_vals::text::text[]), \
         array_to_json(most_common_freqs), array_to_json(histogram_bounds::text::text[]) FROM pg_stats \
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND NOT inherited LIMIT 50000",
    );
    let mut catalogue = Catalogue::default();
    let statistics = statistics.unwrap_or_else(|error| {
        catalogue.notes.push(format!("pg_stats cannot be read: {error}"));
        Rows::new()
    });
    let key = |row: &Row| [text(row, 0), text(row, 1), text(row, 2)];
    catalogue.note_number(found.len());
    let answers = Answers {
        columns: by_first(&columns),
        indexes: by_first(&indexes),
        references: by_first(&references),
        statistics: statistics.iter().map(|row| (key(row), row)).collect(),
    };
    catalogue.tables.extend(found.iter().take(TABLES_MOST).map(|row| answers.table(row, writer)));
    Ok(catalogue)
}

fn columns(session: &mut dyn Session) -> Result<Rows, DatabaseError> {
    session.query(&format!(
        "SELECT c.oid, a.attname, format_type(a.atttypid, a.atttypmod), \
         a.attidentity <> '' OR a.attgenerated <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false), a.attnum, \
         NOT a.attnotnull, CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN format_type(a.atttypid, a.atttypmod) \
         WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) WHEN t.typtype = 'e' THEN 'text' END \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
         JOIN pg_type t ON t.oid = a.atttypid \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE {OWN} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.oid, a.attnum LIMIT 50000"
    ))
}

/// The catalogue's rows, grouped by their subject.
struct Answers<'a> {
    columns: HashMap<&'a str, Vec<&'a Row>>,
    indexes: HashMap<&'a str, Vec<&'a Row>>,
    references: HashMap<&'a str, Vec<&'a Row>>,
    /// The statistics by schema, table and column.
    statistics: HashMap<[String; 3], &'a Row>,
}

impl Answers<'_> {
    fn table(&self, row: &Row, writer: &Writer<'_>) -> Table {
        let (id, schema, name) = (text(row, 0), text(row, 1), text(row, 2));
        let is_visible = is_true(row, 5);
        let rows = number(row, 3).unwrap_or(-1.0);
        let (own_columns, indexes) = (rows_of(&self.columns, &id), rows_of(&self.indexes, &id));
        let columns = own_columns.iter().map(|row| self.column(row, [&schema, &name], rows)).collect();
        let places: HashMap<String, usize> =
            own_columns.iter().enumerate().map(|(place, row)| (text(row, 4), place)).collect();
        let (mut keys, mut indexed, mut further) = (Vec::new(), Vec::new(), Vec::new());
        for row in indexes {
            let length = number(row, 4).unwrap_or(0.0) as usize;
            let of_index: Option<Vec<usize>> =
                text(row, 3).split(' ').take(length).map(|number| places.get(number).copied()).collect();
            let Some(of_index) = of_index.filter(|columns| !columns.is_empty()) else { continue };
            indexed.push(of_index[0]);
            match (is_true(row, 1), is_true(row, 5)) {
                (true, _) => keys.push(of_index),
                (false, true) => further.push(of_index),
                // A partial index is neither a key nor listed among the indexes.
                (false, false) => {}
            }
        }
        let reference = |row: &&Row| {
            let column = *places.get(&text(row, 1))?;
            Some(Reference { column, schema: text(row, 2), table: text(row, 3), of: text(row, 4) })
        };
        let references = rows_of(&self.references, &id).iter().filter_map(reference).collect();
        let quoted_name = (writer.quote)(&name);
        let quoted = if is_visible { quoted_name } else { format!("{}.{quoted_name}", (writer.quote)(&schema)) };
        // A foreign table does not support TABLESAMPLE, and is queried on another server.
        let (bytes, is_view) = (number(row, 4), matches!(text(row, 6).as_str(), "v" | "f"));
        Table {
            schema,
            name,
            quoted,
            is_view,
            definition: row.get(7).cloned().flatten(),
            rows,
            bytes,
            columns,
            keys,
            indexed,
            indexes: further,
            references,
            suffix: None,
            is_analysed: true,
            is_visible,
        }
    }

    fn column(&self, row: &Row, [schema, name]: [&String; 2], rows: f64) -> Column {
        let key = [schema.clone(), name.clone(), text(row, 1)];
        let type_name = text(row, 2);
        Column {
            name: text(row, 1),
            holds: holds(&type_name),
            type_name,
            makes_itself: is_true(row, 3),
            nullable: is_true(row, 5),
            plain_type: row.get(6).cloned().flatten(),
            spread: self.statistics.get(&key).map_or_else(Spread::default, |row| spread(row, rows)),
        }
    }
}

/// Returns the contents of a type.
fn holds(type_name: &str) -> Holds {
    let bare = type_name.split('(').next().unwrap_or_default().trim();
    match bare {
        "smallint" | "integer" | "bigint" => Holds::Whole,
        "real" | "double precision" | "numeric" => Holds::Fraction,
        "text" | "character varying" | "character" | "citext" | "name" => Holds::Text,
        "date" => Holds::Date,
        "boolean" => Holds::Truth,
        "timestamp" => Holds::Time { has_zone: type_name.ends_with("with time zone") },
        "timestamp without time zone" => Holds::Time { has_zone: false },
        "timestamp with time zone" => Holds::Time { has_zone: true },
        _ => Holds::Other,
    }
}

/// Returns the distribution that a row of `pg_stats` describes.
fn spread(row: &[Option<String>], rows: f64) -> Spread {
    let list = |place: usize| serde_json::from_str::<Vec<serde_json::Value>>(&text(row, place)).unwrap_or_default();
    let texts =
        |place: usize| list(place).iter().filter_map(|value| Some(value.as_str()?.to_owned())).collect::<Vec<String>>();
    let shares = list(7).iter().filter_map(serde_json::Value::as_f64).collect::<Vec<f64>>();
    let bounds = texts(8);
    // A negative number is the share of rows with distinct values.
    let distinct = number(row, 4).map(|distinct| if distinct < 0.0 { -distinct * rows.max(0.0) } else { distinct });
    Spread {
        nulls: number(row, 3).unwrap_or(0.0),
        distinct: distinct.filter(|distinct| *distinct > 0.0),
        width: number(row, 5),
        range: bounds.first().cloned().zip(bounds.last().cloned()),
        frequent: texts(6).into_iter().zip(shares).collect(),
        bounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_hold_what_their_names_say() {
        assert_eq!(holds("numeric(10,2)"), Holds::Fraction);
        assert_eq!(holds("timestamp(3) with time zone"), Holds::Time { has_zone: true });
        assert_eq!(holds("timestamp without time zone"), Holds::Time { has_zone: false });
        assert_eq!(holds("character varying(20)"), Holds::Text);
        assert_eq!((holds("uuid"), holds("integer[]")), (Holds::Other, Holds::Other));
    }

    #[test]
    fn statistics_are_read_and_shares_of_rows_are_counted() {
        let row = ["s", "t", "c", "0.5", "-0.1", "4", "[\"a\",\"b, c\"]", "[0.25,0.125]", "[\"1\",\"5\",\"9\"]"];
        let row: Vec<Option<String>> = row.iter().map(|text| Some((*text).to_owned())).collect();
        let spread = spread(&row, 1000.0);
        assert_eq!(spread.frequent, [("a".to_owned(), 0.25), ("b, c".to_owned(), 0.125)]);
        assert_eq!((spread.nulls, spread.distinct, spread.width), (0.5, Some(100.0), Some(4.0)));
        assert_eq!(spread.range, Some(("1".to_owned(), "9".to_owned())));
        let empty = super::spread(&vec![None; 9], -1.0);
        assert_eq!(empty, Spread::default());
    }
}
