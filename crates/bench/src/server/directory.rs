//! Private directories of servers, and the removal of those whose owner has died.
//!
//! ```text
//! /tmp/loadline-<uid>/          root: belongs to loadline's user
//!     4f21c0/                   one server: belongs to loadline's user, so that nobody else writes its owner.json
//!         owner.json            who owns it, and which process is the server
//!         log                   what the server prints
//!         server/               belongs to the server's user: socket, pid file
//!             data/             or a link to <parent>/loadline-server-4f21c0/
//!     90aa17/                   something else that goes with its owner: a disk in user space
//!         owner.json
//! ```
//!
//! Main types: [`PrivateDirectory`], and [`OwnDirectory`], which holds no server. Invariant: paths of sockets stay short (the kernel allows 107
//! bytes), whatever the path of the data; and no directory is removed whose owner may still be alive.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, fchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use loadline_disk::mount::remove_left_behind;

use super::ServerError;
use super::keep::move_or_copy;
use super::process::{ProcessIdentity, end_by_force, identities};
use super::user::{User, own_uid};

/// Version of the form of `owner.json`.
const OWNER_VERSION: u32 = 1;
const OWNER_FILE: &str = "owner.json";
/// The prefix makes no hidden directory: MySQL overlooks its own undo files in one, and ends.
const DATA_PREFIX: &str = "loadline-server-";
/// The longest root in bytes that leaves room for `/123456/server/.s.PGSQL.65535` in a socket's path.
const MOST_ROOT_BYTES: usize = 70;
/// Age up to which a directory without a readable owner may still be in the making; an older one is not.
const BEING_MADE: Duration = Duration::from_secs(60);

/// The directory of one server. Dropping it removes it.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    base: PathBuf,
    owner: Owner,
}

/// The content of `owner.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    version: u32,
    /// The boot to which the pids and start times belong; they mean nothing after the machine is restarted.
    boot_id: String,
    loadline: ProcessIdentity,
    server: Option<ProcessIdentity>,
    stop_signal: i32,
    /// The data directory, if it is not inside this directory.
    #[serde(default, with = "stored_path")]
    data: Option<PathBuf>,
}

/// Stores a path as text, or as bytes if it is not valid Unicode.
mod stored_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = path.as_ref().map(|path| match path.clone().into_os_string().into_string() {
            Ok(text) => Stored::Text(text),
            Err(other) => Stored::Bytes(other.into_vec()),
        });
        stored.serialize(serializer)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        let stored = Option::<Stored>::deserialize(deserializer)?;
        Ok(stored.map(|stored| match stored {
            Stored::Text(text) => PathBuf::from(text),
            Stored::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        }))
    }
}

/// Returns the directory below which private servers live: `loadline-<uid>` in the directory for temporary files. It is in `/tmp` instead if that
/// path is too long for sockets, is not valid Unicode (as the servers' options must be), or, for root, is closed to the servers' users.
pub fn root() -> PathBuf {
    let uid = own_uid();
    let usual = std::env::temp_dir().join(format!("loadline-{uid}"));
    let stranger = User { name: String::new(), uid: u32::MAX, gid: u32::MAX };
    let is_open = uid != 0 || usual.parent().is_some_and(|parent| stranger.barred_by(parent).is_none());
    if usual.as_os_str().len() <= MOST_ROOT_BYTES && usual.to_str().is_some() && is_open {
        usual
    } else {
        PathBuf::from(format!("/tmp/loadline-{uid}"))
    }
}

