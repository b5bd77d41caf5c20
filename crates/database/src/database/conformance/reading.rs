//! Checks that written values are read back, answers count correctly, and connections see each other's work.

use super::*;

pub const CHECKS: &[Check] = &[
    ("a session tells its version", &[], versions_are_told),
    ("a session answers text queries", &[Capability::Sql], text_queries_are_answered),
    ("values at the edges of types come back, written row by row", &[], single_rows_come_back),
    (
        "values at the edges of types come back, written together",
        &[Capability::BrokenBatches],
        edges_written_together_come_back,
    ),
    ("a number that would come back as null is refused", &[], numbers_that_mean_null_are_refused),
    ("7, 1000, 1075 and 3000 wide rows in one request come back", &[Capability::BrokenBatches], many_rows_come_back),
    ("reads that find nothing count as empty, others do not", &[], empty_reads_are_counted),
    (
        "an update that changes another number of rows than expected fails",
        &[Capability::Updates, Capability::Counts],
        changes_are_counted,
    ),
    ("thousands of requests on one connection", &[], many_requests_are_answered),
    ("a connection prepares a second program in the place of the first", &[], programs_follow_each_other),
    ("a connection sees at once what another has committed", &[Capability::AtOnce], commits_are_seen),
    ("rows that are read are appended to those kept", &[], kept_rows_are_appended),
    (
        "a later step has what an earlier one read",
        &[Capability::Sql, Capability::Updates],
        answers_are_carried_to_later_steps,
    ),
    (
        "what was deleted is gone, and is not deleted again",
        &[Capability::Deletes, Capability::Counts],
        deletes_are_counted,
    ),
];

fn versions_are_told(bench: &Bench<'_>) -> Outcome {
    let version = bench.target.open()?.version()?;
    ensure(version.bytes().any(|byte| byte.is_ascii_digit()), || format!("the version {version:?} has no number"))
}

fn deletes_are_counted(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    session.execute(&insert(2), None)?;
    let delete = one(DELETE_SAMPLE, 1, Expect::Changed(1), |cells| cells.int(1));
    answered(&mut *session, &delete, Answer { changed: 1, ..Answer::default() })?;
    let again = session.execute(&delete, None);
    ensure(matches!(again, Err(DatabaseError::Miscounted(_))), || format!("deleted twice: {again:?}"))?;
    answered(&mut *session, &read(1), Answer { empty: 1, ..Answer::default() })?;
    answered(&mut *session, &read(2), Answer { rows: 1, ..Answer::default() })
}

fn answers_are_carried_to_later_steps(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let carried = |from: i64, to: i64, expect: Expect| {
        let mut request = Request::default();
        step(&mut request, READ_SAMPLE, 1, expect, |cells| cells.int(from));
        step(&mut request, UPDATE_SAMPLE, 1, Expect::Changed(1), |cells| {
            cells.null();
            cells.int(to);
        });
        request.carries = vec![Carry { step: 0, column: 1, cell: 1 }];
        request
    };
    session.execute(&insert(100), None)?;
    for case in 0..sample::EDGES {
        session.execute(&one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::edge(case, case, cells)), None)?;
        // The database may not count a row that already has the value.
        let other = one(UPDATE_SAMPLE, 1, Expect::Anything, |cells| {
            cells.int(77);
            cells.int(100);
        });
        session.execute(&other, None)?;
        let request = carried(case, 100, Expect::Rows);
        answered(&mut *session, &request, Answer { rows: 1, changed: 1, ..Answer::default() })?;
        let (mut right, mut found) = (Cells::new(), Cells::new());
        session.execute(&read(case), Some(&mut right))?;
        session.execute(&read(100), Some(&mut found))?;
        for cells in [&mut right, &mut found] {
            cells.keep_one(0, 1);
        }
        same(&found, &right).map_err(|Failure(text)| Failure(format!("sample {case}: {text}")))?;
    }
    // The value is null where no row is read; a required row that is missing undoes the whole request.
    session.execute(&insert(101), None)?;
    answered(&mut *session, &carried(99, 101, Expect::Anything), Answer { changed: 1, ..Answer::default() })?;
    let mut found = Cells::new();
    session.execute(&read(101), Some(&mut found))?;
    ensure(found.get(1) == Cell::Null, || format!("nothing was read, and {:?} was carried", found.get(1)))?;
    let (_, message) = refused(&mut *session, &carried(99, 100, Expect::RowsAtLeast(1)))?;
    ensure(message.contains("at least 1"), || format!("a row that must be there is missing, and it says: {message}"))?;
    let mut beyond = carried(1, 100, Expect::Rows);
    beyond.carries[0].column = 40;
    let (_, message) = refused(&mut *session, &beyond)?;
    ensure(message.contains("number 41 is asked for"), || format!("a value that no row has is told so: {message}"))?;
    answered(&mut *session, &read(100), Answer { rows: 1, ..Answer::default() })
}

fn text_queries_are_answered(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.target.open()?;
    let session = in_sql(&mut session)?;
    let rows = session.query("SELECT 1, NULL, 'two' UNION ALL SELECT 3, 'x', ''")?;
    let right = [vec![Some("1"), None, Some("two")], vec![Some("3"), Some("x"), Some("")]];
    ensure(
        rows.len() == 2
            && rows.iter().zip(&right).all(|(row, right)| row.iter().map(Option::as_deref).eq(right.iter().copied())),
        || format!("expected {right:?} and got {rows:?}"),
    )?;
    ensure(session.query("SELECT 1 WHERE 1 = 2")?.is_empty(), || "a query without rows had some".into())
}

