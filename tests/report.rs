//! Reports of synthetic measurements: what is counted, what is said, and that the text stays the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use loadline::finding::{ClaimVerdict, Findings, Found, Note};
use loadline::measurement::Measurement;
use loadline::reason::Reason;
use loadline::report::{analyse, html, jsonl, table, terminal};
use loadline::statistics::random::Random;
use loadline::study::{Claim, ClaimedRatio, Smaller, Study};
use loadline::trial::Arrivals;
use serde_json::{Value, json};

#[path = "report/synthetic.rs"]
mod synthetic;

use synthetic::{environment, layouts_and_clients, measurements, study};

/// Compares with a golden file; LOADLINE_WRITE_GOLDEN=1 writes it anew.
#[track_caller]
fn assert_golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LOADLINE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs; LOADLINE_WRITE_GOLDEN=1 writes it anew. It is now:\n{text}");
}

/// Marks the trials of one layout in these rounds as invalid.
fn invalidate(trials: &mut [Measurement], layout: &str, rounds: &[u32], reason: &str) {
    for trial in trials.iter_mut() {
        if trial.trial.case.levels["layout.name"] == layout && rounds.contains(&trial.trial.round) {
            trial.invalid_because.push(Reason::told(reason));
            trial.errors.insert("disk full".to_owned(), 3);
        }
    }
}

fn sentences(findings: &Findings) -> Vec<String> {
    findings.verdicts.iter().map(ToString::to_string).collect()
}

fn findings(study: &Study, trials: &[Measurement]) -> Findings {
    analyse("runs/synthetic", study, &environment(), trials)
}

/// Checks what holds for every page, and keeps it for looking at.
#[track_caller]
fn page(name: &str, study: &Study, trials: &[Measurement]) -> String {
    let page = html(&findings(study, trials), study, &environment(), trials);
    std::fs::write(format!("{}/report-{name}.html", env!("CARGO_TARGET_TMPDIR")), &page).unwrap();
    assert_balanced(&page);
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{name} refers to something outside by {outside}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf "), "{name} draws what is not a number");
    for drawing in page.split("<svg").skip(1).filter(|drawing| !drawing.starts_with(" class=\"key\"")) {
        let head = drawing.split("</desc>").next().unwrap();
        assert!(head.contains("role=\"img\"") && head.contains("<title>") && head.contains("<desc>"), "{head}");
    }
    page
}

/// Every element that is opened is closed, in order.
#[track_caller]
fn assert_balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.split("<script>").next().unwrap();
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("a tag does not end: {tag}"));
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed)),
            None if ["!DOCTYPE", "meta"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, ["html", "body"], "the script stands at the end of the body");
}

#[test]
fn a_whole_run_reads_as_before() {
    let study = layouts_and_clients();
    let mut trials = measurements(&study, 12);
    let reason = "3 of 5,000 operations failed, more than the tolerated share of 0";
    invalidate(&mut trials, "star-hot", &[0], reason);
    let findings = findings(&study, &trials);
    assert_golden("report-terminal.txt", &terminal(&findings, &study));
    assert_golden("report-findings.json", &(serde_json::to_string_pretty(&findings).unwrap() + "\n"));
    let page = page("whole", &study, &trials);
    assert!((100_000..300_000).contains(&page.len()), "{} bytes", page.len());
    assert!(page.contains("6 of 216 trials are invalid") && page.contains("star is fastest: "));
    assert!(
        page.contains("id=\"ratios\"") && page.contains("clients = 16: wide / star"),
        "alternatives have a forest plot"
    );
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("the page lacks {text}"));
    assert!(place("trials are invalid") < place("star is fastest") && place("star is fastest") < place("<svg"));
}

#[test]
fn the_order_of_measurements_does_not_matter() {
    let study = layouts_and_clients();
    let mut trials = measurements(&study, 4);
    let before = (findings(&study, &trials), page("order", &study, &trials));
    trials.reverse();
    assert_eq!((findings(&study, &trials), page("order", &study, &trials)), before);
}

