//! Checks of a rate that changes within a trial.

use super::Rules;
use crate::fault::fault;
use crate::trial::{Arrivals, Length};

impl Rules<'_> {
    /// Checks the profile: it needs a rate, and a length over which it can be stretched.
    pub(super) fn profile(&mut self) {
        let load = &self.settings.load;
        if !matches!(load.arrivals, Arrivals::Poisson | Arrivals::Constant) {
            let remedy = "write arrivals = \"poisson\" or \"constant\", or leave it out";
            self.refuse(
                &["load.profile", "load.arrivals"],
                fault!("load.profile is given and operations do not arrive at a rate"; "{remedy}"),
            );
        } else if !matches!(load.length, Length::Seconds(_)) {
            let remedy = "write load.duration instead";
            self.refuse(
                &["load.profile", "load.operations", "load.operations_per_client"],
                fault!("load.profile is stretched over the duration and a number of operations ends the trial"; "{remedy}"),
            );
        } else if self.root.get("goal").is_some() {
            let remedy =
                "give the mean rates as a factor, as in \"load.rate\" = [1000, 2000], or leave one of them out";
            self.refuse(
                &["load.profile"],
                fault!("load.profile and [goal] are given: the search makes trials longer or shorter, and with them the peaks"; "{remedy}"),
            );
        }
    }
}
