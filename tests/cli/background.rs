//! A load in the background: both sides are measured, and neither counts for the other.

use crate::program::{Directory, loadline};

const STUDY: &str = r#"
name = "both"
[record]
rows = 500
per_measurement = 10
[workload]
name = "read"
[load]
clients = 2
duration = "600ms"
warmup = "100ms"
[background]
workload = "write"
clients = 1
arrivals = "constant"
rate = 40
batch = 5
[repeat]
rule = "fixed"
least = 1
"#;
