//! The place of images: a folder, named by their content, or the database; encrypted, if there is a key for that. Main type: [`Images`].
//!
//! The folder: `<two digits>/<SHA-256>.jpg`, or `.jpg.age` if the image is encrypted (the hash is that of the image itself), and `new/` for images
//! that are not durable yet. An image gets its name after its content is synced, and its name is synced before anything refers to it. An existing name
//! has the right content: it cannot be another image's. `lock` is held, shared, from the naming of images until their records are committed: a process
//! that holds it exclusively sees the records of all images that have names.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::keys::read_key;
use crate::block::age::{self, Identity, Recipient};
use crate::recorder::config::{ImagesConfig, ProcessingConfig};

/// The most images that are synced at a time.
const SYNCS_MAX: usize = 8;

/// The first bytes of an encrypted image; a JPEG never begins so.
const ENCRYPTED: &[u8] = b"age-encryption.org/v1\n";

/// The place of images, and the key to which they are encrypted.
#[derive(Debug)]
pub(super) struct Images {
    /// The folder; `None` if images go to the database.
    folder: Option<Folder>,
    recipient: Option<Recipient>,
}

/// A folder of images.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    next: AtomicU64,
    lock: File,
}

/// While this is held, no process erases an image that has got its name.
#[derive(Debug)]
pub(super) struct Naming<'a> {
    lock: Option<&'a File>,
}

/// An image that is not durable yet, and is removed on drop.
#[derive(Debug)]
pub(super) enum Image {
    /// A file in the folder, without its final name.
    File { file: File, path: PathBuf },
    /// Bytes that are written with the record.
    Bytes(Vec<u8>),
}

/// The reason why images cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageError {
    /// It may succeed later.
    Wait(String),
    /// A sync failed: it is not known what is on the disk.
    Broken(String),
}

/// Returns the path of an image in a folder.
pub fn image_path(folder: &Path, sha256: &str) -> PathBuf {
    folder.join(sha256.get(..2).unwrap_or_default()).join(format!("{sha256}.jpg"))
}

/// Returns the path of an encrypted image in a folder.
pub fn encrypted_image_path(folder: &Path, sha256: &str) -> PathBuf {
    image_path(folder, sha256).with_extension("jpg.age")
}

/// Reads an image from a folder as it is kept there: plain or encrypted.
pub(in crate::recorder) fn read_kept(folder: &Path, sha256: &str) -> std::io::Result<Vec<u8>> {
    match std::fs::read(image_path(folder, sha256)) {
        Err(error) if error.kind() == ErrorKind::NotFound => std::fs::read(encrypted_image_path(folder, sha256)),
        read => read,
    }
}

/// Returns the plain image from a kept one; an image that is not encrypted needs no key.
pub(in crate::recorder) fn decrypted(mut kept: Vec<u8>, identities: &[Identity]) -> Result<Vec<u8>, String> {
    if kept.starts_with(ENCRYPTED) {
        if identities.is_empty() {
            return Err("it is encrypted; name the file of its key in office.images_identity".to_owned());
        }
        let begin = age::decrypt_in_place(&mut kept, 0, identities).map_err(|error| error.to_string())?;
        kept.drain(..begin);
    }
    Ok(kept)
}

