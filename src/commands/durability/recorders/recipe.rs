//! How a recorder under test is started: its own command, with the places of the test.
//!
//! Main type: [`TestedRecipe`]. Invariant: the recorder has the same port and the same places in all of its starts.

use std::path::{Path, PathBuf};

use super::http;
use super::intake::Way;
use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Reach, Readiness, Recipe, executable_as_named, places_on_path};
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// The places of one life of a recorder.
#[derive(Debug, Clone)]
pub struct Places {
    /// The port on which it takes in.
    pub port: u16,
    /// The port on which loadline's own says whether it is ready; that of another recorder is not used.
    pub watched: u16,
    /// The NATS server that loadline's own takes from; empty where there is none.
    pub broker: String,
    /// The address of the store that it writes to; empty for one that writes to a database.
    pub store: String,
    /// Its directory on the disk that fails.
    pub data: PathBuf,
    /// The directory of its files.
    pub files: PathBuf,
}

impl Places {
    /// Returns a text with the places in it.
    pub fn in_text(&self, text: &str) -> String {
        let (data, files) = (self.data.display().to_string(), self.files.display().to_string());
        let (port, watched) = (self.port.to_string(), self.watched.to_string());
        [
            ("{port}", &port),
            ("{watched}", &watched),
            ("{broker}", &self.broker),
            ("{store}", &self.store),
            ("{data}", &data),
            ("{files}", &files),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }
}

/// Starts a recorder under test.
#[derive(Debug, Clone)]
pub struct TestedRecipe {
    /// The program and its arguments, with the places in them.
    pub command: Vec<String>,
    /// The password of the database behind it, which is in no file; empty for none.
    pub password: String,
    /// The port on which it is asked whether it takes in.
    pub port: u16,
    /// How it is asked; `None` for loadline's own, which says when it is ready.
    pub way: Option<Way>,
}

/// Returns the file of a program: a path, or a name on the PATH.
///
/// # Errors
/// If there is no such executable file.
pub fn find_program(program: &str) -> Result<PathBuf, Fault> {
    let places = if program.contains('/') { vec![PathBuf::from(program)] } else { places_on_path(program) };
    let missing = || fault!("command: there is no program \"{program}\""; "install it, or write the path of its file");
    places.iter().find_map(|place| executable_as_named(place)).ok_or_else(missing)
}

impl Recipe for TestedRecipe {
    fn find_binary(&self, _: &DatabaseSettings) -> Result<PathBuf, Fault> {
        find_program(self.command.first().map_or("", String::as_str))
    }

    fn users(&self) -> &'static [&'static str] {
        &[]
    }

    fn has_tls(&self) -> bool {
        false
    }

    fn start(&self, binary: &Path, _: &Path, _: u16, _: &DatabaseSettings, _: &Reach) -> CommandLine {
        CommandLine {
            program: binary.to_owned(),
            arguments: self.command.iter().skip(1).cloned().collect(),
            environment: vec![("LOADLINE_PASSWORD".to_owned(), self.password.clone())],
            input: String::new(),
        }
    }

    fn endpoint(&self, _: &Path, _: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        Endpoint { tcp: Some((reach.address.to_string(), self.port)), ..Endpoint::default() }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        self.way.as_ref().map_or_else(|| http::get("/ready"), Way::hello)
    }

    /// A recorder that answers in its protocol takes in; loadline's own says when its database has answered too.
    fn readiness(&self, answer: &[u8]) -> Readiness {
        match &self.way {
            Some(way) => way.readiness(answer),
            None if answer.len() < 12 => Readiness::Incomplete,
            None if answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.1 503") => Readiness::Ready,
            None => Readiness::Starting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stand_where_the_file_names_them() {
        let places = Places {
            port: 7,
            watched: 9,
            broker: String::new(),
            store: "http://127.0.0.1:8".to_owned(),
            data: PathBuf::from("/d"),
            files: PathBuf::from("/f"),
        };
        assert_eq!(
            places.in_text("{files}/a {port} {store}/w {data} {other}"),
            "/f/a 7 http://127.0.0.1:8/w /d {other}"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        assert!(find_program("sh").is_ok() && find_program("/bin/sh").is_ok());
        for program in ["no-such-recorder", "/no/such", ""] {
            let says = find_program(program).unwrap_err().to_string();
            assert!(says.contains(&format!("\"{program}\"")), "{says}");
        }
    }
}
