//! Files that people write: studies and the recorder's configuration. Here they are trees of values with places, and tables that say which
//! settings there are.
//!
//! Main types: [`Part`] and [`Setting`], which declare, and [`section::Section`], which reads. Invariant: a setting is declared once; reading,
//! `--set`, factors, suggestions, schemas and the reference page all come from its row.

pub mod place;
pub mod reference;
pub mod schema;
mod secrets;
pub mod section;
mod setting;
mod suggest;
pub mod tree;
mod value;

pub use place::{StudyError, StudyErrors};
pub use secrets::hidden;
pub use setting::{Absent, Form, Kind, Part, Setting, Span, Told};
pub use suggest::closest;
pub use value::{FromValue, Value};