impl PrivateDirectory {
    /// Makes a directory for a server of `user` (`None` is loadline's own). With `parent`, the data is placed there.
    pub fn create(
        root: &Path,
        parent: Option<&Path>,
        user: Option<&User>,
        stop_signal: i32,
    ) -> Result<PrivateDirectory, ServerError> {
        prepare_root(root)?;
        let parent = parent.map(|parent| parent.canonicalize().map_err(at(parent, "find"))).transpose()?;
        if let (Some(parent), Some(user)) = (&parent, user)
            && let Some(directory) = user.barred_by(parent)
        {
            return Err(ServerError::Barred { parent: parent.clone(), directory, user: user.name.clone() });
        }
        let (base, id) = make_unique(root)?;
        // From here on, dropping the value removes what has been made.
        let mut directory = PrivateDirectory { base, owner: Owner::new(stop_signal) };
        directory.owner.data = parent.map(|parent| parent.join(format!("{DATA_PREFIX}{id}")));
        directory.write_owner()?;
        make(&directory.server(), user)?;
        let data = directory.server().join("data");
        match &directory.owner.data {
            None => make(&data, user)?,
            Some(elsewhere) => {
                make(elsewhere, user)?;
                symlink(elsewhere, &data).map_err(at(&data, "make"))?;
            }
        }
        Ok(directory)
    }

    /// Returns the part that belongs to the server.
    pub fn server(&self) -> PathBuf {
        self.base.join("server")
    }

    /// Returns the data directory.
    pub fn data(&self) -> PathBuf {
        self.owner.data.clone().unwrap_or_else(|| self.server().join("data"))
    }

    /// Replaces the empty data directory by the data of an earlier server.
    pub fn adopt(&self, kept: &Path) -> Result<(), ServerError> {
        let data = self.data();
        fs::remove_dir(&data).map_err(at(&data, "replace"))?;
        move_or_copy(kept, &data).map(|_| ()).map_err(at(&data, "put earlier data in"))
    }

    /// Returns the path of the log, which receives the server's output.
    pub fn log(&self) -> PathBuf {
        self.base.join("log")
    }

    /// Writes a new file that only the server's user may read.
    pub fn write(&self, name: &str, content: &str, user: Option<&User>) -> Result<(), ServerError> {
        let path = self.server().join(name);
        // The directory already belongs to the server: creating a new file, and changing the owner of the open file, follow no link of the server's.
        let write = || {
            let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(content.as_bytes())?;
            user.map_or(Ok(()), |user| fchown(&file, Some(user.uid), Some(user.gid)))
        };
        write().map_err(at(&path, "write"))
    }

    /// Records the process to be ended if loadline cannot end it itself.
    pub fn set_server(&mut self, server: Option<ProcessIdentity>) -> Result<(), ServerError> {
        self.owner.server = server;
        self.write_owner()
    }

    fn write_owner(&self) -> Result<(), ServerError> {
        self.owner.write(&self.base)
    }
}

/// A directory of this loadline that holds no server. Dropping it removes it; if loadline is killed, the next one removes it.
#[derive(Debug)]
pub struct OwnDirectory(PathBuf);

impl OwnDirectory {
    /// Makes a new directory below the root of private servers.
    ///
    /// # Errors
    /// When it cannot be made, or the root does not belong to this user.
    pub fn new() -> Result<Self, ServerError> {
        let root = root();
        prepare_root(&root)?;
        let directory = OwnDirectory(make_unique(&root)?.0);
        Owner::new(0).write(&directory.0)?;
        Ok(directory)
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        remove(&self.0, None);
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        remove(&self.base, self.owner.data.as_deref());
    }
}

impl Owner {
    fn new(stop_signal: i32) -> Owner {
        let pid = std::process::id();
        let loadline = ProcessIdentity::of(pid).unwrap_or(ProcessIdentity { pid, start_ticks: 0 });
        Owner { version: OWNER_VERSION, boot_id: boot_id(), loadline, server: None, stop_signal, data: None }
    }

    /// Writes the file under another name and renames it, so that it is never incomplete.
    fn write(&self, base: &Path) -> Result<(), ServerError> {
        let path = base.join(OWNER_FILE);
        let new = base.join("owner.new");
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from);
        text.and_then(|text| fs::write(&new, text)).and_then(|()| fs::rename(&new, &path)).map_err(at(&path, "write"))
    }

    /// Returns whether the loadline that made the directory is still running.
    fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && self.loadline.is_running()
    }

    /// Ends the server if it is still running: in order, or after ten seconds by force.
    fn end_server(&self) {
        let Some(server) = self.server.filter(|server| self.boot_id == boot_id() && server.is_running()) else {
            return;
        };
        let family = identities(server.pid);
        if [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT].contains(&self.stop_signal) {
            server.signal(self.stop_signal);
        }
        end_by_force(&family, Duration::from_secs(10));
    }
}

