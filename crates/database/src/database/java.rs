//! Java, in which servers of some databases run, and the archives of their classes. Main functions: [`find`], [`find_archive`].

use std::path::{Path, PathBuf};

use super::package::Package;
use super::recipe::{executable, search_path};
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// Returns the program of Java: `database.binary`, else that of Debian's package of the first of these versions that is installed, else the one on the PATH. `whose` names the
/// server in messages.
///
/// # Errors
/// When there is none; with the remedy.
pub(super) fn find(settings: &DatabaseSettings, whose: &str, versions: &[&str]) -> Result<PathBuf, Fault> {
    if let Some(binary) = &settings.binary {
        let refused = || format!("database.binary = \"{binary}\" is no executable file, and has to be Java").into();
        return executable(Path::new(binary)).ok_or_else(refused);
    }
    let of_debian = versions.iter().flat_map(|version| {
        ["amd64", "arm64"]
            .map(|machine| PathBuf::from(format!("/usr/lib/jvm/java-{version}-openjdk-{machine}/bin/java")))
    });
    let installed = of_debian.filter_map(|place| executable(&place)).next();
    installed.or_else(|| search_path("java").into_iter().next()).ok_or_else(|| {
        fault!("no program java, in which {whose} runs, is on the PATH"; "install the Debian package openjdk-17-jre-headless (apt-get install openjdk-17-jre-headless), or name Java 17 in database.binary")
    })
}

/// Returns the archive that is a server's own, beside which its others are: in `database.base`, else in the directory that the package's environment variable names, else the one that was
/// fetched. `own_in` finds it in a directory; `base` says what `database.base` should name.
///
/// # Errors
/// When there is none; the remedy names the command that fetches it.
pub(super) fn find_archive(
    package: &Package,
    settings: &DatabaseSettings,
    base: &str,
    own_in: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<PathBuf, Fault> {
    let &Package { name, title, variable, .. } = package;
    if let Some(named) = &settings.base {
        let refused = || fault!("no archive of {title} under database.base = \"{named}\""; "{base}");
        return own_in(Path::new(named)).ok_or_else(refused);
    }
    if let Some(named) = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from) {
        let remedy = format!("name the directory with {title}'s archives (.jar), or unset it");
        let refused = || fault!("{variable} is \"{}\", where {title} is not", named.display(); "{remedy}");
        return own_in(&named).ok_or_else(refused);
    }
    package.place().and_then(|place| own_in(&place)).ok_or_else(|| {
        fault!("{title} is not here"; "get it with: loadline fetch {name}; or name its directory in database.base or {variable}, or set database.url to a running server")
    })
}

/// Returns the first archive in a directory whose name begins with one of these.
pub(super) fn archive_in(directory: &Path, beginnings: &[&str]) -> Option<PathBuf> {
    let is_own = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jar") && beginnings.iter().any(|own| name.starts_with(own)) && path.is_file()
    };
    let mut found: Vec<_> = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()).collect();
    found.sort_unstable();
    found.into_iter().find(is_own)
}
