//! Rehearsals of studies that need one setting each.

use super::*;
use crate::written::place::Errors;

fn shrunk(text: &str, sets: &[&str]) -> Unchecked {
    let mut errors = Errors::default();
    let root = Table::parse(text, &mut errors);
    let mut unchecked = Unchecked::new(root, &mut errors);
    for (number, set) in sets.iter().enumerate() {
        unchecked.set(set, Place::Argument(number), &mut errors);
    }
    assert!(errors.is_empty(), "{errors:?}");
    shrink(&mut unchecked);
    unchecked
}

fn levels(unchecked: &Unchecked) -> Vec<Vec<String>> {
    unchecked.factors.iter().map(|factor| factor.levels.iter().map(Node::to_string).collect()).collect()
}

#[test]
fn levels_are_thinned_to_first_middle_and_last_until_there_are_few_cases() {
    let unchecked = shrunk(
        "[factors]\n\"load.clients\" = [1, 2, 3, 4, 5]\n\"load.operations_per_client\" = [1, 5, 10, 50, 100]\n\
         \"layout.name\" = [\"a\", \"b\", \"c\"]\n",
        &[],
    );
    // 3 * 3 * 3 cases are too many, and the first factor with numbers gives way.
    let expected = [vec!["1", "5"], vec!["1", "10", "20"], vec!["\"a\"", "\"b\"", "\"c\""]];
    assert_eq!(levels(&unchecked), expected);
}

#[test]
fn levels_that_claims_speak_of_are_kept_before_others() {
    let unchecked = shrunk(
        "[factors]\n\"layout.name\" = [\"a\", \"b\", \"c\", \"d\", \"e\"]\n\
         \"workload.name\" = [\"r\", \"s\", \"t\", \"u\", \"v\", \"w\", \"x\"]\n\
         [[claims]]\nratio = { of = { \"layout.name\" = \"b\", \"workload.name\" = \"s\" }, to = { layout.name = \"c\" } }\n",
        &[],
    );
    assert_eq!(levels(&unchecked), [vec!["\"a\"", "\"b\"", "\"c\""], vec!["\"r\"", "\"s\"", "\"u\""]]);
}

#[test]
fn repeats_that_somebody_asks_for_are_kept() {
    let claim = "[[claims]]\nratio = { of = { layout.name = \"a\" }, to = { layout.name = \"b\" } }\n";
    let repeat = |sets: &[&str]| {
        let unchecked = shrunk(claim, sets);
        let value = |name: &str| unchecked.root.find(name).map(|entry| entry.node.to_string());
        ["repeat.rule", "repeat.least", "repeat.most"].map(value)
    };
    let said = |words: [&str; 3]| words.map(|word| (!word.is_empty()).then(|| word.to_owned()));
    assert_eq!(repeat(&[]), said(["\"interval\"", "2", "10"]));
    assert_eq!(repeat(&["repeat.least=1", "repeat.most=1"]), said(["", "1", "1"]));
}

#[test]
fn what_became_smaller_is_told_and_nothing_else() {
    let mut errors = Errors::default();
    let text = "[record]\nrows = 1000000\n[blocks]\nsize = \"10KB\"\n[load]\nduration = \"10s\"\n\
                [factors]\n\"load.clients\" = [1, 2, 3, 4, 5]\n\"workload.batch\" = [1, 2, 3, 4, 5]\n";
    let mut unchecked = Unchecked::new(Table::parse(text, &mut errors), &mut errors);
    let found = shrink(&mut unchecked);
    let smaller: Vec<(&str, bool)> = found.smaller.iter().map(|one| (one.setting.as_str(), one.is_length)).collect();
    assert_eq!(smaller, [("record.rows", false), ("load.duration", true)]);
    assert_eq!((found.smaller[0].from.as_str(), found.smaller[0].to.as_str()), ("1000000", "2000"));
    let left_out: Vec<&str> = found.left_out.iter().map(|factor| factor.setting.as_str()).collect();
    assert_eq!(left_out, ["load.clients", "workload.batch"]);
    let mut small =
        Unchecked::new(Table::parse("[repeat]\nleast = 9\n[load]\noperations = 5\n", &mut errors), &mut errors);
    assert_eq!(shrink(&mut small), Shrunk::default(), "repeats are no size");
}

#[test]
fn every_level_that_a_claim_names_is_kept_where_a_minute_is_enough() {
    let claim = |query: &str| {
        format!(
            "[[claims]]\nsays = \"x\"\nmetric = \"throughput\"\nratio = {{ of = {{ \"layout.name\" = \"a\", \"workload.query\" = \
             \"{query}\" }}, to = {{ \"layout.name\" = \"b\" }}, between = [0.5, 2] }}\n"
        )
    };
    let claims: String = ["1", "2", "3", "4", "5", "6"].iter().map(|query| claim(query)).collect();
    let text = format!(
        "{claims}[factors]\n\"layout.name\" = [\"a\", \"b\", \"c\"]\n\"workload.query\" = [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\"]\n\
         \"load.clients\" = [1, 2, 4]\n"
    );
    let unchecked = shrunk(&text, &[]);
    assert_eq!(levels(&unchecked)[1].len(), 6, "all queries that claims name: {:?}", levels(&unchecked));
    assert!(cases(&unchecked.factors) <= CLAIMED_CASES_MAX, "{:?}", levels(&unchecked));
}

