//! The load engine's time: nanoseconds since the engine's origin, on the monotonic clock.

use std::time::{Duration, Instant};

use super::monotonic;

/// The engine's clock. All loops of a trial share one origin, so that their times can be compared.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Makes a clock that reads 0 now.
    pub fn start() -> Self {
        Clock { origin: Instant::now() }
    }

    /// Makes a clock that reads 0 at a time of the machine's monotonic clock, in nanoseconds, and before it. Clocks of several processes that are
    /// made for the same time agree to about 0.1 µs.
    pub fn since(monotonic_ns: u64) -> Self {
        let (now, now_ns) = (Instant::now(), monotonic::now_ns());
        let past = Duration::from_nanos(now_ns.saturating_sub(monotonic_ns));
        let ahead = Duration::from_nanos(monotonic_ns.saturating_sub(now_ns));
        Clock { origin: now.checked_sub(past).unwrap_or(now) + ahead }
    }

    /// Returns the nanoseconds since the origin.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Sleeps until a time; returns at once if it has passed. Accurate to the thread's timer slack.
    pub fn sleep_until_ns(&self, time_ns: u64) {
        let now_ns = self.now_ns();
        if time_ns > now_ns {
            std::thread::sleep(Duration::from_nanos(time_ns - now_ns));
        }
    }
}

/// Sets the calling thread's timer slack to its minimum, 1 ns: sleeps then end microseconds instead of 50 µs late.
pub fn minimise_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one unsigned long and touches no memory of ours.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
    }
}

/// Returns the CPU time that the calling thread has used, in seconds.
pub fn thread_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
    }
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_until_a_time_never_ends_before_it() {
        minimise_timer_slack();
        let clock = Clock::start();
        let until_ns = clock.now_ns() + 2_000_000;
        clock.sleep_until_ns(until_ns);
        assert!(clock.now_ns() >= until_ns);
        clock.sleep_until_ns(0);
    }

    #[test]
    fn a_clock_of_a_given_time_reads_what_has_passed_since_then_and_nothing_before() {
        let at_ns = monotonic::now_ns() - 3_000_000;
        let before_ns = monotonic::now_ns();
        let clock = Clock::since(at_ns);
        // It is wrong by no more than the time in which it was made.
        let error_ns = monotonic::now_ns() - before_ns;
        let (low_ns, read_ns, high_ns) = (monotonic::now_ns(), clock.now_ns(), monotonic::now_ns());
        assert!(read_ns + error_ns >= low_ns - at_ns && read_ns <= high_ns - at_ns + error_ns);
        assert_eq!(Clock::since(monotonic::now_ns() + 3_600_000_000_000).now_ns(), 0);
    }

    #[test]
    fn the_cpu_time_of_a_thread_grows_while_it_works_and_not_while_it_sleeps() {
        let before_s = thread_cpu_s();
        std::thread::sleep(Duration::from_millis(30));
        let asleep_s = thread_cpu_s() - before_s;
        let until = Instant::now() + Duration::from_millis(30);
        while Instant::now() < until {
            std::hint::black_box(0);
        }
        let awake_s = thread_cpu_s() - before_s - asleep_s;
        assert!(awake_s > asleep_s, "asleep {asleep_s} s, awake {awake_s} s");
    }
}
