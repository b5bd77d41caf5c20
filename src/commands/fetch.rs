//! `loadline fetch`: brings a library or a server that loadline does not contain into the cache of this user.
//!
//! Main function: [`run`]. Invariants: nothing is fetched unless this command is typed. A file is used only if it has the size and the hash that are pinned in the source, and it is
//! in its place as a whole or not at all.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::json;

use super::fetch_begun::{Begun, carry_out, place_above};
use super::output::{note, print, print_json};
use super::{Failure, Refusal, Status, fetch_built};
use crate::cli::{FetchArguments, Fetched};
use crate::database::cassandra::jars;
use crate::database::duckdb::library::{self, VARIABLE};
use crate::database::mongodb::module;
use crate::database::package::{Form, GoModule, Member, Package, Published};
use crate::database::questdb::jar;
use crate::fault::fault;
use crate::file::CACHE_VARIABLE;
use crate::units::show_bytes;

/// Longest time that a download may take, in seconds.
const DOWNLOAD_MOST_S: &str = "1800";

/// Brings the package and prints where it is.
///
/// # Errors
/// [`Failure::Usage`] if there is no package for this machine or no place for it, or if the directory does not have it; [`Failure::Broken`] if it cannot be fetched, or is not
/// what was published.
pub fn run(arguments: &FetchArguments, is_json: bool) -> Result<Status, Failure> {
    let FetchArguments { what, from } = arguments;
    let known = match what {
        Fetched::Duckdb => library::package(),
        Fetched::Cassandra => Some(jars::package()),
        Fetched::Questdb => Some(jar::package()),
        Fetched::Mongodb => return built(&module::module(), from.as_deref(), is_json),
    };
    let Some(package) = known else {
        let here = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
        return Err(Failure::refused(
            fault!("no package of DuckDB is known for {here}"; "build or install it, and name the file of its library in {VARIABLE}"),
        ));
    };
    let remedy = match package.form {
        Form::Member(_) => "take the library out of the package yourself and name its file",
        Form::Files => "bring the files yourself and name their directory",
    };
    let place = package.place().ok_or_else(|| no_place(remedy, package.variable))?;
    let is_there = place.exists();
    if !is_there {
        let given = from.as_deref().map(|directory| given(directory, &package)).transpose()?;
        bring(&package, given, &place).map_err(Failure::broken)?;
    }
    tell((package.name, package.title, package.version), &place, is_there, is_json)
}

/// Builds a program where it is not there yet, and prints where it is.
fn built(module: &GoModule, from: Option<&Path>, is_json: bool) -> Result<Status, Failure> {
    let GoModule { name, title, version, .. } = *module;
    if from.is_some() {
        let what = format!("{title} is built here from its source, and not taken from a directory");
        return Err(Failure::refused(
            fault!("{what}"; "leave --from out, or name a program that is there in database.binary"),
        ));
    }
    let remedy = "bring the program yourself and name it";
    let place = module.place().ok_or_else(|| no_place(remedy, module::VARIABLE))?;
    let is_there = place.exists();
    if !is_there {
        fetch_built::bring(module, &place).map_err(Failure::broken)?;
    }
    tell((name, title, version.trim_start_matches('v')), &place, is_there, is_json)
}

/// Returns the refusal of who has no place to keep anything.
fn no_place(remedy: &str, variable: &str) -> Failure {
    Failure::refused(
        fault!("there is no place to keep it, because {CACHE_VARIABLE} is \"off\" or there is no home directory"; "name a directory in it, or {remedy} in {variable}"),
    )
}

/// Prints where something is, by its name, its name in sentences, and its version.
fn tell(
    (name, title, version): (&str, &str, &str),
    place: &Path,
    is_there: bool,
    is_json: bool,
) -> Result<Status, Failure> {
    if is_json {
        let file = place.display().to_string();
        print_json(&json!({ "name": name, "database_version": version, "file": file, "was_there": is_there }))?;
    } else {
        let had = if is_there { "is there already" } else { "is there now" };
        print(&format!("{title} {version} {had}: {}\n", place.display()))?;
    }
    Ok(Status::Valid)
}

