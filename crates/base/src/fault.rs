//! What is wrong with what somebody wrote, and what to do about it. Main type: [`Fault`], which the macro `fault!` makes.
//!
//! Invariant: what to do is a value of its own, which programs find without taking the sentence apart.

use std::fmt;

/// What is wrong, and what to do about it. It prints as one sentence of both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What is wrong: it names the value.
    pub what: String,
    /// What to do about it; none where that is said in passing.
    pub remedy: Option<String>,
}

impl Fault {
    /// What is wrong, and what to do about it.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault { what: what.into(), remedy: Some(remedy.into()) }
    }

    /// The same, with what it is about in front: `[about]: [what]`.
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

/// For parts whose errors are sentences.
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
