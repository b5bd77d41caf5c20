//! Reduces a study to a rehearsal of about a minute.
//!
//! Main function: [`shrink`]. Invariant: settings that `--set` gives stay as they are; sizes and repeats only become
//! smaller, and each reduction is reported. A search for the load line becomes less precise.

use super::load::LENGTHS;
use super::replay::{REHEARSED_S, is_replay};
use super::unchecked::{Unchecked, UncheckedFactor};
use super::{Factor, Shrunk, Smaller};
use crate::units::{parse_bytes, parse_duration};
use crate::written::place::Place;
use crate::written::tree::{Content, Node, Table};

const CASES_MAX: usize = 18;
/// Maximum number of cases if claims name so many levels that they need more cases: as many as fit into about a minute.
const CLAIMED_CASES_MAX: usize = 60;
/// Maximum time that all trials together may measure, in seconds.
const MEASURED_S_MAX: f64 = 30.0;
const DURATION_S_LEAST: f64 = 0.1;
const DURATION_S_MAX: f64 = 0.4;
const EVOLVE_RECORDS_MAX: i64 = 10;
/// Longest interval between schema changes, in seconds: several changes fit into the shortest trial.
const EVOLVE_S_MAX: f64 = 0.05;
const WARMUP_S_MAX: f64 = 0.1;
const ROWS_MAX: i64 = 2_000;
/// Maximum number of rows where old ones are thrown away: of fewer, the load would write many steps at once.
const KEPT_ROWS_MAX: i64 = 20_000;
/// Scale of records in runs: one up to this, 101,600 of the 2,032,000 records of table 4.3 of Ruottinen 2015, stays; a larger one becomes [`SCALE_MAX`].
const SCALE_KEPT: f64 = 0.05;
const SCALE_MAX: f64 = 0.01;
/// Maximum number of records written or read by a trial that is counted in operations.
const RECORDS_MAX: i64 = 2_000;
const OPERATIONS_MAX: i64 = 200;
const OPERATIONS_PER_CLIENT_MAX: i64 = 20;
const LEAST_MAX: i64 = 2;
/// Maximum number of failures of each kind for each case.
const CUTS_MAX: i64 = 10;
/// Maximum number of trials of a case, if no claim asks for more.
const MOST_MAX: i64 = 3;
/// Maximum number of trials of a case if there are claims, which such short trials answer only by their number: time then ends the rehearsal, between two rounds.
const CLAIMED_MOST: i64 = 10;
/// Maximum number of cases with a link, which is made and measured for each trial.
const LINK_CASES_MAX: usize = 6;
/// Maximum number of clients if each connection has a host of its own, all of which are made for each trial.
const HOSTS_MAX: i64 = 8;
const BLOCK_BYTES_MAX: u64 = 20_000;
/// Minimum relative width to which a search locates the load line: its trials are too short, and too few, for less.
const GOAL_WITHIN_LEAST: f64 = 0.5;

/// Settings of which a smaller value changes the question: how much data there is, and how much happens at once.
const AMOUNTS: [&str; 8] = [
    "record.rows",
    "record.scale",
    "blocks.size",
    "load.clients",
    "workload.evolve",
    "workload.evolve_records",
    "retention.keep",
    "retention.step",
];

/// Reduces sizes, factors and repeats in place, and returns what became smaller.
pub fn shrink(unchecked: &mut Unchecked) -> Shrunk {
    let before = unchecked.clone();
    shrink_all(unchecked);
    let smaller = AMOUNTS
        .iter()
        .map(|setting| (*setting, false))
        .chain(LENGTHS.iter().chain(&["workload.until"]).map(|setting| (*setting, true)))
        .flat_map(|(setting, is_length)| made_smaller(&before, unchecked, setting, is_length))
        .collect();
    let values = |levels: &[Node]| levels.iter().filter_map(Node::to_json).collect::<Vec<_>>();
    let left_out = before.factors.iter().zip(&unchecked.factors).map(|(old, new)| {
        let kept = values(&new.levels);
        let gone = values(&old.levels).into_iter().filter(|level| !kept.contains(level)).collect();
        Factor { setting: old.setting.clone(), levels: gone }
    });
    Shrunk { smaller, left_out: left_out.filter(|factor| !factor.levels.is_empty()).collect() }
}

