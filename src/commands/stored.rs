//! Reads a stored run again: the notes on its files, and their effect on the exit status.

use std::path::Path;

use super::output::note;
use super::{Failure, Status};
use crate::store::Run;

/// Reads a run and prints the notes on its files.
///
/// # Errors
/// [`Failure::Usage`] if it is no run.
pub fn open_run(path: &Path) -> Result<Run, Failure> {
    let run = Run::open(path).map_err(Failure::usage)?;
    told(&run);
    Ok(run)
}

/// Prints the notes on the files of a run.
pub fn told(run: &Run) {
    run.notes.iter().for_each(|line| note(&format!("note: {line}")));
    run.left_out.iter().for_each(|line| note(&format!("warning: {line}")));
}

/// Returns the status of a run's files: a run from which trials had to be left out does not show everything that was measured.
pub fn status_of_files(run: &Run) -> Status {
    if run.left_out.is_empty() { Status::Valid } else { Status::Invalid }
}
