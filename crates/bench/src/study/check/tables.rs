//! Checks of tables that are not one set for all clients: each client's own, and those that a recorder makes.

use super::Rules;
use crate::fault::{Fault, fault};
use crate::trial::Settings;

impl Rules<'_> {
    /// Checks both kinds: they are for clients that do nothing except write into them.
    pub(super) fn tables(&mut self) {
        let Settings { layout, recorder, .. } = self.settings;
        if layout.tables_per_client {
            self.only_writes(
                "per-client",
                "clients begin with empty tables of their own",
                "has tables of each client's own",
            );
        }
        if layout.tables_as_recorded {
            self.only_writes("recorder", "a recorder begins with empty tables", "writes what a recorder writes");
            if recorder.is_some() {
                let remedy = "the recorder in front of the database makes its tables itself, leave layout.tables out";
                let message = fault!("layout.tables is \"recorder\" and recorder.path is given"; "{remedy}");
                self.refuse(&["layout.tables", "recorder.path"], message);
            }
        }
    }

    fn only_writes(&mut self, tables: &str, begin: &str, does: &str) {
        let Settings { record, workload, background, .. } = self.settings;
        let why = match (workload.name.as_str(), background) {
            ("write", None) if workload.evolve_s.is_some() => {
                fault!("workload.evolve is given"; "take layout.tables = \"one\", or leave it out")
            }
            ("write", None) if record.rows == 0 && !record.existing => return,
            ("write", None) if record.existing => {
                fault!("record.existing is true"; "make the tables there yourself and name one, or leave it out")
            }
            ("write", None) => fault!("record.rows is {}", record.rows; "{begin}, leave it out"),
            ("write", Some(_)) => fault!("there is a [background]"; "leave one of them out"),
            (name, _) => fault!("workload.name is \"{name}\""; "only \"write\" {does}"),
        };
        let keys = ["layout.tables", "record.rows", "record.existing", "workload.name"];
        self.refuse(&keys, Fault { what: format!("layout.tables is \"{tables}\" and {}", why.what), ..why });
    }
}
