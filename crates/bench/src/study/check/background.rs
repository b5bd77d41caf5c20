//! Checks of a background load.

use super::Rules;
use crate::fault::fault;
use crate::trial::Length;

impl Rules<'_> {
    /// Checks the background load: it lasts as long as the other load, whose length must therefore be a time.
    pub(super) fn background(&mut self) {
        let Some(background) = &self.settings.background else { return };
        if self.root.find("background.rate").is_none() {
            let remedy = "write how many operations arrive per second, as in rate = 500";
            self.refuse(&["background.rate"], fault!("background.rate is missing"; "{remedy}"));
        }
        if !matches!(self.settings.load.length, Length::Seconds(_)) {
            let remedy = "state how long the trial is, as in duration = \"10s\"";
            let counts = ["load.operations", "load.operations_per_client"];
            self.refuse(
                &counts,
                fault!("[background] goes with load.duration and not with a number of operations"; "{remedy}"),
            );
        }
        if background.workload != "write" && self.settings.record.rows == 0 {
            let name = &background.workload;
            let remedy = "set the number of rows that are there, as in rows = 100000";
            let keys = ["background.workload", "record.rows"];
            self.refuse(&keys, fault!("background.workload is \"{name}\" and record.rows is 0"; "{remedy}"));
        }
    }
}
