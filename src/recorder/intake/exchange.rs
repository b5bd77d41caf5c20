//! One HTTP connection, for every front that speaks HTTP: its bounds, and how it ends when the recorder stops.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::anteroom::Place;
use super::listen::Stream;
use super::response::{Answer, error};
use crate::recorder::stop::Stop;

/// What one connection too many is told.
pub(in crate::recorder) const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What a connection is told whose head does not come to its end in time, or is too long.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LONG: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Bytes of a request's head at most, from whoever was let in before, and from strangers.
const HEAD_BYTES: usize = 64 << 10;
const STRANGERS_HEAD_BYTES: usize = 16 << 10;
/// Bytes read from a stranger at a time.
const STRANGERS_STEP_BYTES: usize = 4 << 10;
/// How soon a connection learns that the recorder stops.
const LOOK: Duration = Duration::from_millis(200);
/// How long last words may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Answers the requests of a connection until it ends. A head has `patience` to arrive whole, from the answer before it on. When the recorder is
/// asked to stop, the request that is being answered is answered, and no other is waited for.
pub(in crate::recorder) async fn exchange<A, F>(
    stream: Box<dyn Stream>,
    place: &Arc<Place>,
    patience: Duration,
    stop: Arc<Stop>,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer>,
{
    let came = Arc::new(AtomicUsize::new(0));
    let service = service_fn(|request| {
        // The next head has as much room as this one had.
        came.store(0, Ordering::Relaxed);
        // What is in front of the recorder and the recorder itself could each take another one for the host.
        let answered = if names_its_host(&request) { Ok(answer(request)) } else { Err(no_host()) };
        async move {
            Ok::<_, Infallible>(match answered {
                Ok(answered) => answered.await,
                Err(refusal) => refusal,
            })
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(HEAD_BYTES).half_close(false);
    let bounded = Bounded { stream, place: Arc::clone(place), came: Arc::clone(&came), is_too_long: false };
    let mut connection = builder.serve_connection(TokioIo::new(bounded), service);
    let mut is_ending = false;
    let ended = loop {
        match tokio::time::timeout(LOOK, Pin::new(&mut connection)).await {
            Ok(ended) => break ended,
            Err(_) if stop.is_over() => return,
            Err(_) if stop.is_asked() && !is_ending => {
                Pin::new(&mut connection).graceful_shutdown();
                is_ending = true;
            }
            Err(_) => {}
        }
    };
    let Err(failure) = ended else { return };
    let parts = connection.into_parts();
    let mut bounded = parts.io.into_inner();
    let words = match failure.is_timeout() {
        // A connection that was only idle is closed without a word, which could be taken for the answer to the next request.
        true if !parts.read_buf.is_empty() => {
            place.count_slow();
            TOO_SLOW
        }
        false if bounded.is_too_long => TOO_LONG,
        _ => return,
    };
    let say = async {
        let _ = bounded.stream.write_all(words).await;
        let _ = bounded.stream.shutdown().await;
    };
    let _ = tokio::time::timeout(LAST_WORDS, say).await;
}

/// A connection of which no more is read than a head may have, until it was let in.
struct Bounded {
    stream: Box<dyn Stream>,
    place: Arc<Place>,
    /// Bytes since the request before.
    came: Arc<AtomicUsize>,
    is_too_long: bool,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.place.is_known() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let came = self.came.load(Ordering::Relaxed);
        if came >= STRANGERS_HEAD_BYTES {
            self.is_too_long = true;
            return Poll::Ready(Ok(()));
        }
        let mut piece = [0; STRANGERS_STEP_BYTES];
        let room = STRANGERS_STEP_BYTES.min(STRANGERS_HEAD_BYTES - came).min(buffer.remaining());
        let mut piece = ReadBuf::new(&mut piece[..room]);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut piece);
        buffer.put_slice(piece.filled());
        self.came.store(came + piece.filled().len(), Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Whether there is one host, as HTTP/1.1 demands.
fn names_its_host<B>(request: &Request<B>) -> bool {
    match request.headers().get_all(HOST).iter().count() {
        0 => request.version() < Version::HTTP_11,
        hosts => hosts == 1,
    }
}

fn no_host() -> Answer {
    let message = "there must be one header Host, and no second one";
    let mut answer = error(StatusCode::BAD_REQUEST, "invalid", message);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
