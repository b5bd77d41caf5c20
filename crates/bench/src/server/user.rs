//! The user that a server runs as, and the directories that this user may enter.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A user of this machine with its main group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// Returns the user id that loadline runs with.
pub(super) fn own_uid() -> u32 {
    // SAFETY: geteuid has no conditions.
    unsafe { libc::geteuid() }
}

/// Makes files and directories that this process creates from here on accessible to its user alone.
pub fn keep_files_private() {
    // SAFETY: umask has no conditions and cannot fail.
    unsafe { libc::umask(0o077) };
}

impl User {
    /// Returns the first of these users that exists.
    pub fn first_of(names: &[&str]) -> Option<User> {
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        names.iter().find_map(|name| find(&accounts, name))
    }

    /// Returns the first directory on the way to `path`, itself included, that the user may not enter; `None` if it may enter all.
    pub fn barred_by(&self, path: &Path) -> Option<PathBuf> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let way: Vec<_> = path.ancestors().collect();
        way.into_iter().rev().find(|directory| !self.may_enter(directory)).map(Path::to_owned)
    }

    /// Decides by the classic permissions. Access lists may be more generous; the caller then errs on the safe side.
    fn may_enter(&self, directory: &Path) -> bool {
        let Ok(metadata) = directory.metadata() else { return false };
        let mode = metadata.mode();
        let bit = match (metadata.uid() == self.uid, metadata.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        mode & bit != 0
    }
}

/// Finds a user by name in the text of `/etc/passwd`.
fn find(accounts: &str, name: &str) -> Option<User> {
    let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { name: name.to_owned(), uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\nmysqlx:x:7:8::/:/bin/false\nmysql:x:102:105:MySQL,,,:/nonexistent:/bin/false\n";

    #[test]
    fn users_are_found_by_their_whole_name() {
        let user = find(ACCOUNTS, "mysql").unwrap();
        assert_eq!((user.uid, user.gid), (102, 105));
        assert_eq!(find(ACCOUNTS, "postgres"), None);
        assert!(User::first_of(&["no such user", "root"]).is_some_and(|user| user.uid == 0));
    }

    #[test]
    fn a_directory_that_may_not_be_entered_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let base = std::env::temp_dir().join(format!("loadline-barred-{}", std::process::id()));
        std::fs::create_dir_all(base.join("inner")).unwrap();
        let stranger = User { name: "stranger".to_owned(), uid: 987_654, gid: 987_654 };
        std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(base.join("inner"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(stranger.barred_by(&base.join("inner")), None);
        std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(stranger.barred_by(&base.join("inner")), Some(base.canonicalize().unwrap()));
        std::fs::remove_dir_all(&base).unwrap();
    }
}