#[test]
fn no_line_of_the_terminal_is_wider_than_the_terminal() {
    let mut study = layouts_and_clients();
    study.factors[0].levels[1] = json!("star");
    let mut trials = measurements(&study, 3);
    invalidate(&mut trials, "wide", &[1, 2], &"a reason that goes on and on ".repeat(12));
    let text = terminal(&findings(&study, &trials), &study);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{widest}\n{text}");
}

#[test]
fn a_level_of_eighty_characters_is_shortened_where_room_is_scarce_and_stands_whole_somewhere() {
    let path = |name: &str| format!("/data/{}{name}/measurements.db", "directory/".repeat(6));
    let factors = [("layout.name", vec![json!("wide")]), ("load.clients", vec![json!(1), json!(2)])];
    let paths = [("database.path", vec![json!(path("first")), json!(path("second"))])];
    let study = study(&[&factors[..], &paths[..]].concat());
    let trials = measurements(&study, 3);
    let text = terminal(&findings(&study, &trials), &study);
    let table = text.split("───\n").nth(1).unwrap();
    assert!(!table.contains(&path("first")) && table.contains('…'), "{text}");
    assert!(text.contains(&format!("  {}", path("first"))), "the whole path stands below the table: {text}");
    let page = page("long", &study, &trials);
    assert!(page.contains(&format!("title=\"{}\"", path("first"))), "in tables");
    assert!(page.contains(&format!("<title>{}</title>", path("first"))), "in drawings");
}

#[test]
fn a_case_without_a_valid_trial_appears_and_leaves_its_claims_undecided() {
    let study = layouts_and_clients();
    let mut trials = measurements(&study, 10);
    invalidate(&mut trials, "star-hot", &(0..10).collect::<Vec<u32>>(), "half of the inserts failed");
    let findings = findings(&study, &trials);
    let case = findings.cases.iter().find(|case| case.levels["layout.name"] == "star-hot").unwrap();
    assert_eq!((case.trials, case.valid_trials, case.throughput_per_s.mean), (10, 0, None));
    assert_eq!(case.invalid_because.len(), 1);
    assert_eq!(case.invalid_because[0].rounds, (0..10).collect::<Vec<u32>>());
    assert_eq!(case.invalid_because[0].to_string(), "rounds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9: half of the inserts failed");
    assert_eq!(case.errors["disk full"], 30);
    assert!(!findings.valid);
    assert_eq!(findings.claims[0].verdict, ClaimVerdict::Undecided);
    assert!(findings.claims[0].evidence.contains("no valid trial"), "{}", findings.claims[0].evidence);
    assert_eq!(findings.claims[1].verdict, ClaimVerdict::Contradicted, "the others are judged all the same");
    for said in &findings.verdicts[..2] {
        assert!(said.evidence.contains("without a valid trial, star-hot could not be compared"), "{said}");
    }
    assert!(findings.notes[0].to_string().starts_with("6 of 18 cases have no valid trial: "), "{}", findings.notes[0]);
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json["cases"][12]["throughput_per_s"], json!({"mean": null, "sd": null, "n": 0, "ci95": null}));
    page("one-invalid", &study, &trials);
}

fn ratio_of(claim: &mut Claim) -> &mut ClaimedRatio {
    claim.ratio.as_mut().unwrap()
}

#[test]
fn claims_that_cannot_be_judged_say_why() {
    let mut study = layouts_and_clients();
    let trials = measurements(&study, 3);
    study.claims[0].metric = "speed".to_owned();
    ratio_of(&mut study.claims[1]).of = [("layout.name".to_owned(), json!("json"))].into();
    ratio_of(&mut study.claims[2]).only = [("load.clients".to_owned(), json!(64))].into();
    let claims = findings(&study, &trials).claims;
    assert!(claims[0].evidence.contains("no metric \"speed\"") && claims[0].evidence.contains("throughput"));
    assert_eq!(claims[1].evidence, "the study has no case with layout.name = json");
    assert!(claims[2].evidence.contains("load.clients = 64"), "{}", claims[2].evidence);
    assert!(claims.iter().all(|claim| claim.verdict == ClaimVerdict::Undecided));
}

