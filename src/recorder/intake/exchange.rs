//! One HTTP connection, for every front that speaks HTTP: its bounds, and how it ends when the recorder stops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::listen::Stream;
use super::response::Answer;
use crate::recorder::stop::Stop;

/// What one connection too many is told.
pub(in crate::recorder) const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Bytes of a request's head at most.
const HEAD_BYTES: usize = 64 << 10;
/// How soon a connection learns that the recorder stops.
const LOOK: Duration = Duration::from_millis(200);

/// Answers the requests of a connection until it ends. A head has `patience` to arrive. When the recorder is asked to stop, the request that is
/// being answered is answered, and no other is waited for.
pub(in crate::recorder) async fn exchange<A, F>(stream: Box<dyn Stream>, patience: Duration, stop: Arc<Stop>, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer>,
{
    let service = service_fn(|request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(HEAD_BYTES).half_close(false);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut is_ending = false;
    loop {
        match tokio::time::timeout(LOOK, connection.as_mut()).await {
            Ok(_) => return,
            Err(_) if stop.is_over() => return,
            Err(_) if stop.is_asked() && !is_ending => {
                connection.as_mut().graceful_shutdown();
                is_ending = true;
            }
            Err(_) => {}
        }
    }
}