/// Returns the values of a setting that became smaller: in the base, and of the levels of a factor.
fn made_smaller(before: &Unchecked, after: &Unchecked, setting: &str, is_length: bool) -> Vec<Smaller> {
    let show = |node: &Node| node.to_string().trim_matches('"').to_owned();
    let base = |unchecked: &Unchecked| unchecked.root.find(setting).map(|entry| show(&entry.node));
    let levels = |unchecked: &Unchecked| -> Vec<String> {
        let own = unchecked.factors.iter().filter(|factor| factor.setting == setting);
        own.flat_map(|factor| factor.levels.iter().map(show)).collect()
    };
    let pair = |from: Option<String>, to: String| Smaller {
        setting: setting.to_owned(),
        from: from.unwrap_or_else(|| "its default".to_owned()),
        to,
        is_length,
    };
    let mut found = Vec::new();
    if let (from, Some(to)) = (base(before), base(after))
        && from.as_ref() != Some(&to)
    {
        found.push(pair(from, to));
    }
    let (old, new) = (levels(before), levels(after));
    found.extend(new.into_iter().filter(|level| !old.contains(level)).map(|level| pair(old.last().cloned(), level)));
    found
}

/// Settings in the data's own time, of which fewer rows hold less.
const SPANS: [&str; 4] = ["retention.keep", "retention.step", "retention.transaction", "layout.partition"];

/// Divides the settings in the data's own time by as much as the rows became fewer: otherwise nothing that is there would be old.
fn shrink_spans(unchecked: &mut Unchecked, rows_before: Option<i64>) {
    let rows = unchecked.root.find("record.rows").and_then(|entry| as_whole(&entry.node));
    let (Some(before), Some(after)) = (rows_before, rows) else { return };
    if after > 0 && before > after {
        let factor = after as f64 / before as f64;
        SPANS.iter().for_each(|setting| shrink_setting(unchecked, setting, &|node| scale_duration(node, factor)));
    }
}

fn as_whole(node: &Node) -> Option<i64> {
    if let Content::Integer(number) = node.content { Some(number) } else { None }
}

fn scale_duration(node: &mut Node, factor: f64) {
    if let Content::Text(text) = &node.content
        && let Ok(duration) = parse_duration(text)
    {
        node.content = Content::Text(format!("{}ms", duration.as_secs_f64() * factor * 1e3));
    }
}

