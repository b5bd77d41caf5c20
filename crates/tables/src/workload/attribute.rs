//! The meaning of `workload.attribute`, the value column that `select` reads and `update` sets, as [`Fields`].

use crate::operation::Fields;
use crate::record::RecordType;
use crate::trial::Settings;

/// Returns the fields that `select` reads: the attribute, or all columns if none is named.
///
/// # Errors
/// A sentence that lists the existing columns.
pub(super) fn selected(settings: &Settings, record_type: &RecordType) -> Result<Fields, String> {
    Ok(named(settings, record_type)?.unwrap_or(Fields::All))
}

/// Returns the field that `update` sets: the attribute or, if none is named, the first hot value column, or the first column if none is hot.
///
/// # Errors
/// As for [`selected`].
pub(super) fn updated(settings: &Settings, record_type: &RecordType) -> Result<Fields, String> {
    let first = || record_type.values.iter().position(|column| column.hot).unwrap_or(0);
    Ok(named(settings, record_type)?.unwrap_or_else(|| Fields::One(first() as u16)))
}

fn named(settings: &Settings, record_type: &RecordType) -> Result<Option<Fields>, String> {
    let Some(name) = settings.workload.attribute.as_deref() else { return Ok(None) };
    let place = record_type.values.iter().position(|column| column.name == name);
    place.map(|place| Some(Fields::One(place as u16))).ok_or_else(|| {
        let names: Vec<_> = record_type.values.iter().map(|column| column.name.as_str()).collect();
        format!(
            "workload.attribute is \"{name}\", which is no value column of record type \"{}\"; there are {}",
            record_type.name,
            names.join(", ")
        )
    })
}
