//! Checks that a wire whose input comes in small pieces gives the same answers as the blocking session.

use super::*;
use crate::database::Wire;
use crate::database::session::Channel;
use crate::random::Stream;

pub const CHECKS: &[Check] = &[(
    "pieces of any size make no difference",
    &[Capability::BrokenBatches, Capability::Updates],
    pieces_make_no_difference,
)];

type Answers = Vec<(Result<Answer, DatabaseError>, Cells)>;

fn pieces_make_no_difference(bench: &Bench<'_>) -> Outcome {
    let requests = requests(bench);
    let mut session = bench.connect()?;
    let mut right = Answers::new();
    for request in &requests {
        let mut rows = Cells::new();
        let outcome = session.execute(request, Some(&mut rows));
        right.push((outcome, rows));
    }
    if session.into_wire().is_err() {
        return Ok(());
    }
    for pieces in [
        Pieces::Of(1),
        Pieces::Of(7),
        Pieces::Random(1, Stream::seeded(1)),
        Pieces::Random(2, Stream::seeded(2)),
        Pieces::Whole,
    ] {
        bench.fresh_tables()?;
        let Ok(mut wire) = bench.connect()?.into_wire() else {
            return Err(Failure("one session became a wire and the next did not".into()));
        };
        let name = pieces.name();
        let answers = drive(&mut *wire, &requests, pieces)?;
        for (number, ((outcome, rows), (right, right_rows))) in answers.iter().zip(&right).enumerate() {
            ensure(outcome == right, || format!("{name}, request {number}: expected {right:?} and got {outcome:?}"))?;
            same(rows, right_rows).map_err(|Failure(text)| Failure(format!("{name}, request {number}: {text}")))?;
        }
    }
    Ok(())
}

/// The size of the pieces in which the input is shown.
enum Pieces {
    Of(usize),
    Random(u64, Stream),
    Whole,
}

impl Pieces {
    fn name(&self) -> String {
        match self {
            Pieces::Of(bytes) => format!("pieces of {bytes}"),
            Pieces::Random(seed, _) => format!("random pieces, seed {seed}"),
            Pieces::Whole => "whole pieces".into(),
        }
    }

    fn next(&mut self) -> usize {
        match self {
            Pieces::Of(bytes) => *bytes,
            Pieces::Random(_, random) => 1 + random.below(40) as usize,
            Pieces::Whole => usize::MAX,
        }
    }
}

fn drive(wire: &mut dyn Wire, requests: &[Request], mut pieces: Pieces) -> Result<Answers, Failure> {
    let mut channel = Channel::over(wire.fd(), wire.secure());
    let mut answers = Answers::new();
    for request in requests {
        wire.keep_rows(Some(Cells::new()));
        // Bytes that the caller has already put there must stay.
        let mut out = b"own".to_vec();
        wire.start(request, &mut out);
        ensure(out.starts_with(b"own"), || "start did not append".into())?;
        channel.send(&out[3..])?;
        let mut shown = 0;
        let outcome = loop {
            if shown == channel.input().len() {
                channel.receive()?;
            }
            shown = shown.saturating_add(pieces.next()).min(channel.input().len());
            out.clear();
            let progress = wire.advance(request, &channel.input()[..shown], &mut out);
            channel.consume(progress.consumed);
            shown -= progress.consumed;
            channel.send(&out)?;
            if let Some(outcome) = progress.outcome {
                break outcome;
            }
        };
        ensure(channel.input().is_empty(), || format!("{} bytes were left over", channel.input().len()))?;
        answers.push((outcome, wire.keep_rows(None).unwrap_or_default()));
    }
    Ok(answers)
}

/// Returns requests of every shape, good and bad.
fn requests(bench: &Bench<'_>) -> Vec<Request> {
    let bulk = |first: i64, rows: i64| {
        one(INSERT_SAMPLE, rows as u32, Expect::Changed(rows as u64), |cells| {
            (first..first + rows).for_each(|id| sample::plain(id, cells));
        })
    };
    let range = |statement: u16, from: i64, to: i64| bench.read_range(statement, from..to, Expect::Rows);
    let edges = (0..sample::EDGES).filter(|case| *case != 1);
    let mut requests: Vec<_> =
        edges.map(|case| one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::edge(case, case, cells))).collect();
    requests.extend((0..sample::EDGES).map(read));
    requests.push(insert(3));
    requests.push(bulk(100, 150));
    requests.push(bulk(200, 100));
    requests.push(range(COUNT_SAMPLES, 0, 1000));
    requests.push(range(COUNT_SAMPLES, 5000, 6000));
    requests.push(one(INSERT_WIDE, 40, Expect::Changed(40), |cells| (0..40).for_each(|id| sample::wide(id, cells))));
    requests.push(range(READ_WIDE, 0, 40));
    let mut steps = insert(900);
    step(&mut steps, READ_SAMPLE, 1, Expect::Rows, |cells| cells.int(900));
    step(&mut steps, INSERT_SAMPLE, 30, Expect::Changed(30), |cells| {
        (901..931).for_each(|id| sample::plain(id, cells));
    });
    step(&mut steps, READ_SAMPLE, 1, Expect::Rows, |cells| cells.int(5000));
    step(&mut steps, UPDATE_SAMPLE, 1, Expect::Changed(1), |cells| {
        cells.int(5);
        cells.int(930);
    });
    requests.push(steps.clone());
    // The same request again fails at its first step; a later one fails at its last.
    requests.push(steps.clone());
    let mut fails_last = insert(950);
    step(&mut fails_last, READ_SAMPLE, 1, Expect::Rows, |cells| cells.int(950));
    step(&mut fails_last, UPDATE_SAMPLE, 1, Expect::Changed(1), |cells| {
        cells.int(5);
        cells.int(5000);
    });
    requests.push(fails_last);
    requests.push(read(931));
    requests.push(read(930));
    requests.push(range(COUNT_SAMPLES, 900, 1000));
    requests
}
