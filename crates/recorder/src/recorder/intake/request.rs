//! Reads an HTTP request: its sender, its parameters, and its body within all bounds.

use std::io::Read;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Incoming as HttpBody};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, HeaderName};

use super::door::{Door, Memory};
use super::incoming::{Incoming, Refused};
use crate::recorder::access::{Owner, Sender, Senders, TokenHash};
use crate::recorder::clock::now_ns;
use crate::recorder::config::ListenConfig;
use crate::recorder::line::Precision;
use crate::recorder::quote::in_quotes;

/// The longest name of a source and id of a message, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// The path of InfluxDB 3 for writing.
pub(super) const WRITE_3: &str = "/api/v3/write_lp";
/// The largest window of zstd, as a power of two of bytes: the size that every decoder must support.
const WINDOW_LOG_MAX: u32 = 23;

/// Memory that is reserved for a longer body when its first bytes arrive; and the capacity that its buffer gets without growing.
const FIRST_BYTES: u64 = 16 << 10;
const CAPACITY_BYTES_MAX: u64 = 1 << 20;

/// The reason why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// 400
    Bad(String),
    /// 401, without a token.
    NoToken,
    /// 401, with an unknown token.
    UnknownToken,
    /// 403: the sender may not use this source name.
    Source(String),
    /// 408
    Slow,
    /// 413, with the bound.
    TooLarge(u64),
    /// 415
    Encoding(String),
    /// The door refused it.
    Refused(Refused),
}

/// Returns the value of a query parameter, percent-decoded.
pub(in crate::recorder) fn parameter(query: &str, name: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(out).ok()
}

/// Returns the sender by its token: `Authorization: Token …` or `Bearer …`, the password of `Basic …`, or the parameter `p` of InfluxDB 1.
pub(super) fn authorise<B>(request: &Request<B>, senders: &Senders, peer: SocketAddr) -> Result<Arc<Sender>, Wrong> {
    if senders.are_all() {
        return Ok(Arc::new(Sender::free(Owner::Address(peer.ip()))));
    }
    match given_token(request) {
        None => Err(Wrong::NoToken),
        Some(token) => senders.find(&token).ok_or(Wrong::UnknownToken),
    }
}

/// Returns the hash of the token that a request shows.
pub(in crate::recorder) fn given_token<B>(request: &Request<B>) -> Option<TokenHash> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = match header.and_then(|header| header.split_once(' ')) {
        Some((scheme, token)) if ["token", "bearer"].contains(&scheme.to_ascii_lowercase().as_str()) => {
            Some(token.trim().to_owned())
        }
        Some((scheme, encoded)) if scheme.eq_ignore_ascii_case("basic") => password(encoded.trim()),
        _ => parameter(request.uri().query().unwrap_or_default(), "p"),
    };
    given.map(|token| TokenHash::of(&token))
}

fn password(encoded: &str) -> Option<String> {
    use base64::Engine;
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

fn header<B>(request: &Request<B>, name: &HeaderName) -> Result<Option<String>, Wrong> {
    let Some(value) = request.headers().get(name) else { return Ok(None) };
    match value.to_str().ok().filter(|text| !text.is_empty() && text.len() <= NAME_BYTES_MAX) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Wrong::Bad(format!("the header {name} must have 1 to {NAME_BYTES_MAX} plain characters"))),
    }
}

