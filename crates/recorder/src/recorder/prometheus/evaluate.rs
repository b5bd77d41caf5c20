//! The answer to a question. Main function: [`evaluate`].
//!
//! Invariant: samples are kept for a few series at a time, and an answer has no more points than [`POINTS_MAX`], whatever is asked.

use std::collections::BTreeMap;

use super::labels::Labels;
use super::language::{Expression, Fold, NAME, Selector};
use super::reader::Asking;
use super::refusal::Refusal;
use super::series::{Sample, Stretch, each};
use super::steps::Steps;
use super::sum::Sum;
use super::window::{LOOK_BACK_NS, VISITS_MAX, Values, newest, over};

/// The most points of an answer, and of each step towards it.
const POINTS_MAX: usize = 1_000_000;

/// An answer: a number, or the series with their values, by their labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answered {
    /// A number, the same at each time.
    Number(f64),
    /// Series; each has a value at one time at least.
    Series(BTreeMap<Labels, Values>),
}

/// Answers a question.
///
/// # Errors
/// The database's; that there is more than may be read, or that it takes too long; that two series would have the same labels.
pub(super) fn evaluate(asking: &mut Asking<'_>, expression: &Expression, steps: Steps) -> Result<Answered, Refusal> {
    if let Expression::Number(number) = expression {
        return Ok(Answered::Number(*number));
    }
    let mut found = BTreeMap::new();
    walk(asking, expression, steps, &mut |labels, values| {
        check_points(found.len() + 1, steps)?;
        match found.insert(labels, values) {
            None => Ok(()),
            Some(_) => {
                let says = "two series would have the same labels; ask for one metric's name, or aggregate. Tags in the column \"more\" are no labels";
                Err(Refusal::Execution(says.to_owned()))
            }
        }
    })?;
    Ok(Answered::Series(found))
}

type Take<'t> = &'t mut dyn FnMut(Labels, Values) -> Result<(), Refusal>;

/// Calls a function for each series of an expression that has a value.
fn walk(asking: &mut Asking<'_>, expression: &Expression, steps: Steps, take: Take<'_>) -> Result<(), Refusal> {
    let mut visits = VISITS_MAX;
    match expression {
        Expression::Number(_) => Ok(()),
        Expression::Newest(selector) => {
            of_each(asking, selector, LOOK_BACK_NS, steps, |labels, samples| pass(labels, newest(samples, steps), take))
        }
        Expression::Window { function, selector, range_ns } => {
            of_each(asking, selector, *range_ns, steps, |labels, samples| {
                let values = over(*function, *range_ns, samples, steps, &mut visits)?;
                let unnamed = Labels::new(labels.iter().filter(|(name, _)| name != NAME).cloned().collect());
                pass(unnamed, values, take)
            })
        }
        Expression::Group { fold, by, inner } => {
            let mut groups: BTreeMap<Labels, Vec<Member>> = BTreeMap::new();
            walk(asking, inner, steps, &mut |labels, values| {
                let group = labels.only(by);
                check_points(groups.len() + usize::from(!groups.contains_key(&group)), steps)?;
                let members = groups.entry(group).or_insert_with(|| vec![Member::default(); steps.count]);
                let both = members.iter_mut().zip(values);
                both.for_each(|(member, value)| value.into_iter().for_each(|value| member.add(value)));
                Ok(())
            })?;
            groups.into_iter().try_for_each(|(labels, members)| {
                pass(labels, members.iter().map(|member| member.value(*fold)).collect(), take)
            })
        }
    }
}

fn of_each(
    asking: &mut Asking<'_>,
    selector: &Selector,
    back_ns: i64,
    steps: Steps,
    take: impl FnMut(Labels, &[Sample]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let stretch = Stretch { after_ns: steps.start_ns - back_ns, until_ns: steps.end_ns() };
    each(asking, selector, stretch, take)
}

fn pass(labels: Labels, values: Values, take: Take<'_>) -> Result<(), Refusal> {
    if values.iter().any(Option::is_some) { take(labels, values) } else { Ok(()) }
}

fn check_points(series: usize, steps: Steps) -> Result<(), Refusal> {
    if series.saturating_mul(steps.count) <= POINTS_MAX {
        return Ok(());
    }
    let remedy = "ask for fewer series or a longer step";
    Err(Refusal::Execution(format!("the answer has more than {POINTS_MAX} points; {remedy}")))
}

/// What the series of a group have at one time.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    count: u32,
    sum: Sum,
    least: f64,
    most: f64,
}

impl Member {
    fn add(&mut self, value: f64) {
        let is_first = self.count == 0;
        self.count += 1;
        self.sum.add(value);
        self.least = if is_first { value } else { self.least.min(value) };
        self.most = if is_first { value } else { self.most.max(value) };
    }

    fn value(&self, fold: Fold) -> Option<f64> {
        let value = match fold {
            Fold::Average => self.sum.total() / f64::from(self.count),
            Fold::Sum => self.sum.total(),
            Fold::Least => self.least,
            Fold::Most => self.most,
            Fold::Count => f64::from(self.count),
        };
        (self.count > 0).then_some(value)
    }
}