#[test]
fn a_claim_is_judged_by_where_its_whole_interval_lies() {
    let mut study = layouts_and_clients();
    let trials = measurements(&study, 12);
    // The true ratio of star-hot to star is 0.86 / 1.24 = 0.69.
    let verdict = |study: &mut Study, low: f64, high: Option<f64>| {
        let ratio = ratio_of(&mut study.claims[0]);
        (ratio.low, ratio.high) = (low, high);
        findings(study, &trials).claims[0].verdict
    };
    assert_eq!(verdict(&mut study, 0.6, Some(0.8)), ClaimVerdict::Reproduced);
    assert_eq!(verdict(&mut study, 0.5, None), ClaimVerdict::Reproduced);
    assert_eq!(verdict(&mut study, 0.8, None), ClaimVerdict::Contradicted);
    assert_eq!(verdict(&mut study, 0.0, Some(0.6935)), ClaimVerdict::Undecided);
}

#[test]
fn a_claim_may_name_a_setting_that_is_not_varied() {
    let mut study = layouts_and_clients();
    let trials = measurements(&study, 3);
    ratio_of(&mut study.claims[0]).only =
        [("workload.batch".to_owned(), json!(1)), ("load.clients".to_owned(), json!(4))].into();
    let claim = &findings(&study, &trials).claims[0];
    assert_eq!(claim.verdict, ClaimVerdict::Reproduced, "{}", claim.evidence);
    assert!(claim.evidence.ends_with("n = 3 + 3"), "{}", claim.evidence);
}

#[test]
fn resources_and_times_can_be_claimed_about() {
    let mut study = layouts_and_clients();
    let mut trials = measurements(&study, 4);
    for (claim, metric) in
        study.claims.iter_mut().zip(["response_time_p99", "written_bytes", "client_cpu_per_operation"])
    {
        claim.metric = metric.to_owned();
        let ratio = ratio_of(claim);
        (ratio.low, ratio.high, ratio.best) = (0.5, Some(2.0), false);
    }
    assert!(findings(&study, &trials).claims.iter().all(|claim| claim.verdict == ClaimVerdict::Reproduced));
    trials.iter_mut().for_each(|trial| trial.resources = None);
    let claims = findings(&study, &trials).claims;
    assert_eq!(claims[1].verdict, ClaimVerdict::Undecided, "what was not observed is not judged");
    assert_eq!(findings(&study, &trials).cases[0].resources, None);
    page("unmonitored", &study, &trials);
}

#[test]
fn the_first_trial_of_each_case_is_left_out_where_the_study_says_so() {
    let mut study = layouts_and_clients();
    let mut trials = measurements(&study, 5);
    trials.iter_mut().filter(|trial| trial.trial.round == 0).for_each(|trial| trial.measured_s *= 100.0);
    study.repeat.discard_first = true;
    let with = findings(&study, &trials);
    assert_eq!((with.cases[0].trials, with.cases[0].discarded), (4, 1));
    trials.retain(|trial| trial.trial.round > 0);
    study.repeat.discard_first = false;
    let without = findings(&study, &trials);
    assert_eq!(with.cases[0].throughput_per_s, without.cases[0].throughput_per_s);
}

#[test]
fn alternatives_that_do_not_differ_are_equal_or_undecided_and_never_fastest() {
    let study = study(&[("database.name", vec![json!("mariadb"), json!("mysql")])]);
    let mut trials = measurements(&study, 30);
    let sentence = findings(&study, &trials).verdicts[0].to_string();
    assert!(sentence.contains("are equal within ±5 %: ") && sentence.contains("n = 30 + 30"), "{sentence}");
    let mut drifting = trials.clone();
    for (place, trial) in drifting.iter_mut().enumerate() {
        trial.measured_s *= if place % 4 < 2 { 0.6 } else { 1.4 };
    }
    let sentence = findings(&study, &drifting).verdicts[0].to_string();
    assert!(sentence.contains("are equal") && sentence.contains("paired by round"), "rounds share it: {sentence}");
    for (place, trial) in trials.iter_mut().enumerate() {
        trial.measured_s *= if place % 4 == 0 || place % 4 == 3 { 0.6 } else { 1.4 };
    }
    let sentence = findings(&study, &trials).verdicts[0].to_string();
    assert!(sentence.starts_with("undecided which is fastest: "), "{sentence}");
    let sentence = findings(&study, &trials[..2]).verdicts[0].to_string();
    assert!(sentence.contains("fewer than two valid trials"), "{sentence}");
}