fn shrink_all(unchecked: &mut Unchecked) {
    let batch = batch_max(unchecked);
    let rows_before = unchecked.root.find("record.rows").and_then(|entry| as_whole(&entry.node));
    let rows_max = if unchecked.root.get("retention").is_some() { KEPT_ROWS_MAX } else { ROWS_MAX };
    for (setting, limit) in [
        ("record.rows", rows_max),
        ("load.operations", OPERATIONS_MAX.min((RECORDS_MAX / batch).max(2))),
        ("load.operations_per_client", OPERATIONS_PER_CLIENT_MAX.min((RECORDS_MAX / batch).max(2))),
        ("workload.evolve_records", EVOLVE_RECORDS_MAX),
        ("repeat.least", LEAST_MAX),
        ("durability.cuts", CUTS_MAX),
    ] {
        // A part of the records that is selected by their numbers must stay within them.
        let is_named =
            ["workload.ycsb.first", "workload.ycsb.records"].iter().any(|part| unchecked.root.find(part).is_some());
        if setting != "record.rows" || !is_named {
            shrink_setting(unchecked, setting, &|node| limit_whole(node, limit));
        }
    }
    shrink_spans(unchecked, rows_before);
    if unchecked.root.find("record.runs").is_some() {
        put_default(&mut unchecked.root, "record.scale", Content::Float(SCALE_MAX));
        shrink_setting(unchecked, "record.scale", &limit_scale);
    }
    shrink_setting(unchecked, "blocks.size", &limit_block);
    let has_hosts =
        unchecked.root.find("link.hosts").is_some_and(|entry| matches!(entry.node.content, Content::Text(_)));
    if has_hosts {
        shrink_setting(unchecked, "load.clients", &|node| limit_whole(node, HOSTS_MAX));
    }
    // Events happen at fixed times within the duration.
    let may_shorten = unchecked.root.get("events").is_none();
    if may_shorten {
        shrink_setting(unchecked, "load.duration", &|node| limit_duration(node, DURATION_S_MAX));
    }
    shrink_setting(unchecked, "workload.evolve", &|node| limit_duration(node, EVOLVE_S_MAX));
    shrink_setting(unchecked, "load.warmup", &|node| limit_duration(node, WARMUP_S_MAX));
    if is_replay(&unchecked.root) {
        put_default(&mut unchecked.root, "workload.until", Content::Text(format!("{REHEARSED_S}s")));
        shrink_setting(unchecked, "workload.until", &|node| limit_duration(node, REHEARSED_S));
    }
    let is_sent_once = is_replay(&unchecked.root) && unchecked.root.get("goal").is_none();
    let has_length = is_sent_once
        || LENGTHS.iter().any(|length| {
            unchecked.root.find(length).is_some() || unchecked.factors.iter().any(|factor| factor.setting == *length)
        });
    if !has_length {
        put_default(&mut unchecked.root, "load.duration", Content::Text(format!("{}ms", DURATION_S_MAX * 1e3)));
    }
    put_default(&mut unchecked.root, "load.warmup", Content::Text(format!("{}ms", WARMUP_S_MAX * 1e3)));
    put_default(&mut unchecked.root, "repeat.least", Content::Integer(LEAST_MAX));
    repeat(unchecked);
    coarsen(&mut unchecked.root);
    let claimed = claimed_levels(&unchecked.root);
    let has_link =
        unchecked.root.get("link").is_some() || unchecked.factors.iter().any(|one| one.setting.starts_with("link."));
    thin(&mut unchecked.factors, &claimed, if has_link { LINK_CASES_MAX } else { CASES_MAX });
    let trials = cases(&unchecked.factors).max(1) as f64 * LEAST_MAX as f64;
    let duration_s = (MEASURED_S_MAX / trials).clamp(DURATION_S_LEAST, DURATION_S_MAX);
    if may_shorten {
        shrink_setting(unchecked, "load.duration", &|node| limit_duration(node, duration_s));
    }
}

/// Limits how often cases are repeated. If there are claims, that is as often as time permits, even if the study asks for fewer trials, which are longer.
fn repeat(unchecked: &mut Unchecked) {
    let has_claims = matches!(unchecked.root.get("claims").map(|entry| &entry.node.content), Some(Content::List(_)));
    // A number of repeats on the command line also keeps the study's rule.
    let is_said = ["repeat.least", "repeat.most", "repeat.rule"]
        .iter()
        .any(|setting| unchecked.root.find(setting).is_some_and(|entry| is_argument(entry.place)));
    if has_claims && !is_said {
        put_open(&mut unchecked.root, "repeat.rule", Content::Text("interval".to_owned()));
        put_open(&mut unchecked.root, "repeat.most", Content::Integer(CLAIMED_MOST));
    } else {
        put_default(&mut unchecked.root, "repeat.most", Content::Integer(MOST_MAX));
        shrink_setting(unchecked, "repeat.most", &|node| limit_whole(node, MOST_MAX));
    }
    lift_most(&mut unchecked.root);
}

/// Makes a search end once it knows the load line within a factor of about one and a half.
fn coarsen(root: &mut Table) {
    let setting = "goal.within";
    let is_coarser =
        |node: &Node| crate::written::section::number_of(node).is_some_and(|within| within > GOAL_WITHIN_LEAST);
    let has_goal = matches!(root.get("goal").map(|entry| &entry.node.content), Some(Content::Table(_)));
    if has_goal && !root.find(setting).is_some_and(|entry| is_coarser(&entry.node)) {
        put_open(root, setting, Content::Float(GOAL_WITHIN_LEAST));
    }
}

