//! Checks that a refused request leaves nothing behind, is named, and leaves the connection usable, and that a lost connection is reported.

use super::*;

/// The capabilities that a dry run requires.
const DRY_RUNS: &[Capability] = &[Capability::Sql, Capability::Transactions, Capability::DryRuns];

pub const CHECKS: &[Check] = &[
    ("a duplicate key is refused and the connection stays usable", &[Capability::Counts], duplicates_are_refused),
    (
        "a second row takes the place of the first where keys do not show it",
        &[Capability::Updates, Capability::Deletes],
        second_rows_replace,
    ),
    ("a failing step undoes the steps before it", &[Capability::Counts], failing_steps_undo_all),
    (
        "rows written together are all written or none",
        &[Capability::Batches, Capability::Counts],
        failing_rows_undo_all,
    ),
    (
        "rows written together are none written where one of them cannot be",
        &[Capability::Batches],
        impossible_rows_leave_none,
    ),
    (
        "a step with an unexpected number of changes undoes the steps before it",
        &[Capability::Updates, Capability::Counts],
        unexpected_changes_undo_all,
    ),
    ("an error while preparing is named with the text", &[Capability::Sql], bad_texts_are_named),
    ("an error of a text statement leaves the connection usable", &[Capability::Sql], bad_commands_are_refused),
    ("a killed connection is lost, and a new one works", &[Capability::Sql], killed_connections_are_lost),
    ("a dry run goes on behind what is refused, and nothing of it stays", DRY_RUNS, dry_runs_tell_good_from_bad),
    ("a dry run that is kept has all that was taken, and nothing that was refused", DRY_RUNS, dry_runs_can_be_kept),
    (
        "an insert that passes over what is there stores the others as a plain one does",
        &[Capability::Sql],
        inserts_pass_over_what_is_there,
    ),
];

/// Returns a request that inserts samples in one step.
fn insert_all(ids: &[i64]) -> Request {
    let rows = ids.len();
    one(INSERT_SAMPLE, rows as u32, Expect::Changed(rows as u64), |cells| {
        ids.iter().for_each(|id| sample::plain(*id, cells));
    })
}

/// Returns a request that inserts each sample in a step of its own.
fn insert_apart(ids: &[i64]) -> Request {
    let mut request = Request::default();
    for id in ids {
        step(&mut request, INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::plain(*id, cells));
    }
    request
}

fn dry_runs_tell_good_from_bad(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let session = in_sql(&mut session)?;
    session.execute(&insert(1), None)?;
    for _ in 0..2 {
        session.begin_dry_run()?;
        attempt_groups(session)?;
        session.end_dry_run()?;
        let seen = bench.seen_by_others(0..1_000)?;
        ensure(seen == 1, || format!("{} rows of a dry run are visible", seen - 1))?;
    }
    answered(session, &insert(900), Answer { changed: 1, ..Answer::default() })?;
    let seen = bench.seen_by_others(0..1_000)?;
    ensure(seen == 2, || "what follows a dry run is not committed".into())
}

fn dry_runs_can_be_kept(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let session = in_sql(&mut session)?;
    session.execute(&insert(1), None)?;
    session.begin_dry_run()?;
    attempt_groups(session)?;
    session.keep_dry_run()?;
    let seen = bench.seen_by_others(0..1_000)?;
    ensure(seen == 1 + TAKEN, || format!("{} rows of {TAKEN} are kept", seen - 1))?;
    // The last attempt was refused, as a single row and as one of several rows.
    for (first, last) in [(400, insert(400)), (410, insert_all(&[412, 413, 410, 414]))] {
        session.begin_dry_run()?;
        session.attempt(&insert(first))?;
        let refused = session.attempt(&last);
        ensure(refused.is_err(), || "what is there already is taken".into())?;
        session.keep_dry_run()?;
        let seen = bench.seen_by_others(first..first + 10)?;
        ensure(seen == 1, || format!("{seen} rows are kept and not one"))?;
    }
    answered(session, &insert(900), Answer { changed: 1, ..Answer::default() })?;
    let seen = bench.seen_by_others(900..901)?;
    ensure(seen == 1, || "what follows is not committed".into())
}

