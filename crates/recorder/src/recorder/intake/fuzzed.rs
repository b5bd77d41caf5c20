//! Fuzzing: whole connections, from a client's bytes to what is acknowledged, without a socket and without a disk.

use std::io::Read;
use std::sync::{Arc, LazyLock};

use super::checking::{ERRORS_MAX, bad_lines_of, check};
use super::door::{Door, DoorSettings, Route};
use super::exchange::HTTP2_PREFACE;
use super::request::{Wrong, decompress};
use super::{Incoming, Live, Surroundings, http, publisher, tcp};
use crate::fuzzed::{Script, Target, assert_told, heard, texts};
use crate::recorder::access::{Owner, Sender};
use crate::recorder::admission::Gate;
use crate::recorder::config::{self, Config};
use crate::recorder::line::{LineBounds, Parser, Point, Precision, Value};
use crate::recorder::spool::{Caught, Offer};

/// Lines, as the door checks them.
pub static LINES: Target = Target {
    name: "lines",
    run: lines,
    seeds: || {
        texts(&[
            "\0qos,probe=oulu rtt_ms=20.5,lost=0i,n=7u,ok=t,note=\"a\\\"b\\\\ c\" 1700000000\n",
            "\u{3}m,a\\ b=c\\,d\\=e f=1e3,g=-.5 1700000000\n# comment\n\nm f=\nm f=\"a\nb\"\r\nm f=T",
            "\u{3}m,a\\ b=c f=\"x\\\\y \\\"z\\\"\" 17\nm f=\nm f=T",
            "\u{16}m,a=1,b=2,a=3 f=1\nm f=9223372036854775807i -1\nm f=1 2 3",
        ])
    },
    words: &[
        "=",
        ",",
        "\\\"",
        "\"",
        "\\ ",
        "i",
        "u",
        "true",
        "-9223372036854775808i",
        "18446744073709551615u",
        "1e308",
        "\r\n",
        "#",
    ],
    memory: (64 << 10, 256),
    is_linear: true,
};

/// One HTTP connection.
pub static HTTP: Target = Target {
    name: "http",
    run: |input| connection(input, Front::Http),
    seeds: || {
        texts(&[
            "\0POST /api/v2/write?precision=s HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nm f=1 5\n",
            "\u{1}POST /write?p=0123456789abcdef&precision=m%73 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nqos f=\r\n2\r\n1\n\r\n0\r\n\r\n",
            "\0POST /api/v3/write_lp?precision=auto&accept_partial=false HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 7\r\nX-Loadline-Source: s\r\nContent-Length: 12\r\n\r\nm f=\nm f=1 5GET /ready HTTP/1.1\r\nHost: a\r\n\r\n",
            "\u{1}POST /write HTTP/1.1\r\nHost: a\r\nAuthorization: Basic dTowMTIzNDU2Nzg5YWJjZGVm\r\nContent-Length: 7\r\n\r\ncpu f=1GET /query?q=create+database HTTP/1.0\r\n\r\n",
        ])
    },
    words: &[
        "precision=",
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: zstd\r\n",
        "Authorization: Token 0123456789abcdef\r\n",
        "Content-Length: ",
        "\r\n\r\n",
        "%00",
        "\"",
        "/metrics",
        "HTTP/1.0",
    ],
    memory: ((1 << 20) + (256 << 10), 256),
    is_linear: true,
};

