//! The machine's monotonic clock. It is the same for all processes, so that one process can compare a time stamped by another.

/// Returns the time of `CLOCK_MONOTONIC`, in nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until a time of [`now_ns`]; returns at once if it has passed, and earlier if a signal comes.
pub fn sleep_until_ns(time_ns: u64) {
    let time = libc::timespec { tv_sec: (time_ns / 1_000_000_000) as i64, tv_nsec: (time_ns % 1_000_000_000) as i64 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call; no remaining time is asked for.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_never_ends_before_its_time_and_the_past_is_over_at_once() {
        let until_ns = now_ns() + 2_000_000;
        sleep_until_ns(until_ns);
        assert!(now_ns() >= until_ns);
        sleep_until_ns(1);
    }
}
