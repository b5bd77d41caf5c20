//! Runs parts of the recorder in a world that fails, from seeds, and holds what they say against what really happened.
//!
//!     cargo run --release -p simulator -- --minutes 60
//!     cargo run --release -p simulator -- --seed 4711 --runs 1
//!     cargo run --release -p simulator -- --exhaustive
//!
//! Invariant: a run depends on its seed alone, so that whatever fails is repeated by it. The status is 1 where something failed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use loadline_segments::segments::simulated::{Faults, Told, cuts, flips, losses, run};

/// Parts of the recorder in a world that fails.
#[derive(Parser)]
struct Options {
    /// The first seed; each run has the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs, at most.
    #[arg(long)]
    runs: Option<u64>,
    /// How long, at most; one minute where neither this nor --runs is given.
    #[arg(long)]
    minutes: Option<f64>,
    /// Instead: every cut, every flipped bit and every lost file of a log of 200 entries.
    #[arg(long)]
    exhaustive: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = if options.exhaustive { every_one() } else { from_seeds(&options) };
    match outcome {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(told) => {
            eprintln!("{told}");
            ExitCode::FAILURE
        }
    }
}

/// Lives of logs from seeds, one after the other.
fn from_seeds(options: &Options) -> Result<String, Told> {
    let minutes = options.minutes.or(if options.runs.is_none() { Some(1.0) } else { None });
    let begun = Instant::now();
    let is_over = |runs: u64| {
        let is_late =
            minutes.is_some_and(|minutes| begun.elapsed() >= Duration::from_secs_f64(60.0 * minutes.clamp(0.0, 1e6)));
        is_late || options.runs.is_some_and(|most| runs >= most)
    };
    let (mut all, mut runs) = (Faults::default(), 0);
    while !is_over(runs) {
        all.add(&run(options.seed.wrapping_add(runs))?);
        runs += 1;
    }
    Ok(format!(
        "log: {runs} runs from seed {}, {} faults ({} power cuts, {} kills, {} failing disks, {} full disks, {} damages), {} frames appended, {} of them damaged; \
         no value was wrong or doubled, none was lost that was not damaged, and all that were are counted",
        options.seed,
        all.count(),
        all.cuts,
        all.kills,
        all.failures,
        all.full,
        all.damages,
        all.frames,
        all.damaged
    ))
}

/// Everything that can befall a small log at one place.
fn every_one() -> Result<String, Told> {
    let (cuts, flips, losses) = (cuts()?, flips(true)?, losses()?);
    Ok(format!(
        "log of 200 entries, closed in order and killed: {cuts} cuts, {flips} flipped bits and {losses} lost files; all that is gone was damaged, and is counted"
    ))
}
