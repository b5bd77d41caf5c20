//! Where Cassandra's classes are. Main functions: [`find`], and [`package`], which says where `loadline fetch cassandra` has them from.
//!
//! Invariant: nothing is fetched here, and nothing is started.

use std::path::{Path, PathBuf};

use crate::database::java;
use crate::database::package::{Form, Package, Published};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Environment variable with the directory of the classes.
pub const VARIABLE: &str = "LOADLINE_CASSANDRA";

/// Version of Cassandra that is fetched.
const VERSION: &str = "5.0.5";
/// The repository that Maven has its packages from, which keeps them unchanged.
const REPOSITORY: &str = "https://repo1.maven.org/maven2";
/// The archives that Cassandra's server needs: its own, and those that its package in the repository names, without tools and other systems. Of each the SHA-512, the
/// size in bytes and the path in the repository.
const FILES: &str = include_str!("jars.txt");
/// The beginnings of the name of Cassandra's own archive: in its distribution, and in the repository.
const OWN: [&str; 2] = ["apache-cassandra-", "cassandra-all-"];

/// Returns the package.
pub fn package() -> Package {
    let file = |line: &'static str| {
        let mut parts = line.split(' ');
        let (sha512, bytes, path) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        Some(Published { url: format!("{REPOSITORY}/{path}").into(), bytes, sha512 })
    };
    Package {
        name: "cassandra",
        title: "Cassandra",
        version: VERSION,
        variable: VARIABLE,
        files: FILES.lines().filter_map(file).collect(),
        form: Form::Files,
    }
}

/// Returns Cassandra's own archive, beside which the others are: in `database.base`, else in the directory that `LOADLINE_CASSANDRA` names, else in the one that was
/// fetched.
///
/// # Errors
/// When there is none; the remedy names the command that fetches it.
pub fn find(settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
    let base = "name the directory in which bin and lib of Cassandra 5.0 or newer are";
    java::find_archive(&package(), settings, base, own_in)
}

/// Returns Cassandra's own archive in a directory as it is unpacked, or in one of archives.
fn own_in(directory: &Path) -> Option<PathBuf> {
    java::archive_in(&directory.join("lib"), &OWN).or_else(|| java::archive_in(directory, &OWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::package::assert_pinned;

    #[test]
    fn the_package_is_pinned_by_sizes_and_hashes() {
        let package = package();
        assert_pinned(&package);
        assert_eq!(package.files.len(), FILES.lines().count());
        let own = package.files.iter().filter(|file| file.name().starts_with(OWN[1]));
        assert_eq!(
            own.map(|file| file.name().to_owned()).collect::<Vec<_>>(),
            [format!("cassandra-all-{VERSION}.jar")]
        );
    }

    #[test]
    fn an_unpacked_cassandra_is_found_and_anything_else_is_refused_with_the_remedy() {
        let directory = std::env::temp_dir().join(format!("loadline-jars-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("lib")).unwrap();
        let settings = DatabaseSettings { base: Some(directory.display().to_string()), ..DatabaseSettings::default() };
        let told = find(&settings).unwrap_err().to_string();
        assert!(told.contains("database.base") && told.contains("5.0 or newer"), "{told}");
        let own = directory.join("lib/apache-cassandra-5.0.5.jar");
        std::fs::write(&own, b"").unwrap();
        std::fs::write(directory.join("lib/a.jar"), b"").unwrap();
        assert_eq!(find(&settings).unwrap(), own);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
