//! The tables that a recorder makes, and the layout that writes them as it does. Main types: [`Described`], what a measurement's tables are, and
//! [`Recorded`], the layout.
//!
//! Recorder and studies take tables, columns and the row of each writer from here, so that what a study measures is what a recorder does.

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
