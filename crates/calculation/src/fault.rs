//! Errors in what a user wrote, with remedies. Main type: [`Fault`], which the macro `fault!` makes.
//!
//! Invariant: the remedy is a value of its own, which programs can read without parsing the sentence.

use std::fmt;

/// An error with its remedy. It is displayed as one sentence of both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The error, with the wrong value.
    pub what: String,
    /// The remedy; `None` where the error implies it.
    pub remedy: Option<String>,
}

impl Fault {
    /// Creates a fault from an error and its remedy.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault { what: what.into(), remedy: Some(remedy.into()) }
    }

    /// Puts the subject in front of the error: `[about]: [what]`.
    pub fn about(self, about: impl fmt::Display) -> Self {
        Fault { what: format!("{about}: {}", self.what), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for Fault {}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Fault { what, remedy: None }
    }
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        Fault::from(what.to_owned())
    }
}

/// For code whose errors are sentences.
impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.to_string()
    }
}

/// Makes a [`Fault`] of two formats, each with its arguments: `fault!("{name} is {value}"; "write {other}")`.
#[doc(hidden)]
#[macro_export]
macro_rules! fault_of_two_formats {
    ($what:literal $(, $of_what:expr)* ; $remedy:literal $(, $of_remedy:expr)*) => {
        $crate::fault::Fault::new(format!($what $(, $of_what)*), format!($remedy $(, $of_remedy)*))
    };
}

#[doc(inline)]
pub use fault_of_two_formats as fault;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_one_sentence_whose_remedy_is_known() {
        let (name, value) = ("load.clients", 0);
        let found = fault!("{name} is {value}"; "write {} or more", 1).about("s.toml:3");
        assert_eq!(found.to_string(), "s.toml:3: load.clients is 0; write 1 or more");
        assert_eq!(found.remedy.as_deref(), Some("write 1 or more"));
        assert_eq!((Fault::from("no").to_string(), Fault::from("no").remedy), ("no".to_owned(), None));
    }
}
