//! `loadline fetch`: brings a library that loadline does not contain into the cache of this user.
//!
//! Main function: [`run`]. Invariants: nothing is fetched unless this command is typed. A file is used only if it has the size and the hash that are pinned in the source, and it is
//! in its place as a whole or not at all.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::json;

use super::output::{note, print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::{FetchArguments, Fetched};
use crate::database::duckdb::library::{self, Package, VARIABLE};
use crate::fault::fault;
use crate::file::CACHE_VARIABLE;
use crate::units::show_bytes;

/// Longest time that a download may take, in seconds.
const DOWNLOAD_MOST_S: &str = "1800";
/// The prefix of directories of packages that are being fetched; the id of the process follows.
const BEGUN: &str = "begun-";

/// Brings the library and prints where it is.
///
/// # Errors
/// [`Failure::Usage`] if there is no package for this machine or no place for it, or if the directory does not have it; [`Failure::Broken`] if it cannot be fetched, or is not
/// what was published.
pub fn run(arguments: &FetchArguments, is_json: bool) -> Result<Status, Failure> {
    let FetchArguments { what: Fetched::Duckdb, from } = arguments;
    let Some(package) = library::package() else {
        let here = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
        return Err(Failure::refused(
            fault!("no package of DuckDB is known for {here}"; "build or install it, and name the file of its library in {VARIABLE}"),
        ));
    };
    let Some(place) = library::place() else {
        let remedy = "name a directory in it, or take the library out of the package yourself and name its file in";
        return Err(Failure::refused(
            fault!("there is no place to keep it, because {CACHE_VARIABLE} is \"off\" or there is no home directory"; "{remedy} {VARIABLE}"),
        ));
    };
    let is_there = place.is_file();
    if !is_there {
        let archive = from.as_deref().map(|directory| given(directory, &package)).transpose()?;
        bring(&package, archive, &place).map_err(Failure::broken)?;
    }
    if is_json {
        let (file, version) = (place.display().to_string(), package.version);
        print_json(&json!({ "name": "duckdb", "database_version": version, "file": file, "was_there": is_there }))?;
    } else {
        let had = if is_there { "is there already" } else { "is there now" };
        print(&format!("DuckDB {} {had}: {}\n", package.version, place.display()))?;
    }
    Ok(Status::Valid)
}

fn file_name(package: &Package) -> &'static str {
    package.url.rsplit('/').next().unwrap_or(package.url)
}

/// Returns the package's file in a directory.
fn given(directory: &Path, package: &Package) -> Result<PathBuf, Failure> {
    let path = directory.join(file_name(package));
    if path.is_file() {
        return Ok(path);
    }
    let (place, what) = (path.display().to_string(), "there is no such file");
    Err(Failure::refused(Refusal::at(place, what, format!("put there what {} gives", package.url))))
}

/// Puts the library of a package into its place. Without an archive, the package is downloaded first.
fn bring(package: &Package, archive: Option<PathBuf>, place: &Path) -> anyhow::Result<()> {
    let directory = place.parent().context("the place has no directory")?;
    let above = directory.parent().context("the place has no directory")?;
    fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    remove_left_behind(above);
    let begun = Begun::new(above)?;
    let archive = match archive {
        Some(archive) => archive,
        None => {
            let archive = begun.0.join(file_name(package));
            download(package, &archive)?;
            archive
        }
    };
    check(package, &archive)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--gzip").arg("--no-same-owner").arg("--file").arg(&archive);
    carry_out(tar.arg("--directory").arg(&begun.0).arg(package.member))?;
    let library = begun.0.join(package.member);
    let file = File::open(&library).with_context(|| format!("{} is not in the package", package.member))?;
    let bytes = file.metadata()?.len();
    let right = package.library_bytes;
    ensure!(bytes == right, "{} has {bytes} bytes in the package instead of {right}", package.member);
    library::try_loading(&library)?;
    file.sync_all()?;
    fs::rename(&library, place).with_context(|| format!("{} cannot be put there", place.display()))
}

fn download(package: &Package, to: &Path) -> anyhow::Result<()> {
    let (size, version) = (show_bytes(package.bytes as f64), package.version);
    note(&format!("fetching DuckDB {version}, {size}, from {}", package.url));
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--location", "--silent", "--show-error", "--proto", "=https", "--max-time", DOWNLOAD_MOST_S]);
    curl.arg("--max-filesize").arg(package.bytes.to_string()).arg("--output").arg(to).arg(package.url);
    let name = file_name(package);
    carry_out(&mut curl).with_context(|| {
        format!("{name} was not fetched; put it into a directory by other means, and name that: loadline fetch duckdb --from DIRECTORY")
    })
}

/// Checks that a file is the one that was published.
fn check(package: &Package, archive: &Path) -> anyhow::Result<()> {
    let shown = archive.display();
    let mut file = File::open(archive).with_context(|| format!("{shown} cannot be read"))?;
    let bytes = file.metadata()?.len();
    let remedy = "it is not the file that was published; fetch it again";
    ensure!(bytes == package.bytes, "{shown} has {bytes} bytes instead of {}; {remedy}", package.bytes);
    let mut hash = ring::digest::Context::new(&ring::digest::SHA512);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer).with_context(|| format!("{shown} cannot be read"))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    let found: String = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(found == package.sha512, "{shown} has the SHA-512 {found} instead of {}; {remedy}", package.sha512);
    Ok(())
}

/// Runs a program and waits for its end.
fn carry_out(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let missing = || format!("{name} cannot be run; install it");
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).output().with_context(missing)?;
    if !ended.status.success() {
        let said: String = String::from_utf8_lossy(&ended.stderr).chars().take(1_000).collect();
        bail!("{name} failed ({}): {}", ended.status, said.trim());
    }
    Ok(())
}

/// A directory of a package that is being fetched; it is removed in the end.
struct Begun(PathBuf);

impl Begun {
    fn new(above: &Path) -> anyhow::Result<Self> {
        let path = above.join(format!("{BEGUN}{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Begun(path))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // What stays is removed by the next such command.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes directories of processes that are gone.
fn remove_left_behind(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(BEGUN).and_then(|owner| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| owner == std::process::id() || !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_that_was_published_is_used() {
        let directory = std::env::temp_dir().join(format!("loadline-fetch-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("package.tgz");
        fs::write(&file, b"abc").unwrap();
        // The example of the standard, FIPS 180-4.
        let sha512 = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        let member = "package/libduckdb.so";
        let package =
            Package { version: "1", url: "https://a/package.tgz", bytes: 3, sha512, member, library_bytes: 9 };
        check(&package, &file).unwrap();
        fs::write(&file, b"abd").unwrap();
        assert!(check(&package, &file).unwrap_err().to_string().contains("has the SHA-512"));
        fs::write(&file, b"abcd").unwrap();
        assert!(check(&package, &file).unwrap_err().to_string().contains("has 4 bytes instead of 3"));
        // A file that was published and is no archive leaves nothing behind.
        fs::write(&file, b"abc").unwrap();
        let place = directory.join("libraries/duckdb-1").join(library::FILE);
        let told = bring(&package, Some(given(&directory, &package).unwrap()), &place).unwrap_err().to_string();
        assert!(told.starts_with("tar failed"), "{told}");
        assert_eq!(fs::read_dir(directory.join("libraries")).unwrap().count(), 1, "the directory of the library");
        assert!(!place.exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}
