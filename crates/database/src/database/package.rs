//! What `loadline fetch` brings: files as they were published, with their sizes and hashes, and where they are kept. Main type: [`Package`].
//!
//! Invariant: nothing is fetched here.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::file::cache_directory;

/// Something that a database needs and loadline does not contain.
#[derive(Debug, Clone)]
pub struct Package {
    /// Name in the registry of databases.
    pub name: &'static str,
    /// Name in sentences.
    pub title: &'static str,
    /// Version of the database.
    pub version: &'static str,
    /// Environment variable that names what is there instead.
    pub variable: &'static str,
    /// The files as they are published; at least one.
    pub files: Vec<Published>,
    /// What is kept of them.
    pub form: Form,
}

/// A file as it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Address that it is fetched from; behind the last slash is its name.
    pub url: Cow<'static, str>,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-512 in hexadecimal digits.
    pub sha512: &'static str,
}

/// What is kept of the files.
#[derive(Debug, Clone)]
pub enum Form {
    /// One file out of the only one, which is an archive.
    Member(Member),
    /// The files as they are, in a directory of their own.
    Files,
}

/// A library in an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name in the archive.
    pub path: &'static str,
    /// Its size in bytes.
    pub bytes: u64,
    /// The name under which it is kept.
    pub file: &'static str,
    /// Checks that it can be used here.
    pub check: fn(&Path) -> Result<(), Fault>,
}

/// A program that is built from a module of Go, which is kept with the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoModule {
    /// Name in the registry of databases.
    pub name: &'static str,
    /// Name in sentences.
    pub title: &'static str,
    /// Path of the module.
    pub path: &'static str,
    /// Version of the module, with its v.
    pub version: &'static str,
    /// The module's sum as `go.sum` has it. The module's own `go.sum` has those of all others that are built into the program.
    pub sum: &'static str,
    /// The least version of Go that builds it.
    pub go: (u32, u32),
    /// Path of the program's package in the module.
    pub package: &'static str,
    /// Name of the program.
    pub program: &'static str,
    /// Path and content of a file that the module lacks.
    pub file: (&'static str, &'static str),
}

impl GoModule {
    /// Returns where the program is kept; `None` where there is no place to keep it.
    pub fn place(&self) -> Option<PathBuf> {
        let version = self.version.trim_start_matches('v');
        Some(cache_directory()?.join("libraries").join(format!("{}-{version}", self.program)).join(self.program))
    }
}

impl Package {
    /// Returns where the package is kept: the file of its library, or the directory with its files; `None` where there is no place to keep it.
    pub fn place(&self) -> Option<PathBuf> {
        let own = cache_directory()?.join("libraries").join(format!("{}-{}", self.name, self.version));
        Some(match &self.form {
            Form::Member(member) => own.join(member.file),
            Form::Files => own,
        })
    }

    /// Returns the size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl Published {
    /// Returns the name of the file.
    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }
}

/// Checks that files are pinned: by their sizes, by hashes of the right form, and at addresses that nobody can read or change on the way.
#[cfg(test)]
pub(super) fn assert_pinned(package: &Package) {
    let is_digit = |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
    assert!(!package.files.is_empty());
    for file in &package.files {
        let name = file.name();
        assert!(file.sha512.len() == 128 && file.sha512.chars().all(is_digit), "{name}");
        assert!(file.url.starts_with("https://") && file.bytes > 0 && !name.is_empty(), "{name}");
    }
    let mut names: Vec<_> = package.files.iter().map(Published::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), package.files.len(), "names occur once");
}