/// One HTTP/2 connection, after the client's preface.
pub static HTTP2: Target = Target {
    name: "http2",
    run: |input| connection(input, Front::Http2),
    seeds: || {
        // The flags END_HEADERS and END_STREAM.
        const WHOLE: u8 = 4;
        const LAST: u8 = 1;
        let write = [&b"\x83\x86\x04\x0d/api/v2/write\x01\x01a"[..]].concat();
        let token = b"\x40\x0dauthorization\x16Token 0123456789abcdef";
        let ready = b"\x82\x86\x04\x06/ready\x01\x01a";
        let seed = |first: u8, frames: &[Vec<u8>]| [&[first][..], &frame(4, 0, 0, b""), &frames.concat()].concat();
        vec![
            seed(0, &[frame(1, WHOLE, 1, &write), frame(0, LAST, 1, b"m f=1 5\n")]),
            seed(
                9,
                &[
                    frame(1, WHOLE, 1, &[&write[..], token].concat()),
                    frame(1, WHOLE | LAST, 3, ready),
                    frame(0, 0, 1, b"qos rtt=2i\n"),
                    // A ping, more room for answers, and the first header of the table in one byte.
                    frame(6, 0, 0, b"12345678"),
                    frame(8, 0, 0, b"\0\0\x10\0"),
                    frame(1, WHOLE, 5, &[&write[..], b"\xbe"].concat()),
                    frame(3, 0, 5, b"\0\0\0\x08"),
                    frame(0, LAST, 1, b"qos f=\n"),
                ],
            ),
            // A head in two frames, and two hosts.
            seed(
                1,
                &[
                    frame(1, 0, 1, &write),
                    frame(9, WHOLE, 1, b"\0\x04host\x01b"),
                    frame(0, LAST, 1, b"m f=1\n"),
                    frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0"),
                ],
            ),
        ]
    },
    words: &["\0\0\u{8}\u{6}\0\0\0\0\0", "\0\0\u{4}\u{8}\0\0\0\0\0", "\u{1}\u{4}\0\0\0\u{7}", "\0\u{4}host\u{1}a"],
    // Each of up to a hundred requests has room for a mebibyte, of which it uses no page that was not written to; the shortest one takes 24 bytes.
    memory: ((1 << 20) + (256 << 10), (1 << 20) / 24),
    is_linear: true,
};

/// Returns a frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_else(|error| panic!("{error}"));
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// One connection of lines.
pub static TCP: Target = Target {
    name: "tcp",
    run: |input| connection(input, Front::Tcp),
    seeds: || {
        texts(&[
            "\0qos,probe=a rtt=1.5 1700000000\nqos rtt=2i\n\n# source=s id=7 precision=ms\nm f=1 5\n\n",
            "\u{1}# token=0123456789abcdeg source=north-1\nqos f=1\r\n\r\nqos f=\n\ncpu f=1\n",
            "\u{4}trades,sym=a price==\u{10}\0\0\0\0\0\0\u{f0}?,b==\u{e}\n\n\n\nm f=\"a\n\nb\"\nm f=1",
        ])
    },
    words: &[
        "\n\n",
        "\r\n\r\n",
        "# token=0123456789abcdef",
        "# token=0123456789abcdeg source=north-",
        " source=",
        " id=",
        " precision=",
        "==",
        "#",
    ],
    memory: ((1 << 20) + (256 << 10), 256),
    is_linear: true,
};

/// Compressed bodies.
pub static PACKED: Target = Target {
    name: "packed",
    run: packed,
    seeds: || {
        let body = b"qos,probe=oulu rtt_ms=20.5 1700000000\n".repeat(9);
        let as_raw = |kind: u8, bytes: Vec<u8>| [&[kind][..], &bytes].concat();
        vec![
            as_raw(0, pack(&body, "gzip")),
            as_raw(1, pack(&body, "zstd")),
            as_raw(0, [pack(&body, "gzip"), pack(&[0; 300_000], "gzip")].concat()),
            as_raw(1, [pack(&body, "zstd"), pack(&[0; 1_000_000], "zstd")].concat()),
            as_raw(2, body.clone()),
            as_raw(3, body),
        ]
    },
    words: &["\u{1f}", "(\u{b5}/"],
    memory: (5 << 20, 64),
    is_linear: true,
};

static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let text = "[database]\npath = \"m.db\"\n[intake]\nrequest = \"1MiB\"\nmemory = \"4MiB\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\ntokens = [\"0123456789abcdef\"]\n\
                [intake.tcp]\nlisten = \"127.0.0.1:0\"\ntokens = [\"0123456789abcdef\"]\n[[access]]\nname = \"north\"\nsources = [\"north-*\"]\nmeasurements = [\"qos\"]\n\
                token_hash = \"sha256:f95db7a3a36b44df7aa39d1e868edf53452e8b2cfc5b303916ec442c33eefe05\"\n";
    config::read(text, "c.toml").unwrap_or_else(|errors| panic!("{errors}"))
});

