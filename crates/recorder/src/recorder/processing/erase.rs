//! Erasure of violations on request: the record and its image are removed. Main type: [`Erasing`].
//!
//! The camera and the sequence number stay in `loadline_block`: a block that is sent again is recognised, and is not stored again.
//!
//! Invariant: an image is removed only if no other record has the same one; it is removed before its record, so that an interrupted erasure can be
//! repeated.

use std::fs::File;
use std::path::PathBuf;

use super::images::{open_lock, remove_kept};
use super::tables::Form;
use crate::database::{Database, DatabaseError, Session};
use crate::layout::RECORD_ID;
use crate::recorder::config::ImagesConfig;

/// The reason why nothing, or not everything, is erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// No violation ever had this number.
    #[error("there is no violation {0}")]
    Unknown(i64),
    /// The database refuses or does not answer.
    #[error("the database: {0}")]
    Database(#[from] DatabaseError),
    /// The image cannot be removed.
    #[error("{}: {source}", path.display())]
    Image {
        /// The folder of the images.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A violation as [`Erasing`] finds it, or as it was erased.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Erased {
    /// The number of the violation.
    pub number: i64,
    /// The camera that sent it.
    pub camera: String,
    /// Its sequence number within the camera.
    pub sequence: i64,
    /// True if there was a record; false if it was erased before.
    pub had_record: bool,
    /// True if there was an image that no other record has.
    pub had_image: bool,
    /// The hash of the image; `None` without a record.
    #[serde(skip)]
    sha256: Option<String>,
}

/// A connection that erases.
pub struct Erasing<'a> {
    database: &'a dyn Database,
    session: Box<dyn Session>,
    form: Form,
    /// The folder of the images, and its lock; `None` if they are in the database.
    folder: Option<(PathBuf, File)>,
}

impl<'a> Erasing<'a> {
    /// Connects, and tells the database to remove deleted data from the disk.
    ///
    /// # Errors
    /// If the database does not answer, or the folder of the images is missing.
    pub fn open(database: &'a dyn Database, form: Form, images: &ImagesConfig) -> Result<Self, EraseError> {
        let folder = match images {
            ImagesConfig::Folder(path) => {
                let lock = open_lock(path).map_err(|source| EraseError::Image { path: path.clone(), source })?;
                Some((path.clone(), lock))
            }
            ImagesConfig::Database => None,
        };
        let mut erasing = Erasing { database, session: database.connect()?, form, folder };
        for sql in erasing.around().before {
            erasing.session.run(&sql)?;
        }
        Ok(erasing)
    }

    /// Finds the violation with this number.
    ///
    /// # Errors
    /// [`EraseError::Unknown`] if there never was one.
    pub fn find(&mut self, number: i64) -> Result<Erased, EraseError> {
        let (quoted, values) = (|name: &str| self.database.dialect().quote(name), self.form.tables_of_columns().0);
        let of_number = format!("WHERE {} = {number}", quoted(RECORD_ID));
        let (camera, sequence, image) = (quoted("camera"), quoted("sequence"), quoted("image_sha256"));
        let block = format!("SELECT {camera}, {sequence} FROM {} {of_number}", quoted("loadline_block"));
        let record = format!("SELECT {image} FROM {} {of_number}", quoted(values));
        let mut found = self.session.query(&block)?.into_iter().flatten().flatten();
        let (Some(camera), Some(sequence)) = (found.next(), found.next()) else {
            return Err(EraseError::Unknown(number));
        };
        let sha256 = self.session.query(&record)?.into_iter().flatten().flatten().next();
        let sequence = sequence.parse().unwrap_or_default();
        Ok(Erased { number, camera, sequence, had_record: sha256.is_some(), had_image: false, sha256 })
    }

    /// Erases a violation: its image first, and then its record. One that was erased before stays as it is.
    ///
    /// # Errors
    /// If the database or the folder fails; the erasure can be repeated.
    pub fn erase(&mut self, mut found: Erased) -> Result<Erased, EraseError> {
        let Some(sha256) = found.sha256.clone() else { return Ok(found) };
        if let Some((path, lock)) = &self.folder {
            lock.lock().map_err(|source| EraseError::Image { path: path.clone(), source })?;
        }
        let erased = self.erase_locked(&mut found, &sha256);
        if let Some((_, lock)) = &self.folder {
            // The lock ends with this process at the latest.
            let _ = lock.unlock();
        }
        erased.map(|()| found)
    }

    fn erase_locked(&mut self, found: &mut Erased, sha256: &str) -> Result<(), EraseError> {
        let (dialect, values) = (self.database.dialect(), self.form.tables_of_columns().0);
        let (values, number) = (dialect.quote(values), dialect.quote(RECORD_ID));
        let of_number = format!("WHERE {number} = {}", found.number);
        if let Some((path, _)) = &self.folder {
            let same = format!("{} = {}", dialect.quote("image_sha256"), dialect.literal(sha256));
            let others = format!("SELECT {number} FROM {values} WHERE {same} AND {number} <> {} LIMIT 1", found.number);
            if self.session.query(&others)?.is_empty() {
                let removed = remove_kept(path, sha256);
                found.had_image = removed.map_err(|source| EraseError::Image { path: path.clone(), source })?;
            }
        }
        let images = dialect.quote("violation_image");
        if self.folder.is_none() {
            let there = self.session.query(&format!("SELECT {number} FROM {images} {of_number}"))?;
            found.had_image = !there.is_empty();
        }
        self.session.run(&format!("DELETE FROM {images} {of_number}"))?;
        self.session.run(&format!("DELETE FROM {values} {of_number}"))?;
        Ok(())
    }

    /// Makes the database release the space of deleted data, as far as it supports that.
    ///
    /// # Errors
    /// The error of the database.
    pub fn finish(mut self) -> Result<(), EraseError> {
        for sql in self.around().after {
            self.session.run_change(&sql)?;
        }
        Ok(())
    }

    fn around(&self) -> crate::database::dialect::Erasing {
        let tables = [self.form.tables_of_columns().0, "violation_image"];
        self.database.dialect().erasing(&tables)
    }
}
