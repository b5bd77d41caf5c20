//! One HTTP connection, for every front that speaks HTTP: its bounds, and how it ends when the recorder stops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::listen::Stream;
use super::response::{Answer, error};
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
