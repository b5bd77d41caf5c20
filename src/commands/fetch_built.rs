//! `loadline fetch` of a program that is built here, from a module of Go.
//!
//! Main function: [`bring`]. Invariants: the module has the sum that is pinned in the source, and its own `go.sum` has those of all modules that are built into the program. The program is in its place as a
//! whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::fetch_begun::{Begun, carry_out, place_above};
use super::output::note;
use crate::database::package::GoModule;

/// Builds the program of a module and puts it into its place.
pub(super) fn bring(module: &GoModule, place: &Path) -> anyhow::Result<()> {
    let GoModule { title, path, version, .. } = module;
    let own = place.parent().context("the place has no directory")?;
    let begun = Begun::new(place_above(own)?)?;
    check_go(module, &begun.0)?;
    note(&format!(
        "fetching {title} {version} and what it is built from, through Go's proxy for modules ({path}), and building it, which takes minutes"
    ));
    let source = download(module, &begun.0)?;
    let program = begun.0.join(module.program);
    let build = ["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o"];
    carry_out(go(&source).args(build).arg(&program).arg(module.package))?;
    let told = carry_out(Command::new(&program).arg("--version"))?;
    let told = String::from_utf8_lossy(&told).into_owned();
    ensure!(told.contains(version), "what was built is not {title} {version}; it says {:?}", told.trim());
    fs::create_dir_all(own).with_context(|| format!("{} cannot be made", own.display()))?;
    fs::File::open(&program)?.sync_all()?;
    fs::rename(&program, place).with_context(|| format!("{} cannot be put there", place.display()))
}

/// Returns the command that calls Go in a directory. It takes the toolchain that is here, and no settings of other work.
fn go(directory: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(directory).env("GOTOOLCHAIN", "local").env("GOWORK", "off").env("GOFLAGS", "");
    command.env("GO111MODULE", "on").env("CGO_ENABLED", "0");
    command
}

/// Checks that there is a Go that builds the module.
fn check_go(module: &GoModule, directory: &Path) -> anyhow::Result<()> {
    let (major, minor) = module.go;
    let remedy = format!(
        "{} is built from its source with Go {major}.{minor} or newer (Debian's package golang-go, or go.dev); or bring the program by other means, and name it in database.binary",
        module.title
    );
    let told = carry_out(go(directory).args(["env", "GOVERSION"])).with_context(|| remedy.clone())?;
    let told = String::from_utf8_lossy(&told).trim().to_owned();
    ensure!(version_of(&told).is_some_and(|version| version >= module.go), "Go is {told:?} here; {remedy}");
    Ok(())
}

/// Returns the version in `go1.26.8`, without its last part.
fn version_of(told: &str) -> Option<(u32, u32)> {
    let mut parts = told.strip_prefix("go")?.split(['.', '-', ' ']);
    // A version before its release is "go1.27rc1".
    let minor = |part: &str| part.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok();
    Some((parts.next()?.parse().ok()?, minor(parts.next()?)?))
}

/// Returns a copy of the module's source, with the file that it lacks.
fn download(module: &GoModule, begun: &Path) -> anyhow::Result<PathBuf> {
    let GoModule { path, version, sum, file: (name, content), .. } = module;
    let told = carry_out(go(begun).args(["mod", "download", "-json"]).arg(format!("{path}@{version}")))
        .with_context(|| format!("{path} {version} was not fetched"))?;
    let told: Value = serde_json::from_slice(&told).context("go mod download says something else than JSON")?;
    let part = |name: &str| told[name].as_str().with_context(|| format!("go mod download does not say {name:?}"));
    let found = part("Sum")?;
    ensure!(
        found == *sum,
        "{path} {version} has the sum {found} instead of {sum}; it is not the module that was published"
    );
    let source = begun.join("source");
    // Go keeps modules so that nobody can change them.
    carry_out(Command::new("cp").args(["--recursive", "--no-preserve=mode,ownership"]).arg(part("Dir")?).arg(&source))?;
    let file = source.join(name);
    fs::write(&file, content).with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_compared_by_their_numbers() {
        assert_eq!(version_of("go1.26.8"), Some((1, 26)));
        assert_eq!(version_of("go1.27rc1"), Some((1, 27)));
        assert_eq!(version_of("go1.22"), Some((1, 22)));
        assert_eq!(version_of("devel +abc"), None);
        assert!(version_of("go1.9.2") < Some((1, 22)));
    }
}
