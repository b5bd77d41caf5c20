//! What InfluxDB says of its points: [`RULES`].

use crate::database::DatabaseError;
use crate::database::points::shape::Rules;

/// The time of the point that says that a measurement was made as a table.
pub(super) const MADE_NS: i64 = -1;

/// Times are nanoseconds; the two least ones and the largest one mean something else.
pub(super) static RULES: Rules = Rules {
    name: "influxdb",
    store: "InfluxDB",
    unit_ns: 1,
    between: "a time that is no whole nanosecond",
    first: 0,
    label: None,
    times: i64::MIN + 2..=i64::MAX - 1,
    refuses: |_, _| None,
};

pub(super) fn refused(why: &str) -> DatabaseError {
    RULES.refused(why)
}
