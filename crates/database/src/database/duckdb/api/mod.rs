//! DuckDB's C interface as types that own their memory. Main types: [`Library`], [`Database`], [`Connection`], [`Statement`], [`Appender`] and [`Rows`].
//!
//! All code that the compiler cannot check is in this module. Invariant: each object of DuckDB has one owner, which frees it, and owns what it was made from.

mod appender;
mod database;
mod refusal;
mod rows;
mod statement;
mod symbols;

use std::path::Path;

use crate::database::loading::Loaded;

pub use appender::Appender;
pub use database::{Connection, Database};
pub use refusal::CONFLICT;
pub use rows::Rows;
pub use statement::Statement;

use symbols::{Symbols, load, text_at};

/// The oldest version whose functions were tried.
const OLDEST: (u32, u32) = (1, 5);

/// A loaded library. It stays loaded until the process ends.
#[derive(Debug)]
pub struct Library {
    symbols: Symbols,
    version: String,
}

/// The libraries that this process has loaded.
static LOADED: Loaded<Library> = Loaded::new();

impl Library {
    /// Returns the library in a file, loaded now if it is not loaded yet.
    ///
    /// # Errors
    /// Fails with a sentence if the file is no library of DuckDB, or one that is too old.
    pub fn at(path: &Path) -> Result<&'static Library, String> {
        LOADED.at(path, || {
            let symbols = load(path)?;
            // SAFETY: the function takes nothing and returns a C string that the library keeps.
            let version = unsafe { text_at((symbols.library_version)()) };
            check_version(&version).map_err(|why| format!("{}: {why}", path.display()))?;
            Ok(Library { symbols, version })
        })
    }

    /// Returns the version that the library states, as in `v1.5.6`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the names of all settings of a database.
    pub fn settings(&self) -> Vec<String> {
        // SAFETY: the function takes nothing.
        let count = unsafe { (self.symbols.config_count)() };
        let name = |index| {
            let (mut name, mut says) = (std::ptr::null(), std::ptr::null());
            // SAFETY: both places are on this stack. The texts belong to the library, which keeps them; the name is copied at once.
            unsafe {
                (self.symbols.get_config_flag)(index, &mut name, &mut says);
                text_at(name)
            }
        };
        (0..count).map(name).filter(|name| !name.is_empty()).collect()
    }
}

/// Checks that the functions of a version have the arguments with which they are called here.
fn check_version(version: &str) -> Result<(), String> {
    let mut numbers = version.trim_start_matches('v').split('.').map(|part| part.parse::<u32>());
    let (oldest, minor) = OLDEST;
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= OLDEST => Ok(()),
        _ => Err(format!("it states the version \"{version}\", and {oldest}.{minor} is the oldest that is known here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_whose_functions_are_not_known_are_refused() {
        for version in ["v1.5.0", "v1.5.6", "v2.0.1", "v1.6.0-dev12"] {
            assert_eq!(check_version(version), Ok(()), "{version}");
        }
        for version in ["v1.4.5", "v0.10.2", "", "84c1e0a", "v1"] {
            assert!(check_version(version).is_err(), "{version}");
        }
    }

    #[test]
    fn a_file_that_is_no_library_of_duckdb_is_refused() {
        let told = Library::at(Path::new("/nonexistent/libduckdb.so")).unwrap_err();
        assert!(told.starts_with("/nonexistent/libduckdb.so cannot be loaded"), "{told}");
        let told = Library::at(Path::new("libc.so.6")).unwrap_err();
        assert!(told.contains("it has no function duckdb_library_version"), "{told}");
    }
}
