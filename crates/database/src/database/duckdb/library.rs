//! Where the library of DuckDB is. Main functions: [`find`], and [`package`], which says where `loadline fetch duckdb` has it from.
//!
//! Invariant: nothing is fetched here, and nothing is loaded before a database is opened.

use std::path::{Path, PathBuf};

use super::api::Library;
use crate::database::loading::system_directories;
use crate::database::package::{Form, Member, Package, Published};
use crate::fault::{Fault, fault};

/// Environment variable with the file of the library.
pub const VARIABLE: &str = "LOADLINE_DUCKDB";
/// The name of the library's file.
pub const FILE: &str = "libduckdb.so";

/// Version of DuckDB.
const VERSION: &str = "1.5.6";
/// The name of the library in the archive.
const MEMBER: &str = "package/libduckdb.so";

/// A package of Node.js's binding, which contains the library as it was built by DuckDB's authors.
struct Pinned {
    /// The processor that it is for.
    processor: &'static str,
    url: &'static str,
    bytes: u64,
    sha512: &'static str,
    /// The size of the library in bytes.
    library_bytes: u64,
}

const PACKAGES: [Pinned; 2] = [
    Pinned {
        processor: "x86_64",
        url: "https://registry.npmjs.org/@duckdb/node-bindings-linux-x64/-/node-bindings-linux-x64-1.5.6-r.1.tgz",
        bytes: 23_927_610,
        sha512: "21772b64913a904a8cd19e30c1d5671811d7fdface4b7dd53cd0300d743f43e16cf386f4e7c41ef78721ac208870d2651bc6375072145387817824315b998dd5",
        library_bytes: 70_546_800,
    },
    Pinned {
        processor: "aarch64",
        url: "https://registry.npmjs.org/@duckdb/node-bindings-linux-arm64/-/node-bindings-linux-arm64-1.5.6-r.1.tgz",
        bytes: 21_667_742,
        sha512: "de39d46838a5d41ac5ffabc067055a227275c6805a5861c1e0f0e2527cc958a0a8f1af132f1f63eff80fc8f97f5064417edad822e4e28516527c5e2658c82d58",
        library_bytes: 62_945_312,
    },
];

/// Returns the package for this machine; `None` where there is none.
pub fn package() -> Option<Package> {
    let is_known = cfg!(all(target_os = "linux", target_env = "gnu"));
    let here = |pinned: &&Pinned| is_known && pinned.processor == std::env::consts::ARCH;
    PACKAGES.iter().find(here).map(package_of)
}

fn package_of(pinned: &Pinned) -> Package {
    let Pinned { url, bytes, sha512, library_bytes, .. } = *pinned;
    Package {
        name: "duckdb",
        title: "DuckDB",
        version: VERSION,
        variable: VARIABLE,
        files: vec![Published { url: url.into(), bytes, sha512 }],
        form: Form::Member(Member { path: MEMBER, bytes: library_bytes, file: FILE, check: try_loading }),
    }
}

/// Returns where `loadline fetch duckdb` puts the library; `None` where there is no package for this machine, or no place to keep it.
pub fn place() -> Option<PathBuf> {
    package()?.place()
}

/// Returns the file of the library: the one that `LOADLINE_DUCKDB` names, else the one that was fetched, else the system's.
///
/// # Errors
/// When there is none; the remedy names the command that fetches it.
pub fn find() -> Result<PathBuf, Fault> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        if named.is_file() {
            return Ok(named);
        }
        let remedy = "name the file of the library, or unset it";
        return Err(fault!("{VARIABLE} is \"{}\", which is no file", named.display(); "{remedy}"));
    }
    let fetched = place().filter(|path| path.is_file());
    let installed =
        || system_directories().into_iter().map(|directory| directory.join(FILE)).find(|path| path.is_file());
    fetched.or_else(installed).ok_or_else(|| {
        let what = "DuckDB's library is not here";
        match package() {
            Some(_) => fault!("{what}"; "get it with: loadline fetch duckdb; or name the file {FILE} in {VARIABLE}"),
            None => fault!("{what}, and loadline knows no package of it for this machine"; "name the file {FILE} in {VARIABLE}"),
        }
    })
}

/// Checks that the library in a file can be loaded here.
///
/// # Errors
/// When it cannot, or is none of DuckDB.
pub fn try_loading(path: &Path) -> Result<(), Fault> {
    load_from(path).map(drop)
}

/// Returns the library, loaded.
///
/// # Errors
/// When there is none, or when it cannot be used.
pub(super) fn load() -> Result<&'static Library, Fault> {
    load_from(&find()?)
}

fn load_from(path: &Path) -> Result<&'static Library, Fault> {
    Library::at(path).map_err(|what| Fault::new(what, format!("name another file in {VARIABLE}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::package::assert_pinned;

    #[test]
    fn packages_are_pinned_by_size_and_hash() {
        for pinned in &PACKAGES {
            assert_pinned(&package_of(pinned));
            assert!(pinned.url.contains(VERSION), "{}", pinned.processor);
            assert!(pinned.bytes > 1 << 20 && pinned.library_bytes > pinned.bytes, "{}", pinned.processor);
        }
    }
}
