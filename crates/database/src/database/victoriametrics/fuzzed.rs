//! Fuzzing of a session that makes a table, writes, reads and counts against a hostile server, and of the answers to questions.

use super::answer::{Form, From, Out, Reads};
use super::exchange::Lines;
use super::wire::VictoriametricsWire;
use crate::database::Endpoint;
use crate::database::fuzzed_table::converse_of;
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::fuzzed::{Target, said_by_a_server};
use crate::record::{Cells, ColumnKind};

/// The bit of the first byte that makes the rest the body of an answer; the two below it select the question.
const IS_ANSWER: u8 = 64;

/// A server. The first byte selects the requests.
pub static VICTORIAMETRICS: Target = Target {
    name: "victoriametrics",
    run: |input| {
        asked(input);
    },
    seeds: || {
        let flushed = sized(b"OK");
        let none = sized(b"{\"data\":{\"result\":[]}}");
        let done = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
        let made = sized(b"{\"data\":{\"result\":[{\"metric\":{\"number\":\"id\"},\"value\":[4,\"1\"]}]}}");
        let count = sized(b"{\"data\":{\"result\":[{\"metric\":{},\"value\":[4,\"7\"]}]}}");
        let rows = sized(
            b"{\"metric\":{\"__name__\":\"t_id\"},\"values\":[1,2],\"timestamps\":[1000000000001,1000000000002]}\n\
              {\"metric\":{\"__name__\":\"t_note\"},\"values\":[7],\"timestamps\":[1000000000001]}\n",
        );
        let refused = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 14\r\n\r\n{\"error\":\"no\"}".to_vec();
        let flags = sized(b"-memory.allowedBytes=\"1GiB\"\n");
        let of = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
        let begun = [&flushed[..], &none, &done, &flushed, &count, &flushed].concat();
        vec![
            of(0, &[&begun, &done]),
            of(1, &[&begun, &done, &rows]),
            of(1, &[&begun, &done, &refused]),
            of(1, &[&flushed, &count]),
            of(2, &[&begun, &flushed, &made, &count]),
            of(3, &[&flushed, &made, &count, &flags]),
            of(5, &[&begun, &done, &rows]),
            of(
                IS_ANSWER,
                &[b"{\"data\":{\"result\":[{\"metric\":{\"s\":\"1\",\"loadline_part\":\"t0\"},\"value\":[4,\"1.002\"]},\
                    {\"metric\":{\"s\":\"1\",\"loadline_part\":\"t1\"},\"value\":[4,\"1.002\"]},\
                    {\"metric\":{\"s\":\"1\",\"loadline_part\":\"1\"},\"value\":[4,\"5\"]}]}}"],
            ),
            of(
                IS_ANSWER + 1,
                &[b"{\"data\":{\"result\":[{\"metric\":{\"loadline_part\":\"0\"},\"value\":[4,\"3\"]}]}}"],
            ),
            of(
                IS_ANSWER + 2,
                &[b"{\"data\":{\"result\":[{\"metric\":{\"loadline_part\":\"0\"},\"values\":[[6.999,\"3\"],[13.999,\"4\"]]}]}}"],
            ),
            of(IS_ANSWER + 3, &[b"{\"data\":{\"result\":[{\"metric\":{\"s\":\"4\"},\"value\":[4,\"0.5\"]}]}}"]),
        ]
    },
    words: &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 500 ",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Content-Length: ",
        "18446744073709551615\r\n\r\n",
        "0\r\n\r\n",
        "{\"data\":{\"result\":[",
        "{\"metric\":{\"__name__\":\"t_id\"},\"values\":[",
        "],\"timestamps\":[",
        "\"loadline_part\":\"t",
        "\"value\":[",
        "{\"error\":\"",
    ],
    memory: (768 << 10, 256),
    is_linear: true,
};

/// Returns an answer with its length.
fn sized(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// Returns the number of requests to such a server that were answered, or of rows in an answer.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    if first & IS_ANSWER != 0 {
        return read(first & 3, said);
    }
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let lines = Lines::new(&Endpoint::default());
    let session = WireSession::new(VictoriametricsWire::new(socket, lines));
    converse_of(session, *first, "memory.allowedBytes", ColumnKind::Int32)
}

/// Returns the number of rows in an answer.
fn read(question: u8, body: &[u8]) -> u32 {
    let form = match question {
        0 => Form::Newest(2),
        1 => Form::Aggregate,
        2 => Form::Buckets(7_000),
        _ => Form::Top,
    };
    let out = |from, kind| Out { from, kind, nullable: false };
    let outs = vec![out(From::Time, ColumnKind::Int64), out(From::Field(1), ColumnKind::Float64)];
    let reads = Reads { form, outs, source: Some("s".to_owned()), round: None };
    let mut kept = Cells::new();
    reads.read(body, Some(&mut kept)).map_or(0, |taken| {
        assert_eq!(kept.len() as u64, 2 * taken.rows);
        taken.rows as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = (VICTORIAMETRICS.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 3, 2, 0, 3, 2, 3, 1, 1, 2, 1]);
    }
}