/// Returns all that an intake needs, and what its committer receives.
fn surroundings(has_tokens: bool) -> (Surroundings, Caught) {
    let mut config = CONFIG.intake.clone();
    let mut access = CONFIG.access.clone();
    if !has_tokens {
        access.clear();
        for listen in [&mut config.http, &mut config.tcp].into_iter().flatten() {
            listen.tokens.clear();
        }
    }
    let (committer, caught) = Caught::new();
    let live = Arc::new(Live::new(&config, &access, CONFIG.limits));
    let door = Arc::new(Door::new(DoorSettings {
        route: Route::Spool(committer.clone(), 1),
        spool: committer,
        meter: Arc::default(),
        gate: Arc::new(Gate::new(
            Box::new(|| 0.0),
            Box::new(|| std::time::Duration::ZERO),
            crate::recorder::clock::machine(),
        )),
        memory_bytes: config.memory_bytes,
        keeps_good_lines: true,
        live: Arc::clone(&live),
        patience: std::time::Duration::from_secs(5),
    }));
    let surroundings = Surroundings {
        config,
        direct_door: Arc::clone(&door),
        patient_door: Arc::clone(&door),
        door,
        parts: None,
        publisher: None,
        live,
        meter: Arc::default(),
        stop: Arc::default(),
        metrics: Arc::new(String::new),
        readiness: Arc::new(|| None),
        quarantine: Arc::new(|| None),
    };
    (surroundings, caught)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap_or_else(|error| panic!("{error}"))
}

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq)]
enum Front {
    Http,
    Http2,
    Tcp,
}

/// Serves a connection. The first byte decides whether there are tokens, and into what pieces the rest is cut.
fn connection(input: &[u8], front: Front) {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let rest = &if front == Front::Http2 { [HTTP2_PREFACE, rest].concat() } else { rest.to_vec() }[..];
    let (has_tokens, is_tcp) = (first & 1 == 1, front == Front::Tcp);
    let (script, said) = Script::new(rest, if *first < 2 { usize::MAX } else { usize::from(*first) });
    let (surroundings, mut caught) = surroundings(has_tokens);
    let peer = std::net::SocketAddr::from(([10, 0, 0, 1], 5));
    runtime().block_on(async {
        let served = async {
            match is_tcp {
                true => tcp::fuzzed_connection(Box::new(script), peer, surroundings).await,
                false => http::fuzzed_connection(Box::new(script), peer, surroundings).await,
            }
        };
        tokio::join!(served, caught.take_all());
    });
    let said = heard(&said);
    let offered: u64 = caught.offers.iter().map(|offer| u64::from(offer.rows)).sum();
    caught.offers.iter().for_each(assert_good);
    if !is_tcp && rest.starts_with(HTTP2_PREFACE) {
        assert_frames_answered(&said, rest.len());
    } else {
        let said = String::from_utf8(said).unwrap_or_else(|error| panic!("an answer is no text: {error}"));
        match is_tcp {
            true => assert_lines_answered(&said, offered),
            false => assert_requests_answered(&said, rest.len()),
        }
    }
    // Without strings and comments each line is a line of its own, however batches are cut.
    let is_plain = is_tcp && !has_tokens && !rest.iter().any(|byte| b"\"#\\".contains(byte));
    if is_plain {
        assert_eq!(offered, good_points(rest).len() as u64, "good lines were lost, or came twice");
    }
}

/// Asserts that an offer contains what it declares.
fn assert_good(offer: &Offer) {
    let mut parser = Parser::bounded(&offer.body, offer.precision, LineBounds::default());
    let mut point = Point::default();
    let mut rows = 0;
    while let Some(read) = parser.next(&mut point) {
        read.unwrap_or_else(|error| panic!("a bad line is stored: {error}"));
        rows += 1;
    }
    assert!(rows == offer.rows && rows > 0, "{rows} points are stored as {}", offer.rows);
    assert!(offer.source.len() <= 200 && offer.message_id.len() <= 300);
}

fn assert_lines_answered(said: &str, offered: u64) {
    assert!(said.is_empty() || said.ends_with('\n'));
    let mut acknowledged = 0;
    for line in said.lines() {
        assert_told(line, 1_000);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ok" | "partial" => acknowledged += rest.split(' ').next().and_then(|rows| rows.parse().ok()).unwrap_or(0),
            "duplicate" | "error" | "busy" | "unknown" => {}
            _ => panic!("{line:?} is no answer"),
        }
    }
    assert!(acknowledged <= offered, "{acknowledged} points are acknowledged and {offered} are stored");
}