#[test]
fn claims_are_rehearsed_as_often_as_time_permits_and_others_three_times() {
    let repeat = |text: &str, sets: &[&str]| {
        let unchecked = shrunk(text, sets);
        let of = |setting: &str| unchecked.root.find(setting).map(|entry| entry.node.to_string());
        [of("repeat.rule"), of("repeat.least"), of("repeat.most")].map(Option::unwrap_or_default)
    };
    let claim = "[[claims]]\nbound = { of = { \"layout.name\" = \"a\" }, below = 1 }\n";
    let fixed = "[repeat]\nrule = \"fixed\"\nleast = 4\nmost = 4\n";
    assert_eq!(repeat(&format!("{fixed}{claim}"), &[]), ["\"interval\"", "2", "10"]);
    assert_eq!(repeat(fixed, &[]), ["\"fixed\"", "2", "3"]);
    let own = ["repeat.rule=fixed", "repeat.least=5", "repeat.most=5"];
    assert_eq!(repeat(&format!("{fixed}{claim}"), &own), ["\"fixed\"", "5", "5"]);
}

#[test]
fn links_and_the_hosts_on_them_are_made_less_often() {
    let unchecked = shrunk(
        "[link]\nhosts = \"each\"\n[blocks]\nsize = \"1MB\"\n[factors]\n\"load.clients\" = [1, 10, 100]\n\
         \"link.rate\" = [\"1Mbit/s\", \"2Mbit/s\", \"3Mbit/s\"]\n",
        &[],
    );
    let cases: usize = levels(&unchecked).iter().map(Vec::len).product();
    assert!(cases <= LINK_CASES_MAX, "{:?}", levels(&unchecked));
    assert_eq!(levels(&unchecked)[0], ["1", "8"]);
    let text = |setting: &str| unchecked.root.find(setting).unwrap().node.to_string();
    assert_eq!((text("repeat.most").as_str(), text("blocks.size").as_str()), ("3", "\"20000B\""));
}

#[test]
fn a_search_looks_less_closely_unless_somebody_asks_for_more() {
    let within = |text: &str, sets: &[&str]| {
        let unchecked = shrunk(text, sets);
        unchecked.root.find("goal.within").map(|entry| entry.node.to_string())
    };
    let goal = "[goal]\nbelow = \"10ms\"\n";
    assert_eq!(within(goal, &[]).as_deref(), Some("0.5"));
    assert_eq!(within(&format!("{goal}within = 0.1\n"), &[]).as_deref(), Some("0.5"));
    assert_eq!(within(&format!("{goal}within = 0.8\n"), &[]).as_deref(), Some("0.8"));
    assert_eq!(within(goal, &["goal.within=0.1"]).as_deref(), Some("0.1"));
    assert_eq!(within("[load]\nclients = 1\n", &[]), None);
}

#[test]
fn what_was_set_stays() {
    let unchecked = shrunk("[load]\nduration = \"10s\"\nwarmup = \"50ms\"\n", &["load.duration=2s", "repeat.least=4"]);
    let text = |setting: &str| unchecked.root.find(setting).unwrap().node.to_string();
    assert_eq!(text("load.duration"), "\"2s\"");
    assert_eq!(text("load.warmup"), "\"50ms\"");
    assert_eq!((text("repeat.least"), text("repeat.most")), ("4".to_owned(), "4".to_owned()));
}

#[test]
fn defaults_are_shrunk_too() {
    let unchecked = shrunk("[record]\nrows = 1000000\n", &[]);
    let text = |setting: &str| unchecked.root.find(setting).unwrap().node.to_string();
    assert_eq!((text("load.duration"), text("load.warmup")), ("\"400ms\"".to_owned(), "\"100ms\"".to_owned()));
    assert_eq!(text("record.rows"), "2000");
}

#[test]
fn what_is_kept_becomes_shorter_as_rows_become_fewer_and_no_other_spans_do() {
    let text = "[record]\nrows = 100000\nsources = 10\ninterval = \"1s\"\n[retention]\nkeep = \"10m\"\nstep = \"1m\"\n[layout]\npartition = \"1m\"\n";
    let said = |unchecked: &Unchecked, setting: &str| unchecked.root.find(setting).unwrap().node.to_string();
    let unchecked = shrunk(text, &[]);
    let settings = ["retention.keep", "retention.step", "layout.partition", "record.interval"];
    assert_eq!(
        settings.map(|setting| said(&unchecked, setting)),
        ["\"120000ms\"", "\"12000ms\"", "\"12000ms\"", "\"1s\""]
    );
    let kept = shrunk(text, &["record.rows=100000"]);
    assert_eq!(said(&kept, "retention.keep"), "\"10m\"", "rows that were asked for stay, and what is kept of them");
}
