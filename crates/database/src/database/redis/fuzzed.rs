//! Fuzzing of a session that makes a table, writes, reads and counts against a hostile server.

use super::reply::read_part;
use super::wire::RedisWire;
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, TargetSession};
use crate::fuzzed::{Target, said_by_a_server, texts};
use crate::record::{Cells, ColumnKind};
use crate::statement::{
    ColumnRef, Comparison, Condition, Expect, Program, Request, Select, Statement, Step, Table, TableColumn,
};

/// A server. The first byte selects the requests.
pub static REDIS: Target = Target {
    name: "redis",
    run: |input| {
        asked(input);
    },
    seeds: || {
        texts(&[
            "\u{0}+OK\r\n*2\r\n$1\r\n0\r\n*0\r\n$2\r\nab\r\n:2\r\n*2\r\n$1\r\n1\r\n$1\r\na\r\n",
            "\u{1}$2\r\nab\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n*2\r\n$1\r\n1\r\n$-1\r\n",
            "\u{2}$2\r\nab\r\n*2\r\n$1\r\n7\r\n*2\r\n$3\r\nt:1\r\n$3\r\nt:2\r\n*2\r\n$1\r\n0\r\n*1\r\n$3\r\nt:1\r\n",
            "\u{3}$-1\r\n-ERR no\r\n",
        ])
    },
    words: &[
        "+OK\r\n",
        "+QUEUED\r\n",
        "*2\r\n",
        "$-1\r\n",
        ":1\r\n",
        "-ERR ",
        "$18446744073709551615\r\n",
        "*4294967295\r\n",
    ],
    memory: (256 << 10, 128),
    is_linear: true,
};

fn table() -> Table {
    let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: name != "id" };
    Table {
        name: "t".to_owned(),
        columns: vec![column("id", ColumnKind::Int64), column("note", ColumnKind::Text(40))],
        primary_key: vec!["id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
    }
}

fn program() -> Program {
    let table = table();
    let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
    let by_id = Condition { column: at("id"), kind: ColumnKind::Int64, comparison: Comparison::Equal };
    let columns = vec![at("id"), at("note")];
    let statements = vec![
        Statement::Insert { table: "t".to_owned(), columns: table.columns.clone() },
        Statement::Select(Select { columns, from: "t".to_owned(), conditions: vec![by_id], ..Select::default() }),
        Statement::Update { table: "t".to_owned(), set: table.columns[1..].to_vec(), key: table.columns[..1].to_vec() },
    ];
    Program { tables: vec![table], statements, rows_max: 10, ..Program::default() }
}

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    if let Ok(Some((_, length))) = read_part(said) {
        assert!(length <= said.len());
    }
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    converse(WireSession::new(RedisWire::new(Socket::from(std::os::fd::OwnedFd::from(ours)))), *first)
}

fn converse(mut session: WireSession<RedisWire>, first: u8) -> u32 {
    session.parts().1.follow_script(first & 32 == 0);
    let mut answered = 0;
    let mut goes_on = |outcome: Result<(), DatabaseError>| {
        answered += u32::from(outcome.is_ok());
        !matches!(outcome, Err(DatabaseError::Lost(_)))
    };
    if first & 1 == 0 && first & 2 == 0 && !goes_on(session.create_table(&table())) {
        return answered;
    }
    if !goes_on(session.prepare(&program())) {
        return answered;
    }
    let mut request = Request::default();
    request.cells.int(1);
    request.cells.text("x");
    request.cells.int(1);
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    if first & 1 != 0 {
        request.steps.push(Step { statement: 1, rows: 1, first_cell: 2, expect: Expect::Rows });
    }
    let mut rows = Cells::new();
    if first & 2 != 0 {
        goes_on(session.count_rows("t").map(drop));
        return answered;
    }
    let outcome = session.execute(&request, Some(&mut rows));
    if let Ok(answer) = &outcome {
        assert_eq!(answer.changed, 1, "an answer to one row");
        assert_eq!(rows.len() as u64, 2 * answer.rows);
    }
    if goes_on(outcome.map(drop)) {
        goes_on(session.version().and_then(|_| session.drop_table("t")));
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = (REDIS.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 2, 2, 0]);
    }
}