/// Reads a write request.
pub(super) async fn read_write(
    (request, body): (&Request<()>, &mut HttpBody),
    (sender, peer): (Arc<Sender>, SocketAddr),
    door: &Door,
    config: &ListenConfig,
    bytes_max: u64,
) -> Result<(Incoming, Memory), Wrong> {
    let query = request.uri().query().unwrap_or_default();
    let usual = if request.uri().path() == WRITE_3 { "auto" } else { "" };
    let named = parameter(query, "precision").filter(|named| !named.is_empty()).unwrap_or(usual.to_owned());
    let Some(precision) = Precision::named(&named) else {
        let known = "there are ns, us, ms, s, m, h, and auto, nanosecond, microsecond, millisecond, second";
        return Err(Wrong::Bad(format!("precision {} is not known; {known}", in_quotes(&named))));
    };
    let is_whole = parameter(query, "accept_partial").is_some_and(|accepts| accepts.eq_ignore_ascii_case("false"));
    let source = header(request, &HeaderName::from_static("x-loadline-source"))?;
    if let Some(source) = &source {
        sender.may_be(source).map_err(Wrong::Source)?;
    }
    // A sender over its rate gets the answer before its body is read.
    let wait = sender.wait();
    if !wait.is_zero() {
        return Err(Wrong::Refused(Refused::TooFast(sender.bounds(), wait)));
    }
    let message_id = header(request, &HeaderName::from_static("idempotency-key"))?.unwrap_or_default();
    let encoding = request.headers().get(CONTENT_ENCODING).map_or(Ok(""), |value| value.to_str());
    let packed = match encoding {
        Ok("" | "identity") => None,
        Ok("gzip" | "x-gzip") => Some("gzip"),
        Ok("zstd") => Some("zstd"),
        other => return Err(Wrong::Encoding(other.unwrap_or("that").to_owned())),
    };
    let announced = body.size_hint().exact();
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        return Err(Wrong::TooLarge(bytes_max));
    }
    let bounds = (announced.unwrap_or(bytes_max), bytes_max);
    let (mut body, mut memory) = read_body(body, door, config.patience, bounds).await?;
    if let Some(packed) = packed {
        body = decompress(&body, packed, &mut memory, door, bytes_max)?;
    }
    let source = source.unwrap_or_else(|| peer.ip().to_string()).into();
    let (received_ns, received) = (now_ns(), Instant::now());
    Ok((Incoming { sender, source, message_id, precision, body, is_whole, received_ns, received }, memory))
}

/// Reads a body within `patience`, first byte to last. Memory is reserved as bytes arrive: a body that is only announced holds none. The body
/// may have to wait for memory in between, and that time is not counted.
async fn read_body(
    from: &mut HttpBody,
    door: &Door,
    patience: Duration,
    (announced, bytes_max): (u64, u64),
) -> Result<(Vec<u8>, Memory), Wrong> {
    let mut over = pin!(tokio::time::sleep(patience));
    let (mut body, mut memory) = (Vec::new(), None);
    loop {
        let frame = tokio::select! {
            biased;
            frame = from.frame() => frame,
            () = &mut over => return Err(Wrong::Slow),
        };
        let data = match &frame {
            None => break,
            Some(Err(_)) => return Err(Wrong::Bad("the body ended before its end".to_owned())),
            Some(Ok(frame)) => frame.data_ref().map_or(&[][..], |data| data),
        };
        let bytes = (body.len() + data.len()) as u64;
        if bytes > bytes_max {
            return Err(Wrong::TooLarge(bytes_max));
        }
        let (waited, room) = match &mut memory {
            Some(memory) => {
                let waited = door.reserve_arriving(memory, bytes, announced).await.map_err(Wrong::Refused)?;
                (waited, memory.bytes())
            }
            None => {
                let begun = Instant::now();
                memory = Some(door.reserve(bytes.max(FIRST_BYTES.min(announced))).await.map_err(Wrong::Refused)?);
                // Pages that were never written to use no memory.
                (begun.elapsed(), CAPACITY_BYTES_MAX)
            }
        };
        if bytes > body.capacity() as u64 {
            let room = room.min(announced).max(bytes) - body.len() as u64;
            body.reserve_exact(usize::try_from(room).unwrap_or(0));
        }
        if waited > Duration::from_millis(1) {
            let deadline = over.deadline() + waited;
            over.as_mut().reset(deadline);
        }
        body.extend_from_slice(data);
    }
    let memory = match memory {
        Some(memory) => memory,
        None => door.reserve(0).await.map_err(Wrong::Refused)?,
    };
    Ok((body, memory))
}

