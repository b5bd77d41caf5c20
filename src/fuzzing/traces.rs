//! Traces: a trace captured from any log can be read, and its statements are sent once, in order.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::sync::Arc;

use crate::draft::seen::read_log;
use crate::draft::sql::Grammar;
use crate::draft::traced::Tracer;
use crate::fuzzed::{Target, texts};
use crate::record::Cells;
use crate::trace::{Replay, Trace};

/// Logs from which traces are made, and files that claim to be traces.
pub(super) static TRACES: Target = Target {
    name: "traces",
    run: |input| {
        let (which, content) = input.split_first().map_or((0, input), |(which, content)| (*which, content));
        if which % 3 == 2 {
            if let Ok(trace) = Trace::read(&mut Cursor::new(content)) {
                hold(trace, which >= 128);
            }
            return;
        }
        let mut tracer = Tracer::new([Grammar::POSTGRES, Grammar::MYSQL][usize::from(which) % 3]);
        if read_log(&mut Cursor::new(content), "", &mut tracer).is_err() {
            return;
        }
        let Ok(traced) = tracer.finish() else { return };
        let mut file = Vec::new();
        if traced.write(&["a.log".to_owned()], "now", &mut file).is_err() {
            return;
        }
        match Trace::read(&mut file.as_slice()) {
            Ok(trace) => {
                assert_eq!(trace.events.len(), traced.events());
                hold(trace, which >= 128);
            }
            // A log may span years; a trace may not.
            Err(fault) => assert!(fault.what.contains("30 days"), "{fault}\n{}", String::from_utf8_lossy(&file)),
        }
    },
    seeds: || {
        let mut seeds = texts(&[
            "\u{0}2026-11-26 06:22:55.500 UTC [12] me@shop LOG:  duration: 1.5 ms  execute s1: SELECT id FROM orders WHERE customer = $1 AND at > $2\n2026-11-26 06:22:55.500 UTC [12] me@shop DETAIL:  parameters: $1 = '7', $2 = NULL\n2026-11-26 06:22:55.501 UTC [13] me@shop LOG:  statement: BEGIN\n",
            "\u{0}{\"timestamp\":\"2026-11-26 06:22:55.500 UTC\",\"session_id\":\"65f1a2b3.1\",\"dbname\":\"shop\",\"message\":\"statement: UPDATE orders SET state = '\\\\x00ff' WHERE id IN (1,2)\"}\n",
            "\u{1}# Time: 261126  6:22:55\n# User@Host: me[me] @ localhost []\n# Thread_id: 5  Schema: shop  QC_hit: No\n# Query_time: 0.0002  Lock_time: 0.0  Rows_sent: 3  Rows_examined: 3\nSELECT count(*) FROM orders WHERE a = -1.5 AND b = 0x0f;\n",
            "\u{1}261126  6:22:55\t     5 Query\tSET autocommit=0\n\t     5 Query\tINSERT INTO orders (id, state) VALUES (1, \"it\\'s ?\")\n\t     6 Query\tROLLBACK TO a\n",
            "\u{2}{\"loadline_trace\":1}\n{\"statement\":0,\"name\":\"select t\",\"sql\":\"SELECT ?\",\"does\":\"reads\"}\n[0,1,0,[1]]\n[5,2,0,[null]]\n{\"events\":2,\"sum\":\"fa2f1b1ba9d1f1b5\"}\n",
        ]);
        seeds.extend(seeds.clone().into_iter().map(|mut seed| {
            seed[0] |= 128;
            seed
        }));
        seeds
    },
    words: &[
        "SELECT ",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "autocommit",
        "?",
        "$1",
        "'",
        "\\x",
        "0x",
        "-",
        "\n# ",
        "\t",
        "Id: ",
        "[7] ",
        "statement: ",
        "\"does\":\"begins\"",
        "[",
        "]",
        "{\"hex\":\"",
        "null",
        "1e9",
    ],
    memory: (32 << 20, 4 << 10),
    is_linear: true,
};

/// Asserts that each statement is sent once, those of a session in order and over one connection.
fn hold(trace: Trace, writes: bool) {
    let trace = Arc::new(trace);
    let Some(replay) = Replay::of(Arc::clone(&trace), None, writes) else { return };
    let (mut seen, mut connection_of, mut cells) = (HashSet::new(), HashMap::new(), Cells::new());
    for (number, sent) in replay.connections.iter().enumerate() {
        assert!(!sent.is_empty() && sent.windows(2).all(|pair| pair[0].event < pair[1].event));
        for one in sent {
            assert!(seen.insert(one.event));
            let event = &trace.events[one.event as usize];
            assert_eq!(*connection_of.entry(event.session).or_insert(number), number);
            cells.clear();
            trace.append_values(event, &mut cells);
            assert_eq!(cells.len(), trace.statements[usize::from(event.statement)].parameters as usize);
            assert!(event.at_us < replay.span_us);
        }
    }
    assert_eq!(seen.len() as u64, replay.statements);
    let names: HashSet<&String> = replay.names.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), replay.names.len());
}
