//! One HTTP connection, for every front that speaks HTTP: its bounds, and its end when the recorder stops. Main function: [`exchange`].
//!
//! A client speaks HTTP/1.1, or HTTP/2 if it begins with it, with TLS or without.

mod bounded;
mod http2;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;

use self::bounded::Bounded;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(super) use self::bounded::HTTP2_PREFACE;
use super::anteroom::Place;
use super::listen::Stream;
use super::response::{Answer, error};
use crate::recorder::stop::Stop;

/// The response to one connection too many.
pub(in crate::recorder) const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The responses to a connection whose request head is not complete in time, or is too long.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LONG: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The most bytes of a request's head, once the client is admitted.
const HEAD_BYTES: usize = 64 << 10;
/// How soon a connection notices that the recorder stops.
const LOOK: Duration = Duration::from_millis(200);
/// How long a last response may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Answers the requests of a connection until it ends. A head has `patience` to arrive whole, counted from the previous answer. When the recorder is
/// asked to stop, the request under way is answered, and no other is awaited.
pub(in crate::recorder) async fn exchange<A, F>(
    stream: Box<dyn Stream>,
    place: &Arc<Place>,
    patience: Duration,
    stop: Arc<Stop>,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let (begun, came) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut bounded = Bounded::new(stream, place, &came);
    let is_http2 = loop {
        match tokio::time::timeout(LOOK, bounded.is_http2()).await {
            Ok(Ok(is_http2)) => break is_http2,
            Ok(Err(_)) => return,
            Err(_) if stop.is_asked() => return,
            Err(_) if begun.elapsed() > patience => return end(bounded, place, Ended::Slow).await,
            Err(_) => {}
        }
    };
    if is_http2 {
        return http2::exchange(bounded, (place, came), patience, stop, answer).await;
    }
    let first_until = begun + patience;
    if let Some((bounded, ended)) = http1(bounded, came, (patience, first_until), stop, answer).await {
        end(bounded, place, ended).await;
    }
}

/// The reason why an HTTP/1.1 connection is ended that has sent a part of a head.
enum Ended {
    Slow,
    TooLong,
}

/// Serves an HTTP/1.1 connection; returns the reason if it is to end with a response. The first head has until `first_until`, each later one `patience`.
async fn http1<A, F>(
    bounded: Bounded,
    came: Arc<AtomicUsize>,
    (patience, first_until): (Duration, Instant),
    stop: Arc<Stop>,
    answer: A,
) -> Option<(Bounded, Ended)>
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer>,
{
    let requests = AtomicUsize::new(0);
    let service = service_fn(|request| {
        // The next head has as much room as this one had.
        came.store(0, Ordering::Relaxed);
        requests.fetch_add(1, Ordering::Relaxed);
        answered(request, &answer)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(HEAD_BYTES).half_close(false);
    let mut connection = builder.serve_connection(TokioIo::new(bounded), service);
    let mut is_ending = false;
    let is_slow = loop {
        match tokio::time::timeout(LOOK, Pin::new(&mut connection)).await {
            Ok(Ok(())) => return None,
            Ok(Err(failure)) => break failure.is_timeout(),
            Err(_) if stop.is_over() => return None,
            // A part of it arrived while the version of HTTP was being detected.
            Err(_) if requests.load(Ordering::Relaxed) == 0 && Instant::now() > first_until => break true,
            Err(_) if stop.is_asked() && !is_ending => {
                Pin::new(&mut connection).graceful_shutdown();
                is_ending = true;
            }
            Err(_) => {}
        }
    };
    let parts = connection.into_parts();
    let bounded = parts.io.into_inner();
    match is_slow {
        // An idle connection is closed without a response, which could be taken for the answer to the next request.
        true if !parts.read_buf.is_empty() => Some((bounded, Ended::Slow)),
        false if bounded.is_too_long => Some((bounded, Ended::TooLong)),
        _ => None,
    }
}

/// Sends the reason why a connection ends, unless nothing was received on it.
async fn end(mut bounded: Bounded, place: &Place, ended: Ended) {
    let words = match ended {
        Ended::Slow if !bounded.has_begun() => return,
        Ended::Slow => {
            place.count_slow();
            TOO_SLOW
        }
        Ended::TooLong => TOO_LONG,
    };
    let say = async {
        let _ = bounded.stream.write_all(words).await;
        let _ = bounded.stream.shutdown().await;
    };
    let _ = tokio::time::timeout(LAST_WORDS, say).await;
}

/// Returns the answer to a request, or a refusal if it does not name its host: a proxy in front of the recorder and the recorder itself could each understand
/// it as another request.
fn answered<A, F>(
    request: Request<Incoming>,
    answer: &A,
) -> impl Future<Output = Result<Answer, Infallible>> + use<A, F>
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer>,
{
    let answered = if names_its_host(&request) { Ok(answer(request)) } else { Err(no_host()) };
    async move {
        Ok(match answered {
            Ok(answered) => answered.await,
            Err(refusal) => refusal,
        })
    }
}

/// Returns whether there is exactly one host, as HTTP/1.1 requires. HTTP/2 names it in a field of its own, and a header beside that must be equal.
fn names_its_host<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let authority = request.uri().authority().filter(|_| request.version() == Version::HTTP_2);
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => false,
        (Some(host), None) => authority.is_none_or(|authority| host == authority.as_str()),
        (None, None) => authority.is_some() || request.version() < Version::HTTP_11,
    }
}

fn no_host() -> Answer {
    let message = "there must be one header Host (HTTP/2: :authority), and no second one";
    let mut answer = error(StatusCode::BAD_REQUEST, "invalid", message);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
