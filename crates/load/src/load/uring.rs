//! The transport over io_uring: one system call serves all connections that are ready. It pays from about 8 connections on.
//!
//! Each connection has one multishot receive, which fills buffers of a ring that all connections share, and at most one
//! send under way. Invariant: memory that the kernel may still read or write is neither moved nor freed.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::event_loop::{Arrival, Chunk, Transport};

/// Bytes of one receive buffer; longer answers arrive in several buffers.
const BUFFER_BYTES: usize = 16 * 1024;
const BUFFER_GROUP: u16 = 0;
const PAGE_BYTES: usize = 4096;
/// Longest wait in seconds for the kernel to return its requests when the transport is dropped.
const CANCEL_S: u64 = 1;

/// Connections driven through one ring, which belongs to the thread that made it.
pub struct Uring {
    // Dropped first: the kernel lets go of the buffers below when the ring is closed.
    ring: IoUring,
    buffers: BufferRing,
    connections: Vec<Connection>,
    /// Sends of lost connections, kept until the ring is closed.
    given_up: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Connection {
    fd: Option<RawFd>,
    /// Distinguishes completions of an earlier connection in the same place.
    generation: u8,
    /// Bytes that the kernel is sending; not to be touched while `is_sending`.
    sending: Vec<u8>,
    is_sending: bool,
    queued: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Receive,
    Send,
}

impl Uring {
    /// Makes a ring for this many connections, to be used by the calling thread only.
    ///
    /// # Errors
    /// When the kernel does not have io_uring, or forbids it, or lacks a feature that is used here.
    pub fn new(connections: usize) -> std::io::Result<Self> {
        let entries = (connections * 2).next_power_of_two().max(32) as u32;
        let ring =
            IoUring::builder().setup_single_issuer().setup_defer_taskrun().setup_cqsize(entries * 4).build(entries)?;
        ring.submitter().register_files_sparse(connections as u32)?;
        let buffers = BufferRing::new((connections * 2).next_power_of_two().max(16) as u16);
        // SAFETY: the memory is page-aligned, holds the number of entries given, and outlives the ring by the order of fields.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(buffers.entries as u64, buffers.count, BUFFER_GROUP, 0)?;
        }
        let mut uring = Uring { ring, buffers, connections: Vec::new(), given_up: Vec::new() };
        uring.connections.resize_with(connections, Connection::default);
        (0..uring.buffers.count).for_each(|buffer| uring.buffers.give(buffer));
        Ok(uring)
    }

    fn tag(&self, place: usize, kind: Kind) -> u64 {
        let generation = u64::from(self.connections[place].generation);
        place as u64 | generation << 32 | u64::from(kind == Kind::Send) << 40
    }

    fn push(&mut self, entry: squeue::Entry) -> std::io::Result<()> {
        // SAFETY: what the entry points to, a connection's `sending` or the shared buffers, stays in place until its
        // completion was taken or the ring is closed.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    fn receive(&mut self, place: usize) -> std::io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(place as u32), BUFFER_GROUP).build();
        self.push(entry.user_data(self.tag(place, Kind::Receive)))
    }

    /// Passes `sending` to the kernel, starting at a byte.
    fn send_from(&mut self, place: usize, from: usize) -> std::io::Result<()> {
        let connection = &mut self.connections[place];
        connection.sending.drain(..from);
        connection.is_sending = true;
        let (start, length) = (connection.sending.as_ptr(), connection.sending.len() as u32);
        let entry = opcode::Send::new(Fixed(place as u32), start, length).flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        self.push(entry.build().user_data(self.tag(place, Kind::Send)))
    }

    fn handle(&mut self, entry: &cqueue::Entry) -> Option<Arrival> {
        let (place, generation) = (entry.user_data() as u32 as usize, (entry.user_data() >> 32) as u8);
        let is_send = entry.user_data() >> 40 & 1 == 1;
        let is_current = self.connections[place].generation == generation && self.connections[place].fd.is_some();
        let outcome = if is_send {
            if !is_current {
                return None;
            }
            self.sent(place, entry.result()).map(|()| None)
        } else {
            self.received(place, entry, is_current)
        };
        match outcome {
            Ok(arrival) => arrival,
            Err(error) => Some(Arrival::Closed(place, error.to_string())),
        }
    }

    fn sent(&mut self, place: usize, result: i32) -> std::io::Result<()> {
        if result < 0 {
            return Err(std::io::Error::from_raw_os_error(-result));
        }
        let connection = &mut self.connections[place];
        if (result as usize) < connection.sending.len() {
            return self.send_from(place, result as usize);
        }
        connection.is_sending = false;
        connection.sending.clear();
        if connection.queued.is_empty() {
            return Ok(());
        }
        std::mem::swap(&mut connection.sending, &mut connection.queued);
        self.send_from(place, 0)
    }

    fn received(&mut self, place: usize, entry: &cqueue::Entry, is_current: bool) -> std::io::Result<Option<Arrival>> {
        let buffer = cqueue::buffer_select(entry.flags());
        if !is_current {
            if let Some(buffer) = buffer {
                self.buffers.give(buffer);
            }
            return Ok(None);
        }
        let result = entry.result();
        if result == 0 {
            return Ok(Some(Arrival::Closed(place, "the server closed the connection".to_owned())));
        }
        if result < 0 && result != -libc::ENOBUFS {
            return Err(std::io::Error::from_raw_os_error(-result));
        }
        if !cqueue::more(entry.flags()) {
            self.receive(place)?;
        }
        Ok(buffer.map(|buffer| Arrival::Bytes(place, Chunk { buffer, length: result.max(0) as usize })))
    }
}

