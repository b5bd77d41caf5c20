//! Where images are kept: in a folder, named by what is in them, or in the database. Main type: [`Images`].
//!
//! The folder: `<two digits>/<SHA-256>.jpg`, and `new/` for what is not durable yet. An image gets its name after its content is synced, and its
//! name is synced before anything refers to it. A name that is there has the right content: it cannot be another's.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::recorder::config::ImagesConfig;

/// Images that are synced at a time.
const SYNCS_MAX: usize = 8;

/// Where images go.
#[derive(Debug)]
pub(super) enum Images {
    Folder(Folder),
    Database,
}

/// A folder of images.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    next: AtomicU64,
}

/// An image on its way: not durable, and gone when this is dropped.
#[derive(Debug)]
pub(super) enum Image {
    /// In the folder, without its name.
    File { file: File, path: PathBuf },
    /// To be written with the record.
    Bytes(Vec<u8>),
}

/// Why images cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageError {
    /// It may go better later.
    Wait(String),
    /// A sync failed: nothing is known of what is on the disk.
    Broken(String),
}

/// The place of an image in a folder.
pub fn image_path(folder: &Path, sha256: &str) -> PathBuf {
    folder.join(sha256.get(..2).unwrap_or_default()).join(format!("{sha256}.jpg"))
}

impl Images {
    /// Makes what there must be; what an earlier process left without a name is removed.
    pub(super) fn open(config: &ImagesConfig) -> Result<Self, String> {
        let ImagesConfig::Folder(path) = config else { return Ok(Images::Database) };
        let wrong = |error: std::io::Error| format!("processing.images: {}: {error}", path.display());
        let new = path.join("new");
        std::fs::create_dir_all(&new).map_err(wrong)?;
        for entry in std::fs::read_dir(&new).map_err(wrong)? {
            std::fs::remove_file(entry.map_err(wrong)?.path()).map_err(wrong)?;
        }
        Ok(Images::Folder(Folder { path: path.clone(), next: AtomicU64::new(0) }))
    }

    /// Takes an image; it is not durable yet.
    pub(super) fn take(&self, bytes: &[u8]) -> Result<Image, ImageError> {
        let Images::Folder(folder) = self else { return Ok(Image::Bytes(bytes.to_vec())) };
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

    /// Makes images durable under their names, all together.
    pub(super) fn keep<'a>(&self, images: impl Iterator<Item = (&'a Image, &'a str)>) -> Result<(), ImageError> {
        let Images::Folder(folder) = self else { return Ok(()) };
        let file = |(image, sha256): (&'a Image, &'a str)| match image {
            Image::File { file, path } => Some((file, path, sha256)),
            Image::Bytes(_) => None,
        };
        let files: Vec<(&File, &PathBuf, &str)> = images.filter_map(file).collect();
        sync_all(&files)?;
        let mut touched = BTreeSet::new();
        for (_, path, sha256) in files {
            let name = image_path(&folder.path, sha256);
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
        Ok(())
    }
}

/// Syncs files, several at a time: each wait is for the disk, which takes them together.
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
        let threads: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let own = work();
        // Nothing is known of what a thread that panicked has synced.
        let lost = |_| Err(ImageError::Broken("a thread that syncs images panicked".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).fold(own, Result::and)
    })
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Image::File { path, .. } = self {
            // When it has its name there is nothing here any more.
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
