//! Questions about sources and times, as far as they are answered exactly. Main function: [`ask`].
//!
//! Of figures over groups, FerretDB 1.24 computes sums and counts alone, and of two in the same command the second one is 0. Figures are therefore asked only where one sum is all that is wanted.

use super::bson;
use super::find::{Answers, Find};
use super::shape::{Field, Place, Shape, Test, refused};
use crate::database::DatabaseError;
use crate::question::{Ask, Figure};
use crate::record::ColumnKind;
use crate::statement::{Asking, ColumnRef, Comparison, Limit, SourceIndex};

/// Returns the command for a question.
///
/// # Errors
/// [`DatabaseError::Refused`] for a question that is not answered exactly.
pub(super) fn ask(shape: &Shape<'_>, asking: &Asking) -> Result<Find, DatabaseError> {
    if !asking.joins.is_empty() || asking.least_time.is_some() {
        return Err(refused("it answers questions where a document is one reading, with its source and time"));
    }
    if asking.source_index == SourceIndex::KeyBySource {
        return Err(refused(
            "documents are kept by their number, and not by source and time; take another layout.time_index",
        ));
    }
    let (source, time) = (shape.field(&asking.source.column)?, shape.field(&asking.time.column)?);
    let columns = asking.columns.iter().map(|(column, _)| shape.field(&column.column));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let tests = tests_of(asking);
    let read: Vec<Field> =
        asking.all_sources.then(|| source.clone()).into_iter().chain([time]).chain(columns.clone()).collect();
    let by = |falls: bool| (asking.time.column.clone(), falls);
    match asking.ask {
        Ask::Range | Ask::Above => {
            let by_source = asking.all_sources.then(|| (asking.source.column.clone(), false));
            let order: Vec<_> = [by(false)].into_iter().chain(by_source).collect();
            Find::documents(shape, &tests, read, &order, None)
        }
        Ask::Newest if !asking.all_sources => Find::documents(shape, &tests, read, &[by(true)], Some(Limit::Fixed(1))),
        Ask::Top if asking.by == Figure::Sum => {
            let column = columns.first().ok_or_else(|| refused("a question without a column has no figures"))?;
            if column.kind != ColumnKind::Float64 {
                return Err(refused("it ranks sources by sums of floating-point numbers, and by nothing else"));
            }
            let (Place::Own(source_name), Place::Own(name)) = (&source.place, &column.place) else {
                return Err(refused("it ranks sources where neither they nor the figures are in the key"));
            };
            let stages = stages(source_name, name, asking.most);
            let sum = Field { place: Place::Own(SUM.to_owned()), kind: ColumnKind::Float64 };
            let columns = vec![Field { place: Place::Group, kind: source.kind }, sum];
            let found = Find::documents(shape, &tests, columns, &[], Some(Limit::Fixed(asking.most)))?;
            Ok(Find { answers: Answers::Groups(stages), ..found })
        }
        Ask::Newest => Err(refused("it finds the newest reading of one source at a time; leave all_sources out")),
        Ask::Top => Err(refused("FerretDB computes sums of groups and no other figures; write by = \"sum\"")),
        Ask::Aggregate | Ask::Buckets => {
            Err(refused("FerretDB computes one sum for a group, and no means, least or largest values"))
        }
    }
}

/// The name of the sum in a group.
const SUM: &str = "sum";

/// Returns the conditions of a question.
fn tests_of(asking: &Asking) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut test = |column: &ColumnRef, comparison| {
        let place = tests.len();
        tests.push(Test { column: column.column.clone(), comparison, place });
    };
    if !asking.all_sources {
        test(&asking.source, Comparison::Equal);
    }
    if asking.has_span {
        test(&asking.time, Comparison::GreaterOrEqual);
        test(&asking.time, Comparison::Less);
    }
    if let (Ask::Above, Some((column, _))) = (asking.ask, asking.columns.first()) {
        test(column, Comparison::Greater);
    }
    tests
}

/// Returns the stages behind the filter that rank sources by the sum of a member.
fn stages(source: &str, column: &str, most: u64) -> Vec<u8> {
    let mut out = Vec::new();
    bson::document("1", &mut out, |out| {
        bson::document("$group", out, |out| {
            bson::text("_id", format!("${source}").as_bytes(), out);
            bson::document(SUM, out, |out| bson::text("$sum", format!("${column}").as_bytes(), out));
        });
    });
    bson::document("2", &mut out, |out| bson::document("$sort", out, |out| bson::int32(SUM, -1, out)));
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    bson::document("3", &mut out, |out| bson::int64("$limit", most, out));
    out
}
