//! What the studies of clusters' tests have in common.

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