fn single_rows_come_back(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    for case in 0..sample::EDGES {
        let request = one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| bench.edge(case, case, cells));
        answered(&mut *session, &request, Answer { changed: 1, ..Answer::default() })?;
        let mut found = Cells::new();
        session.execute(&read(case), Some(&mut found))?;
        same(&found, &request.cells).map_err(|Failure(text)| Failure(format!("sample {case}: {text}")))?;
    }
    Ok(())
}

fn numbers_that_mean_null_are_refused(bench: &Bench<'_>) -> Outcome {
    if bench.has(Capability::LeastNumbers) {
        return Ok(());
    }
    let mut session = bench.connect()?;
    for (place, least) in [(2, i64::from(i32::MIN)), (3, i64::MIN)] {
        let mut request = insert(1);
        request.cells.replace(place, Cell::Int(least));
        let (_, message) = refused(&mut *session, &request)?;
        ensure(message.contains("null"), || format!("{least} is refused without the reason: {message}"))?;
        answered(&mut *session, &read(1), Answer { empty: 1, ..Answer::default() })?;
    }
    answered(&mut *session, &insert(1), Answer { changed: 1, ..Answer::default() })
}

fn edges_written_together_come_back(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    // Rows with large values among small ones: more than some servers accept in one command.
    let rows = 4 * sample::EDGES;
    let request = one(INSERT_SAMPLE, rows as u32, Expect::Changed(rows as u64), |cells| {
        (0..rows).for_each(|id| bench.edge(id, id % sample::EDGES, cells));
    });
    session.execute(&request, None)?;
    let columns = request.cells.len() / rows as usize;
    for id in 0..rows {
        let mut found = Cells::new();
        session.execute(&read(id), Some(&mut found))?;
        let mut right = Cells::new();
        for cell in &request.cells.as_slice()[id as usize * columns..][..columns] {
            right.copy_from(&request.cells, *cell);
        }
        same(&found, &right).map_err(|Failure(text)| Failure(format!("sample {id}: {text}")))?;
    }
    Ok(())
}

fn many_rows_come_back(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let mut first = 0;
    for rows in [7, 1000, 1075, 3000, 1] {
        let ids = first..first + rows;
        let request = one(INSERT_WIDE, rows as u32, Expect::Changed(rows as u64), |cells| {
            ids.clone().for_each(|id| sample::wide(id, cells));
        });
        answered(&mut *session, &request, Answer { changed: rows as u64, ..Answer::default() })?;
        let range = bench.read_range(READ_WIDE, ids, Expect::Rows);
        let mut found = Cells::new();
        let answer = session.execute(&range, Some(&mut found))?;
        ensure(answer.rows == rows as u64, || format!("wrote {rows} rows and read {}", answer.rows))?;
        same(&found, &request.cells).map_err(|Failure(text)| Failure(format!("{rows} rows: {text}")))?;
        first += rows;
    }
    Ok(())
}

fn empty_reads_are_counted(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    answered(&mut *session, &read(1), Answer { rows: 1, ..Answer::default() })?;
    answered(&mut *session, &read(2), Answer { empty: 1, ..Answer::default() })?;
    let mut both = read(1);
    step(&mut both, READ_SAMPLE, 1, Expect::Rows, |cells| cells.int(2));
    step(&mut both, READ_SAMPLE, 1, Expect::Anything, |cells| cells.int(2));
    answered(&mut *session, &both, Answer { rows: 1, empty: 1, ..Answer::default() })
}

fn changes_are_counted(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    let update = |id: i64| {
        one(UPDATE_SAMPLE, 1, Expect::Changed(1), |cells| {
            cells.int(77);
            cells.int(id);
        })
    };
    let changed = Answer { changed: 1, ..Answer::default() };
    answered(&mut *session, &update(1), changed)?;
    // The row is found although its value stays the same.
    answered(&mut *session, &update(1), changed)?;
    let outcome = session.execute(&update(2), None);
    let is_told = |found: &Miscount| found.is_of_changes && (found.rows, found.right, found.is_least) == (0, 1, false);
    ensure(matches!(&outcome, Err(DatabaseError::Miscounted(found)) if is_told(found)), || format!("got {outcome:?}"))?;
    answered(&mut *session, &read(1), Answer { rows: 1, ..Answer::default() })
}

fn many_requests_are_answered(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    for id in 0..1500 {
        let request = one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| match id % 5 {
            0 => sample::edge(id, 2, cells),
            _ => sample::plain(id, cells),
        });
        session.execute(&request, None)?;
        answered(&mut *session, &read(id / 2), Answer { rows: 1, ..Answer::default() })?;
    }
    let seen = bench.seen_by_others(0..1500)?;
    ensure(seen == 1500, || format!("of 1500 samples there are {seen}"))
}

fn programs_follow_each_other(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    for id in 2..4 {
        session.prepare(&bench.program)?;
        answered(&mut *session, &insert(id), Answer { changed: 1, ..Answer::default() })?;
        answered(&mut *session, &read(1), Answer { rows: 1, ..Answer::default() })?;
    }
    Ok(())
}

fn commits_are_seen(bench: &Bench<'_>) -> Outcome {
    let (mut one, mut two) = (bench.connect()?, bench.connect()?);
    for id in 0..20 {
        let found = Answer { rows: 1, ..Answer::default() };
        let mut pair = insert(2 * id);
        step(&mut pair, INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::plain(2 * id + 1, cells));
        one.execute(&pair, None)?;
        answered(&mut *two, &read(2 * id + 1), found)?;
        two.execute(&insert(1000 + id), None)?;
        answered(&mut *one, &read(1000 + id), found)?;
    }
    Ok(())
}

fn kept_rows_are_appended(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let (mut found, mut right) = (Cells::new(), Cells::new());
    for id in 0..3 {
        session.execute(&insert(id), None)?;
        session.execute(&read(id), Some(&mut found))?;
        sample::plain(id, &mut right);
    }
    same(&found, &right)
}
