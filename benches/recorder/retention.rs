//! What it costs a recorder that it deletes old readings meanwhile: two of them, of which one has `[retention]`, in turns. Main function: [`retention`].

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Target;
use crate::clients::{BATCH, CLIENTS, Load, SOURCES};
use crate::process::Recorder;
use crate::seconds;
use crate::shared::ratio::{from_environment, median, show};

/// Rows of a request.
const ROWS: usize = 20;
/// The end of the configuration of a recorder that keeps everything, and of one that deletes.
const LAYOUT: &str = "[layout]\nname = \"star\"\n";
const KEEPS: &str = "[layout]\nname = \"star\"\n[retention]\nkeep = \"1h\"\nevery = \"1s\"\n";
/// The age of the old rows, in nanoseconds.
const AGE_NS: i64 = 7_200_000_000_000;

struct Side {
    target: Target,
    recorder: Recorder,
    rates: Vec<f64>,
    cpu_us: Vec<f64>,
    deleted: Vec<f64>,
    acknowledged: usize,
    old: usize,
}

/// Rows in the table that are older than they may be, and all others.
fn stored(target: &Target) -> (usize, usize) {
    let entry = loadline::database::find(target.name).unwrap();
    let mut session = entry.open_sql(&target.settings, target.endpoint()).unwrap().connect().unwrap();
    let bound_ns = now_ns() - AGE_NS / 2;
    let mut count = |sign: &str| -> usize {
        let rows = session.query(&format!("SELECT COUNT(*) FROM qos_values WHERE time_ns {sign} {bound_ns}")).unwrap();
        rows[0][0].as_ref().unwrap().parse().unwrap()
    };
    (count("<"), count(">="))
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

/// Measures requests of 20 rows from 350 sources, each of which sends its next one after the answer, until the last row is committed: `ROUNDS` (5) times,
/// `ROUND_SECONDS` (5) each. Each recorder has a database of its own, with the old rows of `OLD_SECONDS` (10) of sending as fast as they are taken. It stands still while
/// the other one is measured; the one that goes first changes with each round.
pub fn retention(name: &'static str, directory: &Path) {
    let (rounds, lasts) = (from_environment("ROUNDS", 5.0) as usize, seconds("ROUND_SECONDS", 5.0));
    let start = |deletes: bool| {
        let target = Target::start(name, &directory.join(format!("retention-{deletes}")));
        let before = Recorder::start_with(&target.directory, &target.lines, LAYOUT);
        let at_ns = Some(now_ns() - AGE_NS);
        let old = Load { senders: CLIENTS, batch: BATCH, per_s: None, lasts: seconds("OLD_SECONDS", 10.0), at_ns };
        let old = old.send(before.http).rows;
        before.drained();
        before.stop();
        let more = if deletes { KEEPS } else { LAYOUT };
        let recorder = Recorder::start_with(&target.directory, &target.lines, more);
        recorder.halt(true);
        Side { target, recorder, rates: Vec::new(), cpu_us: Vec::new(), deleted: Vec::new(), acknowledged: 0, old }
    };
    let mut both = [start(true), start(false)];
    for round in 0..rounds {
        for place in [round % 2, 1 - round % 2] {
            let Side { target, recorder, rates, cpu_us, deleted, acknowledged, .. } = &mut both[place];
            let (left, cpu_s) = (stored(target).0, recorder.cpu_s());
            recorder.halt(false);
            let sent = Load { senders: SOURCES, batch: ROWS, per_s: None, lasts, at_ns: None }.send(recorder.http);
            let took_s = sent.elapsed_s + recorder.drained();
            recorder.halt(true);
            rates.push(sent.rows as f64 / took_s);
            cpu_us.push((recorder.cpu_s() - cpu_s) * 1e6 / sent.rows as f64);
            deleted.push((left - stored(target).0) as f64 / took_s);
            *acknowledged += sent.rows;
        }
    }
    let [with, without] = &both;
    let ratios = |figure: fn(&Side) -> &Vec<f64>| -> Vec<f64> {
        figure(with).iter().zip(figure(without)).map(|(with, without)| with / without).collect()
    };
    println!(
        "{name}: {:.0} rows/s while {:.0} old ones a second are deleted, {:.0} without; ratio {} (median of {rounds} rounds [95 % interval, or \
         smallest and largest]); CPU of a row {}\n    rounds: {:.0?}, without {:.0?}, deleted {:.0?}",
        median(&with.rates),
        median(&with.deleted),
        median(&without.rates),
        show(&ratios(|side| &side.rates)),
        show(&ratios(|side| &side.cpu_us)),
        with.rates,
        without.rates,
        with.deleted,
    );
    for (side, deletes) in both.into_iter().zip([true, false]) {
        side.recorder.halt(false);
        let (old, others) = stored(&side.target);
        assert_eq!(others, side.acknowledged, "rows are missing or too many");
        assert!(deletes || old == side.old, "{old} of {}", side.old);
        println!(
            "{name}: {others} rows acknowledged, {others} in the database; {old} of {} old ones are left",
            side.old
        );
        side.recorder.stop();
    }
}
