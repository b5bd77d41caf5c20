//! Where the program of the server is. Main functions: [`find`], and [`module`], which says where `loadline fetch mongodb` has FerretDB from.
//!
//! Invariant: nothing is fetched or built here.

use std::path::{Path, PathBuf};

use crate::database::package::GoModule;
use crate::database::recipe::{executable_as_named, places_on_path};
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// Environment variable with the program of the server.
pub const VARIABLE: &str = "LOADLINE_FERRETDB";

/// Returns the module that is fetched and built.
pub fn module() -> GoModule {
    GoModule {
        name: "mongodb",
        title: "FerretDB",
        path: "github.com/FerretDB/FerretDB",
        version: "v1.24.0",
        sum: "h1:7WJmezL48Bj9bYWnhT/bEJgX5gjT5s7LFdHTqkN25rA=",
        go: (1, 22),
        package: "./cmd/ferretdb",
        program: "ferretdb",
        // Its builds have a file with the version, which the module lacks; the program does not start without it.
        file: ("build/version/version.txt", "v1.24.0\n"),
    }
}

/// Returns the program: `database.binary`, else one under `database.base`, else the one that `LOADLINE_FERRETDB` names, else the one that was fetched, else one on the PATH.
///
/// # Errors
/// When there is none; the remedy names the command that fetches it.
pub fn find(settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
    const NAMES: [&str; 2] = ["ferretdb", "mongod"];
    if let Some(binary) = &settings.binary {
        let refused = || format!("database.binary = \"{binary}\" is no executable file").into();
        return executable_as_named(Path::new(binary)).ok_or_else(refused);
    }
    if let Some(base) = &settings.base {
        let places = ["bin", ""].iter().flat_map(|below| NAMES.map(|name| Path::new(base).join(below).join(name)));
        let refused = || fault!("no program ferretdb or mongod under database.base = \"{base}\""; "name the directory in which it, or bin with it, is");
        return places.into_iter().find_map(|place| executable_as_named(&place)).ok_or_else(refused);
    }
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
        let refused = || fault!("{VARIABLE} is \"{}\", which is no executable file", named.display(); "name the program of FerretDB, or unset it");
        return executable_as_named(&named).ok_or_else(refused);
    }
    let fetched = module().place().into_iter();
    let places = fetched.chain(NAMES.iter().flat_map(|name| places_on_path(name)));
    places.into_iter().find_map(|place| executable_as_named(&place)).ok_or_else(|| {
        fault!("no server of MongoDB is here"; "get FerretDB with: loadline fetch mongodb; or name mongod or ferretdb in database.binary, or set database.url to a running server")
    })
}