impl Transport for Uring {
    const NAME: &'static str = "io_uring";

    fn attach(&mut self, place: usize, fd: RawFd) -> std::io::Result<()> {
        self.ring.submitter().register_files_update(place as u32, &[fd])?;
        self.connections[place].fd = Some(fd);
        self.receive(place)
    }

    fn detach(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if let Some(fd) = connection.fd.take() {
            // SAFETY: shutdown takes no pointer. It ends the requests under way, which hold the socket open.
            unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
        }
        connection.generation = connection.generation.wrapping_add(1);
        connection.queued.clear();
        let sending = std::mem::take(&mut connection.sending);
        if std::mem::take(&mut connection.is_sending) {
            self.given_up.push(sending);
        }
        // The place is removed from the ring's files so that the socket can close; a failure keeps it open until the end.
        let _ = self.ring.submitter().register_files_update(place as u32, &[-1]);
    }

    fn send(&mut self, place: usize, bytes: &[u8]) -> std::io::Result<()> {
        let connection = &mut self.connections[place];
        if connection.is_sending {
            connection.queued.extend_from_slice(bytes);
            return Ok(());
        }
        connection.sending.extend_from_slice(bytes);
        self.send_from(place, 0)
    }

    fn wait(&mut self, wait_ns: u64) {
        let time = Timespec::new().sec(wait_ns / 1_000_000_000).nsec((wait_ns % 1_000_000_000) as u32);
        // A wait that ends by time or by a signal is an error to the kernel, but not here.
        let _ = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time));
    }

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let entry = self.ring.completion().next()?;
            if let Some(arrival) = self.handle(&entry) {
                return Some(arrival);
            }
        }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        self.buffers.bytes(chunk)
    }

    fn release(&mut self, chunk: Chunk) {
        self.buffers.give(chunk.buffer);
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Without this, the kernel could still write into buffers while they are freed. If there is nothing to cancel, that is an error too.
        let limit = Some(Timespec::new().sec(CANCEL_S));
        let cancelled = self.ring.submitter().register_sync_cancel(limit, CancelBuilder::any());
        let is_quiet = cancelled.map_or_else(|error| error.raw_os_error() == Some(libc::ENOENT), |()| true);
        if !is_quiet {
            // Buffers of requests that could not be cancelled in time may still be written to: their memory stays until the process ends.
            self.buffers.leave();
            self.given_up.drain(..).for_each(std::mem::forget);
            self.connections.drain(..).for_each(std::mem::forget);
        }
    }
}

/// The ring of receive buffers that this process and the kernel share.
struct BufferRing {
    entries: *mut BufRingEntry,
    memory: *mut u8,
    count: u16,
    tail: u16,
    /// Whether the memory is never freed, because the kernel may still write to it.
    is_left: bool,
}

impl BufferRing {
    fn leave(&mut self) {
        self.is_left = true;
    }

    /// Makes a ring of `count` buffers, a power of two. None is passed to the kernel yet.
    fn new(count: u16) -> Self {
        let (entries, memory) = (Self::entries_layout(count), Self::memory_layout(count));
        // SAFETY: both layouts have a size above zero.
        let (entries_at, memory_at) = unsafe { (alloc_zeroed(entries), alloc_zeroed(memory)) };
        if entries_at.is_null() || memory_at.is_null() {
            handle_alloc_error(memory);
        }
        BufferRing { entries: entries_at.cast(), memory: memory_at, count, tail: 0, is_left: false }
    }

    fn entries_layout(count: u16) -> Layout {
        let size = count as usize * size_of::<BufRingEntry>();
        Layout::from_size_align(size, PAGE_BYTES).expect("a page is a power of two and the size is small")
    }

    fn memory_layout(count: u16) -> Layout {
        let size = count as usize * BUFFER_BYTES;
        Layout::from_size_align(size, PAGE_BYTES).expect("a page is a power of two and the size is small")
    }

    /// Passes a buffer to the kernel.
    fn give(&mut self, buffer: u16) {
        debug_assert!(buffer < self.count);
        // SAFETY: place and buffer are below `count`, so both pointers are inside their allocations. The kernel reads the
        // entry only after the tail, which is written last with release ordering, has moved behind it.
        unsafe {
            let entry = &mut *self.entries.add((self.tail & (self.count - 1)) as usize);
            entry.set_addr(self.memory.add(buffer as usize * BUFFER_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        let (buffer, length) = (chunk.buffer.min(self.count - 1) as usize, chunk.length.min(BUFFER_BYTES));
        // SAFETY: the range is inside the allocation, and the kernel does not write to a buffer that it gave to us until it
        // is given back, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.add(buffer * BUFFER_BYTES), length) }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // SAFETY: both were allocated with these layouts and are freed once.
        unsafe {
            dealloc(self.entries.cast(), Self::entries_layout(self.count));
            dealloc(self.memory, Self::memory_layout(self.count));
        }
    }
}