fn inserts_pass_over_what_is_there(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let session = in_sql(&mut session)?;
    session.execute(&insert(1), None)?;
    let plain = &bench.program.statements[usize::from(INSERT_SAMPLE)];
    let Some(passing) = session.prepare_passing_over(plain, ROWS_MAX)? else {
        return Ok(());
    };
    // Every seventh sample exists already, and the last one occurs twice.
    let ids: Vec<_> = (100..2_100).map(|id| if id % 7 == 0 { 1 } else { id }).chain([5_000, 5_000]).collect();
    let over = ids.iter().filter(|id| **id == 1).count() as u64 + 1;
    let rows = ids.len() as u64;
    let request = one(passing.statement, rows as u32, Expect::Anything, |cells| {
        ids.iter().for_each(|id| sample::plain(*id, cells));
    });
    session.begin_dry_run()?;
    for _ in 0..2 {
        let changed = session.attempt(&request)?.changed;
        let right = if passing.counts_all { rows } else { rows - over };
        ensure(changed == right, || format!("{changed} of {rows} rows were changed instead of {right}"))?;
        session.undo_attempt();
    }
    session.attempt(&request)?;
    session.keep_dry_run()?;
    let seen = bench.seen_by_others(0..10_000)?;
    ensure(seen == rows - over + 1, || format!("{seen} rows are there, and {over} of {rows} were passed over"))?;
    // The insert stores the same values as a plain one.
    let edges = |statement, first: i64, expect| {
        one(statement, sample::EDGES as u32, expect, |cells| {
            (0..sample::EDGES).for_each(|case| sample::edge(first + case, case, cells));
        })
    };
    session.execute(&edges(passing.statement, 20_000, Expect::Anything), None)?;
    session.execute(&edges(INSERT_SAMPLE, 30_000, Expect::Changed(sample::EDGES as u64)), None)?;
    for case in 0..sample::EDGES {
        let mut read_row = |id: i64| -> Result<Vec<String>, Failure> {
            let mut cells = Cells::new();
            session.execute(&read(id), Some(&mut cells))?;
            Ok(cells.as_slice().iter().skip(1).map(|cell| format!("{:?}", cells.to_json(*cell))).collect())
        };
        let (passed, right) = (read_row(20_000 + case)?, read_row(30_000 + case)?);
        ensure(passed == right && !right.is_empty(), || format!("case {case}: {passed:?} instead of {right:?}"))?;
    }
    answered(session, &insert(9_000), Answer { changed: 1, ..Answer::default() })
}

/// The number of samples that [`attempt_groups`] leaves in a dry run.
const TAKEN: u64 = 316;

/// Attempts good and bad requests in a dry run, where sample 1 exists; each must succeed or be refused as expected.
fn attempt_groups(session: &mut dyn Session) -> Outcome {
    // For each request, in one round trip or many: true if it must be refused.
    let groups = [
        vec![(insert(1), true), (insert(2), false), (insert(2), true), (insert(3), false), (insert(3), true)],
        vec![(insert_all(&[4, 5, 2, 6]), true), (insert_all(&[4, 5, 6, 7]), false)],
        vec![(insert(8), false), (insert_apart(&[9, 10, 1]), true), (insert_apart(&[9, 10]), false), (insert(9), true)],
        vec![(insert_apart(&[11, 8]), true)],
        vec![(insert(8), true), (insert(11), false), (insert(12), false)],
        vec![(insert_all(&[13, 14, 15, 16]), false), (insert(12), true)],
        (20..320).flat_map(|id| [(insert(id), false), (insert(id - 1), id > 20)]).collect(),
        (20..320).map(|id| (insert(id), true)).collect(),
    ];
    for (place, group) in groups.into_iter().enumerate() {
        let (requests, right): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let outcomes = if requests.len() > 1 {
            session.attempt_each(&requests)
        } else {
            requests.iter().map(|request| session.attempt(request).map(drop)).collect()
        };
        let found: Vec<_> = outcomes.iter().map(Result::is_err).collect();
        ensure(found == right, || format!("group {place}: {outcomes:?}"))?;
    }
    Ok(())
}

