//! What is measured in a trial beside its operations. Main types: [`Instrument`], and [`Beginning`] and [`Ending`], which it is given.

use crate::database::Target;
use crate::measurement::Measurement;
use crate::trial::Settings;
use crate::workload::Work;

use crate::runner::stage::Current;

/// Measures something in one trial. Whatever it does within the measured phase is not on the load's own threads.
pub(in crate::runner) trait Instrument {
    /// The measured phase begins.
    fn measure(&mut self) {}

    /// The measured phase is over, and whatever was under way is answered or given up.
    fn drained(&mut self) {}

    /// Puts what was seen into the measurement, and why it is not to be trusted, if that is so.
    ///
    /// # Errors
    /// When the trial cannot have been carried out as the study says.
    fn tell(self: Box<Self>, ending: &Ending<'_>, measurement: &mut Measurement) -> anyhow::Result<()>;
}

/// How an instrument is begun, when everything is connected and nothing is sent yet; none where the study does not ask for it.
pub(in crate::runner) type Begin = fn(&Beginning<'_>) -> anyhow::Result<Option<Box<dyn Instrument>>>;

/// A trial that is about to be driven.
pub(in crate::runner) struct Beginning<'a> {
    pub settings: &'a Settings,
    pub work: &'a Work,
    /// What the load is sent to.
    pub target: &'a dyn Target,
    pub current: &'a Current,
}

/// A trial that was driven.
pub(in crate::runner) struct Ending<'a> {
    pub settings: &'a Settings,
    pub work: &'a Work,
    pub current: &'a Current,
    /// Records that were counted in the tables; none where nobody counted.
    pub found: Option<u64>,
}
