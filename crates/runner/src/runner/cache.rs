//! The cache of fixtures: filled tables that later runs can use, as the data of a private server or the file of an embedded
//! database.
//!
//! Main type: [`Cache`]. Invariant: a fixture belongs to one run at a time, which takes it out and puts it back unchanged; a
//! fixture that was not put back is lost and made again.
//!
//! ```text
//! <cache>/loadline/fixtures/      $LOADLINE_CACHE/fixtures, else in $XDG_CACHE_HOME or ~/.cache
//!     4f0c8a12b3d4e5f6/           named by a hash of the identity
//!         fixture.json            its description
//!         data                    the data directory, or the file
//!     4f0c8a12b3d4e5f6.2711/      taken by the process with this id
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::file::{CACHE_VARIABLE, cache_directory};
use crate::server::{KeptData, move_or_copy, remove, size_bytes};

/// Largest total size of all fixtures in bytes; the least recently used are removed first.
const BYTES_MAX: u64 = 10 << 30;
/// Longest time that an unused fixture is kept.
const UNUSED_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Free disk space to leave at least, in bytes.
const FREE_BYTES_MIN: u64 = 4 << 30;

/// The directory of fixtures.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
    /// Free disk space to leave at least, in bytes.
    free_bytes_min: u64,
}

/// The content of `fixture.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// The text that determines the content.
    pub identity: String,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// The content as described in the run.
    pub content: String,
    /// Password of the account in the data.
    password: String,
}

/// A fixture that this process has taken out.
#[derive(Debug)]
pub struct Taken {
    directory: PathBuf,
    /// The description of the fixture.
    pub described: Described,
}

/// Returns the directory in which this user keeps data for later runs; `None` if it is switched off or there is no place for it.
pub fn place() -> Option<PathBuf> {
    cache_directory()
}

impl Cache {
    /// Opens the cache of this user; `None` if it is switched off or there is no place for it.
    pub fn open() -> Option<Self> {
        Some(Cache { directory: place()?.join("fixtures"), free_bytes_min: FREE_BYTES_MIN })
    }

    /// Returns a note for the user: where fixtures are, their bounds, and how to remove them.
    pub fn note(&self) -> String {
        format!(
            "filled tables are kept in {} for later runs (at most {} GiB, {} days unused); remove it to clear them, or set \
             {CACHE_VARIABLE}=off to keep none",
            self.directory.display(),
            BYTES_MAX >> 30,
            UNUSED_MAX.as_secs() / (24 * 3600)
        )
    }

    fn place(&self, identity: &str) -> PathBuf {
        self.directory.join(crate::trial::text_hash(identity))
    }

    fn own_place(&self, identity: &str) -> PathBuf {
        self.place(identity).with_extension(std::process::id().to_string())
    }

    /// Returns whether the cache has a fixture of this identity that no run has taken.
    pub fn has(&self, identity: &str) -> bool {
        self.place(identity).exists()
    }

    /// Takes the fixture of this identity out of the cache; `None` if there is none or another run has it.
    pub fn take(&self, identity: &str) -> Option<Taken> {
        let own = self.own_place(identity);
        fs::rename(self.place(identity), &own).ok()?;
        let read =
            || -> io::Result<Described> { Ok(serde_json::from_str(&fs::read_to_string(own.join("fixture.json"))?)?) };
        match read().ok().filter(|described| described.identity == identity && own.join("data").exists()) {
            Some(described) => Some(Taken { directory: own, described }),
            None => {
                remove(&own);
                None
            }
        }
    }

    /// Returns the path for data to be kept under this identity. [`Cache::put`], which is called next, completes the fixture.
    ///
    /// # Errors
    /// Fails if the directory cannot be made.
    pub fn prepare(&self, identity: &str) -> io::Result<PathBuf> {
        let own = self.own_place(identity);
        remove(&own);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
        Ok(own.join("data"))
    }

    /// Puts the data at the path from [`Cache::prepare`] into the cache, and removes fixtures beyond the bounds.
    ///
    /// # Errors
    /// Fails if the fixture cannot be written; it is then removed.
    pub fn put(&self, identity: &str, tables: &[String], content: &str, password: &str) -> io::Result<()> {
        let own = self.own_place(identity);
        let described = Described {
            identity: identity.to_owned(),
            tables: tables.to_vec(),
            content: content.to_owned(),
            password: password.to_owned(),
        };
        let write = || -> io::Result<()> {
            fs::write(own.join("fixture.json"), serde_json::to_string_pretty(&described)?)?;
            self.give(&own, identity)
        };
        write().inspect_err(|_| remove(&own))
    }