fn duplicates_are_refused(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    for _ in 0..3 {
        let (code, message) = refused(&mut *session, &insert(1))?;
        // Where keys do not exclude a second row, the number of changed rows reveals it.
        let is_told = !message.is_empty() && (!code.is_empty() || !bench.has(Capability::Sql));
        ensure(is_told, || "the refusal has no code or message".into())?;
        answered(&mut *session, &read(1), Answer { rows: 1, ..Answer::default() })?;
    }
    answered(&mut *session, &insert(2), Answer { changed: 1, ..Answer::default() })?;
    let seen = bench.seen_by_others(0..10)?;
    ensure(seen == 2, || format!("expected 2 samples and got {seen}"))
}

/// Steps of one request take effect in their order, also where they write the same row.
fn second_rows_replace(bench: &Bench<'_>) -> Outcome {
    if bench.has(Capability::Counts) {
        return Ok(());
    }
    let mut session = bench.connect()?;
    let edge = |id: i64, case: i64| one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::edge(id, case, cells));
    for case in [3, 4] {
        let request = edge(1, case);
        answered(&mut *session, &request, Answer { changed: 1, ..Answer::default() })?;
        let mut found = Cells::new();
        session.execute(&read(1), Some(&mut found))?;
        ensure(found.get(1) == request.cells.get(1), || format!("the row has {:?}", found.get(1)))?;
    }
    for round in 0..20 {
        let mut both = edge(2, 5);
        let right = i64::from(round % 2 == 0) * 30_000 - 15_000;
        for value in [-right, right] {
            step(&mut both, UPDATE_SAMPLE, 1, Expect::Changed(1), |cells| {
                cells.int(value);
                cells.int(2);
            });
        }
        answered(&mut *session, &both, Answer { changed: 3, ..Answer::default() })?;
        let mut found = Cells::new();
        session.execute(&read(2), Some(&mut found))?;
        ensure(found.get(1) == Cell::Int(right), || {
            format!("the last step wrote {right}, and {:?} is there", found.get(1))
        })?;
    }
    let mut gone = edge(3, 5);
    step(&mut gone, DELETE_SAMPLE, 1, Expect::Changed(1), |cells| cells.int(3));
    session.execute(&gone, None)?;
    let seen = bench.seen_by_others(0..10)?;
    ensure(seen == 2, || format!("expected 2 samples and got {seen}"))
}

/// Executes a request that must be refused and leave none of the samples behind, and then one that must succeed.
fn undone(bench: &Bench<'_>, session: &mut dyn TargetSession, request: &Request, ids: std::ops::Range<i64>) -> Outcome {
    refused(session, request)?;
    if bench.has(Capability::Transactions) {
        let seen = bench.seen_by_others(ids.clone())?;
        ensure(seen == 0, || format!("{seen} rows of the refused request are visible"))?;
    }
    let next = ids.end;
    answered(session, &insert(next), Answer { changed: 1, ..Answer::default() })?;
    let seen = bench.seen_by_others(next..next + 1)?;
    ensure(seen == 1, || "what follows a refused request is not committed".into())
}

fn failing_steps_undo_all(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    // The position of the failing step must not matter.
    for (round, failing) in [0, 1, 3].into_iter().enumerate() {
        let first = 100 * (round as i64 + 1);
        let mut request = Request::default();
        for number in 0..4 {
            let id = if number == failing { 1 } else { first + number };
            step(&mut request, INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::plain(id, cells));
        }
        undone(bench, &mut *session, &request, first..first + 50)?;
    }
    Ok(())
}

fn failing_rows_undo_all(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    for (round, (rows, failing)) in [(7, 6), (1000, 999), (1075, 1074), (3000, 2999), (3000, 0)].into_iter().enumerate()
    {
        let first = 10_000 * (round as i64 + 1);
        let request = one(INSERT_SAMPLE, rows as u32, Expect::Changed(rows), |cells| {
            for number in 0..rows as i64 {
                sample::plain(if number == failing { 1 } else { first + number }, cells);
            }
        });
        undone(bench, &mut *session, &request, first..first + 5000)
            .map_err(|Failure(text)| Failure(format!("{rows} rows: {text}")))?;
    }
    Ok(())
}

