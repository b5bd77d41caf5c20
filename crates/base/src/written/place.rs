//! Places in a study and the errors found there.
//!
//! Main types: [`Errors`], which collects, and [`StudyErrors`], which is returned. Invariant: errors come out
//! sorted by place and each only once, however often the check that finds them is repeated.

use std::collections::HashSet;
use std::fmt;

use super::secrets::hidden;
use crate::fault::Fault;
use crate::quote::shortened;

/// Largest length of an error in characters; what it quotes of a file is shortened to keep it.
const LINE_CHARACTERS_MAX: usize = 1_500;

/// The place where something was written. Lines of the file sort before arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Line of the file, from 1.
    Line(usize),
    /// Argument of the command line, by its number in [`Source::arguments`].
    Argument(usize),
}

/// The file and the arguments that places refer to.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The file, as the user named it.
    pub file: String,
    /// Arguments as the user wrote them, for example `--set load.clients=4`.
    pub arguments: Vec<String>,
}

impl Source {
    /// Shows a place for people: file and line, or the argument.
    pub fn show(&self, place: Place) -> String {
        match place {
            Place::Line(line) => format!("{}:{line}", self.file),
            Place::Argument(number) => self.arguments.get(number).cloned().unwrap_or_default(),
        }
    }
}

/// Collects errors while a study is read and checked.
#[derive(Debug, Default)]
pub struct Errors {
    found: Vec<(Place, Fault)>,
    /// The errors collected so far, as a set for look-ups.
    known: HashSet<(Place, Fault)>,
}

impl Errors {
    /// Adds an error at a place.
    pub fn push(&mut self, place: Place, fault: impl Into<Fault>) {
        let error = (place, fault.into());
        if self.known.insert(error.clone()) {
            self.found.push(error);
        }
    }

    /// Adds the errors of another collection.
    pub fn extend(&mut self, others: Errors) {
        for (place, fault) in others.found {
            self.push(place, fault);
        }
    }

    /// Returns whether no error was added so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns all errors, sorted by place.
    ///
    /// # Errors
    /// When at least one error was added.
    pub fn into_result(mut self, source: &Source) -> Result<(), StudyErrors> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|(place, _)| *place);
        Err(StudyErrors {
            all: self.found.into_iter().map(|(place, fault)| StudyError::at(source.show(place), fault)).collect(),
        })
    }
}

/// One error in a study, or in a request about it. It contains no secrets, and is short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    /// The whole sentence: place, value, remedy.
    pub line: String,
    /// The place, as at the beginning of the sentence; `None` where the error concerns the study as a whole.
    pub place: Option<String>,
    /// The remedy, as at the end of the sentence; `None` where the error implies it.
    pub remedy: Option<String>,
}

impl StudyError {
    fn at(place: String, fault: Fault) -> Self {
        StudyError { place: Some(hidden(&place)), ..StudyError::new(fault.about(place)) }
    }

    fn new(fault: Fault) -> Self {
        let shown = |text: &str| shortened(&hidden(text), LINE_CHARACTERS_MAX).into_owned();
        StudyError { line: shown(&fault.to_string()), place: None, remedy: fault.remedy.as_deref().map(shown) }
    }
}

/// All errors in a study or in a request about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct StudyErrors {
    /// The errors, in the order of the file. Never empty.
    pub all: Vec<StudyError>,
}

impl StudyErrors {
    /// Creates a single error.
    pub fn one(fault: impl Into<Fault>) -> Self {
        StudyErrors { all: vec![StudyError::new(fault.into())] }
    }

    /// Returns a line for each error: place, value, remedy.
    pub fn lines(&self) -> Vec<String> {
        self.all.iter().map(|error| error.line.clone()).collect()
    }
}

impl fmt::Display for StudyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_a_little_of_what_is_long() {
        let mut errors = Errors::default();
        errors.push(Place::Line(1), format!("unknown key \"{}\"", "ä".repeat(100_000)));
        let lines =
            errors.into_result(&Source { file: "s.toml".to_owned(), arguments: Vec::new() }).unwrap_err().lines();
        assert!(lines[0].starts_with("s.toml:1: unknown key") && lines[0].len() < 4_000, "{} bytes", lines[0].len());
    }

    #[test]
    fn errors_are_sorted_by_line_with_arguments_last_and_without_repetition() {
        let mut errors = Errors::default();
        errors.push(Place::Argument(0), "c");
        errors.push(Place::Line(12), "b");
        errors.push(Place::Line(3), "a");
        errors.push(Place::Line(12), "b");
        let source = Source { file: "s.toml".to_owned(), arguments: vec!["--set x=1".to_owned()] };
        let lines = errors.into_result(&source).unwrap_err().lines();
        assert_eq!(lines, ["s.toml:3: a", "s.toml:12: b", "--set x=1: c"]);
        assert_eq!(Errors::default().into_result(&source), Ok(()));
    }
}