    /// Removes what was prepared but not put.
    pub fn forget(&self, identity: &str) {
        remove(&self.own_place(identity));
    }

    /// Moves a directory to its place; if another run has put one there first, that one stays.
    fn give(&self, own: &Path, identity: &str) -> io::Result<()> {
        let place = self.place(identity);
        if place.exists() {
            remove(own);
        } else {
            fs::rename(own, &place)?;
            // The modification time is the time of the last use.
            let _ = fs::File::open(&place).and_then(|file| file.set_modified(SystemTime::now()));
        }
        self.trim();
        Ok(())
    }

    /// Puts back a fixture that still has its data, because the run worked on a copy.
    pub fn give_back(&self, taken: Taken) {
        // A fixture that cannot be put back is made again.
        let _ = self.give(&taken.directory, &taken.described.identity);
    }

    /// Removes fixtures that were not used for long, the least recently used ones while their total is too large or too little disk space
    /// is free, and those taken by processes that are gone.
    fn trim(&self) {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let unused = entry.metadata().and_then(|metadata| metadata.modified());
            let unused = unused.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
            match path.extension().and_then(|pid| pid.to_str()) {
                Some(pid) if Path::new("/proc").join(pid).exists() => {}
                None if unused <= UNUSED_MAX => kept.push((unused, size_bytes(&path), path)),
                _ => remove(&path),
            }
        }
        kept.sort();
        let mut sum = 0;
        for (_, bytes, path) in kept {
            sum += bytes;
            let is_full = crate::server::free_disk_bytes(&self.directory).is_ok_and(|free| free < self.free_bytes_min);
            if sum > BYTES_MAX || is_full {
                remove(&path);
            }
        }
    }
}

impl Taken {
    /// Returns the data, to be moved or copied.
    pub fn data(&self) -> KeptData {
        KeptData { path: self.directory.join("data"), password: self.described.password.clone() }
    }

    /// Moves or copies the data, which is a file, to `to`.
    ///
    /// # Errors
    /// Fails if the file can be neither moved nor copied.
    pub fn put_file(&self, to: &Path) -> io::Result<()> {
        move_or_copy(&self.data().path, to).map(|_| ())
    }

    /// Returns whether the data is still there.
    pub fn is_whole(&self) -> bool {
        self.directory.join("data").exists()
    }

    /// Removes a fixture that is of no use.
    pub fn discard(self) {
        remove(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> Cache {
        let directory = std::env::temp_dir().join(format!("loadline-cache-{name}-{}", std::process::id()));
        remove(&directory);
        // The free space of the machine's disk must not affect the tests.
        Cache { directory, free_bytes_min: 0 }
    }

    fn put(cache: &Cache, identity: &str) {
        let data = cache.prepare(identity).unwrap();
        fs::write(data, identity).unwrap();
        cache.put(identity, &["t".to_owned()], "content", "secret").unwrap();
    }

    #[test]
    fn a_fixture_is_in_one_pair_of_hands_and_comes_back_as_it_was() {
        let cache = cache("hands");
        assert!(cache.take("a").is_none(), "nothing was put");
        put(&cache, "a");
        let taken = cache.take("a").unwrap();
        assert!(cache.take("a").is_none(), "it is taken");
        assert_eq!((taken.described.tables[0].as_str(), taken.data().password.as_str()), ("t", "secret"));
        assert!(taken.is_whole());
        cache.give_back(taken);
        let file = cache.directory.join("elsewhere");
        let taken = cache.take("a").unwrap();
        taken.put_file(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"a");
        assert!(!taken.is_whole());
        taken.discard();
        assert!(cache.take("a").is_none());
        remove(&cache.directory);
    }

    #[test]
    fn nothing_is_kept_on_a_full_disk() {
        let cache = Cache { free_bytes_min: u64::MAX, ..cache("full") };
        put(&cache, "a");
        assert!(cache.take("a").is_none());
        remove(&cache.directory);
    }

    #[test]
    fn what_is_old_or_damaged_or_was_lost_is_removed() {
        let cache = cache("old");
        put(&cache, "old");
        let long_ago = SystemTime::now() - UNUSED_MAX - Duration::from_secs(1);
        fs::File::open(cache.place("old")).unwrap().set_modified(long_ago).unwrap();
        let lost = cache.directory.join("0123456789abcdef.999999999");
        fs::create_dir(&lost).unwrap();
        put(&cache, "new");
        assert!(!lost.exists() && !cache.place("old").exists() && cache.place("new").exists());
        fs::write(cache.place("new").join("fixture.json"), "{").unwrap();
        assert!(cache.take("new").is_none());
        assert!(!cache.own_place("new").exists());
        remove(&cache.directory);
    }
}