/// Removes the image with this hash from a folder, encrypted or not; returns whether there was one. On return the removal survives a crash.
pub(super) fn remove_kept(folder: &Path, sha256: &str) -> std::io::Result<bool> {
    let mut was_there = false;
    for path in [image_path(folder, sha256), encrypted_image_path(folder, sha256)] {
        match std::fs::remove_file(&path) {
            Ok(()) => was_there = true,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        if let Some(directory) = path.parent() {
            File::open(directory)?.sync_all()?;
        }
    }
    Ok(was_there)
}

/// Opens the file that is locked while images get their names, and while they are erased.
pub(super) fn open_lock(folder: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(folder.join("lock"))
}

fn read_recipient(path: &Path) -> Result<Recipient, String> {
    read_key("processing.images_recipient", path, |text| Recipient::parse(text.trim()))
}

impl Images {
    /// Creates the folders; files that an earlier process left without a name are removed.
    pub(super) fn open(settings: &ProcessingConfig) -> Result<Self, String> {
        let recipient = settings.images_recipient.as_deref().map(read_recipient).transpose()?;
        let ImagesConfig::Folder(path) = &settings.images else { return Ok(Images { folder: None, recipient }) };
        let wrong = |error: std::io::Error| format!("processing.images: {}: {error}", path.display());
        let new = path.join("new");
        std::fs::create_dir_all(&new).map_err(wrong)?;
        for entry in std::fs::read_dir(&new).map_err(wrong)? {
            std::fs::remove_file(entry.map_err(wrong)?.path()).map_err(wrong)?;
        }
        let lock = open_lock(path).map_err(wrong)?;
        Ok(Images { folder: Some(Folder { path: path.clone(), next: AtomicU64::new(0), lock }), recipient })
    }

    /// Accepts an image; it is not durable yet.
    pub(super) fn take(&self, image: &[u8]) -> Result<Image, ImageError> {
        let encrypt = |recipient| age::encrypt(image, recipient).map_err(|error| ImageError::Wait(error.to_string()));
        let encrypted = self.recipient.as_ref().map(encrypt).transpose()?;
        let bytes = encrypted.as_deref().unwrap_or(image);
        let Some(folder) = &self.folder else { return Ok(Image::Bytes(bytes.to_vec())) };
        let path = folder.path.join("new").join(folder.next.fetch_add(1, Ordering::Relaxed).to_string());
        let file = File::options().create_new(true).write(true).open(&path).map_err(|error| wait(&path, &error))?;
        // Dropped below if it cannot be written whole.
        let mut image = Image::File { file, path };
        if let Image::File { file, path } = &mut image {
            file.write_all(bytes).map_err(|error| wait(path, &error))?;
            // Writing begins now; the sync that follows finds little left to do. Whether it begins does not matter.
            // SAFETY: the descriptor is open as long as the file is.
            let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
        }
        Ok(image)
    }

    /// Makes images durable under their names, all together. The result must be held until their records are committed.
    pub(super) fn keep<'a>(
        &self,
        images: impl Iterator<Item = (&'a Image, &'a str)>,
    ) -> Result<Naming<'_>, ImageError> {
        let Some(folder) = &self.folder else { return Ok(Naming { lock: None }) };
        let file = |(image, sha256): (&'a Image, &'a str)| match image {
            Image::File { file, path } => Some((file, path, sha256)),
            Image::Bytes(_) => None,
        };
        let files: Vec<(&File, &PathBuf, &str)> = images.filter_map(file).collect();
        sync_all(&files)?;
        folder.lock.lock_shared().map_err(|error| wait(&folder.path.join("lock"), &error))?;
        let naming = Naming { lock: Some(&folder.lock) };
        let mut touched = BTreeSet::new();
        for (_, path, sha256) in files {
            let name = match &self.recipient {
                Some(_) => encrypted_image_path(&folder.path, sha256),
                None => image_path(&folder.path, sha256),
            };
            let directory = name.parent().unwrap_or(&folder.path).to_owned();
            if !directory.is_dir() {
                std::fs::create_dir_all(&directory).map_err(|error| wait(&directory, &error))?;
                touched.insert(folder.path.clone());
            }
            std::fs::rename(path, &name).map_err(|error| wait(&name, &error))?;
            touched.insert(directory);
        }
        for directory in touched {
            let synced = File::open(&directory).and_then(|opened| opened.sync_all());
            synced.map_err(|error| broken(&directory, &error))?;
        }
        Ok(naming)
    }
}

impl Drop for Naming<'_> {
    fn drop(&mut self) {
        // The lock ends with the process at the latest.
        let _ = self.lock.map(File::unlock);
    }
}

/// Syncs files, several at a time: the disk completes syncs together that wait at the same time.
fn sync_all(files: &[(&File, &PathBuf, &str)]) -> Result<(), ImageError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), ImageError> {
        while let Some((file, path, _)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            file.sync_data().map_err(|error| broken(path, &error))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others = SYNCS_MAX.min(files.len()).saturating_sub(1);
        // If the system gives no thread, the other threads do its work.
        let begin = |_| std::thread::Builder::new().name("syncing".to_owned()).spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (0..others).filter_map(begin).collect();
        let own = work();
        // It is not known what a thread that panicked has synced.
        let lost = |_| Err(ImageError::Broken("a thread that syncs images panicked".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).fold(own, Result::and)
    })
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Image::File { path, .. } = self {
            // Once the file has its name there is nothing here any more.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn wait(path: &Path, error: &std::io::Error) -> ImageError {
    let full = if error.kind() == ErrorKind::StorageFull { " (make room)" } else { "" };
    ImageError::Wait(format!("{}: {error}{full}", path.display()))
}

fn broken(path: &Path, error: &std::io::Error) -> ImageError {
    ImageError::Broken(format!("{} cannot be synced: {error}", path.display()))
}
