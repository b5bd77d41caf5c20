//! Statements as texts: their words, their shape without values, and what each parameter is compared with.
//!
//! Main functions: [`shape_of`] and [`roles_of`]. No grammar is known beyond what tells a value's column: what is not understood is said to be so.

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