/// Returns the largest batch of any case, at least 1.
fn batch_max(unchecked: &Unchecked) -> i64 {
    let setting = "workload.batch";
    let base = unchecked.root.find(setting).map(|entry| &entry.node);
    let factor = unchecked.factors.iter().filter(|factor| factor.setting == setting).flat_map(|factor| &factor.levels);
    let whole = |node: &Node| if let Content::Integer(number) = node.content { number } else { 1 };
    base.into_iter().chain(factor).map(whole).max().unwrap_or(1).max(1)
}

/// Applies a limit to a setting of the base and to the levels of its factor; levels that become equal are merged.
fn shrink_setting(unchecked: &mut Unchecked, setting: &str, limit: &dyn Fn(&mut Node)) {
    if let Some(entry) = unchecked.root.find(setting)
        && !is_argument(entry.place)
    {
        let (place, mut node) = (entry.place, entry.node.clone());
        limit(&mut node);
        unchecked.root.put(setting, place, node);
    }
    for factor in unchecked.factors.iter_mut().filter(|factor| factor.setting == setting && !is_argument(factor.place))
    {
        thin_to(&mut factor.levels, 3, &[]);
        factor.levels.iter_mut().for_each(limit);
        let mut kept: Vec<Node> = Vec::new();
        for level in factor.levels.drain(..) {
            if !kept.iter().any(|node| node.content == level.content) {
                kept.push(level);
            }
        }
        factor.levels = kept;
    }
}

fn limit_whole(node: &mut Node, limit: i64) {
    if let Content::Integer(number) = &mut node.content {
        *number = (*number).min(limit);
    }
}

fn limit_block(node: &mut Node) {
    if let Content::Text(text) = &node.content
        && parse_bytes(text).is_ok_and(|bytes| bytes > BLOCK_BYTES_MAX)
    {
        node.content = Content::Text(format!("{BLOCK_BYTES_MAX}B"));
    }
}

fn limit_scale(node: &mut Node) {
    if crate::written::section::number_of(node).is_some_and(|scale| scale > SCALE_KEPT) {
        node.content = Content::Float(SCALE_MAX);
    }
}

fn limit_duration(node: &mut Node, limit_s: f64) {
    if let Content::Text(text) = &node.content
        && parse_duration(text).is_ok_and(|duration| duration.as_secs_f64() > limit_s)
    {
        node.content = Content::Text(format!("{}ms", limit_s * 1e3));
    }
}

/// Writes the limit for a setting that the file leaves to a larger default.
fn put_default(root: &mut Table, setting: &str, content: Content) {
    if root.find(setting).is_none() {
        let place = Place::Line(1);
        root.put(setting, place, Node { place, content });
    }
}

/// Writes a setting, unless `--set` gives it.
fn put_open(root: &mut Table, setting: &str, content: Content) {
    let place = root.find(setting).map_or(Place::Line(1), |entry| entry.place);
    if !is_argument(place) {
        root.put(setting, place, Node { place, content });
    }
}

/// Raises the maximum number of repeats to a larger minimum that `--set` gives.
fn lift_most(root: &mut Table) {
    let whole = |setting: &str| match root.find(setting)?.node.content {
        Content::Integer(number) => Some(number),
        _ => None,
    };
    if let (Some(least), Some(most), Some(entry)) =
        (whole("repeat.least"), whole("repeat.most"), root.find("repeat.most"))
        && least > most
        && !is_argument(entry.place)
    {
        let place = entry.place;
        root.put("repeat.most", place, Node { place, content: Content::Integer(least) });
    }
}

/// Returns every level that a claim names, with its setting.
fn claimed_levels(root: &Table) -> Vec<(String, Content)> {
    let mut found = Vec::new();
    if let Some(Content::List(claims)) = root.get("claims").map(|entry| &entry.node.content) {
        for claim in claims {
            let Content::Table(claim) = &claim.content else { continue };
            for side in ["ratio.of", "ratio.to", "ratio.where", "model.where", "bound.of"] {
                if let Some(Content::Table(levels)) = claim.find(side).map(|entry| &entry.node.content) {
                    collect_levels("", levels, &mut found);
                }
            }
        }
    }
    found
}

