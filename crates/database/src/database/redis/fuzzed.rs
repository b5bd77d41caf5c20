//! Fuzzing of a session that makes a table, writes, reads and counts against a hostile server.

use super::replica::COPYING;
use super::reply::read_part;
use super::wire::RedisWire;
use crate::database::fuzzed_table::{self, at, insert, select, table, update};
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::database::{Clustered, TargetSession};
use crate::fuzzed::{Target, said_by_a_server, texts};
use crate::record::Cells;
use crate::statement::{Comparison, Expect, Limit, Program, Request, Select, Statement, Step, Table};

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
            "\u{41}$2\r\nab\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n*2\r\n$1\r\n1\r\n$-1\r\n:1\r\n",
            "\u{15}*2\r\n*2\r\n$3\r\n0-1\r\n*4\r\n$2\r\nid\r\n$1\r\n7\r\n$4\r\nnote\r\n$1\r\nx\r\n*2\r\n$3\r\n0-2\r\n*0\r\n",
            "\u{5}$3\r\n0-1\r\n",
            "\u{8}*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:9\r\n$25\r\naof_rewrite_in_progress:1\r\n",
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
        "$3\r\n0-1\r\n",
        "$6\r\nmaster\r\n",
    ],
    memory: (256 << 10, 128),
    is_linear: true,
};

/// The bits of the first byte, besides those that select requests as they are: rows that the server numbers, of which only the query is sent; a question to a node;
/// a script that is not followed; writes that wait for a replica.
const NUMBERED: u8 = 4;
const QUESTION: u8 = 8;
const FOLLOWS: u8 = 16;
const UNSCRIPTED: u8 = 32;
const AWAITS: u8 = 64;

fn program(is_numbered: bool) -> Program {
    if is_numbered {
        return numbered_program();
    }
    let by_id = Statement::Select(select(["id", "note"], "id", Comparison::Equal));
    fuzzed_table::program(table(), vec![insert(), by_id, update()])
}

fn numbered_program() -> Program {
    let table = Table { primary_key: vec!["number".to_owned()], numbered: true, ..table() };
    let follow = Select {
        order: vec![(at("number"), false)],
        limit: Some(Limit::Fixed(100)),
        ..select(["number", "note"], "number", Comparison::Greater)
    };
    fuzzed_table::program(table, vec![insert(), Statement::Select(follow)])
}

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    if let Ok(Some((_, length))) = read_part(said) {
        assert!(length <= said.len());
    }
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let wire = RedisWire::new(Socket::from(std::os::fd::OwnedFd::from(ours)));
    converse(WireSession::new(wire.awaiting_replica(first & AWAITS != 0)), *first)
}

fn converse(mut session: WireSession<RedisWire>, first: u8) -> u32 {
    session.parts().1.follow_script(first & UNSCRIPTED == 0);
    let mut answered = 0;
    let mut goes_on = |outcome| fuzzed_table::goes_on(outcome, &mut answered);
    if first & QUESTION != 0 {
        goes_on(session.ask(&COPYING.has_reached("9")).map(drop));
        return answered;
    }
    if first & 1 == 0 && first & 2 == 0 && !goes_on(session.create_table(&table())) {
        return answered;
    }
    if !goes_on(session.prepare(&program(first & NUMBERED != 0))) {
        return answered;
    }
    let mut request = Request::default();
    request.cells.int(1);
    request.cells.text("x");
    request.cells.int(1);
    let follows = first & NUMBERED != 0 && first & FOLLOWS != 0;
    if !follows {
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    }
    if follows || first & NUMBERED == 0 && first & 1 != 0 {
        request.steps.push(Step { statement: 1, rows: 1, first_cell: 2, expect: Expect::Rows });
    }
    let mut rows = Cells::new();
    if first & 2 != 0 {
        goes_on(session.count_rows("t").map(drop));
        return answered;
    }
    let outcome = session.execute(&request, Some(&mut rows));
    if let Ok(answer) = &outcome {
        assert_eq!(answer.changed, u64::from(!follows), "an answer to one row");
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
        assert_eq!(found, [3, 2, 2, 0, 2, 2, 2, 1]);
    }
}
