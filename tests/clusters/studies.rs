//! What the studies of clusters' tests have in common.

use super::program::Scratch;

/// One trial of each case.
pub const ONCE: &str = "[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
/// A load of writes alone.
pub const WRITES: &str = "rows = 100\n[workload]\nname = \"write\"";
/// A closed loop.
pub const CLOSED: &str = "clients = 4\nduration = \"5s\"\n";

/// A study of sensor records.
pub fn study(database: &str, workload: &str, load: &str, rest: &str) -> String {
    format!(
        "name = \"nodes\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\n{workload}\n[layout]\nname = \"wide\"\n\
         [load]\n{load}warmup = \"0s\"\n{ONCE}{rest}"
    )
}

/// Runs readers of a replica that gets everything 100 ms later, as threads and as processes, and checks that they see each event that much later and miss none.
pub fn readers_see_all_later(database: &str) {
    let scratch = Scratch::new();
    let load = "clients = 2\narrivals = \"constant\"\nrate = 100\nduration = \"2s\"\n";
    for run_as in ["threads", "processes"] {
        let workload = format!("[workload]\nname = \"freshness\"\n[freshness]\nevery = \"2ms\"\nrun_as = \"{run_as}\"");
        scratch.write("s.toml", &study(&format!("{database}read_from = \"replica\"\n"), &workload, load, ""));
        scratch.run_study("s.toml", run_as).expect(0);
        let trial = scratch.stored(run_as).remove(0);
        assert_eq!(trial.invalid_because, [], "{:?}", trial.errors);
        let seen = trial.freshness.unwrap();
        let group = seen.groups.values().next().unwrap();
        assert!(group.expected > 0 && group.lost == 0, "{run_as}: {} of {} lost", group.lost, group.expected);
        assert!(group.freshness.min_ns() >= 99_000_000, "{run_as}: {} ns", group.freshness.min_ns());
    }
}
