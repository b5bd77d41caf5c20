//! Fuzzing of a session that logs in, makes a table, writes, reads and counts against a hostile server.

use super::Engine;
use super::exchange::Line;
use super::settings::Own;
use super::wire::ClickhouseWire;
use crate::database::Endpoint;
use crate::database::fuzzed_table::converse;
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::fuzzed::{Target, said_by_a_server, texts};

/// A server. The first byte selects the requests.
pub static CLICKHOUSE: Target = Target {
    name: "clickhouse",
    run: |input| {
        asked(input);
    },
    seeds: || {
        let empty = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let count = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n7\n";
        let rows = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    9\r\n\u{1}\0\0\0\0\0\0\0\0\r\n4\r\n\u{2}xy\u{2}\r\n8\r\n\0\0\0\0\0\0\0\u{1}\r\n0\r\n\r\n";
        let refused = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n\
                       19\r\nCode: 60. DB::Exception: n\r\n0\r\n\r\n";
        texts(&[
            &format!("\u{0}{empty}{empty}"),
            &format!("\u{1}{empty}{empty}{rows}"),
            &format!("\u{1}{empty}{refused}"),
            &format!("\u{2}{empty}{count}{count}"),
            &format!("\u{3}{count}{count}"),
            &format!("\u{5}{empty}{empty}{rows}"),
        ])
    },
    words: &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 500 ",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Content-Length: ",
        "18446744073709551615\r\n\r\n",
        "0\r\n\r\n",
        "fffffffffffffff\r\n",
        "Code: 60. DB::Exception: ",
        "\u{0}",
        "\u{1}",
    ],
    memory: (512 << 10, 128),
    is_linear: true,
};

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let line = Line::new(&Endpoint::default(), &[]);
    let wire = ClickhouseWire::new(socket, line, Own::default(), Engine::MergeTree, "18.16.1".to_owned());
    converse(WireSession::new(wire), *first, "max_threads")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = (CLICKHOUSE.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 3, 2, 3, 2, 3]);
    }
}
