//! Analyses statements as texts: their words, their shape without values, and the column with which each parameter is compared.
//!
//! Main functions: [`shape_of`] and [`roles_of`]. Only the grammar needed to find a value's column is known; anything else is reported as unknown.

mod keyword;
mod role;
mod scope;
mod seat;
mod shape;
mod token;

pub use keyword::{is_keyword, locks, verb_of};
pub use role::{Comparison, Role, roles_of};
pub use scope::{ColumnPlace, Known, Scope};
pub use shape::{Literal, Shape, shape_of};
pub use token::{Grammar, Kind, Token, tokens_of};
