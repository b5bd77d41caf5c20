//! `loadline fetch`: brings a library or a server that loadline does not contain into the cache of this user.
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
use crate::database::cassandra::jars;
use crate::database::duckdb::library::{self, VARIABLE};
use crate::database::package::{Form, Member, Package, Published};
use crate::database::questdb::jar;
use crate::fault::fault;
use crate::file::CACHE_VARIABLE;
use crate::units::show_bytes;

/// Longest time that a download may take, in seconds.
const DOWNLOAD_MOST_S: &str = "1800";
/// The prefix of directories of packages that are being fetched; the id of the process follows.
const BEGUN: &str = "begun-";

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
    };
    let Some(package) = known else {
        let here = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
        return Err(Failure::refused(
            fault!("no package of DuckDB is known for {here}"; "build or install it, and name the file of its library in {VARIABLE}"),
        ));
    };
    let Some(place) = package.place() else {
        let remedy = match package.form {
            Form::Member(_) => "take the library out of the package yourself and name its file",
            Form::Files => "bring the files yourself and name their directory",
        };
        return Err(Failure::refused(
            fault!("there is no place to keep it, because {CACHE_VARIABLE} is \"off\" or there is no home directory"; "name a directory in it, or {remedy} in {}", package.variable),
        ));
    };
    let is_there = place.exists();
    if !is_there {
        let given = from.as_deref().map(|directory| given(directory, &package)).transpose()?;
        bring(&package, given, &place).map_err(Failure::broken)?;
    }
    let (name, title, version) = (package.name, package.title, package.version);
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
    let above = own.parent().context("the place has no directory")?;
    let unmade = || format!("{} cannot be made", above.display());
    fs::create_dir_all(above).with_context(unmade)?;
    remove_left_behind(above);
    let begun = Begun::new(above)?;
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
    carry_out(&mut curl).with_context(|| {
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
