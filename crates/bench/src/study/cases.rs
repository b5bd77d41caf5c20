//! Every combination of the factors' levels, resolved and checked like the base.
//!
//! Main function: [`make_cases`]. Invariant: the first factor varies slowest, and no two cases have the same
//! settings.

use std::collections::BTreeMap;

use super::LeftOut;
use super::check::check;
use super::names::Names;
use super::settings::read_settings;
use super::unchecked::Unchecked;
use crate::fault::fault;
use crate::trial::{Case, Levels};
use crate::written::place::{Errors, Place};

/// Maximum number of combinations; more are taken for a mistake.
const CASES_MAX: usize = 10_000;

/// Makes all cases; without factors the base alone. Empty if there are too many, which is an error. With
/// `where_possible`, the cases that cannot be carried out here are returned separately.
pub fn make_cases(
    unchecked: &Unchecked,
    names: &Names,
    where_possible: bool,
    errors: &mut Errors,
) -> (Vec<Case>, Vec<LeftOut>) {
    let count = unchecked.factors.iter().fold(1_usize, |count, factor| count.saturating_mul(factor.levels.len()));
    if count > CASES_MAX {
        let place = unchecked.factors.last().map_or(Place::Line(1), |factor| factor.place);
        errors.push(place, fault!("the factors make {count} cases"; "at most {CASES_MAX} are possible, remove levels"));
        return Default::default();
    }
    let mut left_out: Vec<LeftOut> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut cases = Vec::with_capacity(count);
    for number in 0..count {
        let case = match make_case(unchecked, number, count, names, where_possible, errors) {
            Ok(case) => case,
            Err(case) => {
                left_out.push(case);
                continue;
            }
        };
        if let Some(twin) = seen.insert(case.id.clone(), number) {
            let place = unchecked.factors.last().map_or(Place::Line(1), |factor| factor.place);
            let message = fault!("cases {} and {} have the same settings", twin + 1, number + 1; "remove a level");
            errors.push(place, message);
        }
        cases.push(case);
    }
    if let (true, Some(first)) = (cases.is_empty(), left_out.first()) {
        errors.push(Place::Line(1), fault!("no case can be carried out here"; "{}", first.why));
    }
    (cases, left_out)
}

/// Makes the case with this number, whose digits, one for each factor from left to right, select the levels; or returns that it is left out.
fn make_case(
    unchecked: &Unchecked,
    number: usize,
    count: usize,
    names: &Names,
    where_possible: bool,
    errors: &mut Errors,
) -> Result<Case, LeftOut> {
    let mut root = unchecked.root.clone();
    let mut levels = Levels::new();
    let (mut rest, mut block) = (number, count);
    for factor in &unchecked.factors {
        block /= factor.levels.len();
        let level = &factor.levels[rest / block];
        rest %= block;
        root.put(&factor.setting, level.place, level.clone());
        levels.insert(factor.setting.clone(), level.to_json().unwrap_or_default());
    }
    let mut found = Errors::default();
    let settings = read_settings(&root, names, &mut found);
    if let (true, true, Some(why)) = (where_possible, found.is_empty(), (names.cannot)(&settings)) {
        return Err(LeftOut { levels, why });
    }
    check(&settings, &root, names, &mut found);
    errors.extend(found);
    Ok(Case::new(levels, settings))
}
