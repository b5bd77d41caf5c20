//! A link that is cut while a server is measured over it.

use loadline::store::Run;

use super::program::{loadline, place};

const STUDY: &str = r#"
name = "cut"
[database]
name = "postgres"
[record]
type = "sensor"
[layout]
name = "wide"
[workload]
name = "write"
[load]
clients = 4
duration = "10s"
warmup = "0s"
[link]
rate = "100Mbit/s"
[[events]]
at = "1s"
do = "cut-link"
lasts = "1500ms"
[repeat]
rule = "fixed"
least = 1
most = 1
"#;

#[test]
fn while_a_link_is_cut_nothing_is_completed_and_behind_it_everything_goes_on() {
    if !super::is_root() {
        return;
    }
    for database in ["postgres", "mariadb"] {
        let place = place(&format!("cut-{database}"), &STUDY.replace("postgres", database));
        let output = loadline(&place, &["run", "study.toml", "--out", "run"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("its link was cut at 1"), "{said}");
        let trial = Run::open(&place.join("run")).unwrap().measurements.remove(0);
        assert_eq!((trial.failed(), &*trial.invalid_because), (0, &[][..]), "{:?}", trial.errors);
        let events = trial.events.as_ref().unwrap();
        let event = &events.events[0];
        assert!(event.away_s >= 1.5 && event.gap_s.unwrap() >= 1.4, "{events:?}");
        assert_eq!((events.lost(), events.surplus(), events.unknown), (Some(0), 0, 0), "{events:?}");
        // The clients' connections are the same as before.
        let behind_s = event.start_s + event.gap_s.unwrap();
        let completed: u64 = trial.series.iter().filter(|part| part.end_s > behind_s).map(|part| part.completed).sum();
        assert!(completed > 0, "{events:?} {:?}", trial.series);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
