//! Every combination of the factors' levels, resolved and checked like the base.
//!
//! Main function: [`make_cases`]. Invariant: the first factor varies slowest, and no two cases have the same
//! settings.

use std::collections::BTreeMap;

use super::check::check;
use super::names::Names;
use super::settings::read_settings;
use super::unchecked::Unchecked;
use crate::fault::fault;
use crate::trial::{Case, Levels};
use crate::written::place::{Errors, Place};

/// More combinations than this are taken for a slip.
const CASES_MAX: usize = 10_000;

/// Makes all cases; without factors the base alone. Empty when there are too many, which is an error.
pub fn make_cases(unchecked: &Unchecked, names: &Names, errors: &mut Errors) -> Vec<Case> {
    let count = unchecked.factors.iter().fold(1_usize, |count, factor| count.saturating_mul(factor.levels.len()));
    if count > CASES_MAX {
        let place = unchecked.factors.last().map_or(Place::Line(1), |factor| factor.place);
        errors.push(place, fault!("the factors make {count} cases"; "at most {CASES_MAX} are possible, remove levels"));
        return Vec::new();
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut cases = Vec::with_capacity(count);
    for number in 0..count {
        let case = make_case(unchecked, number, count, names, errors);
        if let Some(twin) = seen.insert(case.id.clone(), number) {
            let place = unchecked.factors.last().map_or(Place::Line(1), |factor| factor.place);
            let message = fault!("cases {} and {} have the same settings", twin + 1, number + 1; "remove a level");
            errors.push(place, message);
        }
        cases.push(case);
    }
    cases
}

/// The case with this number, read like a digit of each factor from left to right.
fn make_case(unchecked: &Unchecked, number: usize, count: usize, names: &Names, errors: &mut Errors) -> Case {
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
    check(&settings, &root, names, &mut found);
    errors.extend(found);
    Case::new(levels, settings)
}
