//! Java, in which servers of some databases run. Main function: [`find`].

use std::path::{Path, PathBuf};

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
