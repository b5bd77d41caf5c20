//! One connection of HTTP/2. Main function: [`exchange`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::bounded::Bounded;
use super::{LOOK, answered};
use crate::recorder::intake::anteroom::Place;
use crate::recorder::intake::response::Answer;
use crate::recorder::stop::Stop;

/// The most requests of a connection that are answered at a time: as many as clients may count on (RFC 9113, section 6.5.2).
const REQUESTS_MOST: u32 = 100;
/// The most bytes of a head, unpacked.
const HEAD_BYTES: u32 = 16 << 10;
/// Bytes of bodies that a client may send before they are read: they are not counted as memory yet.
const AHEAD_BYTES: u32 = 64 << 10;
/// The most bytes of answers that wait for a client to read them.
const ANSWERS_BYTES: usize = 64 << 10;

/// Number of requests that are being answered; a drop ends one.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of a connection until it ends. A client without a request under way has `patience` for the head of the next one, as over
/// HTTP/1.1.
pub(super) async fn exchange<A, F>(
    mut bounded: Bounded,
    (place, came): (&Place, Arc<AtomicUsize>),
    patience: Duration,
    stop: Arc<Stop>,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    // Bytes of bodies may arrive before the sender is known.
    bounded.strangers_most += AHEAD_BYTES as usize;
    let (requests, under_way) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, begun) = (Arc::clone(&requests), Arc::clone(&under_way));
    let service = service_fn(move |request| {
        came.store(0, Ordering::Relaxed);
        counted.fetch_add(1, Ordering::Relaxed);
        let is_under_way = UnderWay::new(&begun);
        let answer = answered(request, &answer);
        async move {
            let answer = answer.await;
            drop(is_under_way);
            answer
        }
    });
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).max_concurrent_streams(REQUESTS_MOST).max_header_list_size(HEAD_BYTES);
    builder.initial_stream_window_size(AHEAD_BYTES).initial_connection_window_size(AHEAD_BYTES);
    builder.max_send_buf_size(ANSWERS_BYTES);
    let mut connection = builder.serve_connection(TokioIo::new(bounded), service);
    let (mut is_ending, mut seen, mut idle_since) = (false, 0, Instant::now());
    loop {
        match tokio::time::timeout(LOOK, Pin::new(&mut connection)).await {
            Ok(_) => return,
            Err(_) if stop.is_over() => return,
            Err(_) => {}
        }
        let now_seen = requests.load(Ordering::Relaxed);
        if under_way.load(Ordering::Relaxed) > 0 || now_seen != seen {
            (seen, idle_since) = (now_seen, Instant::now());
        }
        let idle = idle_since.elapsed();
        if idle > 2 * patience {
            // The client does not read its answers either.
            place.count_slow();
            return;
        }
        if (stop.is_asked() || idle > patience) && !is_ending {
            Pin::new(&mut connection).graceful_shutdown();
            is_ending = true;
        }
    }
}
