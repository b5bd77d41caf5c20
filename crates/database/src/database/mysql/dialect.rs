//! The SQL dialect of MySQL and MariaDB. Main type: [`MySqlDialect`]; [`Engine`] lists the storage engines.
//!
//! Texts compare byte by byte (`utf8mb4_bin`), as in the other databases: keys that differ only in case are different.

use crate::database::Dialect;
use crate::database::dialect::{NewestOfEach, PartitionForm, StraightJoin, path, schema_change_text};
use crate::database::instruments::{self, Alternatives};
use crate::database::literal::{Literals, hexadecimal, quoted};
use crate::question::is_whole;
use crate::record::ColumnKind;
use crate::statement::{SchemaChange, SourceIndex};

/// Longer texts and byte strings are stored outside the row, which has a limit of 65,535 bytes for all its columns.
const WITHIN_ROW_MAX: u32 = 512;

/// A storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Has transactions and foreign keys.
    InnoDb,
    /// Has neither: every statement commits by itself, and one that fails halfway leaves its first rows.
    MyIsam,
    /// MariaDB's crash-safe variant of MyISAM, also without transactions and foreign keys.
    Aria,
}

impl Engine {
    /// Returns the engine with a name as in studies; upper and lower case are equal.
    pub fn named(name: &str) -> Option<Self> {
        [Engine::InnoDb, Engine::MyIsam, Engine::Aria]
            .into_iter()
            .find(|engine| engine.name().eq_ignore_ascii_case(name))
    }

    /// Returns whether the statements of a request can be undone together.
    pub fn has_transactions(self) -> bool {
        self == Engine::InnoDb
    }

    /// Returns the dialect for the engine's tables.
    pub fn dialect(self) -> &'static MySqlDialect {
        match self {
            Engine::InnoDb => &MySqlDialect { engine: Engine::InnoDb },
            Engine::MyIsam => &MySqlDialect { engine: Engine::MyIsam },
            Engine::Aria => &MySqlDialect { engine: Engine::Aria },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Engine::InnoDb => "InnoDB",
            Engine::MyIsam => "MyISAM",
            Engine::Aria => "Aria",
        }
    }
}

/// The dialect of one storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MySqlDialect {
    /// The engine of the tables created.
    pub engine: Engine,
}

impl Dialect for MySqlDialect {
    /// Without an index, the order is left to the server: each of the newest times would cost a scan of the table.
    fn newest_of_each(&self, index: SourceIndex) -> NewestOfEach {
        if index == SourceIndex::None { NewestOfEach::Join } else { NewestOfEach::JoinInOrder }
    }