/// Waits for the rest of a short body that is not needed, and drops it: over HTTP/2 some clients miss an answer that comes before they have sent their body.
pub(super) async fn pass_over(body: &mut HttpBody) {
    const BYTES_MAX: u64 = 64 << 10;
    const WAIT: Duration = Duration::from_secs(1);
    if body.is_end_stream() || body.size_hint().lower() > BYTES_MAX {
        return;
    }
    let rest = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await
            && bytes <= BYTES_MAX
        {
            bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    };
    // A client that sends it more slowly is answered all the same.
    let _ = tokio::time::timeout(WAIT, rest).await;
}

/// Decompresses all members of a gzip file, or all frames of zstd.
pub(super) fn decompress(
    compressed: &[u8],
    packed: &str,
    memory: &mut Memory,
    door: &Door,
    bytes_max: u64,
) -> Result<Vec<u8>, Wrong> {
    const STEP_BYTES: usize = 64 << 10;
    let wrong = |error: std::io::Error| Wrong::Bad(format!("the body is no {packed}: {error}"));
    // Nothing is awaited here, so that there are never more windows than network threads.
    let mut decoder: Box<dyn Read + '_> = match packed {
        "zstd" => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed).map_err(wrong)?;
            decoder.window_log_max(WINDOW_LOG_MAX).map_err(wrong)?;
            Box::new(decoder)
        }
        _ => Box::new(flate2::read::MultiGzDecoder::new(compressed)),
    };
    let mut body = Vec::new();
    loop {
        let length = body.len();
        if length as u64 > bytes_max {
            return Err(Wrong::TooLarge(bytes_max));
        }
        door.reserve_more(memory, (compressed.len() + length + STEP_BYTES) as u64).map_err(Wrong::Refused)?;
        body.resize(length + STEP_BYTES, 0);
        let read = decoder.read(&mut body[length..]).map_err(wrong)?;
        body.truncate(length + read);
        if read == 0 {
            return Ok(body);
        }
    }
}

/// Returns how long clients are asked to wait, in whole seconds, at least one.
pub(in crate::recorder) fn retry_after_s(wait: Duration) -> u64 {
    wait.as_secs_f64().ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(header: Option<&str>, uri: &str) -> Request<()> {
        let mut request = Request::builder().uri(uri);
        if let Some(header) = header {
            request = request.header(AUTHORIZATION, header);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn tokens_come_in_all_the_ways_that_clients_send_them() {
        let senders = Senders::new(&["secret".to_owned()], &Senders::named(&[], &[]));
        let ask = |header: Option<&str>, uri: &str, senders: &Senders| {
            let peer = "10.0.0.1:5".parse().unwrap();
            authorise(&request(header, uri), senders, peer).map(|sender| sender.own_id("i"))
        };
        let of_tokens = Ok("tokens\ni".to_owned());
        for header in ["Token secret", "Bearer secret", "token secret", "Basic dXNlcjpzZWNyZXQ="] {
            assert_eq!(ask(Some(header), "/write", &senders), of_tokens, "{header}");
        }
        assert_eq!(ask(None, "/write?u=a&p=secret", &senders), of_tokens);
        assert_eq!(ask(None, "/write", &senders), Err(Wrong::NoToken));
        assert_eq!(ask(Some("Token secre"), "/write", &senders), Err(Wrong::UnknownToken));
        assert_eq!(ask(None, "/write", &Senders::default()), Ok("address 10.0.0.1\ni".to_owned()));
    }

    #[test]
    fn parameters_are_decoded() {
        assert_eq!(parameter("db=a&precision=m%73&x", "precision"), Some("ms".to_owned()));
        assert_eq!(parameter("precision=%4", "precision"), None);
        assert_eq!(parameter("xprecision=s", "precision"), None);
    }
}
