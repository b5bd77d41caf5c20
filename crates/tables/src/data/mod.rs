//! Record types, and the generation of their records. [`build`] turns `[record]` into a [`Generator`]; [`Filler`] makes single
//! values, for the columns of custom records and for the parameters of SQL statements.
//!
//! Invariant: every value is a pure function of (seed, index, column), so any client can make any slice of the data, in any
//! order, without asking another. Exceptions: times around the present one depend on the present, and [`Parameters`] on answers of a database.

mod custom;
mod filler;
mod parameters;
mod qos;
mod qos_direction;
mod runs;
mod sensor;
mod series;
mod shuffle;
pub mod skew;
mod timeline;
mod usertable;
pub mod violation;
mod wisconsin;
mod wisconsin_permutation;
mod zipf;

use std::sync::Arc;

use crate::record::Generator;
use crate::trial::RecordSettings;

pub use filler::Filler;
pub use parameters::Parameters;
pub use sensor::sensor_record_bytes;
pub use series::{SOURCE_ID, TIME_NS};
pub(crate) use timeline::Timeline;
pub use usertable::key_hash;
pub use wisconsin_permutation::PERMUTATIONS;

/// A record type that studies can name.
pub struct Entry {
    /// Name in `record.type`.
    pub name: &'static str,
    /// One line for `loadline list records`.
    pub summary: &'static str,
    /// Makes the generator.
    pub build: fn(&RecordSettings) -> Result<Arc<dyn Generator>, String>,
}

/// All record types, the default first. A new one takes a file and a line here.
pub static REGISTRY: &[&Entry] =
    &[&qos::QOS, &wisconsin::WISCONSIN, &usertable::USERTABLE, &sensor::SENSOR, &violation::VIOLATION, &custom::CUSTOM];

/// Returns the registry entry with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name)
}

/// Makes the generator of the records that the settings describe.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
pub fn build(settings: &RecordSettings) -> Result<Arc<dyn Generator>, String> {
    if settings.per_measurement == 0 {
        return Err("record.per_measurement is 0; a measurement has at least 1 record".to_owned());
    }
    if !settings.runs.is_empty() && settings.type_name != qos::QOS.name {
        let type_name = &settings.type_name;
        return Err(format!("record.runs is for the record type qos and record.type is \"{type_name}\"; leave it out"));
    }
    match find(&settings.type_name) {
        Some(entry) => match &settings.series {
            Some(series) => series::with_sources(settings, series, entry.build),
            None => (entry.build)(settings),
        },
        None => {
            let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
            Err(format!("unknown record.type \"{}\"; there are {}", settings.type_name, names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_record_type_is_refused_with_those_that_exist() {
        let settings = RecordSettings { type_name: "qoz".to_owned(), per_measurement: 1, ..RecordSettings::default() };
        let error = build(&settings).err().unwrap();
        assert_eq!(
            error,
            "unknown record.type \"qoz\"; there are qos, wisconsin, usertable, sensor, violation, custom"
        );
    }
}