#[test]
fn a_rehearsal_says_that_it_is_one() {
    let mut study = layouts_and_clients();
    study.quick = true;
    let trials = measurements(&study, 2);
    let findings = findings(&study, &trials);
    assert!(
        findings.rehearsal
            && findings.verdicts.iter().any(|said| said.to_string() == "rehearsal: figures are not to be quoted")
    );
    assert!(
        terminal(&findings, &study).contains("REHEARSAL")
            && page("rehearsal", &study, &trials).contains("This is a rehearsal")
    );
    assert!(findings.notes.iter().any(|note| matches!(note, Note::CasesUnsettled { .. })), "{:?}", findings.notes);
}

#[test]
fn batches_are_compared_by_records() {
    let study = study(&[
        ("layout.name", vec![json!("wide"), json!("star")]),
        ("workload.batch", vec![json!(1), json!(10), json!(100), json!(1000)]),
    ]);
    let trials = measurements(&study, 5);
    let findings = findings(&study, &trials);
    let peak = findings.verdicts.iter().find(|said| matches!(said.found, Found::Highest { .. })).unwrap().to_string();
    assert!(
        peak.contains("workload.batch = 1000") && peak.contains("records/s") && peak.contains("may lie beyond"),
        "{peak}"
    );
    assert!(terminal(&findings, &study).contains("records/s"));
    assert!(page("batches", &study, &trials).contains("Records"));
}

#[test]
fn open_loops_are_compared_by_response_time_and_say_what_was_offered() {
    let mut study = layouts_and_clients();
    for case in &mut study.cases {
        (case.settings.load.arrivals, case.settings.load.rate_per_s) = (Arrivals::Poisson, Some(1500.0));
        *case = loadline::trial::Case::new(case.levels.clone(), case.settings.clone());
    }
    let trials = measurements(&study, 12);
    let findings = findings(&study, &trials);
    let scheduled: f64 = trials.iter().step_by(18).map(Measurement::offered_per_s).sum();
    let offered = findings.cases[0].offered_per_s.unwrap();
    assert!((offered - scheduled / 12.0).abs() < 1e-6, "what was scheduled, not what was asked for: {offered}");
    assert!(
        findings.verdicts[0].to_string().starts_with("star is soonest to answer (p99): 0."),
        "{}",
        findings.verdicts[0]
    );
    assert!(terminal(&findings, &study).contains("offered"));
}

#[test]
fn studies_of_every_shape_have_a_page() {
    let names = |names: &[&str]| names.iter().map(|name| json!(name)).collect::<Vec<Value>>();
    let numbers = |numbers: &[u64]| numbers.iter().map(|number| json!(number)).collect::<Vec<Value>>();
    let bars = study(&[
        ("layout.name", names(&["wide", "star", "star-hot"])),
        ("database.name", names(&["sqlite", "postgres"])),
    ]);
    assert!(page("bars", &bars, &measurements(&bars, 6)).contains("class=\"bar\""));
    let single = study(&[]);
    assert!(page("single", &single, &measurements(&single, 3)).contains("the only case"));
    assert!(page("empty", &bars, &[]).contains("there is no valid trial"));
    assert!(terminal(&findings(&bars, &[]), &bars).contains("No trial has been finished yet"));
    let crowded = study(&[
        ("layout.name", names(&["wide", "star", "star-hot"])),
        ("database.name", names(&["sqlite", "mariadb", "postgres"])),
        ("load.clients", numbers(&[1, 2, 3, 4, 5, 8, 16, 32, 64, 128])),
        ("workload.batch", numbers(&[1, 100])),
    ]);
    assert!(page("crowded", &crowded, &measurements(&crowded, 3)).contains("where throughput is highest"));
    let settings = study(&[
        ("database.config.innodb_write_io_threads", numbers(&[4, 8, 16])),
        ("load.clients", numbers(&[1, 4, 16])),
    ]);
    let said = sentences(&findings(&settings, &measurements(&settings, 24)));
    let equal = said.iter().find(|said| said.contains("innodb_write_io_threads = ") && said.contains("equal within"));
    assert!(equal.is_some(), "{said:?}");
    page("settings", &settings, &measurements(&settings, 12));
}

