//! `loadline compare` on summaries as a user runs it: exit status, JSON, text, page, and refusals.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub fn loadline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments).output().unwrap()
}

#[track_caller]
pub fn json(arguments: &[&str], status: i32) -> Value {
    let output = loadline(arguments);
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
pub fn assert_refused(arguments: &[&str], says: &[&str]) {
    let output = loadline(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    says.iter().for_each(|words| assert!(said.contains(words), "{words:?} is missing: {said}"));
    assert!(output.stdout.is_empty() && !said.contains("panicked"));
}

/// A path in the build's directory for temporary files.
pub fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("comparing-{name}"))
}

fn file(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const APPENDIX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/studies/kth-2018/appendix-b.csv");
const HEADING: &str = "machine,case,variant,mean,sd,n\n";

#[test]
fn summaries_give_the_json_of_the_contract() {
    let found = json(&["compare", "--summaries", APPENDIX, "--json"], 0);
    let comparisons = found["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 96);
    for one in comparisons {
        for text in ["case", "machine", "a", "b"] {
            assert!(one[text].is_string(), "{text}: {one}");
        }
        for number in ["ratio", "t", "df", "p_welch", "p_pooled", "p_adjusted"] {
            assert!(one[number].is_f64(), "{number}: {one}");
        }
        assert!(one["ratio_ci95"].is_null());
        assert!(["faster", "slower", "equal", "undecided"].contains(&one["verdict"].as_str().unwrap()));
        assert!(one["p_adjusted"].as_f64().unwrap() >= one["p_welch"].as_f64().unwrap());
    }
    let marks = found["marks"].as_array().unwrap();
    assert_eq!(marks.len(), 16);
    for mark in marks {
        assert!(["contradicts", "direction", "both"].contains(&mark["mark"].as_str().unwrap()), "{mark}");
        assert!(mark["case"].is_string() && mark["a"].is_string() && mark["b"].is_string());
    }
    assert_eq!(found["unconfirmed"].as_array().unwrap().len(), 6);
}

#[test]
fn text_and_page_show_tables_with_marks() {
    let page = scratch("page.html");
    let _ = std::fs::remove_file(&page);
    let output = loadline(&["compare", "--summaries", APPENDIX, "--html", page.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["contradicts 97.18 %", "direction 65.15 %", "unconfirmed 46.38 %", "1.485 [1.457, 1.514]"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 130, "{widest}: {text}");
    let page = std::fs::read_to_string(page).unwrap();
    for words in ["class=\"contradicts\"", "class=\"found direction\"", "unconfirmed", "id=\"ratios\"", "READ, main"] {
        assert!(page.contains(words), "{words}");
    }
    for outside in ["http:", "https:", "src=", "@import", "url(", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn less_is_better_for_times_and_more_for_rates() {
    let path = file("direction.csv", &format!("{HEADING}m,c,x,10,1,20\nm,c,y,20,1,20\n"));
    let verdict = |more: &[&str]| {
        let arguments = [&["compare", "--summaries", &path, "--json"], more].concat();
        json(&arguments, 0)["comparisons"][0]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(&[]), "slower", "without a metric it is throughput");
    assert_eq!(verdict(&["--metric", "response_time_mean"]), "faster");
    let output = loadline(&["compare", "--summaries", &path]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("more is taken to be better"), "it says so");
}

#[test]
fn level_margin_and_adjustment_decide_verdicts() {
    let rows = "m,c,x,100,2,10\nm,c,y,104,2,10\nm,c,z,104.1,2,10\n";
    let path = file("options.csv", &format!("{HEADING}{rows}"));
    let compared = |more: &[&str]| {
        let arguments = [&["compare", "--summaries", &path, "--json"], more].concat();
        json(&arguments, 0)["comparisons"].clone()
    };
    let verdicts = |found: &Value| -> Vec<String> {
        found.as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(verdicts(&compared(&[])), ["slower", "slower", "equal"]);
    assert_eq!(verdicts(&compared(&["--margin", "0.1"])), ["equal", "equal", "equal"]);
    assert_eq!(verdicts(&compared(&["--margin", "0.001"])), ["slower", "slower", "undecided"]);
    assert_eq!(verdicts(&compared(&["--alpha", "0.0001"])), ["undecided", "undecided", "equal"]);
    let (holm, bh) = (compared(&["--adjust", "holm"]), compared(&["--adjust", "bh"]));
    for place in 0..3 {
        let p = |found: &Value| found[place]["p_adjusted"].as_f64().unwrap();
        assert!(p(&bh) <= p(&holm));
    }
}

#[test]
fn what_does_not_vary_is_undecided_and_said() {
    let path = file("still.csv", &format!("{HEADING}m,c,x,1,0,5\nm,c,y,2,0,5\nm,c,z,0,1,5\n"));
    let found = json(&["compare", "--summaries", &path, "--json"], 0);
    let still = &found["comparisons"][0];
    assert!(still["t"].is_null() && still["p_welch"].is_null() && still["p_adjusted"].is_null());
    assert_eq!((&still["verdict"], &found["family"]), (&"undecided".into(), &2.into()));
    assert!(found["notes"][0]["kind"] == "nothing_varies");
    assert!(found["comparisons"][1]["ratio"].is_null(), "there is no ratio to a mean of zero");
}

#[test]
fn bad_requests_are_refused_with_place_value_and_remedy() {
    let good = file("good.csv", &format!("{HEADING}m,c,x,10,1,20\nm,c,y,20,1,20\n"));
    let refused = |name: &str, text: &str, says: &str| {
        assert_refused(&["compare", "--summaries", &file(name, text)], &[says]);
    };
    refused("column.csv", "machine,case,variant,mean,sd\nm,c,x,1,1\n", "column.csv:1: column n is missing; needed are");
    refused(
        "n.csv",
        &format!("{HEADING}m,c,x,10,1,1\n"),
        "n.csv:2: column n: \"1\" is out of range; write the number of",
    );
    refused("sd.csv", &format!("{HEADING}m,c,x,10,-2,9\n"), "sd.csv:2: column sd: \"-2\" is out of range; write the");
    refused("empty.csv", "", "empty.csv:1: the file is empty; begin with the heading");
    refused("one.csv", &format!("{HEADING}m,c,x,10,1,20\n"), "one.csv:1: no case has two variants on the same machine");
    assert_refused(&["compare", "--summaries", "/nowhere.csv"], &["/nowhere.csv cannot be read; name a CSV file with"]);
    for (option, value, says) in [
        ("--alpha", "0", "--alpha: 0 is not above 0 and at most 0.5; write 0.05 for 5 %"),
        ("--alpha", "NaN", "--alpha: NaN is not"),
        ("--margin", "-1", "--margin: -1 is not from 0 to below 1"),
        ("--margin", "5", "--margin: 5 is not from 0 to below 1; write 0.05 for 5 %"),
        ("--metric", "throuhgput", "--metric: unknown metric \"throuhgput\"; did you mean \"throughput\"?"),
        ("--adjust", "none", "possible values: bonferroni, holm, bh"),
        ("--factor", "layout.name", "cannot be used with"),
        ("--html", &good, "is there and is no page; name a file that ends in .html, or a directory"),
    ] {
        assert_refused(&["compare", "--summaries", &good, option, value], &[says]);
    }
    assert_refused(&["compare"], &["<RUN>"]);
    assert_refused(&["compare", "/nowhere"], &["/nowhere"]);
    assert!(std::fs::read_to_string(&good).unwrap().starts_with(HEADING), "a file that is no page is left alone");
}