    /// MariaDB groups along an index beside the table even though it then looks up each row by its key, at random. An empty list of indexes means none of them, so
    /// that no name must be known. InnoDB's primary key is the table itself, and grouping along it reads the rows in their order.
    fn grouping_hint(&self, index: SourceIndex) -> &'static str {
        let is_beside = match index {
            SourceIndex::None | SourceIndex::ByTime | SourceIndex::CoveringBySource => false,
            SourceIndex::BySource => true,
            SourceIndex::KeyBySource => self.engine != Engine::InnoDb,
        };
        if is_beside { " USE INDEX FOR GROUP BY ()" } else { "" }
    }

    fn divided(&self, number: &str, by: i64) -> String {
        format!("{number} DIV {by}")
    }

    /// The mean of whole numbers would be a decimal number with four digits behind the point.
    fn mean_of(&self, column: &str, kind: ColumnKind) -> String {
        if is_whole(kind) { format!("AVG({column} * 1e0)") } else { format!("AVG({column})") }
    }

    fn sum_of(&self, column: &str, kind: ColumnKind) -> String {
        if is_whole(kind) { format!("CAST(SUM({column}) AS SIGNED)") } else { format!("SUM({column})") }
    }

    fn quote(&self, name: &str) -> String {
        format!("`{}`", name.replace('`', "``"))
    }

    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 => "SMALLINT".into(),
            ColumnKind::Int32 => "INT".into(),
            ColumnKind::Int64 => "BIGINT".into(),
            ColumnKind::Float64 => "DOUBLE".into(),
            ColumnKind::Text(characters @ 0..=WITHIN_ROW_MAX) => format!("VARCHAR({characters})"),
            // A character takes up to four bytes.
            ColumnKind::Text(0..=0x3fff) => "TEXT".into(),
            ColumnKind::Text(0..=0x3f_ffff) => "MEDIUMTEXT".into(),
            ColumnKind::Text(_) => "LONGTEXT".into(),
            ColumnKind::Blob(bytes @ 0..=WITHIN_ROW_MAX) => format!("VARBINARY({bytes})"),
            ColumnKind::Blob(0..=0xffff) => "BLOB".into(),
            ColumnKind::Blob(0..=0xff_ffff) => "MEDIUMBLOB".into(),
            ColumnKind::Blob(_) => "LONGBLOB".into(),
            ColumnKind::Json => "JSON".into(),
        }
    }

    fn numbered_type(&self) -> String {
        "BIGINT NOT NULL AUTO_INCREMENT".to_owned()
    }

    fn placeholder(&self, _number: usize) -> String {
        "?".into()
    }

    /// A backslash is an escape character unless a study configures its server otherwise.
    fn literal(&self, text: &str) -> String {
        format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    }

    fn member_of(&self, document: &str, member: &str, kind: ColumnKind) -> String {
        let value = format!("JSON_EXTRACT({document}, {})", self.literal(&path(member)));
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => format!("CAST({value} AS SIGNED)"),
            ColumnKind::Float64 => format!("CAST({value} AS DOUBLE)"),
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => format!("JSON_UNQUOTE({value})"),
        }
    }

    fn value_of_text(&self, text: &str, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => format!("CAST({text} AS SIGNED)"),
            ColumnKind::Float64 => format!("CAST({text} AS DOUBLE)"),
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => text.to_owned(),
        }
    }

    /// Tries an instant change, which touches no row, then a change in place without locks, then the server's default.
    fn schema_change(&self, change: &SchemaChange, algorithm: Option<&str>) -> Vec<String> {
        let table = self.quote(change.table());
        let plain = match change {
            SchemaChange::AddIndex { name, column, .. } => {
                format!("ALTER TABLE {table} ADD INDEX {} ({})", self.quote(name), self.quote(column))
            }
            SchemaChange::DropIndex { name, .. } => format!("ALTER TABLE {table} DROP INDEX {}", self.quote(name)),
            _ => schema_change_text(
                change,
                |name| self.quote(name),
                |kind| self.column_type(kind),
                self.partition_form(),
            ),
        };
        if matches!(change, SchemaChange::AddPartition { .. } | SchemaChange::DropPartition { .. }) {
            return vec![plain];
        }
        if let Some(algorithm) = algorithm {
            return vec![format!("{plain}, ALGORITHM={}", algorithm.to_uppercase())];
        }
        let ways = [", ALGORITHM=INSTANT", ", ALGORITHM=INPLACE, LOCK=NONE", ""];
        ways.iter().map(|way| format!("{plain}{way}")).collect()
    }

    fn partition_form(&self) -> PartitionForm {
        PartitionForm::Listed
    }

    fn table_suffix(&self) -> String {
        format!(" ENGINE={} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin", self.engine.name())
    }

    fn straight_join(&self) -> Option<StraightJoin> {
        Some(StraightJoin::SelectOption)
    }

    fn has_query_cache(&self) -> bool {
        true
    }

    /// Uses the columns by their positions in the tabular plan of MariaDB and MySQL; MySQL has `partitions` behind the table.
    fn plan_line(&self, row: &[Option<String>]) -> String {
        let shift = row.len().saturating_sub(10).min(1);
        let field = |place: usize| row.get(place).and_then(Option::as_deref);
        let table = field(2).unwrap_or("?");
        let access = field(3 + shift).unwrap_or("none");
        let mut line = format!("{table}: {access}");
        if let Some(key) = field(5 + shift) {
            line += &format!(" by {key}");
        }
        if let Some(rows) = field(8 + shift) {
            line += &format!(", about {rows} rows");
        }
        if let Some(extra) = row.last().and_then(Option::as_deref).filter(|extra| !extra.is_empty()) {
            line += &format!(", {extra}");
        }
        line
    }

    fn analyse(&self, table: &str) -> Option<String> {
        Some(format!("ANALYZE TABLE {}", self.quote(table)))
    }

    /// The sizes of InnoDB's files, which its statistics only estimate, a file for each partition; other engines know the bytes that they wrote.
    fn table_bytes(&self, tables: &[&str]) -> Vec<String> {
        let names: Vec<String> = tables.iter().map(|table| self.literal(table)).collect();
        if self.engine != Engine::InnoDb {
            return vec![format!(
                "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE() AND \
                 table_name IN ({}) HAVING COUNT(*) = {}",
                names.join(", "),
                names.len()
            )];
        }
        // MariaDB writes #P# before a partition's name, MySQL #p#.
        let table = "REGEXP_REPLACE(NAME, '#[Pp]#.*$', '')";
        let files: Vec<String> = names.iter().map(|name| format!("CONCAT(DATABASE(), '/', {name})")).collect();
        let sum = |view: &str| {
            format!(
                "SELECT SUM(FILE_SIZE) FROM information_schema.{view} WHERE {table} IN ({}) HAVING COUNT(DISTINCT {table}) = {}",
                files.join(", "),
                files.len()
            )
        };
        // The name in MariaDB, and the one in MySQL.
        vec![sum("INNODB_SYS_TABLESPACES"), sum("INNODB_TABLESPACES")]
    }

    fn read_only(&self) -> Option<&'static str> {
        Some("SET SESSION TRANSACTION READ ONLY")
    }

    fn beside_others(&self) -> &'static [&'static str] {
        &["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"]
    }

    fn index_columns(&self, table: &str) -> Option<String> {
        Some(format!(
            "SELECT index_name, seq_in_index, column_name FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND table_name = {} ORDER BY index_name, seq_in_index",
            self.literal(table)
        ))
    }

    fn instruments(&self) -> &'static [Alternatives] {
        instruments::MYSQL
    }

    fn has_foreign_keys(&self) -> bool {
        self.engine == Engine::InnoDb
    }

    fn has_transactions(&self) -> bool {
        self.engine.has_transactions()
    }
}

