//! The transport over epoll. Only readability is watched; writability is watched only while a request did not fit into the
//! socket's buffer, because a unix socket would otherwise wake the loop once more per operation.
//!
//! A wait for answers alone has no time limit, since that would cost two changes of a kernel timer per operation: a
//! periodic timer ends the wait.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::event_loop::{Arrival, Chunk, Transport, WAIT_NS_MAX};

/// Maximum number of bytes per read; longer answers take several reads.
const INPUT_BYTES: usize = 64 * 1024;
/// Maximum number of events taken at once.
const EVENTS: usize = 64;
/// Marks the timer's events; no connection has this place.
const TICK: u64 = u64::MAX;

/// Connections watched by an epoll instance.
pub struct Epoll {
    poll: OwnedFd,
    /// A timer that expires every [`WAIT_NS_MAX`].
    ticks: OwnedFd,
    connections: Vec<Option<Connection>>,
    events: [libc::epoll_event; EVENTS],
    ready: std::ops::Range<usize>,
    input: Vec<u8>,
}

struct Connection {
    fd: RawFd,
    /// Bytes that the socket has not taken yet.
    unsent: Vec<u8>,
}

impl Epoll {
    /// Makes an instance without connections.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn new() -> std::io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointer.
        let poll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let ticks = ticks()?;
        watch(&poll, libc::EPOLL_CTL_ADD, TICK, ticks.as_raw_fd(), libc::EPOLLIN)?;
        let events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let input = vec![0; INPUT_BYTES];
        Ok(Epoll { poll, ticks, connections: Vec::new(), events, ready: 0..0, input })
    }

    fn control(&self, operation: libc::c_int, place: usize, fd: RawFd, events: libc::c_int) -> std::io::Result<()> {
        watch(&self.poll, operation, place as u64, fd, events)
    }

    fn send_rest(&mut self, place: usize) -> std::io::Result<()> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        let count = write(connection.fd, &connection.unsent)?;
        connection.unsent.drain(..count);
        let (fd, is_sent) = (connection.fd, connection.unsent.is_empty());
        if is_sent { self.control(libc::EPOLL_CTL_MOD, place, fd, libc::EPOLLIN) } else { Ok(()) }
    }
}

impl Transport for Epoll {
    const NAME: &'static str = "epoll";

    fn attach(&mut self, place: usize, fd: RawFd) -> std::io::Result<()> {
        // SAFETY: fcntl with these commands takes no pointer; the descriptor is open.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        self.control(libc::EPOLL_CTL_ADD, place, fd, libc::EPOLLIN)?;
        if self.connections.len() <= place {
            self.connections.resize_with(place + 1, || None);
        }
        self.connections[place] = Some(Connection { fd, unsent: Vec::new() });
        Ok(())
    }

    fn detach(&mut self, place: usize) {
        if let Some(connection) = self.connections[place].take() {
            // Closing the descriptor removes it from the instance in any case.
            let _ = self.control(libc::EPOLL_CTL_DEL, place, connection.fd, 0);
        }
    }

    fn send(&mut self, place: usize, bytes: &[u8]) -> std::io::Result<()> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        if !connection.unsent.is_empty() {
            connection.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let count = write(connection.fd, bytes)?;
        if count < bytes.len() {
            connection.unsent.extend_from_slice(&bytes[count..]);
            let fd = connection.fd;
            self.control(libc::EPOLL_CTL_MOD, place, fd, libc::EPOLLIN | libc::EPOLLOUT)?;
        }
        Ok(())
    }

    fn wait(&mut self, wait_ns: u64) {
        let timeout = libc::timespec {
            tv_sec: (wait_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait_ns % 1_000_000_000) as libc::c_long,
        };
        let timeout = if wait_ns == WAIT_NS_MAX { std::ptr::null() } else { &raw const timeout };
        // SAFETY: the pointers are to values of ours that outlive the call, the count is the length of the array, and neither a
        // time limit nor a signal mask is needed.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.poll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        self.ready = 0..count.max(0) as usize;
    }

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let event = self.events[self.ready.next()?];
            if event.u64 == TICK {
                // The kernel restarts the timer when its count of expirations is read.
                let _ = read(self.ticks.as_raw_fd(), &mut [0; 8]);
                continue;
            }
            let (place, events) = (event.u64 as usize, event.events);
            if events & libc::EPOLLOUT as u32 != 0
                && let Err(error) = self.send_rest(place)
            {
                return Some(Arrival::Closed(place, error.to_string()));
            }
            if events & !(libc::EPOLLOUT as u32) == 0 {
                continue;
            }
            let Some(connection) = self.connections[place].as_ref() else { continue };
            match read(connection.fd, &mut self.input) {
                Ok(0) => return Some(Arrival::Closed(place, "the server closed the connection".to_owned())),
                Ok(length) => return Some(Arrival::Bytes(place, Chunk { buffer: 0, length })),
                Err(error) if is_to_be_repeated(&error) => {}
                Err(error) => return Some(Arrival::Closed(place, error.to_string())),
            }
        }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.input[..chunk.length]
    }

    fn release(&mut self, _: Chunk) {}
}

fn owned(fd: RawFd) -> std::io::Result<OwnedFd> {
    // SAFETY: the kernel just made the descriptor, and nobody else owns it.
    if fd < 0 { Err(std::io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

fn watch(poll: &OwnedFd, operation: libc::c_int, tag: u64, fd: RawFd, events: libc::c_int) -> std::io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: tag };
    // SAFETY: the event outlives the call; both descriptors are open.
    let result = unsafe { libc::epoll_ctl(poll.as_raw_fd(), operation, fd, &mut event) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a timer that expires every [`WAIT_NS_MAX`].
fn ticks() -> std::io::Result<OwnedFd> {
    // SAFETY: timerfd_create takes no pointer.
    let ticks = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })?;
    let period = libc::timespec { tv_sec: 0, tv_nsec: WAIT_NS_MAX as libc::c_long };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: the times outlive the call; the former ones are not asked for.
    let result = unsafe { libc::timerfd_settime(ticks.as_raw_fd(), 0, &raw const times, std::ptr::null_mut()) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(ticks) }
}

fn is_to_be_repeated(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

fn read(fd: RawFd, into: &mut [u8]) -> std::io::Result<usize> {
    // The C library's own call first makes the thread cancellable and then not again, twice per operation.
    // SAFETY: the pointer and length are those of a slice of ours.
    let count = unsafe { libc::syscall(libc::SYS_read, fd, into.as_mut_ptr(), into.len()) };
    if count < 0 { Err(std::io::Error::last_os_error()) } else { Ok(count as usize) }
}

/// Writes the bytes that the socket takes, and returns their number; 0 if its buffer is full.
fn write(fd: RawFd, from: &[u8]) -> std::io::Result<usize> {
    let (flags, nowhere) = (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT, std::ptr::null::<libc::sockaddr>());
    // SAFETY: the pointer and length are those of a slice of ours; a connected socket needs no address.
    let count = unsafe { libc::syscall(libc::SYS_sendto, fd, from.as_ptr(), from.len(), flags, nowhere, 0usize) };
    if count >= 0 {
        return Ok(count as usize);
    }
    let error = std::io::Error::last_os_error();
    if is_to_be_repeated(&error) { Ok(0) } else { Err(error) }
}
