//! `loadline durability --recorder`: recorders with a known promise keep and lose what they must, and loadline's own keeps everything, once and in order.

use serde_json::Value;

use crate::program::{Scratch, outcome};

const KEEPER: &str = include_str!("keeper.py");

/// Writes the file of a recorder that keeps what it has acknowledged in this way.
fn keeper(scratch: &Scratch, mode: &str) {
    let script = scratch.write("keeper.py", KEEPER);
    let text = format!(
        "name = \"keeper, {mode}\"\nversion = [\"python3\", \"--version\"]\npatience = \"2s\"\n\
         command = [\"python3\", \"{}\", \"{mode}\", \"{{port}}\", \"{{store}}\", \"{{data}}\"]\n[intake]\npath = \"/write\"\n",
        script.display()
    );
    scratch.write("keeper.toml", &text);
}

/// The cases that a command tells, in its order.
fn cases(scratch: &Scratch, file: &str, faults: &[&str], cuts: &str) -> Vec<Value> {
    let faults = faults.iter().flat_map(|fault| ["--fault", *fault]);
    let arguments: Vec<&str> =
        ["durability", "--recorder", file, "--json", "--seed", "7", "--cuts", cuts].into_iter().chain(faults).collect();
    let told = outcome(&mut scratch.command(&arguments)).expect(0);
    let mut told: Value = serde_json::from_str(&told.stdout).unwrap();
    let Value::Array(cases) = told["cases"].take() else { panic!("{told}") };
    for case in &cases {
        assert!(count(case, "acknowledged") > 0 && count(case, "not_judged") == 0, "{case:#}");
        assert_eq!(count(case, "did_not_start"), 0, "{case:#}");
    }
    cases
}

fn count(case: &Value, name: &str) -> u64 {
    // Counts that are left out are zero.
    if case[name].is_null() { 0 } else { case[name].as_u64().unwrap_or_else(|| panic!("{name}: {case:#}")) }
}

/// What needs a disk that can be mounted.
mod mounted_disk {
    use super::*;

    #[test]
    fn a_recorder_that_keeps_in_memory_loses_when_it_is_killed() {
        let scratch = Scratch::new();
        keeper(&scratch, "memory");
        let found = cases(&scratch, "keeper.toml", &["kill", "store"], "3");
        assert!(count(&found[0], "lost") > 0 && found[0]["level"] == "none", "{:#}", found[0]);
        assert_eq!(
            count(&found[1], "changed") + count(&found[1], "lost"),
            0,
            "nothing has happened to the recorder: {:#}",
            found[1]
        );
    }

    #[test]
    fn a_recorder_that_writes_and_does_not_sync_loses_when_the_power_goes() {
        let scratch = Scratch::new();
        keeper(&scratch, "written");
        let found = cases(&scratch, "keeper.toml", &["power", "kill"], "4");
        // It does not notice a line that the disk kept in part: a record with a wrong time stamp is one that nobody sent.
        assert!(count(&found[0], "lost") > 0, "{:#}", found[0]);
        assert_eq!(
            (count(&found[1], "changed") + count(&found[1], "lost"), &found[1]["level"]),
            (0, &"crash".into()),
            "{:#}",
            found[1]
        );
    }

    #[test]
    fn a_recorder_that_syncs_before_it_answers_loses_nothing() {
        let scratch = Scratch::new();
        keeper(&scratch, "synced");
        let found = cases(&scratch, "keeper.toml", &["power"], "4");
        let level = &found[0]["level"];
        // An unacknowledged line that the disk kept in part is not noticed either, and is harm.
        assert_eq!(count(&found[0], "lost"), 0, "{:#}", found[0]);
        assert!(level == "power-cut" || count(&found[0], "changed") > 0, "{:#}", found[0]);
    }

