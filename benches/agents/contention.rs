//! How the throughput of a closed loop grows with agents of which each brings its own clients, and the universal scalability law through it.

use loadline::queueing::fit::{Request, fit};
use loadline::queueing::points::{Point, Points};

use super::shared::ratio::{from_environment, show};
use super::{CLIENTS_EACH, Scratch, run};

/// Prints the throughput of as many agents against a database, in rounds, and what the law says of it.
pub fn contention(name: &str, database: &str, counts: &[usize]) {
    let scratch = Scratch::new();
    let rounds = from_environment("TRIALS", 5.0) as usize;
    let mut seen: Vec<(usize, Vec<f64>)> = counts.iter().map(|count| (*count, Vec::new())).collect();
    for _ in 0..rounds {
        for (agents, throughputs) in &mut seen {
            let (trials, _) = run(&scratch, &study(*agents, database), &[]);
            throughputs.extend(trials.iter().map(|trial| trial.completed() as f64 / trial.measured_s));
        }
    }
    println!("\nagents on this machine, {CLIENTS_EACH} clients each in a closed loop, {name}: operations/s");
    for (agents, throughputs) in &seen {
        println!("{agents:>5} agents: {}", show(throughputs));
    }
    let point = |agents: usize, throughput: f64| Point {
        workers: Some(agents as u32),
        throughput_per_s: Some(throughput),
        ..Point::default()
    };
    let points = seen.iter().flat_map(|(agents, throughputs)| throughputs.iter().map(move |one| point(*agents, *one)));
    let request = Request { model: "usl".to_owned(), ..Request::default() };
    match fit(&Points(points.collect()), &request) {
        Err(error) => println!("no fit: {error}"),
        Ok(report) => {
            for estimate in report.fits.iter().flat_map(|fit| &fit.parameters) {
                let interval = estimate
                    .ci95
                    .as_ref()
                    .map_or("on its bound".to_owned(), |range| format!("[{:.6}, {:.6}]", range.low, range.high));
                println!("             {} {:.6}, 95 % {interval}", estimate.name, estimate.value);
            }
        }
    }
}

fn study(agents: usize, database: &str) -> String {
    let (seconds, clients) = (from_environment("SECONDS", 5.0), agents * CLIENTS_EACH);
    format!(
        "name = \"contention\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 10_000\n[layout]\nname = \"wide\"\n[workload]\nname = \"select\"\n\
         [load]\nagents = {agents}\nclients = {clients}\nwarmup = \"1s\"\nduration = \"{seconds}s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}