fn assert_requests_answered(said: &str, sent: usize) {
    // What a refusal quotes of a request does not count.
    let begins = |place: &usize| {
        let line = said.as_bytes()[*place..].get(8..12);
        line.is_some_and(|line| line[0] == b' ' && line[1..].iter().all(u8::is_ascii_digit))
    };
    let places: Vec<usize> = said.match_indices("HTTP/1.").map(|(place, _)| place).filter(begins).collect();
    assert!(said.is_empty() || !places.is_empty(), "{said:?}");
    for (number, place) in places.iter().enumerate() {
        let answer = &said[*place..places.get(number + 1).copied().unwrap_or(said.len())];
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { panic!("{answer:?} has no head") };
        head.split("\r\n").for_each(|line| assert_told(line, 200));
        if head.contains("application/json") {
            assert_told(body, 16 << 10);
            let body: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
            body.get("message")
                .and_then(|message| message.as_str())
                .iter()
                .for_each(|message| assert_told(message, 8 << 10));
        }
    }
    assert!(said.len() <= (64 << 10) + 64 * sent, "{} bytes answer {sent}", said.len());
}

/// Asserts that the output over HTTP/2 is frames: settings first, then answers on streams that a client has opened.
fn assert_frames_answered(said: &[u8], sent: usize) {
    let (mut rest, mut number) = (said, 0);
    while let Some((head, behind)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, stream) = (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        assert!(number > 0 || kind == 4, "a frame of kind {kind} comes before the settings");
        match kind {
            0 | 1 | 9 => assert!(stream % 2 == 1, "a frame of kind {kind} is on stream {stream}"),
            // Any stream that a client has tried to open may be refused.
            3 => assert!(stream > 0, "a frame of kind {kind} is on no stream"),
            4 | 6 | 7 => assert_eq!(stream, 0, "a frame of kind {kind} is on a stream"),
            8 => {}
            _ => panic!("a frame of kind {kind}"),
        }
        rest = behind.get(length..).unwrap_or_else(|| panic!("a frame of {length} bytes has {}", behind.len()));
        number += 1;
    }
    assert!(rest.is_empty(), "{rest:?} is no frame");
    assert!(said.len() <= (64 << 10) + 64 * sent, "{} bytes answer {sent}", said.len());
}

/// Returns a point with all values, in a form that is compared exactly.
fn shown(point: &Point<'_>) -> String {
    let value = |value: &Value<'_>| match value {
        Value::Float(float) => format!("{:x}", float.to_bits()),
        Value::Text(text) => format!("{:?}", text.resolve()),
        other => format!("{other:?}"),
    };
    let tags = point.tags.iter().map(|(key, tag)| (key.resolve(), tag.resolve())).collect::<Vec<_>>();
    let fields = point.fields.iter().map(|(key, field)| (key.resolve(), value(field))).collect::<Vec<_>>();
    format!("{:?} {tags:?} {fields:?} {:?}", point.measurement().resolve(), point.time_ns)
}

fn points(body: &[u8], precision: Precision, bounds: LineBounds) -> (Vec<String>, usize) {
    let (mut parser, mut point) = (Parser::bounded(body, precision, bounds), Point::default());
    let (mut good, mut bad) = (Vec::new(), 0);
    let lines = 1 + body.iter().filter(|byte| **byte == b'\n').count();
    while let Some(read) = parser.next(&mut point) {
        match read {
            Ok(()) => good.push(shown(&point)),
            Err(error) => {
                bad += 1;
                assert!((1..=lines).contains(&error.line) && (1..=body.len() + 1).contains(&error.column), "{error}");
                assert_told(&error.to_string(), 500);
            }
        }
    }
    (good, bad)
}

fn good_points(body: &[u8]) -> Vec<String> {
    points(body, Precision::default(), LineBounds::default()).0
}

/// Parses lines. The first byte decides the precision, and whether lines may be large.
fn lines(input: &[u8]) {
    let (first, body) = input.split_first().unwrap_or((&0, &[]));
    let precision = Precision::from_code(first & 7).unwrap_or_default();
    let small = LineBounds { tags: 2, fields: 3, name_bytes: 8, series_bytes: 24, ..LineBounds::default() };
    let bounds = if first & 16 == 0 { LineBounds::default() } else { small };
    let (good, bad) = points(body, precision, bounds);
    let sender = Sender::free(Owner::Tokens);
    let Ok(checked) = check(body.to_vec(), precision, bounds, &sender) else { panic!("this sender may send all") };
    assert_eq!((checked.rows as usize, checked.bad_lines), (good.len(), bad));
    assert_eq!(checked.errors.len(), bad.min(ERRORS_MAX));
    let (kept, spoilt) = points(&checked.body, precision, bounds);
    assert_eq!(spoilt, 0, "good lines became bad ones");
    assert_eq!(kept, good, "good lines became others");
    if bad > 0 {
        let rest = bad_lines_of(body, precision, bounds);
        assert_eq!(rest.iter().map(|(_, lines)| *lines as usize).sum::<usize>(), bad);
        assert!(rest.iter().map(|(piece, _)| piece.len()).sum::<usize>() <= body.len());
        for (piece, lines) in rest {
            assert_eq!(points(&piece, precision, bounds), (Vec::new(), lines as usize), "bad lines became good ones");
        }
    }
}