    #[test]
    fn loadlines_own_keeps_everything_once_and_in_order() {
        let scratch = Scratch::new();
        for (database, layout) in [("sqlite\"\npath = \"m.db", "star"), ("postgres", "wide")] {
            let text = format!(
                "[database]\nname = \"{database}\"\n[layout]\nname = \"{layout}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n"
            );
            scratch.write("recorder.toml", &text);
            let faults: &[&str] = if database.starts_with("sqlite") { &["power"] } else { &["power", "store"] };
            for case in cases(&scratch, "recorder.toml", faults, "2") {
                let wrong = ["lost", "changed", "duplicated", "out_of_order"].map(|name| count(&case, name));
                assert_eq!(wrong, [0; 4], "{database}: {case:#}");
                assert_eq!(case["promised"], "power-cut");
            }
        }
    }
    /// Over NATS, what a killed recorder had taken is delivered again after 30 s, and nothing is stored before it.
    #[test]
    fn loadlines_own_keeps_what_came_over_tcp_and_from_a_stream() {
        let scratch = Scratch::new();
        let text = "[database]\nname = \"sqlite\"\npath = \"m.db\"\n[layout]\nname = \"star\"\n[intake.tcp]\nlisten = \"127.0.0.1:0\"\n\
                    [intake.nats]\nurl = \"nats://127.0.0.1:1\"\nstream = \"s\"\nconsumer = \"c\"\n";
        scratch.write("recorder.toml", text);
        let found = cases(&scratch, "recorder.toml", &["power"], "2");
        let intakes: Vec<&str> = found.iter().filter_map(|case| case["levels"]["recorder.intake"].as_str()).collect();
        assert_eq!(intakes, ["tcp", "nats"]);
        for case in found {
            let wrong = ["lost", "changed", "duplicated", "out_of_order"].map(|name| count(&case, name));
            assert_eq!(wrong, [0; 4], "{case:#}");
        }
    }

    /// What the store had not answered is delivered again after 30 s; it is not lost before.
    #[test]
    fn a_nats_server_that_syncs_now_and_then_loses_when_the_power_goes() {
        let scratch = Scratch::new();
        let text = "name = \"nats-server\"\nversion = [\"/usr/sbin/nats-server\", \"--version\"]\npatience = \"35s\"\n\
                    command = [\"/usr/sbin/nats-server\", \"-c\", \"{files}/n.conf\"]\n[intake]\nprotocol = \"nats\"\n[[file]]\n\
                    name = \"n.conf\"\ntext = 'listen: \"127.0.0.1:{port}\", jetstream { store_dir: \"{data}\" }'\n";
        scratch.write("nats.toml", text);
        let found = cases(&scratch, "nats.toml", &["power"], "2");
        assert!(count(&found[0], "lost") > 0 && found[0]["server"].as_str().unwrap().contains("2."), "{:#}", found[0]);
    }

    #[test]
    fn a_broker_of_mqtt_that_keeps_in_memory_loses_when_it_is_killed_and_its_page_says_so() {
        let scratch = Scratch::new();
        let text = "name = \"mosquitto\"\npatience = \"2s\"\ncommand = [\"/usr/sbin/mosquitto\", \"-c\", \"{files}/m.conf\"]\n\
                    [intake]\nprotocol = \"mqtt\"\n[[file]]\nname = \"m.conf\"\ntext = \"\"\"\nlistener {port} 127.0.0.1\n\
                    allow_anonymous true\nmax_queued_messages 0\nuser root\n\"\"\"\n";
        scratch.write("mqtt.toml", text);
        let found = cases(&scratch, "mqtt.toml", &["kill", "store"], "3");
        assert!(count(&found[0], "lost") > 0 && found[0]["level"] == "none", "{:#}", found[0]);
        assert_eq!(count(&found[1], "lost"), 0, "nothing has happened to the broker: {:#}", found[1]);
        let arguments = ["durability", "--recorder", "mqtt.toml", "--fault", "kill", "--cuts", "2", "--out", "kept"];
        outcome(&mut scratch.command(&arguments)).expect(0);
        let page = std::fs::read_to_string(scratch.0.join("kept/report.html")).unwrap();
        assert!(page.contains("mosquitto, intake = mqtt") && page.contains("allow_anonymous true"));
        let again = outcome(&mut scratch.command(&["report", "kept"])).expect(0);
        assert!(again.stdout.contains("acknowledged writes are gone"), "{}", again.stdout);
        let refused = outcome(&mut scratch.command(&["run", "kept/run.toml"])).expect(2);
        assert!(
            refused.stderr.contains("repeat it with loadline durability --recorder mqtt.toml"),
            "{}",
            refused.stderr
        );
    }
}
