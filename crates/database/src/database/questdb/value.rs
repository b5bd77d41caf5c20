//! Values on their way to a column. Main type: [`Guard`].
//!
//! QuestDB has no mark for null beside the values of a column of numbers: the least whole number of a type is null, as is a floating-point number that is none or infinite, and the
//! type of 16 bits has no null. A value that would come back as another one is refused before it is sent.

use crate::database::postgres::types;
use crate::record::{Cell, ColumnKind};
use crate::statement::TableColumn;

/// What the values of a column can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guard {
    /// Name of the column.
    pub name: String,
    kind: ColumnKind,
    nullable: bool,
    /// Whether the table is ordered by it.
    is_time: bool,
}

/// The end of the times by which a table can be ordered: the year 2262, in nanoseconds since 1970.
const TIME_END_NS: i64 = 9_214_646_400_000_000_000;

impl Guard {
    /// Returns what the values of a column can be; `time` is the column by which its table is ordered.
    pub(super) fn of(column: &TableColumn, time: Option<&str>) -> Self {
        let TableColumn { name, kind, nullable } = column;
        Guard { name: name.clone(), kind: *kind, nullable: *nullable, is_time: time == Some(name) }
    }

    /// Returns the type of the column in SQL: one with a null where the column may be null.
    pub(super) fn sql_type(&self, usual: String) -> String {
        if self.is_widened() { "INT".to_owned() } else { usual }
    }

    /// Returns the type of the value that is bound.
    pub(super) fn oid(&self) -> u32 {
        if self.is_widened() { types::INT4 } else { oid(self.kind) }
    }

    fn is_widened(&self) -> bool {
        self.kind == ColumnKind::Int16 && self.nullable
    }

    /// Returns why the column cannot hold a value; `None` where it can.
    #[inline]
    pub(super) fn refusal(&self, cell: Cell) -> Option<&'static str> {
        match (cell, self.kind) {
            (Cell::Null, _) if self.is_time => Some("a null, and the table is ordered by it"),
            (Cell::Int(value), _) if self.is_time && !(0..TIME_END_NS).contains(&value) => {
                Some("a time before 1970 or after 2261, by which QuestDB orders no table")
            }
            (Cell::Null, _) if !self.nullable => Some("a null, which the column must not have"),
            (Cell::Int(value), ColumnKind::Int32) if value == i64::from(i32::MIN) => Some(LEAST),
            (Cell::Int(value), ColumnKind::Int64) if value == i64::MIN => Some(LEAST),
            (Cell::Int(value), ColumnKind::Int16) if i16::try_from(value).is_err() => {
                Some("a number that does not fit into 16 bits")
            }
            (Cell::Float(value), ColumnKind::Float64) if !value.is_finite() => {
                Some("no finite number, which QuestDB takes for null")
            }
            _ => None,
        }
    }
}

const LEAST: &str = "the least number of its type, which QuestDB takes for null";

/// Returns the type of PostgreSQL in which a value of a kind is bound.
pub(super) fn oid(kind: ColumnKind) -> u32 {
    match kind {
        ColumnKind::Int16 => types::INT2,
        ColumnKind::Int32 => types::INT4,
        ColumnKind::Int64 => types::INT8,
        ColumnKind::Float64 => types::FLOAT8,
        ColumnKind::Text(_) | ColumnKind::Json => types::VARCHAR,
        ColumnKind::Blob(_) => types::BYTEA,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(kind: ColumnKind, nullable: bool) -> Guard {
        Guard::of(&TableColumn { name: "a".to_owned(), kind, nullable }, None)
    }

    #[test]
    fn a_time_that_the_server_would_refuse_among_other_rows_is_refused_before() {
        let column = TableColumn { name: "a".to_owned(), kind: ColumnKind::Int64, nullable: true };
        let guard = Guard::of(&column, Some("a"));
        for (cell, is_refused) in
            [(Cell::Int(-1), true), (Cell::Int(0), false), (Cell::Int(TIME_END_NS), true), (Cell::Null, true)]
        {
            assert_eq!(guard.refusal(cell).is_some(), is_refused, "{cell:?}");
        }
    }

    #[test]
    fn what_would_come_back_as_another_value_is_refused() {
        for (kind, cell, is_refused) in [
            (ColumnKind::Int16, Cell::Int(-32_768), false),
            (ColumnKind::Int16, Cell::Int(32_768), true),
            (ColumnKind::Int32, Cell::Int(i64::from(i32::MIN)), true),
            (ColumnKind::Int32, Cell::Int(i64::from(i32::MIN) + 1), false),
            (ColumnKind::Int64, Cell::Int(i64::from(i32::MIN)), false),
            (ColumnKind::Int64, Cell::Int(i64::MIN), true),
            (ColumnKind::Float64, Cell::Float(f64::MAX), false),
            (ColumnKind::Float64, Cell::Float(f64::NAN), true),
            (ColumnKind::Float64, Cell::Float(f64::NEG_INFINITY), true),
            (ColumnKind::Int64, Cell::Null, false),
        ] {
            assert_eq!(guard(kind, true).refusal(cell).is_some(), is_refused, "{kind:?} {cell:?}");
        }
        assert!(guard(ColumnKind::Text(9), false).refusal(Cell::Null).is_some());
    }

    #[test]
    fn a_type_without_null_is_widened_where_null_may_be() {
        assert_eq!(guard(ColumnKind::Int16, true).sql_type("SHORT".to_owned()), "INT");
        assert_eq!(guard(ColumnKind::Int16, false).sql_type("SHORT".to_owned()), "SHORT");
        assert_eq!(guard(ColumnKind::Int16, true).oid(), types::INT4);
        assert_eq!(guard(ColumnKind::Int16, false).oid(), types::INT2);
    }
}