/// A null in the key, where a second row with the same key cannot be the one that fails.
fn impossible_rows_leave_none(bench: &Bench<'_>) -> Outcome {
    if bench.has(Capability::Counts) {
        return Ok(());
    }
    let mut session = bench.connect()?;
    for (round, failing) in [0, 3, 6].into_iter().enumerate() {
        let first = 100 * (round as i64 + 1);
        let request = one(INSERT_SAMPLE, 7, Expect::Changed(7), |cells| {
            for number in 0..7 {
                let from = cells.len();
                sample::plain(first + number, cells);
                if number == failing {
                    cells.replace(from, Cell::Null);
                }
            }
        });
        refused(&mut *session, &request)?;
        let seen = bench.seen_by_others(first..first + 50)?;
        ensure(seen == 0, || format!("{seen} rows of the refused request are visible"))?;
        answered(&mut *session, &insert(first + 50), Answer { changed: 1, ..Answer::default() })?;
    }
    Ok(())
}

fn unexpected_changes_undo_all(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let mut request = insert(5);
    step(&mut request, UPDATE_SAMPLE, 1, Expect::Changed(1), |cells| {
        cells.int(7);
        cells.int(9999);
    });
    undone(bench, &mut *session, &request, 1..50)
}

fn bad_texts_are_named(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.target.open()?;
    let sql = "SELEC nonsense FROM nowhere WHERE x = ?";
    let statement = Statement::Sql { sql: sql.into(), allow_empty: false, form: Default::default() };
    let program = Program { statements: vec![statement], rows_max: 1, ..Program::default() };
    match session.prepare(&program) {
        Err(DatabaseError::Refused { code, message }) => {
            ensure(message.contains("SELEC nonsense FROM nowhere"), || format!("{message:?} does not name the text"))?;
            ensure(!code.is_empty(), || "the refusal has no code".into())?;
        }
        other => return Err(Failure(format!("expected a refusal and got {other:?}"))),
    }
    session.prepare(&bench.program)?;
    answered(&mut *session, &insert(1), Answer { changed: 1, ..Answer::default() })
}

fn bad_commands_are_refused(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let session = in_sql(&mut session)?;
    for sql in ["SELECT * FROM there_is_no_such_table", "nonsense"] {
        let run = session.run(sql);
        ensure(matches!(run, Err(DatabaseError::Refused { .. })), || format!("{sql}: got {run:?}"))?;
        let query = session.query(sql);
        ensure(matches!(query, Err(DatabaseError::Refused { .. })), || format!("{sql}: got {query:?}"))?;
    }
    answered(session, &insert(1), Answer { changed: 1, ..Answer::default() })
}

/// Returns how a connection learns its number, and how another one ends it; `None` for databases without connections to end.
fn kill(bench: &Bench<'_>) -> Result<Option<(&'static str, &'static str, &'static str)>, Failure> {
    let of_mysql = Some(("SELECT CONNECTION_ID()", "KILL ", ""));
    let of_postgres = Some(("SELECT pg_backend_pid()", "SELECT pg_terminate_backend(", ")"));
    match bench.target.name() {
        "mariadb" | "mysql" => Ok(of_mysql),
        "postgres" => Ok(of_postgres),
        "odbc" => {
            let version = bench.target.open()?.version()?;
            let of = |name: &str| version.starts_with(name);
            Ok(if of("PostgreSQL") { of_postgres } else { of_mysql.filter(|_| of("MariaDB")) })
        }
        _ => Ok(None),
    }
}

fn killed_connections_are_lost(bench: &Bench<'_>) -> Outcome {
    let Some((number, before, after)) = kill(bench)? else {
        return Ok(());
    };
    let (mut victim, mut other) = (bench.connect()?, bench.connect()?);
    victim.execute(&insert(1), None)?;
    let rows = in_sql(&mut victim)?.query(number)?;
    let number = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    in_sql(&mut other)?.query(&format!("{before}{number}{after}"))?;
    // The server closes the connection in its own time; until then it may still answer.
    let mut outcome = victim.execute(&read(1), None);
    for _ in 0..200 {
        if outcome.is_err() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        outcome = victim.execute(&read(1), None);
    }
    ensure(matches!(outcome, Err(DatabaseError::Lost(_))), || format!("expected a loss and got {outcome:?}"))?;
    answered(&mut *bench.connect()?, &read(1), Answer { rows: 1, ..Answer::default() })
}
