//! Measurements in a trial besides its operations. Main types: [`Instrument`], and its inputs [`Beginning`] and [`Ending`].

use crate::database::Target;
use crate::measurement::Measurement;
use crate::trial::Settings;
use crate::workload::Work;

use crate::runner::stage::Current;

/// Measures something in one trial. Its work within the measured phase is never on the load's own threads.
pub(in crate::runner) trait Instrument {
    /// Is called when the measured phase begins.
    fn measure(&mut self) {}

    /// Is called when the measured phase is over and all operations are answered or given up.
    fn drained(&mut self) {}

    /// Puts the observations into the measurement, with the reason if they make it invalid.
    ///
    /// # Errors
    /// Fails if the trial cannot have been carried out as the study says.
    fn tell(self: Box<Self>, ending: &Ending<'_>, measurement: &mut Measurement) -> anyhow::Result<()>;
}

/// Starts an instrument after everything is connected and before anything is sent; `None` if the study does not ask for it.
pub(in crate::runner) type Begin = fn(&Beginning<'_>) -> anyhow::Result<Option<Box<dyn Instrument>>>;

/// The input of an instrument at the start: a trial that is about to be driven.
pub(in crate::runner) struct Beginning<'a> {
    pub settings: &'a Settings,
    pub work: &'a Work,
    /// The target that the load is sent to.
    pub target: &'a dyn Target,
    pub current: &'a Current,
}

/// The input of an instrument at the end: a trial that was driven.
pub(in crate::runner) struct Ending<'a> {
    pub settings: &'a Settings,
    pub work: &'a Work,
    pub current: &'a Current,
    /// Number of records counted in the tables; `None` if they were not counted.
    pub found: Option<u64>,
}
