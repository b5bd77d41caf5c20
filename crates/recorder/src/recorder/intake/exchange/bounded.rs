//! Bounded reading of a connection: until its client is admitted, no more than a head may have. Main type: [`Bounded`].

use std::io::Result;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::recorder::intake::anteroom::Place;
use crate::recorder::intake::listen::Stream;

/// The most bytes of a stranger's head; also those read at a time.
const STRANGERS_HEAD_BYTES: usize = 16 << 10;
const STRANGERS_STEP_BYTES: usize = 4 << 10;
/// The first bytes of a client of HTTP/2 (RFC 9113, section 3.4).
pub(in crate::recorder::intake) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection of which no more is read than a head may have, until its client is admitted.
pub(super) struct Bounded {
    pub(super) stream: Box<dyn Stream>,
    place: Arc<Place>,
    /// Bytes received since the previous request.
    came: Arc<AtomicUsize>,
    pub(super) is_too_long: bool,
    /// The most bytes since the previous request, from a stranger.
    pub(super) strangers_most: usize,
    /// Bytes that were read ahead to detect the protocol, and how many of them were passed on.
    ahead: Vec<u8>,
    read: usize,
}

impl Bounded {
    pub(super) fn new(stream: Box<dyn Stream>, place: &Arc<Place>, came: &Arc<AtomicUsize>) -> Self {
        let (place, came) = (Arc::clone(place), Arc::clone(came));
        Bounded {
            stream,
            place,
            came,
            is_too_long: false,
            strangers_most: STRANGERS_HEAD_BYTES,
            ahead: Vec::new(),
            read: 0,
        }
    }

    /// Returns whether the client begins as one of HTTP/2 does. Waits for bytes only as long as they can still match. Nothing is lost if the
    /// future is dropped.
    ///
    /// # Errors
    /// When the connection fails.
    pub(super) async fn is_http2(&mut self) -> Result<bool> {
        while self.ahead.len() < HTTP2_PREFACE.len() && HTTP2_PREFACE.starts_with(&self.ahead) {
            let mut piece = [0; HTTP2_PREFACE.len()];
            let room = HTTP2_PREFACE.len() - self.ahead.len();
            match self.stream.read(&mut piece[..room]).await? {
                0 => return Ok(false),
                count => self.ahead.extend_from_slice(&piece[..count]),
            }
        }
        Ok(self.ahead == HTTP2_PREFACE)
    }

    /// Returns whether any bytes were received.
    pub(super) fn has_begun(&self) -> bool {
        !self.ahead.is_empty()
    }
}

impl AsyncRead for Bounded {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        if self.read < self.ahead.len() {
            let count = buffer.remaining().min(self.ahead.len() - self.read);
            let from = self.read;
            buffer.put_slice(&self.ahead[from..from + count]);
            self.read += count;
            self.came.fetch_add(count, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        if self.place.is_known() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let came = self.came.load(Ordering::Relaxed);
        if came >= self.strangers_most {
            self.is_too_long = true;
            return Poll::Ready(Ok(()));
        }
        let mut piece = [0; STRANGERS_STEP_BYTES];
        let room = STRANGERS_STEP_BYTES.min(self.strangers_most - came).min(buffer.remaining());
        let mut piece = ReadBuf::new(&mut piece[..room]);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut piece);
        buffer.put_slice(piece.filled());
        self.came.store(came + piece.filled().len(), Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
