//! The tables that a recorder creates, and the layout that writes them as a recorder does. Main types: [`Described`], the tables of a measurement, and
//! [`Recorded`], the layout.
//!
//! Recorders and studies take tables, columns and the row of each writer from here, so that a study measures exactly what a recorder does.

mod bind;
mod described;
mod kind;
mod ledger;
mod names;
mod series;
mod shape;

pub use bind::Recorded;
pub use described::{Described, MEASUREMENT, MORE, StoredColumn, TIME};
pub use kind::{FieldKind, TEXT};
pub use ledger::{ledger_columns, ledger_table, ledger_update};
pub use names::{
    COLUMN_CHARACTERS_MAX, RESERVED, TABLE_CHARACTERS_MAX, is_of_others, keeps_column_name, keeps_table_name,
};
pub use series::hash_hex;
pub use shape::Shape;
