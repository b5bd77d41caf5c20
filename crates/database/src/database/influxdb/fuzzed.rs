//! Fuzzing of a session that makes a table, writes, reads and counts against a hostile server.

use super::exchange::Lines;
use super::wire::InfluxdbWire;
use crate::database::Endpoint;
use crate::database::fuzzed_table::converse;
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::fuzzed::{Target, said_by_a_server};

/// A server. The first byte selects the requests.
pub static INFLUXDB: Target = Target {
    name: "influxdb",
    run: |input| {
        asked(input);
    },
    seeds: || {
        let none = sized(b"{\"results\":[{\"statement_id\":0}]}");
        let there = sized(
            b"{\"results\":[{\"series\":[{\"name\":\"measurements\",\"columns\":[\"name\"],\"values\":[[\"t\"]]}]}]}",
        );
        let made = sized(
            b"{\"results\":[{\"series\":[{\"columns\":[\"time\",\"loadline_made\"],\"values\":[[-1,\"id\"]]}]}]}",
        );
        let count = sized(b"{\"results\":[{\"series\":[{\"columns\":[\"time\",\"count\"],\"values\":[[0,7]]}]}]}");
        let stored = b"HTTP/1.1 204 No Content\r\nX-Influxdb-Version: 1.6.7\r\n\r\n".to_vec();
        let rows = sized(
            b"\x81\xa7results\x91\x82\xacstatement_id\x00\xa6series\x91\x84\xa4name\xa1t\xa4tags\x81\xa1a\xa11\xa7columns\x93\xa4time\xa4note\xa2id\
              \xa6values\x92\x93\x01\xa1x\x01\x93\x02\xc0\xd3\x00\x00\x00\x00\x00\x00\x00\x02",
        );
        let refused = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\n\x81\xa5error\xa2no".to_vec();
        let of = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
        vec![
            of(0, &[&none, &stored, &stored]),
            of(1, &[&none, &stored, &stored, &rows]),
            of(1, &[&none, &stored, &refused]),
            of(1, &[&there]),
            of(2, &[&none, &stored, &made, &count]),
            of(3, &[&made, &count, &none]),
            of(5, &[&none, &stored, &stored, &rows]),
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
        "{\"results\":[{\"series\":[",
        "{\"error\":\"",
        "results",
        "values",
        "\u{0}",
        "\u{1}",
    ],
    memory: (768 << 10, 128),
    is_linear: true,
};

/// Returns an answer with its length.
fn sized(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let lines = Lines::new(&Endpoint::default());
    converse(
        WireSession::new(InfluxdbWire::new(socket, lines, String::new(), "1.6.7".to_owned())),
        *first,
        "data.wal-fsync-delay",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = (INFLUXDB.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 3, 2, 1, 3, 2, 3]);
    }
}
