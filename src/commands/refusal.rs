//! The reason why a request is wrong: a sentence, and its parts for programs. Main type: [`Refusal`].

use clap::error::ContextKind;
use serde::Serialize;

use super::output::sentence;
use crate::database::DatabaseError;
use crate::fault::Fault;
use crate::import::ImportError;
use crate::server::ServerError;
use crate::store::StoreError;
use crate::study::{StudyError, StudyErrors};

/// The reason why a request is wrong. As JSON it is the `error` of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The wrong part: `usage`, `study`, `run`, `import`, `server`, `database`.
    pub kind: &'static str,
    /// The place: an option, a file and its line, an argument; `None` if the sentence names none.
    pub place: Option<String>,
    /// The whole sentence, as people read it.
    pub says: String,
    /// The remedy; `None` if the sentence names none, or names it in passing.
    pub remedy: Option<String>,
    /// Further errors in the same study.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Refusal>,
}

impl Refusal {
    /// Creates a refusal from a sentence about the request.
    pub fn new(says: impl Into<String>) -> Self {
        Refusal { kind: "usage", place: None, says: says.into(), remedy: None, others: Vec::new() }
    }

    /// Creates a refusal from a place, what is wrong there, and the remedy.
    pub fn at(place: impl Into<String>, what: impl std::fmt::Display, remedy: impl Into<String>) -> Self {
        Refusal::about(place, Fault::new(what.to_string(), remedy))
    }

    /// Creates a refusal from a place and a fault there.
    pub fn about(place: impl Into<String>, fault: impl Into<Fault>) -> Self {
        let place = place.into();
        let refusal = Refusal::from(fault.into().about(&place));
        Refusal { place: Some(place), ..refusal }
    }

    /// Creates a refusal from arguments that clap does not accept.
    pub fn of_arguments(error: &clap::Error) -> Self {
        let told = error.render().to_string();
        let first = told.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let place = error.get(ContextKind::InvalidArg).map(ToString::to_string);
        let remedy = Some("loadline --help lists the commands, and loadline COMMAND --help its options".to_owned());
        Refusal { place, remedy, ..Refusal::new(first) }
    }

    /// Creates a refusal from an error with its causes.
    pub fn of(error: &anyhow::Error) -> Self {
        let causes = || error.chain();
        let plain = Refusal::new(sentence(error));
        if let Some(found) = causes().find_map(|cause| cause.downcast_ref::<ImportError>()) {
            let (place, remedy) = (Some(found.place.clone()), Some(found.remedy.clone()));
            return Refusal { kind: "import", place, remedy, ..plain };
        }
        if let Some(found) = causes().find_map(|cause| cause.downcast_ref::<StoreError>()) {
            return Refusal { kind: "run", place: found.place(), remedy: found.remedy(), ..plain };
        }
        if let Some(found) = causes().find_map(|cause| cause.downcast_ref::<ServerError>()) {
            return Refusal { kind: "server", remedy: found.remedy(), ..plain };
        }
        let kind = if causes().any(|cause| cause.is::<DatabaseError>()) { "database" } else { plain.kind };
        Refusal { kind, ..plain }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal { remedy: fault.remedy.clone(), ..Refusal::new(fault.to_string()) }
    }
}

impl From<String> for Refusal {
    fn from(says: String) -> Self {
        Refusal::new(says)
    }
}

impl From<&str> for Refusal {
    fn from(says: &str) -> Self {
        Refusal::new(says)
    }
}

impl From<StudyErrors> for Refusal {
    fn from(errors: StudyErrors) -> Self {
        let says = errors.to_string();
        let of_error = |error: StudyError| Refusal {
            kind: "study",
            place: error.place,
            remedy: error.remedy,
            ..Refusal::new(error.line)
        };
        let mut all: Vec<Refusal> = errors.all.into_iter().map(of_error).collect();
        let others = all.split_off(all.len().min(1));
        let first = all.pop().unwrap_or_else(|| Refusal::new(says));
        Refusal { others, ..first }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.says)?;
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::place::{Errors, Place, Source};

    #[test]
    fn the_sentence_of_a_refusal_has_its_place_and_its_remedy() {
        let refusal = Refusal::at("--alpha", "2 is not above 0 and at most 0.5", "write 0.05 for 5 %");
        assert_eq!(refusal.to_string(), "--alpha: 2 is not above 0 and at most 0.5; write 0.05 for 5 %");
        let exists = Refusal::of(&StoreError::Exists("runs/a".to_owned()).into());
        assert_eq!((exists.kind, exists.place.as_deref()), ("run", Some("runs/a")));
        assert_eq!(exists.remedy.as_deref(), Some("name another with --out, or continue it with --resume runs/a"));
        assert!(exists.says.starts_with("runs/a exists already; "));
        let mut found = Errors::default();
        found.push(Place::Line(3), "neither");
        found.push(Place::Line(1), Fault::new("no", "write yes"));
        let source = Source { file: "a.toml".to_owned(), arguments: Vec::new() };
        let refusal = Refusal::from(found.into_result(&source).unwrap_err());
        assert_eq!(refusal.to_string(), "a.toml:1: no; write yes\na.toml:3: neither");
        assert_eq!((refusal.place.as_deref(), refusal.remedy.as_deref()), (Some("a.toml:1"), Some("write yes")));
        assert_eq!((refusal.others.len(), refusal.others[0].remedy.as_deref()), (1, None));
    }
}
