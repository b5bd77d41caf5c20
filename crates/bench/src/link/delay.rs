//! A link on which frames take time: two interfaces, and a thread that carries frames from one to the other. Kernels
//! can do this themselves (netem), but many are built without it; a thread behaves the same on all.
//!
//! Main type: [`DelayLine`]. Invariant: the frames under way are bounded; frames that find no room are lost, as on a real link.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::LinkError;
use crate::database::Namespace;

/// Size of the largest frame that the kernel delivers when it leaves the segmentation to the next interface, header included.
const FRAME_BYTES_MAX: usize = 65_535 + 64;
/// How often the thread checks whether it must end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0;
/// Checksums and the segmentation of large TCP frames may be left to the receiver.
const OFFLOADS: libc::c_ulong = 0x1 | 0x2 | 0x4;

/// The thread and its interfaces, which are removed when the value is dropped.
#[derive(Debug)]
pub struct DelayLine {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DelayLine {
    /// Makes an interface in each of two namespaces; frames given to one come out of the other after `delay_s`.
    pub fn open(
        one: (&Namespace, &str),
        other: (&Namespace, &str),
        delay_s: f64,
        bytes_max: usize,
    ) -> Result<DelayLine, LinkError> {
        let ends = [open_tap(one.0, one.1)?, open_tap(other.0, other.1)?];
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let delay = Duration::from_secs_f64(delay_s);
        let thread = std::thread::Builder::new()
            .name("delay-line".to_owned())
            .spawn(move || carry(&ends, delay, bytes_max, &seen))
            .map_err(LinkError::system("start a thread for link.delay"))?;
        Ok(DelayLine { stop, thread: Some(thread) })
    }
}

impl Drop for DelayLine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A thread that panicked carries no frames any more either.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Opens an interface whose frames are read from and written to a file.
fn open_tap(namespace: &Namespace, name: &str) -> Result<File, LinkError> {
    let action = format!("make the interface {name} of a link with a delay");
    let open = || -> io::Result<File> {
        let _inside = namespace.enter()?;
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: ifreq is plain data; zero is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the request outlives the call and has the form that TUNSETIFF takes.
        if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: TUNSETOFFLOAD takes a number. If it fails, frames come segmented already: slower, but the same.
        unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD, OFFLOADS) };
        Ok(file)
    };
    open().map_err(LinkError::system(action))
}

/// Frames on their way in one direction.
#[derive(Debug, Default)]
struct InFlight {
    frames: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl InFlight {
    /// Adds a frame. Returns whether there was room.
    fn push(&mut self, due: Instant, frame: &[u8], bytes_max: usize) -> bool {
        if self.bytes + frame.len() > bytes_max {
            return false;
        }
        self.bytes += frame.len();
        self.frames.push_back((due, frame.to_vec()));
        true
    }

    /// Returns the next frame that has arrived by now.
    fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.frames.front().filter(|(due, _)| *due <= now)?;
        let (_, frame) = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    fn next_due(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }
}

/// Carries frames in both directions until it must stop.
fn carry(ends: &[File; 2], delay: Duration, bytes_max: usize, stop: &AtomicBool) {
    // SAFETY: takes a number; the thread sleeps as precisely as it can.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    let mut lines = [InFlight::default(), InFlight::default()];
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    while !stop.load(Ordering::Acquire) {
        for (from, line) in lines.iter_mut().enumerate() {
            // An interface that is down refuses; its frames are lost, as on an unplugged cable.
            while let Ok(length @ 1..) = (&ends[from]).read(&mut buffer) {
                line.push(Instant::now() + delay, &buffer[..length], bytes_max);
            }
            while let Some(frame) = line.pop(Instant::now()) {
                let _ = (&ends[1 - from]).write(&frame);
            }
        }
        let next = lines.iter().filter_map(InFlight::next_due).min();
        let patience = next.map_or(LOOK_EVERY, |due| due.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
        wait_readable([ends[0].as_raw_fd(), ends[1].as_raw_fd()], patience);
    }
}

fn wait_readable(fds: [RawFd; 2], patience: Duration) {
    let mut polls = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let timeout =
        libc::timespec { tv_sec: patience.as_secs() as libc::time_t, tv_nsec: patience.subsec_nanos() as libc::c_long };
    // SAFETY: both structures outlive the call; an error is as good as nothing to read.
    unsafe { libc::ppoll(polls.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_in_their_order_and_not_before_their_time() {
        let start = Instant::now();
        let mut line = InFlight::default();
        assert!(line.push(start + Duration::from_millis(10), b"first", 100));
        assert!(line.push(start + Duration::from_millis(20), b"second", 100));
        assert_eq!(line.pop(start), None);
        assert_eq!(line.pop(start + Duration::from_millis(10)).as_deref(), Some(&b"first"[..]));
        assert_eq!(line.next_due(), Some(start + Duration::from_millis(20)));
        assert_eq!(line.pop(start + Duration::from_millis(30)).as_deref(), Some(&b"second"[..]));
        assert_eq!((line.bytes, line.next_due()), (0, None));
    }

    #[test]
    fn what_finds_no_room_is_lost() {
        let mut line = InFlight::default();
        assert!(line.push(Instant::now(), &[0; 60], 100));
        assert!(!line.push(Instant::now(), &[0; 60], 100));
        assert!(line.push(Instant::now(), &[0; 40], 100));
    }
}
