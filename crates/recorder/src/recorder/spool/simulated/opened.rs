//! Opens a spool on simulated disks with a simulated clock: the part of [`SpoolFile`] for simulations.

use std::sync::Arc;
use std::time::Duration;

use loadline_segments::segments::Disk;

use crate::recorder::clock::SharedClock;
use crate::recorder::spool::{SpoolError, SpoolFile, replay};

impl SpoolFile {
    /// As [`SpoolFile::open`], on two disks and with a clock of the caller's.
    ///
    /// # Errors
    /// As [`SpoolFile::open`].
    pub fn open_on(
        entries: Arc<dyn Disk>,
        lasting: Arc<dyn Disk>,
        bound_bytes: u64,
        remember: Duration,
        clock: &SharedClock,
    ) -> Result<Self, SpoolError> {
        let unusable = |reason: String| SpoolError::Unusable { path: "simulated".to_owned(), reason };
        replay::open_on((entries, lasting), bound_bytes, remember, clock, &unusable)
    }
}