/// Collects the levels of a table; unquoted dots in settings make tables, which are joined again.
fn collect_levels(prefix: &str, table: &Table, found: &mut Vec<(String, Content)>) {
    for entry in &table.entries {
        let setting = format!("{prefix}{}", entry.key);
        match &entry.node.content {
            Content::Table(inner) => collect_levels(&format!("{setting}."), inner, found),
            level => found.push((setting, level.clone())),
        }
    }
}

/// Thins factors to three levels: the levels that claims name come before the first, middle and last. Thins them
/// further until there are few enough cases: first factors with numbers, then those with names.
fn thin(factors: &mut [UncheckedFactor], claimed: &[(String, Content)], cases_max: usize) {
    if cases(factors) <= cases_max {
        return;
    }
    let is_open = |factor: &UncheckedFactor| !is_argument(factor.place);
    let own = |factor: &UncheckedFactor| -> Vec<&Content> {
        claimed.iter().filter(|(setting, _)| *setting == factor.setting).map(|(_, level)| level).collect()
    };
    // Levels that claims name stay if possible: a claim without its cases is not answered.
    let named = |factor: &UncheckedFactor| {
        let own = own(factor);
        factor.levels.iter().filter(|level| own.contains(&&level.content)).count()
    };
    let least: usize =
        factors.iter().map(|factor| if is_open(factor) { named(factor).max(1) } else { factor.levels.len() }).product();
    let keeps_claims = cases_max == CASES_MAX && least <= CLAIMED_CASES_MAX;
    let cases_max = if keeps_claims { cases_max.max(least) } else { cases_max };
    let thin_factor = |factor: &mut UncheckedFactor, count: usize| {
        let count = if keeps_claims { count.max(named(factor)) } else { count };
        let own = own(factor);
        thin_to(&mut factor.levels, count, &own);
    };
    let floor = |factor: &UncheckedFactor, count: usize| if keeps_claims { count.max(named(factor)) } else { count };
    factors.iter_mut().filter(|factor| is_open(factor)).for_each(|factor| thin_factor(factor, 3));
    for count in [2, 1] {
        for by_name in [false, true] {
            let is_name = |factor: &UncheckedFactor| matches!(factor.levels[0].content, Content::Text(_));
            while cases(factors) > cases_max {
                let next = factors
                    .iter_mut()
                    .filter(|factor| is_open(factor) && is_name(factor) == by_name)
                    .find(|factor| factor.levels.len() > floor(factor, count));
                match next {
                    Some(factor) => thin_factor(factor, count),
                    None => break,
                }
            }
        }
    }
}

/// Returns the number of combinations of levels.
fn cases(factors: &[UncheckedFactor]) -> usize {
    factors.iter().fold(1, |cases, factor| cases.saturating_mul(factor.levels.len()))
}

/// Keeps this many levels in their order: those of claims first, then levels evenly spread from the first to the last.
fn thin_to(levels: &mut Vec<Node>, count: usize, claimed: &[&Content]) {
    if levels.len() <= count {
        return;
    }
    let last = levels.len() - 1;
    let spread = |number: usize| if count == 1 { 0 } else { number * last / (count - 1) };
    let of_claims = (0..levels.len()).filter(|number| claimed.contains(&&levels[*number].content));
    let mut kept: Vec<usize> = Vec::new();
    for number in of_claims.chain((0..count).map(spread)).chain(0..levels.len()) {
        if kept.len() < count && !kept.contains(&number) {
            kept.push(number);
        }
    }
    kept.sort_unstable();
    *levels = kept.into_iter().map(|number| levels[number].clone()).collect();
}

fn is_argument(place: Place) -> bool {
    matches!(place, Place::Argument(_))
}

#[cfg(test)]
mod tests;
