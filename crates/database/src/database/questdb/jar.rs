//! Where QuestDB's archive of classes is. Main functions: [`find`], and [`package`], which says where `loadline fetch questdb` has it from.
//!
//! Invariant: nothing is fetched here, and nothing is started.

use std::path::PathBuf;

use crate::database::java;
use crate::database::package::{Form, Package, Published};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// Environment variable with the directory of the archive.
pub const VARIABLE: &str = "LOADLINE_QUESTDB";

/// Version of QuestDB that is fetched.
const VERSION: &str = "9.3.4";
/// The beginning of the archive's name.
const OWN: &str = "questdb";

/// Returns the package: one archive, which needs no other one.
pub fn package() -> Package {
    let url = format!("https://repo1.maven.org/maven2/org/questdb/questdb/{VERSION}/questdb-{VERSION}.jar");
    let sha512 = "8af095a2b16380719e2e784ca43d88760feb2a76661fdc7a4db17e7de53f7a4ca5423ae40c262a1a1fa2777fe3a7c75c33750b292908076acfc86969bab1eb74";
    Package {
        name: "questdb",
        title: "QuestDB",
        version: VERSION,
        variable: VARIABLE,
        files: vec![Published { url: url.into(), bytes: 29_831_811, sha512 }],
        form: Form::Files,
    }
}

/// Returns QuestDB's archive: in `database.base`, else in the directory that `LOADLINE_QUESTDB` names, else the one that was fetched.
///
/// # Errors
/// When there is none; the remedy names the command that fetches it.
pub fn find(settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
    let base = "name the directory in which questdb.jar of QuestDB without a runtime of its own is, 9.1 or newer";
    java::find_archive(&package(), settings, base, |directory| java::archive_in(directory, &[OWN]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::package::assert_pinned;

    #[test]
    fn the_package_is_pinned_by_its_size_and_hash() {
        let package = package();
        assert_pinned(&package);
        assert_eq!(package.files[0].name(), format!("questdb-{VERSION}.jar"));
    }

    #[test]
    fn an_archive_is_found_and_anything_else_is_refused_with_the_remedy() {
        let directory = std::env::temp_dir().join(format!("loadline-jar-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let settings = DatabaseSettings { base: Some(directory.display().to_string()), ..DatabaseSettings::default() };
        std::fs::write(directory.join("questdb.txt"), b"").unwrap();
        let told = find(&settings).unwrap_err().to_string();
        assert!(told.contains("database.base") && told.contains("9.1 or newer"), "{told}");
        let own = directory.join("questdb.jar");
        std::fs::write(&own, b"").unwrap();
        assert_eq!(find(&settings).unwrap(), own);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
