//! What the index on source and time costs a recorder: two of them, with it and without, in turns. Main function: [`index`].

use std::path::Path;

use crate::Target;
use crate::clients::{Load, SOURCES};
use crate::process::Recorder;
use crate::seconds;
use crate::shared::ratio::{from_environment, median, show};

/// Rows of a request.
const ROWS: usize = 20;

/// Measures requests of 20 rows from 350 sources, each of which sends its next one after the answer, until the last row is committed: `ROUNDS` (5) times,
/// `ROUND_SECONDS` (5) each. Each recorder has a database of its own; the one that goes first changes with each round.
pub fn index(name: &'static str, directory: &Path) {
    let (rounds, lasts) = (from_environment("ROUNDS", 5.0) as usize, seconds("ROUND_SECONDS", 5.0));
    let start = |time_index: bool| {
        let target = Target::start(name, &directory.join(format!("index-{time_index}")));
        let more = format!("[layout]\nname = \"star\"\ntime_index = {time_index}\n");
        let recorder = Recorder::start_with(&target.directory, &target.lines, &more);
        (target, recorder, Vec::new(), 0)
    };
    let mut both = [start(true), start(false)];
    for round in 0..rounds {
        for place in [round % 2, 1 - round % 2] {
            let (_, recorder, rates, acknowledged) = &mut both[place];
            let sent = Load { senders: SOURCES, batch: ROWS, per_s: None, lasts, at_ns: None }.send(recorder.http);
            rates.push(sent.rows as f64 / (sent.elapsed_s + recorder.drained()));
            *acknowledged += sent.rows;
        }
    }
    let [(_, _, with, _), (_, _, without, _)] = &both;
    let ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
    println!(
        "{name}: {:.0} rows/s with the index on source and time, {:.0} without; ratio {} (median of {rounds} rounds [95 % interval, or smallest \
         and largest])\n    rounds: {with:.0?}, without {without:.0?}",
        median(with),
        median(without),
        show(&ratios)
    );
    for (target, recorder, _, acknowledged) in both {
        target.check(&recorder, acknowledged);
        recorder.stop();
    }
}