/// Ends the servers that a killed loadline left behind, and removes their directories. Only processes started by such a
/// loadline are ended: pid, start time and boot must agree. Returns how many directories were removed.
///
/// # Errors
/// When `root` exists but cannot be read or belongs to somebody else. A root that does not exist holds no orphans.
pub fn remove_orphans(root: &Path) -> Result<usize, ServerError> {
    if fs::symlink_metadata(root).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(0);
    }
    prepare_root(root)?;
    // A loadline that was killed while it used a disk of its own ends when that disk is unmounted; its directory may have to wait for the next start.
    let _ = remove_left_behind(root);
    let mut removed = 0;
    for entry in fs::read_dir(root).map_err(at(root, "read"))?.flatten() {
        let base = entry.path();
        match read_owner(&base) {
            Some(owner) if owner.is_alive() => continue,
            Some(owner) => {
                owner.end_server();
                // A disk in user space whose process has ended; one that cannot be unmounted stays for the next start.
                if remove_left_behind(&base).is_ok() {
                    remove(&base, owner.data.as_deref());
                }
            }
            None if is_being_made(&base) => continue,
            None => remove(&base, None),
        }
        removed += usize::from(!base.exists());
    }
    Ok(removed)
}

fn read_owner(base: &Path) -> Option<Owner> {
    let text = fs::read_to_string(base.join(OWNER_FILE)).ok()?;
    serde_json::from_str(&text).ok().filter(|owner: &Owner| owner.version == OWNER_VERSION)
}

fn is_being_made(base: &Path) -> bool {
    let modified = fs::symlink_metadata(base).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().unwrap_or_default() < BEING_MADE)
}

/// Removes a server's directory and its data elsewhere. The owner's file goes last, so that an interrupted removal is
/// resumed. What cannot be removed stays for the next start.
fn remove(base: &Path, data: Option<&Path>) {
    let id = base.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_its_own = |data: &&Path| data.file_name().is_some_and(|name| *name == *format!("{DATA_PREFIX}{id}"));
    if let Some(data) = data.filter(is_its_own) {
        let _ = fs::remove_dir_all(data);
    }
    if fs::remove_dir_all(base.join("server")).is_ok() || !base.join("server").exists() {
        let _ = fs::remove_dir_all(base);
    }
}

/// Makes the root, or checks that it is ours: anyone may write to the directory for temporary files.
fn prepare_root(root: &Path) -> Result<(), ServerError> {
    match fs::DirBuilder::new().mode(0o711).create(root) {
        Ok(()) => fs::set_permissions(root, fs::Permissions::from_mode(0o711)).map_err(at(root, "protect")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(root).map_err(at(root, "read"))?;
            if !metadata.is_dir() || metadata.uid() != own_uid() || metadata.mode() & 0o022 != 0 {
                return Err(ServerError::Foreign { root: root.to_owned() });
            }
            Ok(())
        }
        Err(error) => Err(at(root, "make")(error)),
    }
}

