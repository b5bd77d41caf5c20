//! Runs parts of the recorder in a simulated world that fails, from seeds, and compares what they report with what really happened.
//!
//!     cargo run --release -p simulator -- --minutes 60
//!     cargo run --release -p simulator -- --seed 4711 --runs 1
//!     cargo run --release -p simulator -- --exhaustive
//!
//! Three parts: the log of segments alone; the spool, which consists of two logs, next to a database's ledger; and the recorder from its intake to its
//! database.
//!
//! Invariant: a run depends on its seed alone, so that the seed reproduces every failure. The exit status is 1 if something failed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use loadline_recorder::recorder::log as log_of_recorder;
use loadline_recorder::recorder::simulated as recorder;
use loadline_recorder::recorder::spool::simulated as spool;
use loadline_segments::segments::simulated::{self as log, Faults, Told, cuts, flips, losses};

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Log,
    Spool,
    Recorder,
}

/// Parts of the recorder in a world that fails.
#[derive(Parser)]
struct Options {
    /// What is run.
    #[arg(long, value_enum, default_value = "log")]
    part: Part,
    /// The first seed; each run has the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs, at most.
    #[arg(long)]
    runs: Option<u64>,
    /// How long, at most; one minute where neither this nor --runs is given.
    #[arg(long)]
    minutes: Option<f64>,
    /// Shows what the recorder says.
    #[arg(long)]
    log: bool,
    /// Instead: every cut, every flipped bit and every lost file of a log of 200 entries.
    #[arg(long)]
    exhaustive: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.log {
        log_of_recorder::be_silent();
    }
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

/// Runs simulated lives of the chosen part from consecutive seeds.
fn from_seeds(options: &Options) -> Result<String, Told> {
    let minutes = options.minutes.or(if options.runs.is_none() { Some(1.0) } else { None });
    let begun = Instant::now();
    let is_over = |runs: u64| {
        let is_late =
            minutes.is_some_and(|minutes| begun.elapsed() >= Duration::from_secs_f64(60.0 * minutes.clamp(0.0, 1e6)));
        is_late || options.runs.is_some_and(|most| runs >= most)
    };
    match options.part {
        Part::Log => {
            let (runs, all) = lives(options.seed, is_over, log::run, Faults::add)?;
            Ok(format!(
                "log: {} from seed {}, {}",
                shown(runs),
                options.seed,
                of_spool(&all, "frames appended", "of them")
            ))
        }
        Part::Spool => {
            let (runs, all) = lives(options.seed, is_over, spool::run, Faults::add)?;
            let all = of_spool(&all, "requests taken in", "of their records");
            Ok(format!("spool: {} from seed {}, {all}", shown(runs), options.seed))
        }
        Part::Recorder => {
            let (runs, all) = lives(options.seed, is_over, recorder::run, recorder::Faults::add)?;
            Ok(format!(
                "recorder: {} from seed {}, {all}; no record that was acknowledged is gone, and none is there twice",
                shown(runs),
                options.seed
            ))
        }
    }
}

/// Runs one life per seed until `is_over`, and returns their number and the combined faults.
fn lives<F: Default>(
    first: u64,
    is_over: impl Fn(u64) -> bool,
    run: impl Fn(u64) -> Result<F, Told>,
    add: impl Fn(&mut F, &F),
) -> Result<(u64, F), Told> {
    let (mut all, mut runs) = (F::default(), 0);
    while !is_over(runs) {
        add(&mut all, &run(first.wrapping_add(runs))?);
        runs += 1;
    }
    Ok((runs, all))
}

fn shown(runs: u64) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

fn of_spool(all: &Faults, what: &str, whose: &str) -> String {
    format!(
        "{} faults ({} power cuts, {} kills, {} failing disks, {} full disks, {} damages), {} {what}, {} {whose} damaged; \
         no value was wrong or doubled, none was lost that was not damaged, and all that were are counted",
        all.count(),
        all.cuts,
        all.kills,
        all.failures,
        all.full,
        all.damages,
        all.frames,
        all.damaged
    )
}

/// Tries every fault at every place of a small log.
fn every_one() -> Result<String, Told> {
    let (cuts, flips, losses) = (cuts()?, flips(true)?, losses()?);
    Ok(format!(
        "log of 200 entries, closed in order and killed: {cuts} cuts, {flips} flipped bits and {losses} lost files; all that is gone was damaged, and is counted"
    ))
}