#[test]
fn texts_of_the_study_and_the_database_are_escaped() {
    let hostile = "<script>alert(\"x\")</script>";
    let mut study =
        study(&[("layout.name", vec![json!(hostile), json!("a & b")]), ("load.clients", vec![json!(1), json!(2)])]);
    (study.name, study.question, study.source) = (hostile.to_owned(), hostile.to_owned(), hostile.to_owned());
    let mut trials = measurements(&study, 3);
    invalidate(&mut trials, hostile, &[0], hostile);
    trials[0].errors.insert(hostile.to_owned(), 1);
    let page = page("hostile", &study, &trials);
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
}

#[test]
fn exported_lines_have_all_columns_and_read_back() {
    let study = layouts_and_clients();
    let mut trials = measurements(&study, 2);
    invalidate(&mut trials, "wide", &[1], "late, and \"saturated\"");
    trials[3].resources = None;
    let exported = table(&trials).csv();
    let lines: Vec<&str> = exported.lines().collect();
    assert_eq!(lines.len(), 1 + trials.len());
    let columns: Vec<&str> = lines[0].split(',').collect();
    let column =
        |name: &str| columns.iter().position(|column| *column == name).unwrap_or_else(|| panic!("no column {name}"));
    for (line, trial) in lines[1..].iter().zip(&trials) {
        let fields = split_csv(line);
        assert_eq!(fields.len(), columns.len(), "{line}");
        assert_eq!(fields[column("valid")], trial.is_valid().to_string());
        assert_eq!(fields[column("layout.name")], trial.trial.case.levels["layout.name"].as_str().unwrap());
        assert_eq!(fields[column("throughput_per_s")].parse::<f64>().unwrap(), trial.throughput_per_s());
        assert_eq!(fields[column("server_cpu")].is_empty(), trial.resources.is_none());
        assert!(fields[column("response_time_s_p99")].parse::<f64>().unwrap() > 0.0);
    }
    assert!(exported.contains("\"late, and \"\"saturated\"\"\""));
    let back: Vec<Measurement> = jsonl(&trials).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(back.len(), trials.len());
    assert_eq!(findings(&study, &back).cases[0].throughput_per_s, findings(&study, &trials).cases[0].throughput_per_s);
    assert_eq!(table(&[]).csv().lines().count(), 1);
}