/// Makes a directory with a new name of six hexadecimal digits below the root.
fn make_unique(root: &Path) -> Result<(PathBuf, String), ServerError> {
    loop {
        let id = random_hex(3)?;
        let base = root.join(&id);
        match fs::DirBuilder::new().mode(0o711).create(&base) {
            Ok(()) => {
                fs::set_permissions(&base, fs::Permissions::from_mode(0o711)).map_err(at(&base, "protect"))?;
                return Ok((base, id));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(at(&base, "make")(error)),
        }
    }
}

/// Makes a directory that only the user may enter.
fn make(path: &Path, user: Option<&User>) -> Result<(), ServerError> {
    fs::DirBuilder::new().mode(0o700).create(path).map_err(at(path, "make"))?;
    user.map_or(Ok(()), |user| chown(path, Some(user.uid), Some(user.gid)).map_err(at(path, "give away")))
}

/// Returns random bytes from the kernel as text, two hexadecimal digits each.
pub(super) fn random_hex(bytes: usize) -> Result<String, ServerError> {
    let source = Path::new("/dev/urandom");
    let mut buffer = vec![0; bytes];
    fs::File::open(source).and_then(|mut file| file.read_exact(&mut buffer)).map_err(at(source, "read"))?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Turns an error of the operating system into one that names the path and the action.
pub(super) fn at(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> ServerError {
    let path = path.to_owned();
    move |source| ServerError::Path { path, action, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a root for one test only.
    fn test_root(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("loadline-test-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_directory_without_a_server_goes_with_its_owner_and_not_before() {
        let root = test_root("own");
        prepare_root(&root).unwrap();
        let make = |owner: Owner| {
            let base = make_unique(&root).unwrap().0;
            owner.write(&base).unwrap();
            fs::write(base.join("file"), "content").unwrap();
            base
        };
        let living = make(Owner::new(0));
        let dead = make(Owner { loadline: ProcessIdentity { pid: u32::MAX, start_ticks: 1 }, ..Owner::new(0) });
        assert_eq!(remove_orphans(&root).unwrap(), 1);
        assert!(living.join("file").exists() && !dead.exists());
        drop(OwnDirectory(living.clone()));
        assert!(!living.exists());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_directory_is_gone_when_its_value_is() {
        let root = test_root("gone");
        let elsewhere = test_root("elsewhere");
        fs::create_dir_all(&elsewhere).unwrap();
        let directory = PrivateDirectory::create(&root, Some(&elsewhere), None, libc::SIGTERM).unwrap();
        fs::write(directory.server().join("data/file"), "x").unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
        assert_eq!(remove_orphans(&root).unwrap(), 0, "its owner is alive");
        assert!(directory.server().exists());
        drop(directory);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        fs::remove_dir(&root).unwrap();
        fs::remove_dir(&elsewhere).unwrap();
    }

    #[test]
    fn a_process_that_got_the_pid_of_a_server_is_left_alone() {
        let root = test_root("reused");
        let mut directory = PrivateDirectory::create(&root, None, None, libc::SIGTERM).unwrap();
        let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let identity = ProcessIdentity::of(stranger.id()).unwrap();
        directory.owner.loadline.start_ticks += 1;
        directory.set_server(Some(ProcessIdentity { start_ticks: identity.start_ticks + 1, ..identity })).unwrap();
        assert_eq!(remove_orphans(&root).unwrap(), 1);
        assert!(identity.is_running(), "only its pid agreed");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        drop(directory);
        fs::remove_dir(&root).unwrap();
    }

    #[test]
    fn a_root_that_others_may_write_to_is_refused() {
        let root = test_root("foreign");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(remove_orphans(&root), Err(ServerError::Foreign { .. })));
        fs::remove_dir(&root).unwrap();
        symlink("/tmp", &root).unwrap();
        assert!(matches!(remove_orphans(&root), Err(ServerError::Foreign { .. })));
        fs::remove_file(&root).unwrap();
        assert_eq!(remove_orphans(&root).unwrap(), 0);
    }

    #[test]
    fn data_elsewhere_is_removed_only_under_its_own_name() {
        let root = test_root("own-name");
        let precious = test_root("precious");
        fs::create_dir_all(&precious).unwrap();
        let mut directory = PrivateDirectory::create(&root, None, None, libc::SIGTERM).unwrap();
        directory.owner.data = Some(precious.clone());
        drop(directory);
        assert!(precious.exists());
        fs::remove_dir(&precious).unwrap();
        fs::remove_dir(&root).unwrap();
    }
}
