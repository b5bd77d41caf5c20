//! A run that is read again: what is said of its files, and what that means for the exit status.

use std::path::Path;

use super::output::note;
use super::{Failure, Status};
use crate::store::Run;

/// Reads a run, and says what a reader should know about its files.
///
/// # Errors
/// [`Failure::Usage`] when it is no run.
pub fn open_run(path: &Path) -> Result<Run, Failure> {
    let run = Run::open(path).map_err(Failure::usage)?;
    told(&run);
    Ok(run)
}

/// Says what a reader should know about the files of a run.
pub fn told(run: &Run) {
    run.notes.iter().for_each(|line| note(&format!("note: {line}")));
    run.left_out.iter().for_each(|line| note(&format!("warning: {line}")));
}

/// What is left of a run from which trials had to be left out is not what was measured.
pub fn status_of_files(run: &Run) -> Status {
    if run.left_out.is_empty() { Status::Valid } else { Status::Invalid }
}