fn pack(body: &[u8], how: &str) -> Vec<u8> {
    match how {
        "zstd" => zstd::bulk::compress(body, 1).unwrap_or_default(),
        _ => {
            let mut packed = Vec::new();
            let _ = flate2::read::GzEncoder::new(body, flate2::Compression::fast()).read_to_end(&mut packed);
            packed
        }
    }
}

/// Decompresses a body. The first byte decides the compression, and whether the rest is compressed already.
fn packed(input: &[u8]) {
    const BYTES_MAX: u64 = 128 << 10;
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let how = if first & 1 == 0 { "gzip" } else { "zstd" };
    let (surroundings, _caught) = surroundings(false);
    let memory = runtime().block_on(surroundings.door.reserve(1));
    let mut memory = memory.unwrap_or_else(|_| panic!("there is memory"));
    let mut unpack = |bytes: &[u8]| decompress(bytes, how, &mut memory, &surroundings.door, BYTES_MAX);
    if first & 2 == 0 {
        match unpack(rest) {
            Ok(body) => assert!(body.len() as u64 <= BYTES_MAX),
            Err(Wrong::Bad(reason)) => assert_told(&reason, 300),
            Err(wrong) => assert!(matches!(wrong, Wrong::TooLarge(BYTES_MAX) | Wrong::Refused(_)), "{wrong:?}"),
        }
    } else {
        assert_eq!(unpack(&pack(rest, how)).as_deref(), Ok(rest), "what was packed is unpacked");
    }
}

/// What a header says of a request that comes out of a stream is what is written of it again; a header that no recorder wrote changes nothing.
pub static PUBLISHED: Target = Target {
    name: "published",
    run: |input| {
        let text = String::from_utf8_lossy(input);
        let read = publisher::request(&text, message());
        let written = publisher::header(&read.source, &read.message_id, read.precision, read.received_ns);
        let written = written.unwrap_or_else(|error| panic!("{error}"));
        let again = publisher::request(&written, message());
        let all = |read: &Incoming| (read.source.clone(), read.message_id.clone(), read.precision, read.received_ns);
        // Written in full it may be longer than what is read.
        assert!(all(&again) == all(&read) || written.len() > publisher::HEADER_BYTES_MAX, "{text:?} {written:?}");
    },
    seeds: || {
        texts(&[
            r#"{"source":"s","id":"access a\nid","precision":2,"received_ns":-3}"#,
            r#"{"source":"\u00e4","id":"","precision":0,"received_ns":1700000000000000000}"#,
        ])
    },
    words: &["source", "id", "precision", "received_ns", "\\u", "{", "}"],
    memory: (64 << 10, 64),
    is_linear: true,
};

fn message() -> Incoming {
    Incoming {
        sender: Arc::new(Sender::free(Owner::Stream)),
        source: "s".into(),
        message_id: "1".to_owned(),
        precision: Precision::default(),
        body: Vec::new(),
        is_whole: false,
        received_ns: 0,
        received: std::time::Instant::now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_batches_that_come_together_hold_no_more_than_themselves() {
        let (script, _said) = Script::new(&b"m f=1\n\n".repeat(2_000), usize::MAX);
        let (surroundings, mut caught) = surroundings(false);
        let peer = std::net::SocketAddr::from(([10, 0, 0, 1], 5));
        let served = tcp::fuzzed_connection(Box::new(script), peer, surroundings);
        runtime().block_on(async { tokio::join!(served, caught.take_all()) });
        assert_eq!(caught.offers.len(), 2_000);
        let held: usize = caught.offers.iter().map(|offer| offer.body.capacity()).sum();
        assert!(held < 200_000, "16,000 bytes hold {held}");
    }
}
