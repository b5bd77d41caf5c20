//! Erasure of violations, at somebody's request: the record and its image go. Main type: [`Erasing`].
//!
//! What stays is which camera and sequence it was, in `loadline_block`: a block that is sent again is known, and is not stored again.
//!
//! Invariant: an image goes only where no other record has the same one; it goes before its record, so that an erasure that was cut short can be
//! done again.

use std::fs::File;
use std::path::PathBuf;

use super::images::{open_lock, remove_kept};
use super::tables::Form;
use crate::database::{Database, DatabaseError, Session};
use crate::layout::RECORD_ID;
use crate::recorder::config::ImagesConfig;

/// Why nothing is erased, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// There is no such violation, and never was.
    #[error("there is no violation {0}")]
    Unknown(i64),
    /// The database does not do it.
    #[error("the database: {0}")]
    Database(#[from] DatabaseError),
    /// The image cannot be taken away.
    #[error("{}: {source}", path.display())]
    Image {
        /// The folder of the images.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
}

/// A violation as it is before it is erased, or after.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Erased {
    /// Its number.
    pub number: i64,
    /// The camera that sent it.
    pub camera: String,
    /// Its number among those of the camera.
    pub sequence: i64,
    /// Whether there was a record; there is none where it was erased before.
    pub had_record: bool,
    /// Whether there was an image that no other record has.
    pub had_image: bool,
    /// The hash of the image, where there is a record.
    #[serde(skip)]
    sha256: Option<String>,
}

/// A connection that erases.
pub struct Erasing<'a> {
    database: &'a dyn Database,
    session: Box<dyn Session>,
    form: Form,
    /// The folder of the images, and its lock; none where they are in the database.
    folder: Option<(PathBuf, File)>,
}

impl<'a> Erasing<'a> {
    /// Connects, and tells the database that what is deleted must be gone.
    ///
    /// # Errors
    /// Where the database does not answer, or there is no folder of images.
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

    /// The violation with this number.
    ///
    /// # Errors
    /// [`EraseError::Unknown`] where there never was one.
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

    /// Erases a violation: its image, and then its record. One that was erased before is left as it is.
    ///
    /// # Errors
    /// Where the database or the folder does not do it; it can be done again.
    pub fn erase(&mut self, mut found: Erased) -> Result<Erased, EraseError> {
        let Some(sha256) = found.sha256.clone() else { return Ok(found) };
        if let Some((path, lock)) = &self.folder {
            lock.lock().map_err(|source| EraseError::Image { path: path.clone(), source })?;
        }
        let erased = self.erase_locked(&mut found, &sha256);
        if let Some((_, lock)) = &self.folder {
            // It ends with this process at the latest.
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

    /// Has the database let go of what was deleted, as far as it can be told so.
    ///
    /// # Errors
    /// As the database answers.
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
