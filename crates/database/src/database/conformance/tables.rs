//! Checks that tables are made, counted and removed, that other tables stay, and that a target refuses what it cannot do.

use super::*;

pub const CHECKS: &[Check] = &[
    ("a table that is there is refused, and stays as it is", &[], tables_that_are_there_stay),
    ("rows are counted, and a table without any has none", &[], rows_are_counted),
    ("a table that was dropped is gone with its rows, and those of others are there", &[], dropped_tables_are_gone),
    ("a table that is not there is dropped without an error", &[], absent_tables_are_dropped),
    ("what its entry does not say is refused while preparing", &[], what_it_cannot_do_is_refused),
];

fn tables_that_are_there_stay(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    let again = bench.target.open()?.create_table(&bench.program.tables[0]);
    ensure(matches!(again, Err(DatabaseError::Refused { .. })), || format!("made a second time: {again:?}"))?;
    answered(&mut *session, &read(1), Answer { rows: 1, ..Answer::default() })
}

fn rows_are_counted(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.connect()?;
    let counted = |right: u64| {
        let found = bench.target.open()?.count_rows(SAMPLE)?;
        ensure(found == Some(right), || format!("{right} rows are counted as {found:?}"))
    };
    counted(0)?;
    for id in 0..2_500 {
        session.execute(&insert(id), None)?;
    }
    counted(2_500)
}

fn dropped_tables_are_gone(bench: &Bench<'_>) -> Outcome {
    // A name of which the first table's name is a prefix.
    let neighbour = Table { name: format!("{SAMPLE}2"), ..bench.program.tables[0].clone() };
    let mut session = bench.connect()?;
    session.execute(&insert(1), None)?;
    session.drop_table(&neighbour.name)?;
    session.create_table(&neighbour)?;
    session.drop_table(SAMPLE)?;
    let found = session.count_rows(&neighbour.name)?;
    session.create_table(&bench.program.tables[0])?;
    answered(&mut *bench.connect()?, &read(1), Answer { empty: 1, ..Answer::default() })?;
    bench.target.open()?.drop_table(&neighbour.name)?;
    ensure(found == Some(0), || format!("the table beside it has {found:?} rows instead of none"))
}

fn absent_tables_are_dropped(bench: &Bench<'_>) -> Outcome {
    let mut session = bench.target.open()?;
    session.drop_table("conformance_absent")?;
    session.drop_table("conformance_absent")?;
    Ok(())
}

fn what_it_cannot_do_is_refused(bench: &Bench<'_>) -> Outcome {
    // An engine without transactions accepts the statements without effect.
    if bench.has(Capability::Sql) {
        return Ok(());
    }
    let table = || SAMPLE.to_owned();
    let at = |name: &str| ColumnRef { table: table(), column: name.into() };
    let condition = |name: &str, comparison| Condition { column: at(name), kind: ColumnKind::Int64, comparison };
    let select =
        |conditions: Vec<Condition>| Select { columns: vec![at("id")], from: table(), conditions, ..Select::default() };
    let key = || vec![bench.program.tables[0].columns[0].clone()];
    let by_id = || vec![condition("id", Comparison::Equal)];
    let cases = [
        (Capability::Sql, Statement::Sql { sql: "SELECT 1".into(), allow_empty: true, form: Default::default() }),
        (Capability::Ranges, Statement::Select(select(vec![condition("id", Comparison::Less)]))),
        (Capability::Ranges, Statement::Select(select(Vec::new()))),
        (Capability::Indexes, Statement::Select(select(vec![condition("small", Comparison::Equal)]))),
        (Capability::Transactions, Statement::Select(Select { for_update: true, ..select(by_id()) })),
        (
            Capability::Updates,
            Statement::Update { table: table(), set: bench.program.tables[0].columns[1..2].to_vec(), key: key() },
        ),
        (Capability::Deletes, Statement::Delete { table: table(), key: key() }),
        (
            Capability::Documents,
            Statement::ReduceDocument { table: table(), document: "story".into(), member: "a".into(), key: key() },
        ),
    ];
    for (capability, statement) in cases.into_iter().filter(|(capability, _)| !bench.has(*capability)) {
        let program = Program { statements: vec![statement], ..bench.program.clone() };
        let outcome = bench.target.open()?.prepare(&program);
        let is_refused = matches!(outcome, Err(DatabaseError::Refused { .. }));
        ensure(is_refused, || format!("it has no {}, and prepares it: {outcome:?}", capability.name()))?;
    }
    Ok(())
}