/// Writer of values into the text of statements, independent of the server's mode for backslashes.
pub struct MySqlLiterals;

impl Literals for MySqlLiterals {
    fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if value.contains(&b'\\') {
            out.extend_from_slice(b"_utf8mb4 ");
            Self::blob(value, out);
        } else {
            quoted(value, out);
        }
        Ok(())
    }

    fn blob(value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"x'");
        hexadecimal(value, out);
        out.push(b'\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_types_follow_the_size() {
        let dialect = MySqlDialect { engine: Engine::Aria };
        assert_eq!(dialect.quote("a`b"), "`a``b`");
        assert_eq!(dialect.column_type(ColumnKind::Text(512)), "VARCHAR(512)");
        assert_eq!(dialect.column_type(ColumnKind::Text(513)), "TEXT");
        assert_eq!(dialect.column_type(ColumnKind::Text(16_384)), "MEDIUMTEXT");
        assert_eq!(dialect.column_type(ColumnKind::Blob(65_535)), "BLOB");
        assert_eq!(dialect.column_type(ColumnKind::Blob(65_536)), "MEDIUMBLOB");
        assert_eq!(dialect.column_type(ColumnKind::Blob(1 << 24)), "LONGBLOB");
        assert!(dialect.table_suffix().contains("ENGINE=Aria"));
    }

    #[test]
    fn only_an_index_beside_the_table_is_kept_from_grouping() {
        let hint = |engine, index| MySqlDialect { engine }.grouping_hint(index);
        assert_eq!(hint(Engine::InnoDb, SourceIndex::BySource), " USE INDEX FOR GROUP BY ()");
        assert_eq!(
            hint(Engine::InnoDb, SourceIndex::KeyBySource),
            "",
            "InnoDB keeps the table in the order of its key"
        );
        assert_eq!(hint(Engine::Aria, SourceIndex::KeyBySource), " USE INDEX FOR GROUP BY ()");
        assert_eq!(hint(Engine::Aria, SourceIndex::ByTime), "");
        assert_eq!(hint(Engine::InnoDb, SourceIndex::CoveringBySource), "", "it has what is grouped");
    }

    #[test]
    fn only_innodb_has_transactions_and_foreign_keys() {
        for (name, has) in [("innodb", true), ("MyISAM", false), ("aria", false)] {
            let dialect = MySqlDialect { engine: Engine::named(name).unwrap() };
            assert_eq!((dialect.has_foreign_keys(), dialect.has_transactions()), (has, has), "{name}");
        }
        assert_eq!(Engine::named("rocksdb"), None);
    }
}