/// Returns the package's files in a directory.
fn given(directory: &Path, package: &Package) -> Result<Vec<PathBuf>, Failure> {
    let place_of = |file: &Published| {
        let path = directory.join(file.name());
        if path.is_file() {
            return Ok(path);
        }
        let (place, what) = (path.display().to_string(), "there is no such file");
        Err(Failure::refused(Refusal::at(place, what, format!("put there what {} gives", file.url))))
    };
    package.files.iter().map(place_of).collect()
}

/// Puts a package into its place. Files that are not given are downloaded first.
fn bring(package: &Package, given: Option<Vec<PathBuf>>, place: &Path) -> anyhow::Result<()> {
    let own = match package.form {
        Form::Member(_) => place.parent().context("the place has no directory")?,
        Form::Files => place,
    };
    let begun = Begun::new(place_above(own)?)?;
    let is_given = given.is_some();
    let files = match given {
        Some(files) => files,
        None => {
            let files: Vec<PathBuf> = package.files.iter().map(|file| begun.0.join(file.name())).collect();
            download(package, &files)?;
            files
        }
    };
    for (published, file) in package.files.iter().zip(&files) {
        check(published, file)?;
    }
    match (&package.form, &files[..]) {
        (Form::Member(member), [archive]) => {
            fs::create_dir_all(own).with_context(|| format!("{} cannot be made", own.display()))?;
            take_out(member, archive, &begun.0, place)
        }
        (Form::Member(_), _) => bail!("a library is in one archive, and {} are given", files.len()),
        (Form::Files, _) => {
            for (published, file) in package.files.iter().zip(&files).filter(|_| is_given) {
                let copied = fs::copy(file, begun.0.join(published.name()));
                copied.with_context(|| format!("{} cannot be copied", file.display()))?;
            }
            sync_all(&begun.0)?;
            fs::rename(&begun.0, place).with_context(|| format!("{} cannot be put there", place.display()))
        }
    }
}

/// Puts the library in an archive into its place.
fn take_out(member: &Member, archive: &Path, begun: &Path, place: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--gzip").arg("--no-same-owner").arg("--file").arg(archive);
    carry_out(tar.arg("--directory").arg(begun).arg(member.path))?;
    let library = begun.join(member.path);
    let file = File::open(&library).with_context(|| format!("{} is not in the package", member.path))?;
    let bytes = file.metadata()?.len();
    let right = member.bytes;
    ensure!(bytes == right, "{} has {bytes} bytes in the package instead of {right}", member.path);
    (member.check)(&library)?;
    file.sync_all()?;
    fs::rename(&library, place).with_context(|| format!("{} cannot be put there", place.display()))
}

/// Has the disk keep the files of a directory.
fn sync_all(directory: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        File::open(entry?.path())?.sync_all()?;
    }
    Ok(())
}

/// Downloads the files of a package, one after another over one connection where the server allows it.
fn download(package: &Package, to: &[PathBuf]) -> anyhow::Result<()> {
    let (size, title, version, files) =
        (show_bytes(package.bytes() as f64), package.title, package.version, &package.files);
    let what = match &files[..] {
        [file] => format!("fetching {title} {version}, {size}, from {}", file.url),
        _ => format!("fetching {title} {version}, {size} in {} files, from {}", files.len(), shared_part(files)),
    };
    note(&what);
    let largest = files.iter().map(|file| file.bytes).max().unwrap_or_default();
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--location", "--silent", "--show-error", "--proto", "=https", "--max-time", DOWNLOAD_MOST_S]);
    curl.arg("--fail-early").arg("--max-filesize").arg(largest.to_string());
    for (file, place) in files.iter().zip(to) {
        curl.arg("--output").arg(place).arg(&*file.url);
    }
    let name = match &files[..] {
        [file] => file.name(),
        _ => title,
    };
    carry_out(&mut curl).map(drop).with_context(|| {
        let what = package.name;
        format!("{name} was not fetched; put it into a directory by other means, and name that: loadline fetch {what} --from DIRECTORY")
    })
}

