//! What is asked at which path. Main functions: [`answer`], and [`at_once`] for what needs no database.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::answer::{labels_of, matrix, success, vector};
use super::evaluate::evaluate;
use super::form::Form;
use super::labels::Labels;
use super::language::{NAME, Selector, parse, selector};
use super::reader::{Asking, Readers};
use super::refusal::Refusal;
use super::series::{Stretch, find, metrics};
use super::steps::{Steps, read_time};

/// The stretch of time before `end` whose sources are listed where no `start` is given; for measurements without a table of sources.
const LISTED: Duration = Duration::from_secs(3600);

/// Returns the answer at a path that needs no database.
pub(super) fn at_once(path: &str) -> Option<String> {
    Some(match path {
        "/-/ready" | "/-/healthy" => success(&json!("ready")),
        "/api/v1/status/buildinfo" => success(&json!({
            "version": env!("CARGO_PKG_VERSION"), "revision": "loadline", "branch": "", "buildUser": "", "buildDate": "", "goVersion": "",
        })),
        // There is no help and no unit of a field, and there are no exemplars and no rules.
        "/api/v1/metadata" => success(&json!({})),
        "/api/v1/query_exemplars" => success(&json!([])),
        "/api/v1/rules" => success(&json!({ "groups": [] })),
        _ => return None,
    })
}

/// Answers a request at this path.
///
/// # Errors
/// Why it is refused.
pub(super) fn answer(path: &str, form: &Form, readers: &Readers) -> Result<String, Refusal> {
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["api", "v1", "query_range"] => {
            let steps = Steps::read(form.need("start")?, form.need("end")?, form.need("step")?)?;
            let expression = parse(form.need("query")?).map_err(bad_query)?;
            readers.ask(|asking| Ok(matrix(&evaluate(asking, &expression, steps)?, steps)))
        }
        ["api", "v1", "query"] => {
            let steps = Steps::at(form.get("time").map_or_else(|| Ok(now_ns()), |time| read_time("time", time))?);
            let expression = parse(form.need("query")?).map_err(bad_query)?;
            readers.ask(|asking| Ok(vector(&evaluate(asking, &expression, steps)?, steps)))
        }
        ["api", "v1", "series"] => {
            let (selectors, stretch) = (selectors(form)?, stretch(form)?);
            if selectors.is_empty() {
                return Err(Refusal::Bad("no match[] parameter provided".to_owned()));
            }
            readers.ask(|asking| {
                let found = series(asking, &selectors, stretch)?;
                Ok(listed(found.iter().map(labels_of).collect(), form))
            })
        }
        ["api", "v1", "labels"] => {
            let selectors = selectors(form)?;
            readers.ask(|asking| {
                Ok(listed(label_names(asking, &selectors)?.into_iter().map(Value::String).collect(), form))
            })
        }
        ["api", "v1", "label", label, "values"] => {
            let (selectors, stretch) = (selectors(form)?, stretch(form)?);
            readers.ask(|asking| {
                let values = label_values(asking, label, &selectors, stretch)?;
                Ok(listed(values.into_iter().map(Value::String).collect(), form))
            })
        }
        _ => Err(Refusal::NotFound(
            "there are /api/v1/query_range, query, series, labels, label/NAME/values and status/buildinfo".to_owned(),
        )),
    }
}

fn bad_query(says: String) -> Refusal {
    Refusal::Bad(format!("invalid parameter \"query\": {says}"))
}

fn selectors(form: &Form) -> Result<Vec<Selector>, Refusal> {
    let read =
        |text: &str| selector(text).map_err(|says| Refusal::Bad(format!("invalid parameter \"match[]\": {says}")));
    form.all("match[]").filter(|text| !text.is_empty()).map(read).collect()
}

/// Returns the stretch of time of a list.
fn stretch(form: &Form) -> Result<Stretch, Refusal> {
    let until_ns = form.get("end").map_or_else(|| Ok(now_ns()), |end| read_time("end", end))?;
    let start_ns = form.get("start").map(|start| read_time("start", start)).transpose()?;
    Ok(Stretch { after_ns: start_ns.unwrap_or(until_ns - LISTED.as_nanos() as i64) - 1, until_ns })
}

/// Returns a list, of which `limit` keeps the first.
fn listed(mut list: Vec<Value>, form: &Form) -> String {
    let most = form.get("limit").and_then(|limit| limit.parse::<usize>().ok()).filter(|most| *most > 0);
    list.truncate(most.unwrap_or(usize::MAX));
    success(&Value::Array(list))
}

fn series(asking: &mut Asking<'_>, selectors: &[Selector], stretch: Stretch) -> Result<BTreeSet<Labels>, Refusal> {
    let mut found = BTreeSet::new();
    for selector in selectors {
        found.extend(find(asking, selector, stretch)?);
    }
    Ok(found)
}

/// Returns the names of labels: those of the measurements whose metrics are selected, or of all.
fn label_names(asking: &mut Asking<'_>, selectors: &[Selector]) -> Result<BTreeSet<String>, Refusal> {
    let names = asking.names()?;
    let mut found = BTreeSet::new();
    let is_taken = |name: &str| selectors.is_empty() || selectors.iter().any(|selector| selector.takes_name(name));
    for (_, metric) in names.metrics.iter().filter(|(name, _)| is_taken(name)) {
        found.insert(NAME.to_owned());
        found.extend(names.sources(metric).labels.iter().map(|(label, _)| label.clone()));
    }
    Ok(found)
}

fn label_values(
    asking: &mut Asking<'_>,
    label: &str,
    selectors: &[Selector],
    stretch: Stretch,
) -> Result<BTreeSet<String>, Refusal> {
    let names = asking.names()?;
    if label == NAME && selectors.iter().all(|selector| selector.matchers.iter().all(|matcher| matcher.label == NAME)) {
        let all = || names.metrics.keys().cloned().collect();
        let of = |selector: &Selector| metrics(selector, &names).into_iter().map(|(name, _)| name.to_owned()).collect();
        return Ok(if selectors.is_empty() {
            all()
        } else {
            selectors.iter().flat_map(|one| -> Vec<String> { of(one) }).collect()
        });
    }
    // One metric of each measurement stands for its sources.
    let mut seen = BTreeSet::new();
    let of_all = names.metrics.iter().filter(|(_, metric)| {
        names.sources(metric).labels.iter().any(|(own, _)| own == label) && seen.insert(metric.measurement)
    });
    let of_all: Vec<_> = of_all.map(|(name, _)| Selector::of_name(name)).collect();
    let found = series(asking, if selectors.is_empty() { &of_all } else { selectors }, stretch)?;
    let values = found.iter().map(|labels| labels.get(label)).filter(|value| !value.is_empty());
    Ok(values.map(str::to_owned).collect())
}

/// Returns the present time, in whole milliseconds.
fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX / 1_000_000) * 1_000_000
}
