//! Where the driver manager of ODBC is. Main function: [`find`].
//!
//! Invariant: nothing is loaded before a database is opened.

use std::path::PathBuf;

use super::api::Library;
use crate::database::loading::system_directories;
use crate::fault::{Fault, fault};

/// Environment variable with the file of the driver manager.
pub const VARIABLE: &str = "LOADLINE_ODBC";
/// The name of its file.
const FILE: &str = "libodbc.so.2";

/// Returns the file of the driver manager: the one that `LOADLINE_ODBC` names, else the system's.
///
/// # Errors
/// When there is none; the remedy names the package.
pub fn find() -> Result<PathBuf, Fault> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        if named.is_file() {
            return Ok(named);
        }
        let remedy = "name the file of the driver manager, or unset it";
        return Err(fault!("{VARIABLE} is \"{}\", which is no file", named.display(); "{remedy}"));
    }
    let installed = system_directories().into_iter().map(|directory| directory.join(FILE)).find(|path| path.is_file());
    installed.ok_or_else(|| {
        fault!(
            "the driver manager of ODBC, {FILE}, is not here";
            "install the Debian package unixodbc, with a driver such as libsqliteodbc, odbc-postgresql or odbc-mariadb, or name the file in {VARIABLE}"
        )
    })
}

/// Returns the driver manager, loaded.
///
/// # Errors
/// When there is none, or when it cannot be used.
pub(super) fn load() -> Result<&'static Library, Fault> {
    Library::at(&find()?).map_err(|what| Fault::new(what, format!("name another file in {VARIABLE}")))
}