/// Splits a line of comma-separated values, quotes included.
fn split_csv(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

/// Two databases that are equally fast at their best: one whatever the clients, the other with 2 of them.
fn of_equal_bests(study: &Study, base: &[Measurement], noise: f64, random: &mut Random) -> Vec<Measurement> {
    let mut trials = base.to_vec();
    for trial in &mut trials {
        let levels = &trial.trial.case.levels;
        let is_peaked = levels["database.name"] == "mysql" && levels["load.clients"] != 2;
        let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let wanted_per_s = if is_peaked { 600.0 } else { 1000.0 } * (noise * normal).exp();
        trial.measured_s *= trial.throughput_per_s() / wanted_per_s;
    }
    assert_eq!(trials.len(), study.cases.len() * 6);
    trials
}

#[test]
fn alternatives_that_are_equal_at_their_best_are_not_called_fastest_and_the_best_level_is_among_those_named() {
    let study = study(&[
        ("database.name", vec![json!("mariadb"), json!("mysql")]),
        ("load.clients", vec![json!(1), json!(2), json!(4)]),
    ]);
    let base = measurements(&study, 6);
    let mut random = Random::new(21);
    let (mut fastest, mut held, mut named) = (0, 0, 0);
    for _ in 0..20 {
        let found = sentences(&findings(&study, &of_equal_bests(&study, &base, 0.1, &mut random)));
        // Over all matched cases the flat one is faster; what counts is each at its best.
        let of_best = found.iter().find(|said| said.contains("each at its best")).unwrap();
        fastest += usize::from(!of_best.starts_with("undecided") && of_best.contains(" is fastest: "));
        assert!(of_best.contains("; intervals hold at 95 % for all 2 comparisons together"), "{of_best}");
        let of_ramp =
            |database: &str| found.iter().find(|said| said.starts_with(database) && said.contains("clients")).unwrap();
        held += usize::from(of_ramp("mysql: throughput is highest at load.clients = ").contains("= 2"));
        named +=
            usize::from(of_ramp("mariadb: ").contains("no level of load.clients is certainly better for throughput"));
    }
    // Of 20, 5 % are 1; three standard deviations more are 4.
    assert!(
        fastest <= 4 && held >= 16 && named >= 14,
        "{fastest} called fastest, {held} held 2, {named} told nothing apart"
    );
}

#[test]
fn claims_on_times_leave_out_cases_that_are_overloaded_as_verdicts_do() {
    let mut study = layouts_and_clients();
    for case in &mut study.cases {
        (case.settings.load.arrivals, case.settings.load.rate_per_s) = (Arrivals::Poisson, Some(1500.0));
        *case = loadline::trial::Case::new(case.levels.clone(), case.settings.clone());
    }
    study.claims.truncate(1);
    study.claims[0].metric = "response_time_mean".to_owned();
    let mut trials = measurements(&study, 6);
    trials.iter_mut().for_each(|trial| trial.carried = Some(trial.completed()));
    let whole = findings(&study, &trials).claims[0].evidence.clone();
    assert!(whole.ends_with(" in 6 matched cases"), "{whole}");
    for trial in &mut trials {
        let levels = &trial.trial.case.levels;
        if levels["layout.name"] == "star-hot" && levels["load.clients"] == 32 {
            trial.operations.values_mut().for_each(|operation| operation.abandoned = 500);
        }
    }
    let without = findings(&study, &trials).claims[0].evidence.clone();
    assert!(without.contains(" in 5 matched cases; 1 of 6 left out, because a side is overloaded there"), "{without}");
}

#[test]
fn a_rehearsal_has_no_verdict_on_what_it_made_smaller() {
    let mut study = layouts_and_clients();
    let trials = measurements(&study, 6);
    let verdict = |study: &Study| findings(study, &trials).claims[0].clone();
    assert_eq!(verdict(&study).verdict, ClaimVerdict::Reproduced);
    study.quick = true;
    assert_eq!(verdict(&study).verdict, ClaimVerdict::Reproduced, "nothing that the claim depends on became smaller");
    let smaller = |setting: &str, is_length: bool| Smaller {
        setting: setting.to_owned(),
        from: "1MB".to_owned(),
        to: "20000B".to_owned(),
        is_length,
    };
    study.shrunk.smaller = vec![smaller("load.duration", true)];
    assert_eq!(verdict(&study).verdict, ClaimVerdict::Reproduced, "a shorter load makes wider intervals");
    study.shrunk.smaller = vec![smaller("blocks.size", false)];
    let found = verdict(&study);
    let begins =
        "only the study without --quick can answer this; --quick made blocks.size smaller (20000B instead of 1MB)";
    assert!(found.verdict == ClaimVerdict::Undecided && found.evidence.starts_with(begins), "{found:?}");
    assert!(found.evidence.contains("; rehearsed: ratio 0."), "{found:?}");
}