/// Returns what the addresses of all files begin with.
fn shared_part(files: &[Published]) -> &str {
    let Some(first) = files.first() else { return "" };
    let is_shared = |length: &usize| files.iter().all(|file| file.url.get(..*length) == first.url.get(..*length));
    let length = first.url.match_indices('/').map(|(place, _)| place + 1).rfind(is_shared);
    &first.url[..length.unwrap_or(0)]
}

/// Checks that a file is the one that was published.
fn check(published: &Published, path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("{shown} cannot be read"))?;
    let bytes = file.metadata()?.len();
    let remedy = "it is not the file that was published; fetch it again";
    ensure!(bytes == published.bytes, "{shown} has {bytes} bytes instead of {}; {remedy}", published.bytes);
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
    ensure!(found == published.sha512, "{shown} has the SHA-512 {found} instead of {}; {remedy}", published.sha512);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the standard, FIPS 180-4.
    const SHA512_OF_ABC: &str = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("loadline-fetch-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn package(urls: &[&'static str], form: Form) -> Package {
        let published = |url: &&'static str| Published { url: (*url).into(), bytes: 3, sha512: SHA512_OF_ABC };
        let files = urls.iter().map(published).collect();
        Package { name: "duckdb", title: "DuckDB", version: "1", variable: VARIABLE, files, form }
    }

    #[test]
    fn only_the_file_that_was_published_is_used() {
        let directory = directory("one");
        let file = directory.join("package.tgz");
        fs::write(&file, b"abc").unwrap();
        let member =
            Member { path: "package/libduckdb.so", bytes: 9, file: library::FILE, check: library::try_loading };
        let package = package(&["https://a/package.tgz"], Form::Member(member));
        let published = &package.files[0];
        check(published, &file).unwrap();
        fs::write(&file, b"abd").unwrap();
        assert!(check(published, &file).unwrap_err().to_string().contains("has the SHA-512"));
        fs::write(&file, b"abcd").unwrap();
        assert!(check(published, &file).unwrap_err().to_string().contains("has 4 bytes instead of 3"));
        // A file that was published and is no archive leaves nothing behind.
        fs::write(&file, b"abc").unwrap();
        let place = directory.join("libraries/duckdb-1").join(library::FILE);
        let told = bring(&package, Some(given(&directory, &package).unwrap()), &place).unwrap_err().to_string();
        assert!(told.starts_with("tar failed"), "{told}");
        assert_eq!(fs::read_dir(directory.join("libraries")).unwrap().count(), 1, "the directory of the library");
        assert!(!place.exists());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn several_files_are_in_their_place_together_or_not_at_all() {
        let directory = directory("several");
        let package = package(&["https://a/b/one.jar", "https://a/c/two.jar"], Form::Files);
        assert_eq!(shared_part(&package.files), "https://a/");
        fs::write(directory.join("one.jar"), b"abc").unwrap();
        assert!(given(&directory, &package).is_err(), "one is missing");
        fs::write(directory.join("two.jar"), b"abd").unwrap();
        let place = directory.join("libraries/cassandra-1");
        let files = || Some(given(&directory, &package).unwrap());
        assert!(bring(&package, files(), &place).unwrap_err().to_string().contains("two.jar has the SHA-512"));
        assert_eq!(fs::read_dir(directory.join("libraries")).unwrap().count(), 0, "nothing is left behind");
        fs::write(directory.join("two.jar"), b"abc").unwrap();
        bring(&package, files(), &place).unwrap();
        assert_eq!(fs::read(place.join("two.jar")).unwrap(), b"abc");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
        fs::remove_dir_all(&directory).unwrap();
    }
}
