//! How QuestDB writes names, types and values in the text of a statement.

use crate::database::Dialect;
use crate::database::dialect::NewestOfEach;
use crate::record::ColumnKind;
use crate::statement::{SourceIndex, Table};

/// QuestDB's SQL, as far as statements of a layout need it.
#[derive(Debug, Default)]
pub(super) struct QuestdbDialect {
    /// The columns with times, as they are written in a query.
    times: Vec<String>,
}

impl QuestdbDialect {
    /// Creates the dialect for statements on these tables.
    pub(super) fn of(tables: &[Table]) -> Self {
        let own = QuestdbDialect::default();
        let time =
            |table: &Table| Some(format!("{}.{}", own.quote(&table.name), own.quote(&table.time.as_ref()?.name)));
        QuestdbDialect { times: tables.iter().filter_map(time).collect() }
    }
}

impl Dialect for QuestdbDialect {
    fn quote(&self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 => "SHORT",
            ColumnKind::Int32 => "INT",
            ColumnKind::Int64 => "LONG",
            ColumnKind::Float64 => "DOUBLE",
            ColumnKind::Text(_) | ColumnKind::Json => "VARCHAR",
            ColumnKind::Blob(_) => "BINARY",
        }
        .to_owned()
    }

    fn numbered_type(&self) -> String {
        self.column_type(ColumnKind::Int64)
    }

    fn placeholder(&self, number: usize) -> String {
        format!("${}", number + 1)
    }

    /// Times are read as whole numbers.
    fn read(&self, column: String) -> String {
        if self.is_ordered_by(&column) { format!("CAST({column} AS LONG)") } else { column }
    }

    fn newest_of_each(&self, _index: SourceIndex) -> NewestOfEach {
        NewestOfEach::LatestOn
    }

    fn is_ordered_by(&self, column: &str) -> bool {
        self.times.iter().any(|time| time == column)
    }

    fn divided(&self, number: &str, by: i64) -> String {
        format!("{} / {by}", self.read(number.to_owned()))
    }

    /// The first row of a table in the order of time; those of several sources at the same time have no order, and are not asked for.
    fn end_of(&self, column: &str, _order: &[&str], is_last: bool) -> Option<String> {
        Some(format!("{}({column})", if is_last { "LAST" } else { "FIRST" }))
    }

    /// Queries with locks are refused.
    fn row_lock(&self) -> &'static str {
        ""
    }
}
