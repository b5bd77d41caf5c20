//! Files that people write: studies and the recorder's configuration. They are read as trees of values with places, by tables that declare
//! the settings.
//!
//! Main types: [`Part`] and [`Setting`], which declare settings, and [`section::Section`], which reads them. Invariant: a setting is declared once; reading,
//! `--set`, factors, suggestions, schemas and the reference page all come from its row.

pub mod attributes;
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
